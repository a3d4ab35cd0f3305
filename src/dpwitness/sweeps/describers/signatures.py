"""Functions and classes of any library whose signature shows a claim: a parameter named epsilon or eps.

Parameters get values by their names, annotations and defaults; the shape of the data is found by trying. Only the
documentation may say which inputs the claim calls neighbours. Where it does not, both adjacencies of records are
tested, and only what is refuted under both is refuted.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from dpwitness.claims import ApproxDP, Claim
from dpwitness.mechanisms.libraries.library import number
from dpwitness.mechanisms.signature import DELTA_NAMES, EPSILON_NAMES, GENERATOR_NAMES, SIZE_NAMES
from dpwitness.neighbours import Relation, categories, integers, numbers, pairs, queries, records
from dpwitness.sweeps.annotations import annotations_of, from_json, value_of
from dpwitness.sweeps.describers.describer import Attempt, Recipe
from dpwitness.targets import Target, target_of

Parameters = Mapping[str, inspect.Parameter]
EMPTY: Final = inspect.Parameter.empty
VARIABLE: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

#: The ε that is asked for (nats), and the δ where a parameter of that name has no default.
EPSILON: Final = 1.0
DELTA: Final = 1e-3
#: Estimators, which are fitted anew for each run, get so many times the time of a case.
FITTING: Final = 1.5
#: Those of the values of a regression: others than those of its features, which must not be taken for them.
BOUNDS_Y: Final = "bounds_y"
RANGE_Y: Final = (0.0, 1.0)
#: Names of a pair of bounds, and names of the ends of one.
BOUNDS: Final = ("bounds", "range", "limits", "clip", "bounds_X", "bounds_x", BOUNDS_Y)
ENDS: Final = (
    ("lower", "upper"), ("low", "high"), ("lower_bound", "upper_bound"), ("min_value", "max_value"),
    ("minimum", "maximum"), ("lo", "hi"), ("clip_min", "clip_max"), ("a_min", "a_max"),
)  # fmt: skip
#: Bounds that are given: from zero, and of both signs, of which the lower one is the smaller.
RANGES: Final = ((0.0, 5.0), (-1.0, 4.0))
SENSITIVITIES: Final = ("sensitivity", "global_sensitivity", "l1_sensitivity", "l2_sensitivity", "sens")
#: Names of parameters that may say which data a claim is for, or spend a budget of their own: a value would be a guess.
LIMITS: Final = re.compile(
    r"norm(?![a-z])|bound|budget|(?:^|_)(?:eps(?:ilons?)?|deltas?|sens(?:itivit(?:y|ies))?)(?![a-z])"
)
#: The same, but for a default that is a count, as max_iter=100, or that the function itself clips to.
MOST: Final = re.compile(r"(?:^|_)max(?:imum)?(?:_|$)|clip")
#: Names of what is data.
DATA: Final = (
    "data", "array", "sample", "samples", "values", "records", "x", "X", "xs", "value", "df", "frame", "scores",
    "utilities", "queries", "answers", "counts", "column", "dataset", "true_value", "true_count", "answer", "count",
    "items", "texts", "a", "arr", "seq", "inputs",
)  # fmt: skip
#: Of these names the ones that are of a single number.
SINGLE: Final = ("value", "true_value", "true_count", "answer", "count", "x")
LABELS: Final = ("y", "labels", "target", "targets")
#: Values for parameters that have no default, by name; others have them by annotation.
VALUES: Final[Mapping[str, Any]] = {
    "k": 2, "n": 10, "bins": 5, "n_bins": 5, "threshold": 0.5, "quantile": 0.5, "quant": 0.5, "q": 0.5, "percent": 50,
    "percentile": 50, "alpha": 0.5, "n_clusters": 2, "n_components": 1, "dimension": 2, "cutoff": 1,
    "categories": ["a", "b", "c"], "domain": ["a", "b", "c"],
}  # fmt: skip
#: Methods that release something of data, the first that a class has.
METHODS: Final = (
    "fit", "randomise", "randomize", "privatise", "privatize", "add_noise", "release", "quick_result", "answer",
    "estimate", "sanitize", "sanitise", "run", "__call__",
)  # fmt: skip
#: Attributes of a fitted estimator that say how it was fitted, and not what was learned.
NOT_LEARNED: Final = ("n_features_in_", "feature_names_in_", "n_iter_", "n_outputs_", "labels_")

#: Sentences that are about records or neighbours, and not about what is done to values.
ABOUT: Final = re.compile(
    r"\b(?:records?|rows?|persons?|people|individuals?|entry|entries|elements?|users?|participants?|tuples?)\b"
    r"|\bof which one\b|\b(?:neighbo|adjacen|differ)",
    re.IGNORECASE,
)
#: What names an adjacency in such a sentence; `NAMED`: by itself.
ADD_REMOVE: Final = re.compile(
    r"\badd(?:s|ing|ed|itions?)?"
    r"(?: (?:of|the|an?|any|one|single|(?:record|row|person|individual|entry|element|user)s?))*"
    r" (?:or|and) (?:the )?remov",
    re.IGNORECASE,
)
REPLACE_ONE: Final = re.compile(
    r"\b(?:replac(?:e|ing|ement)|substitut(?:e|ing|ion)|chang(?:e|ing))"
    r"(?: (?:of|in|the|exactly))* (?:one(?!-)|a single)\b"
    r"|(?<!than )\b(?:one|a single)(?: \w+){0,4} (?:is|be|been) (?:replaced|substituted|changed)\b"
    r"|\b(?:neighbo|adjacen|differ)\w*(?: \w+){0,4} (?:replac|substitut|chang)\w+ (?:of )?an?\b",
    re.IGNORECASE,
)
NAMED: Final = (
    re.compile(r"\badd(?:ition)? ?[-/] ?remov|\bunbounded (?:dp|diff)", re.IGNORECASE),
    re.compile(r"\breplace-one\b|\bbounded (?:dp|diff)", re.IGNORECASE),
)
#: What may name one in other words, so that the other is not the only one.
MAY_NAME: Final = (
    re.compile(r"\b(?:remov|delet|insert|presen|absen)", re.IGNORECASE),
    re.compile(r"\b(?:replac|substitut|swap|chang|modif)", re.IGNORECASE),
)
#: Documentation that makes a claim only for what lies within the bounds.
REQUIRED: Final = r"\b(?:must|should|shall|have to|has to|needs? to|assum\w+|expect\w*|requir\w+|suppos\w+)"
WITHIN: Final = re.compile(
    rf"{REQUIRED}(?:\W+\w+){{0,5}}?\W+(?:with)?in(?:side)?(?:\W+\w+){{0,3}}?\W+(?:bounds|range|domain|interval)\b"
    rf"|{REQUIRED}(?:\W+\w+){{0,5}}?\W+(?:between|from|(?:with)?in(?:side)?)\W+(?:the\W+)?(?:low|min|bound)\w*\b"
    rf"|{REQUIRED}(?:\W+\w+){{0,4}}?\W+(?:bounded|clipped|clamped)\b",
    re.IGNORECASE,
)
#: Documentation of what clips to the bounds itself.
CLIPS: Final = re.compile(
    r"\b(?:else|otherwise|or|those|outside|beyond)\b(?: [^.;]*)? (?:are|is|be) (?:\w+ )?(?:clipped|clamped|truncated)",
    re.IGNORECASE,
)
#: What else may have to lie within something.
OTHERS: Final = re.compile(r"\b(?:epsilon|eps|delta|quant\w*|percent\w*|prob\w*|alpha|beta)\b", re.IGNORECASE)
MISSING: Final = re.compile(r"ignor\w+ (?:\w+ ){0,2}(?:nan|missing)|missing values", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Shape:
    """What an input may be: the relations that the claim may mean, and what they are called.

    `labelled`: an input is features and labels; `of_records`: it is records of several people; `of_number`: it is a
    number, and no array of one; `strict`: see `Attempt`; `public`: the low end of features, of which a record of each
    class is added to every input, since many classifiers refuse one class alone.
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
        """Run it once."""
        return self.call(data, rng)


