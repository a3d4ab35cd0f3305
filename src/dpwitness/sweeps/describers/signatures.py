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
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final

import numpy as np

from dpwitness.claims import ApproxDP, Claim
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
FITTING: Final = 1.5
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
MOST: Final = re.compile(r"(?:^|_)max(?:imum)?(?:_|$)|clip")
#: Names of parameters for data, for data that is a single number, and for labels.
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
#: The same types by name, for annotations that are texts.
TYPES: Final = {kind.__name__: kind for kind in (int, float, bool, str)}
#: Names of methods that release something of data; the first that a class has is called.
METHODS: Final = (
    "fit", "randomise", "randomize", "privatise", "privatize", "add_noise", "release", "quick_result", "answer",
    "estimate", "sanitize", "sanitise", "run", "__call__",
)  # fmt: skip
#: Attributes of a fitted estimator that describe the fit and are not learned from the data.
NOT_LEARNED: Final = ("n_features_in_", "feature_names_in_", "n_iter_", "n_outputs_", "labels_")
#: The adjacencies that a claim about records may mean.
ADJACENCIES: Final = ("add-remove", "replace-one")


@dataclass(frozen=True, slots=True)
class Shape:
    """One form of the input: the relations that the claim may then mean, and their description for people.

    `labelled`: the input is features and labels; `of_records`: it is records of several people; `of_number`: it is a
    number and not an array of one; `strict`: see `Attempt`; `public`: the low end of features, of which a record of
    each class is added to every input, since many classifiers refuse a single class.
    """

    relations: tuple[Relation, ...]
    adjacency: str
    labelled: bool = False
    of_records: bool = False
    of_number: bool = False
    strict: bool = False
    public: float | None = None


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

    def recipes(self, thing: object, place: str) -> Sequence[Recipe]:
        """One recipe for each choice of bounds; one that is refused if a parameter has no known value."""
        if target_of(thing) is not None:
            return [Recipe()]
        chosen = []
        own, method, taking = taken_by(thing)
        bounded = has_bounds({**taking, **own})
        for ends in RANGES if bounded else (RANGES[0],):
            found, unknown = self._filled(thing, own, ends)
            settings = {"parameters": found, "ends": list(ends)}
            if method is not None:
                settings["of_method"], more = self._filled(getattr(thing, method), taking, ends)
                unknown += more
            if unknown:
                why = ", which may restrict its claim" if may_restrict(unknown[0]) else ""
                return [Recipe(refused=f"no value is known for its parameter {unknown[0]!r}{why}")]
            if not inspect.isclass(thing) and data_of(own) is None:
                return [Recipe(refused="none of its parameters takes data")]
            if inspect.isclass(thing) and method is None:
                return [Recipe(refused="none of its methods is known to release anything of data")]
            label = f"{ends[0]:g} to {ends[1]:g}" if bounded else ""
            chosen.append(Recipe(label=label, settings=settings, time=FITTING if method == "fit" else 1.0))
        return chosen

    def attempts(self, thing: Any, recipe: Recipe, records: Any = None) -> Iterator[Attempt]:
        """Records in several forms; numbers first where there is a sensitivity or a single value."""
        mark = target_of(thing)
        if mark is not None:
            yield of_target(thing, mark)
            return
        given = {name: from_json(value) for name, value in recipe.settings["parameters"].items()}
        low, high = recipe.settings["ends"]
        own, method, taking = taken_by(thing)
        of_method = {name: from_json(value) for name, value in recipe.settings.get("of_method", {}).items()}
        claim = claim_of({**of_method, **given}, {**taking, **own})
        generator = any(name in GENERATOR_NAMES - {"random_state"} for name in own)
        for shape in shapes(thing, low, high, records):
            call = caller(thing, given, of_method, shape)
            yield Attempt(
                mechanism=Released(thing, str(thing.__name__), call, generator=generator),
                claim=claim,
                relations=shape.relations,
                adjacency=shape.adjacency,
                outcome=learned if method == "fit" else None,
                of_records=shape.of_records,
                strict=shape.strict,
            )

    def _filled(self, thing: object, own: Parameters, ends: tuple[float, float]) -> tuple[dict[str, Any], list[str]]:
        """Values of the thing's parameters as JSON, and the names of the parameters without a known value."""
        data = None if inspect.isclass(thing) else data_of(own)
        labels = () if inspect.isclass(thing) else LABELS
        hints = annotations_of(thing)
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
                value = VALUES.get(name, annotated(hints.get(name), ends))
                if value is None or (may_restrict(name) and isinstance(value, int | float)):
                    unknown.append(name)
                else:
                    found[name] = value
            elif is_limit(name, one.default):
                unknown.append(name)
        return found, unknown


def annotations_of(thing: object) -> dict[str, object]:
    """The annotations of the parameters of a function or a class; texts if they name what cannot be imported."""
    function = thing.__init__ if inspect.isclass(thing) else thing
    try:
        return typing.get_type_hints(function)
    except Exception:  # of a name that is only there for type checkers, or of an extension
        return dict(getattr(function, "__annotations__", {}))


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
    try:
        found = dict(inspect.signature(thing).parameters)
    except (TypeError, ValueError):  # of an extension
        return {}
    return dict(list(found.items())[1:]) if bound else found


