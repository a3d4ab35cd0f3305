"""Functions and classes of any library whose signature shows a claim: a parameter named epsilon or eps.

Parameters get values by their names, annotations and defaults; the form of the data is found by trying. A signature
does not state which inputs are neighbours, and prose is not read. So the claim is tested under every relation that it
may mean (both adjacencies; numbers within the bounds, and beyond them), and is refuted only under all of them.
"""

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from dpwitness.claims import ApproxDP
from dpwitness.mechanisms.libraries.library import number
from dpwitness.mechanisms.signature import DELTA_NAMES, EPSILON_NAMES, GENERATOR_NAMES, LEGACY_NAME, SIZE_NAMES
from dpwitness.neighbours import Relation, categories, integers, numbers, pairs, queries, records
from dpwitness.sweeps.describers import Attempt, Recipe
from dpwitness.targets import target_of

Parameters = Mapping[str, inspect.Parameter]
EMPTY: Final = inspect.Parameter.empty
VARIABLE: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

#: The ε that mechanisms are asked for (nats), and the δ for a parameter of that name without a default.
EPSILON: Final = 1.0
DELTA: Final = 1e-3
#: The time of a case of an estimator, which is fitted anew for each run, in times of another case.
FIT_TIME: Final = 1.5
#: The parameter for bounds of the labels of a regression, and its value: labels must not be taken for features.
BOUNDS_Y: Final = "bounds_y"
RANGE_Y: Final = (0.0, 1.0)
#: Names of parameters for a pair of bounds, and for each end of a pair.
BOUNDS: Final = ("bounds", "range", "limits", "clip", "bounds_X", "bounds_x", BOUNDS_Y)
ENDS: Final = (
    ("lower", "upper"), ("low", "high"), ("lower_bound", "upper_bound"), ("min_value", "max_value"),
    ("minimum", "maximum"), ("lo", "hi"), ("clip_min", "clip_max"), ("a_min", "a_max"),
)  # fmt: skip
#: Values of bounds: from zero, and of both signs with the lower end the smaller.
RANGES: Final = ((0.0, 5.0), (-1.0, 4.0))
SENSITIVITIES: Final = ("sensitivity", "global_sensitivity", "l1_sensitivity", "l2_sensitivity", "sens")
#: Names of parameters that may restrict the data of a claim, or spend a budget of their own: a value would be a guess.
LIMITS: Final = re.compile(
    r"norm(?![a-z])|bound|budget|(?:^|_)(?:eps(?:ilons?)?|deltas?|sens(?:itivit(?:y|ies))?)(?![a-z])"
)
#: Further names that may restrict the data, unless the default is a count, as max_iter=100, or what it clips to.
MAXIMA: Final = re.compile(r"(?:^|_)max(?:imum)?(?:_|$)|clip")
#: Names of parameters for data, for a single number, and for labels.
DATA: Final = (
    "data", "array", "sample", "samples", "values", "records", "x", "X", "xs", "value", "df", "frame", "scores",
    "utilities", "queries", "answers", "counts", "column", "dataset", "true_value", "true_count", "answer", "count",
    "items", "texts", "a", "arr", "seq", "inputs",
)  # fmt: skip
SINGLE: Final = ("value", "true_value", "true_count", "answer", "count", "x")
LABELS: Final = ("y", "labels", "target", "targets")
#: Values of parameters without a default, by name, then by the type of their annotation.
VALUES: Final[Mapping[str, Any]] = {
    "k": 2, "n": 10, "bins": 5, "n_bins": 5, "threshold": 0.5, "quantile": 0.5, "quant": 0.5, "q": 0.5, "percent": 50,
    "percentile": 50, "alpha": 0.5, "n_clusters": 2, "n_components": 1, "dimension": 2, "cutoff": 1,
    "categories": ["a", "b", "c"], "domain": ["a", "b", "c"],
}  # fmt: skip
OF_TYPES: Final[Mapping[object, Any]] = {int: 2, float: 1.0, bool: False, str: "a"}
#: Names of methods that release something of data; the first that a class has is called.
METHODS: Final = (
    "fit", "randomise", "randomize", "privatise", "privatize", "add_noise", "release", "quick_result", "answer",
    "estimate", "sanitize", "sanitise", "run", "__call__",
)  # fmt: skip
#: Attributes of a fitted estimator that describe the fit and are not learned from the data.
NOT_LEARNED: Final = ("n_features_in_", "feature_names_in_", "n_iter_", "n_outputs_", "labels_")
#: Numbers for a mechanism with a sensitivity and without bounds.
NEAR_ZERO: Final = (0.0, 1.0, -1.0, 0.5, 10.0)
#: The adjacencies that a claim about records may mean.
ADJACENCIES: Final = ("add-remove", "replace-one")