class Signatures:
    """Plain signatures: those with ε, and functions marked by `@target`."""

    #: Further values for parameters by name, before all others; and those that are left as they are.
    values: ClassVar[Mapping[str, Any]] = {}

    def describes(self, thing: object, place: str) -> bool:
        """Whether it is a function or a class with a parameter for ε."""
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            return False
        if inspect.isabstract(thing) or (inspect.isclass(thing) and issubclass(thing, BaseException | Mapping)):
            return False
        return target_of(thing) is not None or bool(EPSILON_NAMES & set(parameters_of(thing)))

    def recipes(self, thing: object, place: str) -> Sequence[Recipe]:
        """One for each choice of bounds; one that is refused where a parameter has no known value."""
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
        """Records in several forms, or one number where there is a sensitivity or a single value."""
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
        """Values for its parameters as JSON, and the names of those that have none."""
        data = None if inspect.isclass(thing) else data_of(own)
        labels = () if inspect.isclass(thing) else LABELS
        hints, documented = annotations_of(thing), inspect.getdoc(thing) or ""
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
                # Whatever its default: the numbers move by 1. Some mechanisms take whole numbers alone.
                found[name] = 1 if isinstance(one.default, int) else 1.0
            elif one.default is EMPTY:
                value = VALUES.get(name, value_of(hints.get(name), name, documented, ends))
                if value is None or (may_restrict(name) and isinstance(value, int | float)):
                    unknown.append(name)
                else:
                    found[name] = value
            elif is_limit(name, one.default):
                unknown.append(name)
        return found, unknown