def taken_by(thing: object) -> tuple[Parameters, str | None, Parameters]:
    """The parameters of a function or a class, the method of a class that takes data, and those of what takes it."""
    own = parameters_of(thing)
    method = method_of(thing) if inspect.isclass(thing) else None
    return own, method, own if method is None else parameters_of(getattr(thing, method), bound=True)


def may_restrict(name: str) -> bool:
    """Whether the name of a parameter shows that it may restrict the claim."""
    return bool(LIMITS.search(name) or MOST.search(name))


def is_limit(name: str, default: object) -> bool:
    """Whether a default may restrict the data of the claim, or spend a budget of its own."""
    if isinstance(default, bool) or not isinstance(default, int | float) or "clip" in name:
        return False
    return bool(LIMITS.search(name) or (isinstance(default, float) and MOST.search(name)))


def has_bounds(own: Parameters) -> bool:
    """Whether the parameters hold bounds."""
    return any(name in own for name in BOUNDS) or any(set(names) <= set(own) for names in ENDS)


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


def claim_of(given: Mapping[str, object], own: Parameters) -> Claim:
    """(ε, δ)-DP at the values of the parameters."""
    delta = next((given.get(name, own[name].default) for name in DELTA_NAMES if name in own), 0.0)
    return ApproxDP(EPSILON, float(delta) if isinstance(delta, int | float) and 0 <= delta < 1 else 0.0)


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


def caller(
    thing: Any, given: Mapping[str, object], of_method: Mapping[str, object], shape: Shape
) -> Callable[[Any, Any], Any]:
    """A function that runs the thing once on an input with a generator; an object of a class is made for each run."""
    own, method, taking = taken_by(thing)
    data = data_of(taking)
    labels = next((name for name in LABELS if name in taking), None)
    generators = [
        name for name in own if name in GENERATOR_NAMES and (name != "random_state" or own[name].default is EMPTY)
    ]

    def call(value: Any, rng: Any) -> object:
        values = {str(data): number(value) if shape.of_number else value}
        if shape.labelled:
            features, classes = value if shape.public is None else with_public(value, shape.public)
            values = {str(data): features, str(labels): classes}
        named = {**given, **dict.fromkeys(generators, rng)}
        if method is None:
            return positional(thing, own, {**named, **values})
        return positional(getattr(thing(**named), method), taking, {**of_method, **values})

    return call


def with_public(value: Any, low: float) -> tuple[object, object]:
    """Features and labels with a public record of each class."""
    features, classes = np.asarray(value[0]), np.asarray(value[1])
    return np.vstack([features, np.full((2, features.shape[1]), low)]), np.append(classes, [0, 1])


def positional(function: Callable[..., object], own: Parameters, values: Mapping[str, object]) -> object:
    """Call a function by names, except for parameters that are positional only."""
    only = [name for name, one in own.items() if one.kind is one.POSITIONAL_ONLY and name in values]
    rest = {name: value for name, value in values.items() if name not in only}
    return function(*(values[name] for name in only), **rest)


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


def shapes(thing: Any, low: float, high: float, given: Any) -> Iterator[Shape]:
    """The shapes that the input of a function or a class may have, the most likely first."""
    of_class, _, taking = taken_by(thing)
    own, name = {**taking, **of_class}, data_of(taking)
    bounded = has_bounds(own)
    if any(one in own for one in SENSITIVITIES):
        yield from of_sensitivity(low, high, bounded=bounded)
        return
    one_value = name in SINGLE or (name is not None and taking[name].annotation in (float, int, "float", "int"))
    if one_value and not inspect.isclass(thing):
        yield from of_one_value(low, high, bounded=bounded)
    labelled = any(one in taking and taking[one].default is EMPTY for one in LABELS)
    yield from of_records(thing, own, low, high, labelled=labelled, given=given)
    if not labelled:
        yield from of_one_record(low, high, bounded=bounded)


def of_sensitivity(low: float, high: float, *, bounded: bool) -> Iterator[Shape]:
    """A number that moves by a sensitivity of 1, then a list of which one number does."""
    inside = [low, low + 1, high - 1] if bounded else [0.0, 1.0, -1.0, 0.5, 10.0]
    told = "numbers that differ by the sensitivity"
    yield Shape((pairs(*((value, value + 1) for value in inside)),), told, of_number=True)
    yield Shape((pairs(*((int(value), int(value) + 1) for value in inside)),), told, of_number=True)
    if not bounded:
        yield Shape((queries(3, may_move="one"),), "lists of which one number differs by the sensitivity")