def alone(value: Any) -> tuple[object, ...]:
    """An input as the value of the parameter for data."""
    return (value,)


def mechanism(thing: Any, call: Callable[[Any, Any], object], *, generator: bool = False) -> Callable[..., object]:
    """A function of the input that runs `call(data, rng)`, with the name and the module of the thing."""

    def released(data: Any) -> object:
        return call(data, None)

    def drawn(rng: Any, data: Any) -> object:
        return call(data, rng)

    made = drawn if generator else released
    made.__name__ = str(getattr(thing, "__name__", type(thing).__name__))
    made.__module__ = str(getattr(thing, "__module__", __name__))
    return made


class Taking:
    """A function or a class, the method of a class that takes data, and the values of the parameters of both.

    `filled` gives the values of some parameters, and the names of those without a known value; `ends`: the bounds.
    """

    def __init__(self, thing: Any, ends: tuple[float, float], filled: Callable[..., tuple[dict[str, Any], list[str]]]):
        self.thing, self.own, self.ends = thing, parameters_of(thing), ends
        self.method = method_of(thing) if inspect.isclass(thing) else None
        self.taking = self.own if self.method is None else parameters_of(getattr(thing, self.method), bound=True)
        self.all = {**self.taking, **self.own}
        self.data = None if inspect.isclass(thing) and self.method is None else data_of(self.taking)
        labels = [name for name in LABELS if name in self.taking]
        self.labelled = any(self.taking[name].default is EMPTY for name in labels)
        self.inputs = [str(self.data), *labels[:1]]
        self.bounded = any(name in self.all for name in BOUNDS) or any(set(names) <= set(self.all) for names in ENDS)
        self.of_number = self.data in SINGLE or (self.data and self.taking[self.data].annotation in (float, int))
        self.given, self.unknown = filled(thing, self.own, ends)
        self.of_method: dict[str, Any] = {}
        if self.method is not None:
            self.of_method, more = filled(getattr(thing, self.method), self.taking, ends)
            self.unknown += more

    def attempt(
        self, relations: Sequence[Relation], adjacency: str, values: Callable[[Any], Any] = alone, **more: Any
    ) -> Attempt:
        """The attempt at these relations. `values`: the values of the parameters for data and for labels, of an input.

        Each run makes an object of its own of a class.
        """
        needed = {name for name, one in self.own.items() if one.default is EMPTY or name != LEGACY_NAME}
        random = GENERATOR_NAMES & needed

        def call(value: Any, rng: Any) -> object:
            named = {**self.given, **dict.fromkeys(random, rng)}
            inputs = dict(zip(self.inputs, values(value), strict=False))
            if self.method is None:
                return self.thing(**named, **inputs)
            found = getattr(self.thing(**named), self.method)(**self.of_method, **inputs)
            return learned(found) if self.method == "fit" else found

        all_values = {**{name: one.default for name, one in self.all.items()}, **self.of_method, **self.given}
        delta = next((all_values[name] for name in DELTA_NAMES if name in all_values), 0.0)
        generator = bool((GENERATOR_NAMES - {LEGACY_NAME}) & set(self.own))
        return Attempt(
            mechanism=mechanism(self.thing, call, generator=generator),
            claim=ApproxDP(EPSILON, float(delta) if isinstance(delta, int | float) and 0 <= delta < 1 else 0.0),
            relations=tuple(relations),
            adjacency=adjacency,
            **more,
        )


