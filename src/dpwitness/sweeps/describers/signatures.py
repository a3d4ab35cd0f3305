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
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import combinations
from typing import Any, ClassVar, Final

import numpy as np

from dpwitness.claims import ApproxDP
from dpwitness.mechanisms.catalog import load_object
from dpwitness.mechanisms.libraries.library import number
from dpwitness.mechanisms.signature import DELTA_NAMES, EPSILON_NAMES, GENERATOR_NAMES, SIZE_NAMES
from dpwitness.neighbours import Relation, categories, integers, numbers, pairs, queries, records
from dpwitness.sweeps.describers import Attempt, Recipe
from dpwitness.targets import Target, target_of

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
#: Names of parameters for data, names and annotations for a single number, and names for labels.
DATA: Final = (
    "data", "array", "sample", "samples", "values", "records", "x", "X", "xs", "value", "df", "frame", "scores",
    "utilities", "queries", "answers", "counts", "column", "dataset", "true_value", "true_count", "answer", "count",
    "items", "texts", "a", "arr", "seq", "inputs",
)  # fmt: skip
SINGLE: Final = ("value", "true_value", "true_count", "answer", "count", "x")
NUMBER: Final = (float, int, "float", "int")
LABELS: Final = ("y", "labels", "target", "targets")
#: Values of parameters without a default, by name, then by the type of their annotation.
VALUES: Final[Mapping[str, Any]] = {
    "k": 2, "n": 10, "bins": 5, "n_bins": 5, "threshold": 0.5, "quantile": 0.5, "quant": 0.5, "q": 0.5, "percent": 50,
    "percentile": 50, "alpha": 0.5, "n_clusters": 2, "n_components": 1, "dimension": 2, "cutoff": 1,
    "categories": ["a", "b", "c"], "domain": ["a", "b", "c"],
}  # fmt: skip
OF_TYPES: Final[Mapping[object, Any]] = {int: 2, float: 1.0, bool: False, str: "a"}
#: The same types by name, for annotations that are texts.
TYPES: Final = {kind.__name__: kind for kind in (int, float, bool, str)}
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


@dataclass(frozen=True, slots=True)
class Shape:
    """One form of the input: the relations that the claim may then mean, and their description for people.

    `values`: the values of the parameters for data and for labels, of an input; `of_records` and `strict` as in
    `Attempt`.
    """

    relations: tuple[Relation, ...]
    adjacency: str
    values: Callable[[Any], tuple[object, ...]] = alone
    of_records: bool = False
    strict: bool = False


class Taking:
    """A function or a class, its parameters, the method of a class that takes data, and the parameters for data."""

    def __init__(self, thing: Any) -> None:
        self.thing, self.own = thing, parameters_of(thing)
        self.method = method_of(thing) if inspect.isclass(thing) else None
        self.taking = self.own if self.method is None else parameters_of(getattr(thing, self.method), bound=True)
        self.all = {**self.taking, **self.own}
        self.data = data_of(self.taking)
        self.labels = next((name for name in LABELS if name in self.taking), None)
        self.labelled = any(self.taking[name].default is EMPTY for name in LABELS if name in self.taking)
        self.bounded = any(name in self.all for name in BOUNDS) or any(set(names) <= set(self.all) for names in ENDS)
        self.of_number = self.data in SINGLE or (self.data is not None and self.taking[self.data].annotation in NUMBER)

    def caller(
        self, given: Mapping[str, object], of_method: Mapping[str, object], shape: Shape
    ) -> Callable[..., object]:
        """A function that runs the thing once on an input, with an object of its own if it is a class."""
        generators = [
            name for name, one in self.own.items()
            if name in GENERATOR_NAMES and (name != "random_state" or one.default is EMPTY)
        ]  # fmt: skip

        def call(value: Any, rng: Any) -> object:
            values = dict(zip((str(self.data), str(self.labels)), shape.values(value), strict=False))
            named = {**given, **dict.fromkeys(generators, rng)}
            if self.method is None:
                return self.thing(**named, **values)
            return getattr(self.thing(**named), self.method)(**of_method, **values)

        return call