def parameters_of(thing: Any, *, bound: bool = False) -> Parameters:
    """The parameters of a function or a class; none where they cannot be read. `bound`: without the first, self."""
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
    """Whether the name of a parameter says that it may be one of the claim's."""
    return bool(LIMITS.search(name) or MOST.search(name))


def is_limit(name: str, default: object) -> bool:
    """Whether a default may say which data a claim is for, or spend a budget of its own."""
    if isinstance(default, bool) or not isinstance(default, int | float) or "clip" in name:
        return False
    return bool(LIMITS.search(name) or (isinstance(default, float) and MOST.search(name)))


def documentation_of(thing: Any) -> str:
    """That of a function, or of a class and of its method that takes data."""
    method = taken_by(thing)[1]
    found = [thing] if method is None else [thing, getattr(thing, method)]
    return "\n\n".join(inspect.getdoc(one) or "" for one in found)


def has_bounds(own: Parameters) -> bool:
    """Whether it takes bounds."""
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
    """(ε, δ)-DP of the values that its parameters get."""
    delta = next((given.get(name, own[name].default) for name in DELTA_NAMES if name in own), 0.0)
    return ApproxDP(EPSILON, float(delta) if isinstance(delta, int | float) and 0 <= delta < 1 else 0.0)


def of_target(thing: Any, mark: Target) -> Attempt:
    """A function that says all of itself by `@target`."""
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
    """What runs it once, on an input and with a generator; an object of a class is made for each run."""
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
    """Features and labels with a record of each class, which is public."""
    features, classes = np.asarray(value[0]), np.asarray(value[1])
    return np.vstack([features, np.full((2, features.shape[1]), low)]), np.append(classes, [0, 1])


def positional(function: Callable[..., object], own: Parameters, values: Mapping[str, object]) -> object:
    """Call a function by names, but for what must be given without one."""
    only = [name for name, one in own.items() if one.kind is one.POSITIONAL_ONLY and name in values]
    rest = {name: value for name, value in values.items() if name not in only}
    return function(*(values[name] for name in only), **rest)