class Signatures:
    """Plain signatures: those with ε, and functions marked by `@target`."""

    #: Values of parameters by name, for libraries of their own describer; they come before all others.
    values: ClassVar[Mapping[str, Any]] = {}

    def describes(self, thing: object, place: str) -> bool:
        """Whether the thing is a function or a class with a parameter for ε."""
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            return False
        if inspect.isabstract(thing) or (inspect.isclass(thing) and issubclass(thing, BaseException | Mapping)):
            return False
        return target_of(thing) is not None or bool(EPSILON_NAMES & set(parameters_of(thing)))

    def recipes(self, thing: Any, place: str) -> Sequence[Recipe]:
        """One recipe for each choice of bounds; one that is refused if a parameter has no known value."""
        if target_of(thing) is not None:
            return [Recipe()]
        chosen = []
        for ends in RANGES:
            taken = Taking(thing, ends, self._filled)
            if taken.unknown:
                why = ", which may restrict its claim" if may_restrict(taken.unknown[0]) else ""
                return [Recipe(refused=f"no value is known for its parameter {taken.unknown[0]!r}{why}")]
            if taken.data is None:
                return [Recipe(refused="nothing that takes data is known of it")]
            settings = {"ends": ends, "parameters": {**taken.given, **taken.of_method}}
            label = f"{ends[0]:g} to {ends[1]:g}" if taken.bounded else ""
            chosen.append(Recipe(label=label, settings=settings, time=FIT_TIME if taken.method == "fit" else 1.0))
        return chosen if taken.bounded else chosen[:1]

    def attempts(self, thing: Any, recipe: Recipe, records: Any = None) -> Iterator[Attempt]:
        """Records in several forms; numbers first where there is a sensitivity or a single value."""
        if mark := target_of(thing):
            states = mark.states or (lambda epsilon: ApproxDP(epsilon, mark.delta))
            yield Attempt(
                mechanism=thing,
                claim=states(EPSILON),
                relations=(mark.neighbours,),
                adjacency=f"{mark.neighbours!s:.80}",
                parameters={mark.claim: EPSILON},
            )
        else:
            yield from attempts_of(Taking(thing, tuple(recipe.settings["ends"]), self._filled), records)

    def _filled(self, thing: object, own: Parameters, ends: tuple[float, float]) -> tuple[dict[str, Any], list[str]]:
        """Values of the thing's parameters, and the names of the parameters without a known value."""
        data = None if inspect.isclass(thing) else data_of(own)
        labels = () if inspect.isclass(thing) else LABELS
        found: dict[str, Any] = {}
        unknown: list[str] = []
        known: dict[str, Any] = {**dict.fromkeys(BOUNDS, ends), BOUNDS_Y: RANGE_Y, **self.values}
        known |= {name: end for names in ENDS if set(names) <= set(own) for name, end in zip(names, ends, strict=True)}
        known |= {max(EPSILON_NAMES & set(own), key=len, default=""): EPSILON}  # beside epsilon, eps is something else
        for name, one in own.items():
            if name == data or name in labels or one.kind in VARIABLE or name in GENERATOR_NAMES | SIZE_NAMES:
                continue
            if name in known:
                found[name] = known[name]
            elif name in DELTA_NAMES:
                found |= {name: DELTA} if one.default is EMPTY else {}
            elif name in SENSITIVITIES:
                # Whatever its default: the numbers move by 1. Some mechanisms accept only integers.
                found[name] = 1 if isinstance(one.default, int) else 1.0
            elif one.default is not EMPTY:
                unknown += [name] if is_limit(name, one.default) else []
            else:
                value = VALUES.get(name, annotated(one.annotation))
                if value is None or (may_restrict(name) and isinstance(value, int | float)):
                    unknown.append(name)
                found[name] = value
        return found, unknown


