"""diffprivlib: plain signatures, with values for its own parameters, and mechanisms whose input is no number.

Bounds are always given. What still warns that its defaults leak (`PrivacyLeakWarning`) is not run: see `worker.trial`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np

from dpwitness.claims import ApproxDP
from dpwitness.neighbours import Relation, pairs, queries
from dpwitness.sweeps.describers.describer import Attempt, Recipe
from dpwitness.sweeps.describers.signatures import EPSILON, Parameters, Released, Signatures


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A mechanism whose input is no number: its own parameters, its inputs, and how it is run on one.

    `named`: the parameter that is the input; None: it is what is randomised.
    """

    relation: Relation
    adjacency: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    named: str | None = None


TEXTS: Final = "any two values"
ONE_DIAGONAL: Final = (np.diag([1.0, 0.0]), np.diag([0.0, 1.0]))
SCORES: Final = "utilities that move by the sensitivity"
#: Of mechanisms that select by utilities, which they get as a list.
BY_UTILITY: Final[Mapping[str, Selection]] = {
    "": Selection(relation=queries(3), adjacency=SCORES, parameters={"sensitivity": 1.0}, named="utility"),
    "monotonic": Selection(
        relation=queries(3, direction="up"), adjacency=f"{SCORES}, all one way",
        parameters={"sensitivity": 1.0, "monotonic": True}, named="utility",
    ),
}  # fmt: skip
#: Mechanisms by name, each with the recipes that are made of it.
OWN: Final[Mapping[str, Mapping[str, Selection]]] = {
    "Binary": {"": Selection(relation=pairs(("a", "b")), adjacency=TEXTS, parameters={"value0": "a", "value1": "b"})},
    "Exponential": BY_UTILITY,
    "PermuteAndFlip": BY_UTILITY,
    "ExponentialCategorical": {
        "": Selection(
            relation=pairs(("a", "b"), ("a", "c"), ("b", "c")), adjacency=TEXTS,
            parameters={"utility_list": [["a", "b", 1], ["a", "c", 2], ["b", "c", 1]]},
        )
    },
    "ExponentialHierarchical": {
        "": Selection(
            relation=pairs(("a", "b"), ("a", "c"), ("c", "d")), adjacency=TEXTS,
            parameters={"hierarchy": [["a", "b"], ["c", "d"]]},
        )
    },
    "Bingham": {
        "": Selection(
            relation=pairs((np.zeros((2, 2)), ONE_DIAGONAL[0]), ONE_DIAGONAL), adjacency="matrices whose eigenvalues "
            "move by the sensitivity", parameters={"sensitivity": 1.0},
        )
    },
}  # fmt: skip


class Diffprivlib(Signatures):
    """Its tools, models and mechanisms."""

    values: ClassVar[Mapping[str, Any]] = {
        "data_norm": 2.0, "classes": [0, 1], "n_clusters": 2, "n_components": 1, "max_depth": 2, "n_estimators": 2,
        "max_iter": 20,
    }  # fmt: skip

    def describes(self, thing: object, place: str) -> bool:
        """Whether it is of diffprivlib, and has a parameter for ε that it does not hand on to a class of its own."""
        own = str(getattr(thing, "__module__", "")).startswith("diffprivlib.")
        return own and not str(getattr(thing, "__name__", "")).startswith("DP") and super().describes(thing, place)

    def recipes(self, thing: Any, place: str) -> Sequence[Recipe]:
        """Those of `OWN`, or of the signature."""
        return [Recipe(label=label) for label in OWN.get(thing.__name__, ())] or super().recipes(thing, place)

    def attempts(self, thing: Any, recipe: Recipe, records: Any = None) -> Iterator[Attempt]:
        """That of `OWN`, or those of the signature."""
        if thing.__name__ not in OWN:
            yield from super().attempts(thing, recipe, records)
            return
        own = OWN[thing.__name__][recipe.label]
        yield Attempt(
            mechanism=Released(thing, thing.__name__, randomised(thing, own), generator=False),
            claim=ApproxDP(EPSILON),
            relations=(own.relation,),
            adjacency=own.adjacency,
        )

    def _filled(self, thing: Any, own: Parameters, ends: tuple[float, float]) -> tuple[dict[str, object], list[str]]:
        """Bounds for each dimension of a histogram, and whole numbers where it takes no others."""
        found, unknown = super()._filled(thing, own, ends)
        if thing.__name__.startswith("Geometric"):  # over whole numbers
            found = {name: int(value) if name in ("lower", "upper") else value for name, value in found.items()}
        if thing.__name__ == "histogramdd":
            found |= {"range": [{"tuple": list(ends)}] * 2, "bins": 3}
        return found, unknown


def randomised(thing: Any, own: Selection) -> Callable[[object, object], object]:
    """What makes a mechanism for each run and runs it."""

    def call(value: Any, rng: Any) -> object:
        if own.named is not None:
            return thing(epsilon=EPSILON, **own.parameters, **{own.named: np.atleast_1d(value).tolist()}).randomise()
        return thing(epsilon=EPSILON, **own.parameters).randomise(value)

    return call


DESCRIBER = Diffprivlib()