class Released:
    """A mechanism of one input, which another process makes anew by loading the thing again."""

    def __init__(self, thing: object, name: str, call: Callable[..., object], *, generator: bool) -> None:
        self.call, self.generator = call, generator
        self.__name__ = self.__qualname__ = name
        self.__module__ = str(getattr(thing, "__module__", __name__))
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = ("rng", "data") if generator else ("data",)
        self.__signature__ = inspect.Signature([inspect.Parameter(one, kind) for one in names])

    def __call__(self, data: object, rng: object = None) -> object:
        """Run the mechanism once."""
        return self.call(data, rng)


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
        taken = Taking(thing)
        for ends in RANGES if taken.bounded else RANGES[:1]:
            found, unknown = self._filled(thing, taken.own, ends)
            settings = {"parameters": found, "ends": list(ends)}
            if taken.method is not None:
                settings["of_method"], more = self._filled(getattr(thing, taken.method), taken.taking, ends)
                unknown += more
            if unknown:
                why = ", which may restrict its claim" if may_restrict(unknown[0]) else ""
                return [Recipe(refused=f"no value is known for its parameter {unknown[0]!r}{why}")]
            if inspect.isclass(thing) and taken.method is None:
                return [Recipe(refused="none of its methods is known to release anything of data")]
            if taken.data is None:
                return [Recipe(refused="none of its parameters takes data")]
            label = f"{ends[0]:g} to {ends[1]:g}" if taken.bounded else ""
            chosen.append(Recipe(label=label, settings=settings, time=FIT_TIME if taken.method == "fit" else 1.0))
        return chosen

    def attempts(self, thing: Any, recipe: Recipe, records: Any = None) -> Iterator[Attempt]:
        """Records in several forms; numbers first where there is a sensitivity or a single value."""
        mark = target_of(thing)
        if mark is not None:
            yield of_target(thing, mark)
            return
        taken, (low, high) = Taking(thing), recipe.settings["ends"]
        given, of_method = (
            {name: from_json(value) for name, value in recipe.settings.get(key, {}).items()}
            for key in ("parameters", "of_method")
        )
        values = {**{name: one.default for name, one in taken.all.items()}, **of_method, **given}
        delta = next((values[name] for name in DELTA_NAMES if name in values), 0.0)
        generator = any(name in GENERATOR_NAMES - {"random_state"} for name in taken.own)
        for shape in shapes(taken, low, high, records):
            call = taken.caller(given, of_method, shape)
            yield Attempt(
                mechanism=Released(thing, str(thing.__name__), call, generator=generator),
                claim=ApproxDP(EPSILON, float(delta) if isinstance(delta, int | float) and 0 <= delta < 1 else 0.0),
                relations=shape.relations,
                adjacency=shape.adjacency,
                outcome=learned if taken.method == "fit" else None,
                of_records=shape.of_records,
                strict=shape.strict,
            )

    def _filled(self, thing: object, own: Parameters, ends: tuple[float, float]) -> tuple[dict[str, Any], list[str]]:
        """Values of the thing's parameters as JSON, and the names of the parameters without a known value."""
        data = None if inspect.isclass(thing) else data_of(own)
        labels = () if inspect.isclass(thing) else LABELS
        found: dict[str, Any] = {}
        unknown = []
        of_ends = {name: end for names in ENDS if set(names) <= set(own) for name, end in zip(names, ends, strict=True)}
        epsilon = max(EPSILON_NAMES & set(own), key=len, default=None)  # beside epsilon, eps is something else
        for name, one in own.items():
            if name == data or name in labels or one.kind in VARIABLE or name in GENERATOR_NAMES | SIZE_NAMES:
                continue
            if name == epsilon:
                found[name] = EPSILON
            elif name in self.values:
                found[name] = self.values[name]
            elif name in DELTA_NAMES:
                found |= {name: DELTA} if one.default is EMPTY else {}
            elif name in BOUNDS:
                found[name] = {"tuple": list(RANGE_Y if name == BOUNDS_Y else ends)}
            elif name in of_ends:
                found[name] = of_ends[name]
            elif name in SENSITIVITIES:
                # Whatever its default: the numbers move by 1. Some mechanisms accept only integers.
                found[name] = 1 if isinstance(one.default, int) else 1.0
            elif one.default is EMPTY:
                value = VALUES.get(name, annotated(one.annotation, ends))
                if value is None or (may_restrict(name) and isinstance(value, int | float)):
                    unknown.append(name)
                else:
                    found[name] = value
            elif is_limit(name, one.default):
                unknown.append(name)
        return found, unknown