def learned(estimator: object) -> dict[str, object]:
    """What a fitted estimator has learned: numbers and arrays of numbers under public names that end with _."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_")
        and not name.startswith("_")
        and name not in NOT_LEARNED
        and isinstance(value, int | float | np.ndarray | np.generic)
    }


def shapes(thing: Any, low: float, high: float, given: Any) -> Iterator[Shape]:
    """What the input of a function or a class may be, the most likely first."""
    of_class, _, taking = taken_by(thing)
    own, name = {**taking, **of_class}, data_of(taking)
    bounded = has_bounds(own)
    if any(one in own for one in SENSITIVITIES):
        yield from of_sensitivity(low, high, bounded=bounded)
        return
    one_value = name in SINGLE or (name is not None and taking[name].annotation in (float, int, "float", "int"))
    if one_value and not inspect.isclass(thing):
        yield from of_one_value(low, high, bounded=bounded, beyond=not lies_within(documentation_of(thing)))
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


def of_one_value(low: float, high: float, *, bounded: bool, beyond: bool) -> Iterator[Shape]:
    """Any two numbers, within bounds and beyond them; without bounds a number that moves by 1."""
    within = ((low, high), (low, (low + high) / 2))
    span = high - low
    if bounded and beyond:
        outside = pairs((low - span, high + span), (low, high + 10 * span), *within)
        told = f"any two numbers, also beyond {low:g} to {high:g}, which is assumed"
        yield Shape((outside,), told, of_number=True, strict=True)
    if bounded:
        yield Shape((pairs(*within),), f"any two numbers from {low:g} to {high:g}", of_number=True)
    else:
        told = "numbers that differ by 1, which is assumed"
        yield Shape((pairs((0.0, 1.0), (1.0, 2.0), (10.0, 11.0)),), told, of_number=True)
        yield Shape((pairs((0, 1), (1, 2), (10, 11)),), told, of_number=True)


def of_one_record(low: float, high: float, *, bounded: bool) -> Iterator[Shape]:
    """A list of one record, which may be any: for what answers for each record, so that its claim is about one."""
    told = "any two values of one record"
    yield Shape((pairs((["a"], ["b"]), (["a"], ["c"]), (["b"], ["c"])),), told)
    if bounded:
        middle = (low + high) / 2
        yield Shape((pairs(*((np.array([low]), np.array([other])) for other in (high, middle))),), told)


def sentences(documented: str) -> list[str]:
    """The sentences of a documentation, each on one line."""
    return [" ".join(one.split()) for one in re.split(r"[.;:]\s|\n\s*\n", documented)]


def adjacencies(documented: str) -> tuple[str, ...]:
    """Those that the documentation may mean: one where it names that one, and nothing that may be the other."""
    about = [one for one in sentences(documented) if ABOUT.search(one)]
    names = [
        bool(by_itself.search(documented)) or any(in_words.search(one) for one in about)
        for by_itself, in_words in zip(NAMED, (ADD_REMOVE, REPLACE_ONE), strict=True)
    ]
    other = [any(one.search(each) for each in about) for one in MAY_NAME[::-1]]
    both = ("add-remove", "replace-one")
    alone = [one for one, named, also in zip(both, names, other, strict=True) if named and not also]
    return tuple(alone) or both


def lies_within(documented: str) -> bool:
    """Whether the documentation makes a claim only for data within the bounds."""
    found = sentences(documented)
    says = any(WITHIN.search(one) and not OTHERS.search(one) for one in found)
    return says and not any(CLIPS.search(one) for one in found)


def of_records(
    thing: Any, own: Parameters, low: float, high: float, *, labelled: bool, given: object
) -> Iterator[Shape]:
    """Records in the forms that libraries take, under the adjacencies that the documentation may mean."""
    documented, estimator = documentation_of(thing), inspect.isclass(thing)
    bounded, within = has_bounds(own), lies_within(documented)
    missing = str(thing.__name__).startswith("nan") or bool(MISSING.search(documented))
    regression = BOUNDS_Y in own  # labels are numbers, and no classes
    means = adjacencies(documented)
    told = " and ".join(means) if len(means) > 1 else f"{means[0]}, as documented"
    for form in () if given is None else ("xy",) if labelled else ("dataframe", "array", "list"):
        try:
            found = tuple(records(base=given, adjacency=one, form=form) for one in means)
        except ValueError:  # it cannot have this form
            continue
        yield Shape(found, f"{told}, of the records given", labelled, True)
    # What is said to ignore missing values may do so in one form alone, or not at all.
    for with_missing in (True, False) if missing else (False,):
        of_domains = [
            forms(low, high, clipped=clipped, missing=with_missing, labelled=labelled, regression=regression)
            for clipped in ((True, False) if bounded and not within else (False,))
        ]
        for same in zip(*of_domains, strict=True):  # form by form, what lies beyond the bounds first
            for clipped, (domain, form, base) in zip(range(len(same))[::-1], same, strict=True):
                # Two records are too few for two clusters, one class for a classifier: an estimator is right to refuse
                # them. Only what runs on all of the first pairs is taken, but for the last.
                public = [None, low] if labelled and not regression else [None]
                choices = [(1, True, one) for one in public] + [(4, True, one) for one in public]
                choices = choices if estimator else [(1, bool(clipped), None)]
                choices += [(4, False, None)] if estimator and not clipped else []
                for least, strict, class_of in choices:
                    size = (least, 20)
                    found = tuple(records(domain, adjacency=one, size=size, form=form, base=base) for one in means)
                    of = told + range_of(found[0], low, high, bounded=bounded, within=within)
                    yield Shape(found, of, labelled, True, strict=strict, public=class_of)


def range_of(relation: Relation, low: float, high: float, *, bounded: bool, within: bool) -> str:
    """Which numbers the records hold, and how that is known; empty where they hold none."""
    domain = str(relation)
    if "clipped=True" in domain:
        return "; numbers beyond the bounds too, which is assumed"
    if "numbers(" not in domain and "integers(" not in domain:
        return ""
    if bounded:
        return "; numbers within the bounds" + (", as documented" if within else "")
    return f"; numbers from {low:g} to {high:g}, which is assumed"


def forms(
    low: float, high: float, *, clipped: bool, missing: bool, labelled: bool, regression: bool
) -> Iterator[tuple[object, str, object]]:
    """Domains of records, how they are handed over, and records to start from."""
    real, whole = numbers(low, high, clipped=clipped, missing=missing), integers(int(low), int(high))
    texts = categories("a", "b", "c")
    if labelled:
        # Both classes are there from the start: many classifiers refuse one alone.
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
