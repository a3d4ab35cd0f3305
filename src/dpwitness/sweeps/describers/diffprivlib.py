"""diffprivlib: plain signatures, with values for its own parameters, and mechanisms whose input is no number.

Bounds are always given. A mechanism that still warns that its defaults leak (`PrivacyLeakWarning`) is not run: see
`worker.trial`.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar, Final

import numpy as np

from dpwitness.claims import ApproxDP
from dpwitness.neighbours import Relation, pairs, queries
from dpwitness.sweeps.describers import Attempt, Recipe
from dpwitness.sweeps.describers.signatures import EPSILON, Parameters, Signatures, mechanism, parameters_of

ANY_TWO: Final = "any two values"
MOVED: Final = "utilities that move by the sensitivity"
UTILITIES: Final = [["a", "b", 1], ["a", "c", 2], ["b", "c", 1]]
HIERARCHY: Final = [["a", "b"], ["c", "d"]]
#: Mechanisms by name: the parameters by name, the relation, and its description for people.
OWN: Final[Mapping[str, tuple[dict[str, Any], Relation, str]]] = {
    "Binary": ({"value0": "a", "value1": "b"}, pairs(("a", "b")), ANY_TWO),
    "Exponential": ({"sensitivity": 1.0}, queries(3), MOVED),
    "PermuteAndFlip": ({"sensitivity": 1.0}, queries(3), MOVED),
    "ExponentialCategorical": ({"utility_list": UTILITIES}, pairs(*combinations("abc", 2)), ANY_TWO),
    "ExponentialHierarchical": ({"hierarchy": HIERARCHY}, pairs(*combinations("abcd", 2)), ANY_TWO),
}


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
        return [Recipe()] if thing.__name__ in OWN else super().recipes(thing, place)

    def attempts(self, thing: Any, recipe: Recipe, records: Any = None) -> Iterator[Attempt]:
        """That of `OWN`, or those of the signature."""
        if thing.__name__ not in OWN:
            yield from super().attempts(thing, recipe, records)
            return
        given, relation, adjacency = OWN[thing.__name__]
        selects = "utility" in parameters_of(thing)  # and takes the input as a parameter

        def call(value: Any, rng: object) -> object:
            if selects:
                return thing(epsilon=EPSILON, utility=np.atleast_1d(value).tolist(), **given).randomise()
            return thing(epsilon=EPSILON, **given).randomise(value)

        yield Attempt(
            mechanism=mechanism(thing, call),
            claim=ApproxDP(EPSILON),
            relations=(relation,),
            adjacency=adjacency,
        )

    def _filled(self, thing: Any, own: Parameters, ends: tuple[float, float]) -> tuple[dict[str, object], list[str]]:
        """Bounds for each dimension of a histogram, and whole numbers where it takes no others."""
        found, unknown = super()._filled(thing, own, ends)
        if thing.__name__.startswith("Geometric"):  # over whole numbers
            found = {name: int(value) if name in ("lower", "upper") else value for name, value in found.items()}
        if thing.__name__ == "histogramdd":
            found |= {"range": [ends] * 2, "bins": 3}
        return found, unknown


DESCRIBER = Diffprivlib()