def annotated(annotation: object, ends: tuple[float, float]) -> object:
    """A value of an annotation's type as JSON; None if the annotation is unknown. `ends`: for a pair of numbers."""
    annotation = TYPES.get(annotation, annotation) if isinstance(annotation, str) else annotation
    if isinstance(annotation, type) and annotation in OF_TYPES:
        return OF_TYPES[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        place = f"{annotation.__module__}:{annotation.__qualname__}"
        return {"enum": [place, next((one.name for one in annotation), "")]}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType):
        several = (annotated(one, ends) for one in arguments if one is not type(None))
        return next((one for one in several if one is not None), None)
    if origin is tuple and arguments in ((float, float), (int, int)):
        return {"tuple": [arguments[0](end) for end in ends]}
    return None


def from_json(value: object) -> object:
    """The value of a recipe's JSON, in which tuples and members of enumerations are objects."""
    if isinstance(value, dict) and set(value) == {"tuple"}:
        return tuple(map(from_json, value["tuple"]))
    if isinstance(value, dict) and set(value) == {"enum"}:
        place, name = value["enum"]
        members: Any = load_object(place)
        return members[name]
    return [from_json(one) for one in value] if isinstance(value, list) else value


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


def of_target(thing: Any, mark: Target) -> Attempt:
    """The attempt of a function that states its claim and its relation by `@target`."""
    states = mark.states or (lambda epsilon: ApproxDP(epsilon, mark.delta))
    return Attempt(
        mechanism=thing,
        claim=states(EPSILON),
        relations=(mark.neighbours,),
        adjacency=f"{mark.neighbours!s:.80}",
        parameters={mark.claim: EPSILON},
    )


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


def shapes(taken: Taking, low: float, high: float, given: Any) -> Iterator[Shape]:
    """The shapes that the input of a function or a class may have, the most likely first; `given`: the user's records.

    Numbers are relations of their own where they go beyond the bounds: a signature does not say whether it claims them.
    """
    bounded, middle = taken.bounded, (low + high) / 2
    if any(name in taken.all for name in SENSITIVITIES):
        told, values = "numbers that differ by the sensitivity", [low, low + 1, high - 1] if bounded else NEAR_ZERO
        for kind in (float, int):
            yield Shape((pairs(*((kind(one), kind(one) + 1) for one in values)),), told, as_number)
        if not bounded:
            yield Shape((queries(3, may_move="one"),), "lists of which one number differs by the sensitivity")
        return
    if taken.of_number and not inspect.isclass(taken.thing):
        if bounded:
            span, within = high - low, ((low, high), (low, middle))
            outside = ((low - span, high + span), (low, high + 10 * span))
            told = f"any two numbers from {low:g} to {high:g}"
            yield Shape((pairs(*outside, *within), pairs(*within)), f"{told}, and beyond", as_number, strict=True)
            yield Shape((pairs(*within),), told, as_number)
        else:
            for kind in (float, int):
                near = pairs(*((kind(one), kind(one) + 1) for one in (0, 1, 10)))
                yield Shape((near,), "numbers that differ by 1, which is assumed", as_number)
    yield from of_records(taken, low, high, given)
    if not taken.labelled:  # a mechanism that answers for each record: its claim is about one record
        told = "any two values of one record"
        yield Shape((pairs(*combinations((["a"], ["b"], ["c"]), 2)),), told)
        if bounded:
            yield Shape((pairs(*((np.array([low]), np.array([other])) for other in (high, middle))),), told)


def as_number(value: Any) -> tuple[object, ...]:
    """An input as one number, and not an array of one."""
    return (number(value),)