def of_one_value(low: float, high: float, *, bounded: bool) -> Iterator[Shape]:
    """Any two numbers beyond the bounds and within; without bounds a number that moves by 1."""
    if bounded:
        span, within = high - low, ((low, high), (low, (low + high) / 2))
        inside, told = pairs(*within), f"any two numbers from {low:g} to {high:g}"
        outside = pairs((low - span, high + span), (low, high + 10 * span), *within)
        yield Shape((outside, inside), f"{told}, and beyond", of_number=True, strict=True)
        yield Shape((inside,), told, of_number=True)
    else:
        told = "numbers that differ by 1, which is assumed"
        yield Shape((pairs((0.0, 1.0), (1.0, 2.0), (10.0, 11.0)),), told, of_number=True)
        yield Shape((pairs((0, 1), (1, 2), (10, 11)),), told, of_number=True)


def of_one_record(low: float, high: float, *, bounded: bool) -> Iterator[Shape]:
    """A list of any one record, for mechanisms that answer for each record: their claim is about one record."""
    told = "any two values of one record"
    yield Shape((pairs((["a"], ["b"]), (["a"], ["c"]), (["b"], ["c"])),), told)
    if bounded:
        middle = (low + high) / 2
        yield Shape((pairs(*((np.array([low]), np.array([other])) for other in (high, middle))),), told)


def of_records(
    thing: Any, own: Parameters, low: float, high: float, *, labelled: bool, given: object
) -> Iterator[Shape]:
    """Records in the forms that libraries take, under both adjacencies."""
    told, bounded = " and ".join(ADJACENCIES), has_bounds(own)
    regression = BOUNDS_Y in own  # its labels are numbers and not classes
    for form in () if given is None else ("xy",) if labelled else ("dataframe", "array", "list"):
        try:
            relations = tuple(records(base=given, adjacency=one, form=form) for one in ADJACENCIES)
        except ValueError:  # the records cannot have this form
            continue
        yield Shape(relations, f"{told}, of the records given", labelled, True)
    # Two records are too few for two clusters, one class for a classifier: an estimator is right to refuse them. Only
    # an attempt that runs on all of the first pairs is taken, except for the last.
    public = [None, low] if labelled and not regression else [None]
    at_last: list[tuple[int, bool, float | None]] = [(4, False, None)]
    of_estimator = [(least, True, one) for least in (1, 4) for one in public]
    # Functions named as NumPy's nan… ignore missing values, some of them in one form alone.
    for missing in (True, False) if str(thing.__name__).startswith("nan") else (False,):
        of_domains = [
            forms(low, high, clipped=clipped, missing=missing, labelled=labelled, regression=regression)
            for clipped in ((True, False) if bounded else (False,))
        ]
        for (beyond, form, base), *rest in zip(*of_domains, strict=True):
            domains = [beyond, *(within for within, _, _ in rest if within != beyond)]
            for claimed in (domains, domains[1:]) if len(domains) > 1 else (domains,):
                last = claimed[0] is domains[-1]
                choices = of_estimator + at_last * last if inspect.isclass(thing) else [(1, not last, None)]
                for least, strict, class_of in choices:
                    relations = tuple(
                        records(domain, adjacency=one, size=(least, 20), form=form, base=base)
                        for domain in claimed
                        for one in ADJACENCIES
                    )
                    ranged = range_of(relations[-1], low, high, bounded=bounded, beyond=len(claimed) > 1)
                    yield Shape(relations, told + ranged, labelled, True, strict=strict, public=class_of)


def range_of(relation: Relation, low: float, high: float, *, bounded: bool, beyond: bool) -> str:
    """The range of the records' numbers, and whether it is assumed; empty if they hold no numbers."""
    if "numbers(" not in str(relation) and "integers(" not in str(relation):
        return ""
    if bounded:
        return f"; numbers within the bounds{', and beyond' if beyond else ''}"
    return f"; numbers from {low:g} to {high:g}, which is assumed"


def forms(
    low: float, high: float, *, clipped: bool, missing: bool, labelled: bool, regression: bool
) -> Iterator[tuple[object, str, Any]]:
    """Domains of records, the form of the input, and records to start from."""
    real, whole = numbers(low, high, clipped=clipped, missing=missing), integers(int(low), int(high))
    texts = categories("a", "b", "c")
    if labelled:
        # Both classes are there from the start: many classifiers refuse a single one.
        steps = np.linspace(0.0, 1.0, 10)
        features = low + (high - low) * steps
        plane = np.stack([features, features[-np.arange(10)]], axis=1)
        classes, values = [k % 2 for k in range(10)], numbers(*RANGE_Y, clipped=clipped)
        if not regression:
            yield ((real, real), categories(0, 1)), "xy", (plane, classes)
            yield ((real,), categories(0, 1)), "xy", (plane[:, :1], classes)
        yield ((real,), values), "xy", (plane[:, :1], steps)
        return
    for domain, form in (
        (real, "array"), (real, "list"), (whole, "list"), ((real, real), "array"), ((real,), "array"),
        (whole, "array"), (texts, "list"), ({"x": real}, "dataframe"), ({"x": real, "y": texts}, "dataframe"),
        (categories(False, True), "list"),
    ):  # fmt: skip
        yield domain, form, None


DESCRIBER = Signatures()