def annotated(annotation: object) -> object:
    """A value of an annotation's type; None if the annotation is unknown."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType):
        return next((value for value in map(annotated, arguments) if value is not None), None)
    return OF_TYPES.get(annotation)


def parameters_of(thing: Any, *, bound: bool = False) -> Parameters:
    """The parameters of a function or a class; empty if they cannot be read. `bound`: without the first, self."""
    found: Parameters = {}
    for evaluated in (True, False):  # annotations may be texts that name what is there only for type checkers
        with suppress(Exception):
            found = found or inspect.signature(thing, eval_str=evaluated).parameters
    return dict(list(found.items())[1:]) if bound else found


def may_restrict(name: str) -> bool:
    """Whether the name of a parameter shows that it may restrict the claim."""
    return bool(LIMITS.search(name) or MAXIMA.search(name))


def is_limit(name: str, default: object) -> bool:
    """Whether a default may restrict the data of the claim, or spend a budget of its own."""
    if isinstance(default, bool) or not isinstance(default, int | float) or "clip" in name:
        return False
    return bool(LIMITS.search(name) or (isinstance(default, float) and MAXIMA.search(name)))


def data_of(own: Parameters) -> str | None:
    """The name of the parameter that takes data: one of the usual names, else the first without a default."""
    other = {*EPSILON_NAMES, *DELTA_NAMES, *GENERATOR_NAMES, *SIZE_NAMES, *SENSITIVITIES, *BOUNDS, *LABELS, *VALUES}
    other |= {name for names in ENDS for name in names}
    free = [name for name, one in own.items() if one.default is EMPTY and one.kind not in VARIABLE]
    named = [name for name in free if name in DATA]
    return next(iter(named or [name for name in free if name not in other]), None)


def method_of(thing: object) -> str | None:
    """The method of a class that releases something of data."""
    own = (name for name in METHODS if callable(getattr(thing, name, None)))
    return next((name for name in own if data_of(parameters_of(getattr(thing, name), bound=True)) is not None), None)


def with_public(low: float, value: Any) -> tuple[object, object]:
    """Features and labels with a public record of each class, since many classifiers refuse a single class."""
    features, classes = np.asarray(value[0]), np.asarray(value[1])
    return np.vstack([features, np.full((2, features.shape[1]), low)]), np.append(classes, [0, 1])


def learned(estimator: object) -> dict[str, object]:
    """The numbers and arrays that a fitted estimator has under public names that end with _."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_")
        and not name.startswith("_")
        and name not in NOT_LEARNED
        and isinstance(value, int | float | np.ndarray | np.generic)
    }


def attempts_of(taken: Taking, given: Any) -> Iterator[Attempt]:
    """The attempts at inputs of several shapes, the most likely first; `given`: the user's records.

    Numbers are relations of their own where they go beyond the bounds: a signature does not say whether it claims them.
    """
    (low, high), bounded, attempt = taken.ends, taken.bounded, taken.attempt
    if any(name in taken.all for name in SENSITIVITIES):
        told, values = "numbers that differ by the sensitivity", [low, low + 1, high - 1] if bounded else NEAR_ZERO
        for kind in (float, int):
            yield attempt([pairs(*((kind(one), kind(one) + 1) for one in values))], told, as_number)
        if not bounded:
            yield attempt([queries(3, may_move="one")], "lists of which one number differs by the sensitivity")
        return
    if taken.of_number and not inspect.isclass(taken.thing):
        span, within = high - low, ((low, high), (low, (low + high) / 2))
        beyond = pairs((low - span, high + span), (low, high + 10 * span), *within)
        told = f"any two numbers from {low:g} to {high:g}"
        if bounded:
            yield attempt([beyond, pairs(*within)], f"{told}, and beyond", as_number, strict=True)
            yield attempt([pairs(*within)], told, as_number)
        for kind in () if bounded else (float, int):
            near = pairs(*((kind(one), kind(one) + 1) for one in (0, 1, 10)))
            yield attempt([near], "numbers that differ by 1, which is assumed", as_number)
    yield from of_records(taken, given)
    if not taken.labelled:  # a mechanism that answers for each record: its claim is about one record
        told = "any two values of one record"
        yield attempt([pairs((["a"], ["b"]), (["a"], ["c"]), (["b"], ["c"]))], told)
        if bounded:
            yield attempt([pairs(*((np.array([low]), np.array([other])) for other in (high, (low + high) / 2)))], told)