def of_records(taken: Taking, low: float, high: float, given: object) -> Iterator[Shape]:
    """Records in the forms that libraries take, under both adjacencies."""
    told, bounded, labelled = " and ".join(ADJACENCIES), taken.bounded, taken.labelled
    values = tuple if labelled else alone
    for form in () if given is None else ("xy",) if labelled else ("dataframe", "array", "list"):
        try:
            relations = tuple(records(base=given, adjacency=one, form=form) for one in ADJACENCIES)
        except ValueError:  # the records cannot have this form
            continue
        yield Shape(relations, f"{told}, of the records given", values, of_records=True)
    # An estimator is right to refuse few records or a single class: of its attempts all but the last are strict.
    estimator, regression = inspect.isclass(taken.thing), BOUNDS_Y in taken.all  # labels of a regression are no classes
    added = (values, partial(with_public, low)) if labelled and not regression else (values,)
    of_estimator = [(least, True, one) for least in (1, 4) for one in added]
    # Functions named as NumPy's nan… ignore missing values, some of them in one form alone.
    for missing in (True, False) if str(taken.thing.__name__).startswith("nan") else (False,):
        clippings = (True, False) if bounded else (False,)
        listed = forms(low, high, clippings, missing=missing)
        if labelled:
            listed = forms_of_labels(low, high, clippings, regression=regression)
        for domains, form, base in listed:
            for first in range(len(domains)):
                claimed, last = domains[first:], first == len(domains) - 1
                choices = of_estimator + [(4, False, values)] * last if estimator else [(1, not last, values)]
                for least, strict, one in choices:
                    relations = tuple(
                        records(domain, adjacency=adjacency, size=(least, 20), form=form, base=base)
                        for domain in claimed
                        for adjacency in ADJACENCIES
                    )
                    said = range_of(relations[-1], low, high, bounded=bounded, beyond=not last)
                    yield Shape(relations, told + said, one, of_records=True, strict=strict)


def range_of(relation: Relation, low: float, high: float, *, bounded: bool, beyond: bool) -> str:
    """The range of the records' numbers, and whether it is assumed; empty if they hold no numbers."""
    if "numbers(" not in str(relation) and "integers(" not in str(relation):
        return ""
    if bounded:
        return f"; numbers within the bounds{', and beyond' if beyond else ''}"
    return f"; numbers from {low:g} to {high:g}, which is assumed"


#: Domains of records, once for each choice of clipping; the form of the input; and records to start from.
Forms = Iterator[tuple[list[Any], str, Any]]


def forms(low: float, high: float, clippings: Sequence[bool], *, missing: bool) -> Forms:
    """The forms of records without labels."""
    reals = [numbers(low, high, clipped=clipped, missing=missing) for clipped in clippings]
    whole, texts = integers(int(low), int(high)), categories("a", "b", "c")
    yield reals, "array", None
    yield reals, "list", None
    yield [whole], "list", None
    yield [(real, real) for real in reals], "array", None
    yield [(real,) for real in reals], "array", None
    yield [whole], "array", None
    yield [texts], "list", None
    yield [{"x": real} for real in reals], "dataframe", None
    yield [{"x": real, "y": texts} for real in reals], "dataframe", None
    yield [categories(False, True)], "list", None


def forms_of_labels(low: float, high: float, clippings: Sequence[bool], *, regression: bool) -> Forms:
    """The forms of features with labels; the records to start from have both classes, as many classifiers require."""
    steps = np.linspace(0.0, 1.0, 10)
    features = low + (high - low) * steps
    plane, classes = np.stack([features, features[-np.arange(10)]], axis=1), [k % 2 for k in range(10)]
    reals = [numbers(low, high, clipped=clipped) for clipped in clippings]
    if not regression:
        yield [((real, real), categories(0, 1)) for real in reals], "xy", (plane, classes)
        yield [((real,), categories(0, 1)) for real in reals], "xy", (plane[:, :1], classes)
    labels = [numbers(*RANGE_Y, clipped=clipped) for clipped in clippings]
    yield [((real,), label) for real, label in zip(reals, labels, strict=True)], "xy", (plane[:, :1], steps)


DESCRIBER = Signatures()