def as_number(value: Any) -> tuple[object, ...]:
    """An input as one number, and not an array of one."""
    return (number(value),)


def of_records(taken: Taking, given: object) -> Iterator[Attempt]:
    """Attempts at records in the forms that libraries take, under both adjacencies."""
    (low, high), told, labelled = taken.ends, " and ".join(ADJACENCIES), taken.labelled
    values = tuple if labelled else alone
    for form in () if given is None else ("xy",) if labelled else ("dataframe", "array", "list"):
        with suppress(ValueError):  # the records cannot have this form
            relations = [records(base=given, adjacency=one, form=form) for one in ADJACENCIES]
            yield taken.attempt(relations, f"{told}, of the records given", values, of_records=True)
    # An estimator is right to refuse few records or a single class: of its attempts all but the last are strict.
    estimator, regression = inspect.isclass(taken.thing), BOUNDS_Y in taken.all  # labels of a regression are no classes
    added = (values, partial(with_public, low)) if labelled and not regression else (values,)
    of_estimator = [(least, True, one) for least in (1, 4) for one in added]
    for domains, form, base in forms(taken):
        for first in range(len(domains)):
            last = first == len(domains) - 1
            choices = of_estimator + [(4, False, values)] * last if estimator else [(1, not last, values)]
            for least, strict, one in choices:
                relations = [
                    records(domain, adjacency=adjacency, size=(least, 20), form=form, base=base)
                    for domain in domains[first:]
                    for adjacency in ADJACENCIES
                ]
                said = ""
                if any(kind in str(relations[-1]) for kind in ("numbers(", "integers(")):
                    assumed = f"; numbers from {low:g} to {high:g}, which is assumed"
                    said = f"; numbers within the bounds{'' if last else ', and beyond'}" if taken.bounded else assumed
                yield taken.attempt(relations, told + said, one, of_records=True, strict=strict)


def forms(taken: Taking) -> Iterator[tuple[list[Any], str, Any]]:
    """Domains of records, once for each choice of clipping; the form of the input; and records to start from.

    The records to start from have labels of both classes, as many classifiers require.
    """
    (low, high), clippings = taken.ends, (True, False) if taken.bounded else (False,)
    reals = [numbers(low, high, clipped=clipped) for clipped in clippings]
    if taken.labelled:
        steps = np.linspace(0.0, 1.0, 10)
        features = low + (high - low) * steps
        if BOUNDS_Y not in taken.all:  # else a regression
            plane, classes = np.stack([features, features[-np.arange(10)]], axis=1), [k % 2 for k in range(10)]
            yield [((real, real), categories(0, 1)) for real in reals], "xy", (plane, classes)
        labels = [numbers(*RANGE_Y, clipped=clipped) for clipped in clippings]
        yield [((real,), label) for real, label in zip(reals, labels, strict=True)], "xy", (features[:, None], steps)
        return
    if str(taken.thing.__name__).startswith("nan"):  # as of NumPy: they ignore missing values, some in one form alone
        missing = [numbers(low, high, clipped=clipped, missing=True) for clipped in clippings]
        yield from ((missing, form, None) for form in ("array", "list"))
    whole, texts = integers(int(low), int(high)), categories("a", "b", "c")
    yield reals, "array", None
    yield reals, "list", None
    yield [whole], "list", None
    yield [(real, real) for real in reals], "array", None
    yield [texts], "list", None
    yield [{"x": real, "y": texts} for real in reals], "dataframe", None
    yield [categories(False, True)], "list", None


DESCRIBER = Signatures()
