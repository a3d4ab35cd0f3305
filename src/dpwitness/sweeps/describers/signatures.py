"""Functions and classes of any library whose signature shows a claim: a parameter for ε, such as epsilon or eps.

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
from itertools import chain, product
from typing import Any, Final

import numpy as np

from dpwitness.claims import ApproxDP
from dpwitness.mechanisms.signature import DELTA_NAMES, GENERATOR_NAMES, LEGACY_NAME, SIZE_NAMES
from dpwitness.neighbours import Relation, categories, integers, numbers, pairs, queries, records
from dpwitness.sweeps.describers import Attempt, Recipe
from dpwitness.targets import target_of

#: Parameters is the type of a function's parameters by name.
Parameters = Mapping[str, inspect.Parameter]
#: NO_DEFAULT is the default of a parameter without a default.
NO_DEFAULT: Final = inspect.Parameter.empty

#: TESTED_EPSILON is the ε in nats at which mechanisms are tested.
TESTED_EPSILON: Final = 1.0
#: CLAIM_NAMES has the names of parameters for the ε of a claim; the first of them in a signature is its ε.
CLAIM_NAMES: Final = ("epsilon", "eps", "privacy_budget", "privacy_level")
#: LABEL_RANGE has the bounds of the labels of a regression, which differ from the bounds of features.
LABEL_RANGE: Final = (0.0, 1.0)
#: BOUNDS_NAMES has the names of parameters for a pair of bounds.
BOUNDS_NAMES: Final = ("bounds", "range", "limits", "clip", "bounds_X", "bounds_x", "bounds_y")
#: END_NAMES has the names of the two parameters for the ends of a pair of bounds.
END_NAMES: Final = (
    ("lower", "upper"), ("low", "high"), ("lower_bound", "upper_bound"), ("min_value", "max_value"),
    ("minimum", "maximum"), ("lo", "hi"), ("clip_min", "clip_max"), ("a_min", "a_max"),
)  # fmt: skip
#: SENSITIVITY_NAMES has the names of parameters for a sensitivity.
SENSITIVITY_NAMES: Final = ("sensitivity", "global_sensitivity", "l1_sensitivity", "l2_sensitivity", "sens")
#: LIMIT_NAMES matches names of parameters that may restrict the data of a claim, or spend a budget of their own.
LIMIT_NAMES: Final = re.compile(
    r"norm(?![a-z])|bound|budget|(?:^|_)(?:eps(?:ilons?)?|deltas?|sens(?:itivit(?:y|ies))?)(?![a-z])"
)
#: MAXIMUM_NAMES matches further names that may restrict the data, unless the default is a count, as max_iter=100, or a
#: bound to clip to.
MAXIMUM_NAMES: Final = re.compile(r"(?:^|_)max(?:imum)?(?:_|$)|clip")
#: NUMBER_NAMES has the names of parameters for a single number.
NUMBER_NAMES: Final = ("value", "true_value", "true_count", "answer", "count", "x")
#: DATA_NAMES has the names of parameters for data.
DATA_NAMES: Final = (
    *NUMBER_NAMES, "data", "array", "sample", "samples", "values", "records", "X", "xs", "df", "frame", "dataset",
    "scores", "utilities", "queries", "answers", "counts", "column", "items", "texts", "a", "arr", "seq", "inputs",
)  # fmt: skip
#: SETTING_NAMES matches names of parameters that never take data.
SETTING_NAMES: Final = re.compile(
    r"^(?:n|num|dim|no)(?:_|$)|(?:^|_)(?:size|shape|scale|sigma|rho|rate|steps|protocol|method|mechanism|type|name|path|file)$"
)
#: FRAME_NAMES matches names of parameters for a DataFrame.
FRAME_NAMES: Final = re.compile(r"^df(?:_|$)|frame$")
#: COLUMN_NAMES has the names of parameters for a column's name in a frame; a name that ends in s takes a list of them.
COLUMN_NAMES: Final = (
    "column", "col", "column_name", "col_name", "colname", "feature", "field", "attribute", "columns", "cols",
    "features", "fields", "attributes",
)  # fmt: skip
#: SEED_NAMES has the names of parameters for a seed of the noise; a seed without a default is drawn in each run.
SEED_NAMES: Final = ("seed", "random_seed")
#: LABEL_NAMES has the names of parameters for labels.
LABEL_NAMES: Final = ("y", "Y", "labels", "target", "targets")
#: PARAMETER_VALUES has values for parameters without a default, by name.
PARAMETER_VALUES: Final[Mapping[str, Any]] = {
    "k": 2, "n": 10, "bins": 5, "n_bins": 5, "threshold": 0.5, "quantile": 0.5, "quant": 0.5, "q": 0.5, "percent": 50,
    "percentile": 50, "alpha": 0.5, "n_clusters": 2, "n_components": 1, "dimension": 2, "cutoff": 1,
    "categories": ["a", "b", "c"], "domain": ["a", "b", "c"],
}  # fmt: skip
#: RELEASE_VERBS has the names of methods that add noise to data, alone or before an underscore, as in release_count.
RELEASE_VERBS: Final = ("randomise", "randomize", "privatise", "privatize", "add_noise", "release")
#: METHOD_NAMES has the names of other methods that release something about data. They come after the verbs, since a
#: class that randomises records may also be fitted to randomised records.
METHOD_NAMES: Final = ("fit", "quick_result", "answer", "estimate", "sanitize", "sanitise", "run", "__call__")
#: RELEASED_VALUES is the number of samples or of predictions that a fitted object releases: few, so that a run is fast.
RELEASED_VALUES: Final = 5
#: ADJACENCIES has the adjacencies that a claim about records may mean.
ADJACENCIES: Final = ("add-remove", "replace-one")


def released_by(estimator: Any, features: Any, ends: tuple[float, float]) -> object:
    """The values that a fitted estimator learned, else samples, else predictions for features between `ends`."""
    if found := learned_values(estimator):
        return found
    if callable(sample := getattr(estimator, "sample", None)):
        return sample(RELEASED_VALUES)
    width = np.ndim(features) == 2 and np.shape(features)[1]
    points = np.linspace(*ends, RELEASED_VALUES)
    return estimator.predict(np.tile(points[:, None], width) if width else points)


def learned_values(estimator: object) -> dict[str, object]:
    """The numbers and arrays of a fitted estimator under public names that end with _."""
    known, kinds = vars(estimator).items(), int | float | np.ndarray | np.generic
    named = {name: value for name, value in known if name.endswith("_") and not name.startswith("_")}
    of_the_fit = ("n_features_in_", "feature_names_in_", "n_iter_", "n_outputs_", "labels_")  # not learned from data
    return {name: value for name, value in named.items() if name not in of_the_fit and isinstance(value, kinds)}


def named_after(thing: Any, function: Any) -> Callable[..., object]:
    """The function, with the name and the module of the thing that it runs."""
    function.__name__ = str(getattr(thing, "__name__", type(thing).__name__))
    function.__module__ = str(getattr(thing, "__module__", __name__))
    return function  # type: ignore[no-any-return]


class Signatures:
    """The describer of plain signatures with ε, and of functions marked by `@target`."""

    def describes(self, thing: object, place: str) -> bool:
        """Whether a parameter for ε belongs to the thing, a function or a class, or to the class's method for data."""
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            return False
        if inspect.isabstract(thing) or (inspect.isclass(thing) and issubclass(thing, BaseException | Mapping)):
            return False
        own = {**parameters_of(thing), **(method_of(thing)[1] if inspect.isclass(thing) else {})}
        return target_of(thing) is not None or any(name in own for name in CLAIM_NAMES)

    def recipes(self, thing: Any, place: str) -> Sequence[Recipe]:
        """One recipe for each choice of bounds; a refused recipe if a parameter has no known value."""
        if target_of(thing) is not None:
            return [Recipe()]
        bounds = ((0.0, 5.0), (-1.0, 4.0))  # from zero; and with both signs, the lower end nearer to 0
        taken = [Taking(thing, ends, self.values(thing, ends)) for ends in bounds]
        if unknown := taken[0].unknown:
            why = ", which may restrict its claim" if may_restrict(unknown[0]) else ""
            return [Recipe(refused=f"no value is known for its parameter {unknown[0]!r}{why}")]
        if taken[0].data is None:
            return [Recipe(refused="it has no known parameter or method that takes data")]
        labels = [f"{low:g} to {high:g}" for low, high in bounds] if taken[0].bounded else [""]
        return [
            Recipe(label=label, settings={"ends": one.ends, "parameters": one.given})
            for label, one in zip(labels, taken, strict=False)
        ]

    def attempts(self, thing: Any, recipe: Recipe, records: Any = None) -> Iterator[Attempt]:
        """The attempts at records in several forms; numbers first for a sensitivity or a single value."""
        if mark := target_of(thing):
            states = mark.states or (lambda epsilon: ApproxDP(epsilon, mark.delta))
            yield Attempt(
                mechanism=thing,
                claim=states(TESTED_EPSILON),
                relations=(mark.neighbours,),
                adjacency=f"{mark.neighbours!s:.80}",
                parameters={mark.claim: TESTED_EPSILON},
            )
        else:
            ends = tuple(recipe.settings["ends"])
            yield from Taking(thing, ends, self.values(thing, ends)).attempts(records)

    def values(self, thing: Any, ends: tuple[float, float]) -> Mapping[str, Any]:
        """Values of parameters by name that come before all others, for libraries with a describer of their own."""
        return {}


class Taking:
    """A function, or a class with its method that takes data, and values for the parameters.

    `ends`: the bounds; `values`: see `Signatures.values`; `unknown`: the parameters without a known value.
    """

    def __init__(self, thing: Any, ends: tuple[float, float], values: Mapping[str, Any]) -> None:
        self.thing, self.ends, self.made, self.own = thing, ends, inspect.isclass(thing), parameters_of(thing)
        self.method, self.taking = method_of(thing) if self.made else (None, self.own)
        self.all = {**self.taking, **self.own}
        self.data = data_of(self.taking, self.method)
        labels = [name for name in LABEL_NAMES if name in self.taking]
        self.inputs = [str(self.data), *labels[:1]]
        self.labelled = any(self.taking[name].default is NO_DEFAULT for name in labels)
        self.classifies = self.labelled and "bounds_y" not in self.all
        pairs_of_ends = [names for names in END_NAMES if set(names) <= set(self.all)]
        epsilon = next((name for name in CLAIM_NAMES if name in self.all), "")  # if both occur, eps is not the ε
        known = {**dict.fromkeys(BOUNDS_NAMES, ends), "bounds_y": LABEL_RANGE, epsilon: TESTED_EPSILON}
        known |= {name: end for names in pairs_of_ends for name, end in zip(names, ends, strict=True)}
        free = {name for name, one in self.all.items() if one.default is NO_DEFAULT and one.annotation is not int}
        self.columns = [name for name in COLUMN_NAMES if name in free - {self.data}]
        annotated = self.data and "DataFrame" in str(self.taking[self.data].annotation)
        self.takes_frame = bool(self.columns or annotated or FRAME_NAMES.search(str(self.data)))
        self.seeds = [name for name in SEED_NAMES if name in self.all and self.all[name].default is NO_DEFAULT]
        other = {self.data, *labels, *self.columns, *self.seeds, *GENERATOR_NAMES, *SIZE_NAMES}
        settings = {name: one for name, one in self.all.items() if name not in other}
        self.given, self.unknown = fill_parameters(settings, {**known, **values})
        self.bounded = bool(pairs_of_ends or set(BOUNDS_NAMES) & set(self.given))
        self.clippings = (True, False) if self.bounded else (False,)
        drawn = GENERATOR_NAMES & set(self.all)
        self.random = {name for name in drawn if name != LEGACY_NAME or self.all[name].default is NO_DEFAULT}

    def call(self, value: Any, rng: Any = None, *, public: bool = False, column: str = "x") -> object:
        """Run the function, or make an object of the class and run its method, on an input.

        `public`: with a public record of each class, since many classifiers refuse a single class. `column`: the name
        of the column of a frame, for functions that take one.
        """
        if getattr(value, "shape", None) == ():
            value = (value.item(),)
        elif public:
            features, classes = map(np.asarray, value)
            value = np.vstack([features, np.full((2, features.shape[1]), self.ends[0])]), np.append(classes, [0, 1])
        elif not self.labelled:
            value = (value,)
        inputs = {name: as_annotated(one, self.taking[name]) for name, one in zip(self.inputs, value, strict=False)}
        named = {**self.given, **dict.fromkeys(self.random, rng), **inputs}
        named |= {name: [column] if name.endswith("s") else column for name in self.columns}
        named |= {name: int(rng.integers(1 << 31)) for name in self.seeds}
        if self.method is None:
            return self.thing(**named)
        made = self.thing(**{name: one for name, one in named.items() if name in self.own})
        found = getattr(made, self.method)(**{name: one for name, one in named.items() if name in self.taking})
        if self.method != "fit":
            return found
        return released_by(made if found is None else found, value[0], self.ends)

    def attempt(
        self, relations: Sequence[Relation], adjacency: str, *, public: bool = False, column: str = "x", **more: Any
    ) -> Attempt:
        """The attempt at these relations. `public`, `column`: see `call`; `more`: further fields of the attempt."""
        call, draws = partial(self.call, public=public, column=column), self.seeds or self.random - {LEGACY_NAME}
        run = (lambda rng, data: call(data, rng)) if draws else lambda data: call(data)
        delta = {**{name: one.default for name, one in self.all.items()}, **self.given}.get("delta", 0.0)
        return Attempt(
            mechanism=named_after(self.thing, run),
            claim=ApproxDP(TESTED_EPSILON, float(delta) if isinstance(delta, int | float) and 0 <= delta < 1 else 0.0),
            relations=tuple(relations),
            adjacency=adjacency,
            unknown="" if self.data in DATA_NAMES or self.labelled else str(self.data),
            **more,
        )

    def attempts(self, given: Any) -> Iterator[Attempt]:
        """The attempts at inputs of several shapes, the most likely first; `given`: the user's records.

        Numbers beyond the bounds are relations of their own, as a signature does not say whether its claim covers them.
        """
        (low, high), bounded, attempt = self.ends, self.bounded, self.attempt
        sensitive = bool(set(SENSITIVITY_NAMES) & set(self.all))
        numeric = self.data in NUMBER_NAMES or (self.data and self.taking[self.data].annotation in (float, int))
        numeric = numeric and (not self.made or str(self.method).startswith(RELEASE_VERBS))
        within = ((low, high), (low, (low + high) / 2))
        if sensitive or (numeric and not bounded):
            values, told = [0.0, 1.0, 10.0], "numbers that differ by 1, which is assumed"
            if sensitive:
                values = [low, low + 1, high - 1] if bounded else [0.0, 1.0, -1.0, 0.5, 10.0]
                told = "numbers that differ by the sensitivity"
            for kind in (float, int):
                yield attempt([pairs(*((kind(one), kind(one) + 1) for one in values))], told)
            if sensitive and not bounded:
                yield attempt([queries(3, may_move="one")], "lists of which one number differs by the sensitivity")
        elif numeric:
            span, told = high - low, f"any two numbers from {low:g} to {high:g}"
            beyond = pairs((low - span, high + span), (low, high + 10 * span), *within)
            yield attempt([beyond, pairs(*within)], f"{told}, and beyond", strict=True)
            yield attempt([pairs(*within)], told)
        if sensitive:
            return
        yield from self.of_records(given)
        if not self.labelled:  # a mechanism that answers for each record makes a claim about one record
            told = "any two values of one record"
            for domains, form, base, column in self.frames() if self.takes_frame else ():
                one = [records(each, adjacency="replace-one", size=1, form=form, base=base[:1]) for each in domains]
                yield attempt(one, told + self.frame_text(domains, column), strict=True, column=column)
            yield attempt([pairs((["a"], ["b"]), (["a"], ["c"]), (["b"], ["c"]))], told)
            if bounded:
                yield attempt([pairs(*((np.array([one]), np.array([other])) for one, other in within))], told)

    def of_records(self, given: object) -> Iterator[Attempt]:
        """Attempts at records in the forms that libraries take, under both adjacencies."""
        (low, high), both, labelled = self.ends, " and ".join(ADJACENCIES), self.labelled
        for form in () if given is None else ("xy",) if labelled else ("dataframe", "array", "list"):
            with suppress(ValueError):  # the records cannot have this form
                relations = [records(base=given, adjacency=one, form=form) for one in ADJACENCIES]
                yield self.attempt(relations, f"{both}, of the records given", of_records=True)
        sizes, publics = (1, 4) if self.made else (1,), (False, True) if self.classifies else (False,)
        for domains, form, base, column in self.forms():
            final = len(domains) - 1
            tried = [*product(range(len(domains)), sizes, publics, [True])]
            # A mechanism may refuse few records or a single class, so the last attempts are not strict, except for
            # values that many mechanisms refuse.
            missing = self.frame_text(domains, "") if form == "dataframe" else ""
            tried += [] if missing else [(final, least, False, False) for least in dict.fromkeys((sizes[-1], 4))]
            for first, least, public, strict in tried:
                relations = [
                    records(domain, adjacency=adjacency, size=(least, 20), form=form, base=base)
                    for domain, adjacency in product(domains[first:], ADJACENCIES)
                ]
                said = f"; numbers from {low:g} to {high:g}, which is assumed"
                if not re.search(r"(numbers|integers)\(", str(relations[-1])):
                    said = ""
                elif self.bounded:
                    said = f"; numbers within the bounds{'' if first == final else ', and beyond'}"
                said += self.frame_text(domains, column) if form == "dataframe" else ""
                yield self.attempt(relations, both + said, public=public, of_records=True, strict=strict, column=column)

    def forms(self) -> Iterator[tuple[list[Any], str, Any, str]]:
        """Domains of records, one for each choice of clipping; their form; records to start from; the named column.

        The records to start from have labels of both classes, as many classifiers require, and are None for other
        forms than features with labels and frames. The column is "" for functions that take no name of a column.
        """
        (low, high), clippings = self.ends, self.clippings
        reals = [numbers(low, high, clipped=clipped) for clipped in clippings]
        if self.labelled:
            steps = np.linspace(0.0, 1.0, 10)
            features = low + (high - low) * steps
            if self.classifies:
                plane = np.stack([features, features[-np.arange(10)]], axis=1)
                yield [((real, real), categories(0, 1)) for real in reals], "xy", (plane, [0, 1] * 5), ""
            labels = [numbers(*LABEL_RANGE, clipped=clipped) for clipped in clippings]
            domains = [((real,), label) for real, label in zip(reals, labels, strict=True)]
            yield domains, "xy", (features[:, None], steps), ""
            return
        if self.takes_frame:
            yield from self.frames()
            return
        if self.thing.__name__.startswith("nan"):  # ignores missing values, like NumPy's functions
            missing = [numbers(low, high, clipped=clipped, missing=True) for clipped in clippings]
            yield from ((missing, form, None, "") for form in ("array", "list"))
        texts = categories("a", "b", "c")
        yield from ((reals, form, None, "") for form in ("array", "list"))
        yield [integers(int(low), int(high))], "list", None, ""
        yield [(real, real) for real in reals], "array", None, ""
        yield [texts], "list", None, ""
        yield from self.frames()
        yield [categories(False, True)], "list", None, ""

    def frame_text(self, domains: Sequence[Any], column: str) -> str:
        """The text on missing values and on the named column of frames; empty for frames without them."""
        missing = "; missing values, which it accepts" if "missing=True" in str(domains[0]) else ""
        return missing + (f"; column {column!r}" if column else "")

    def frames(self) -> Iterator[tuple[list[Any], str, Any, str]]:
        """Frames in the form of `forms`: columns x of numbers, y of texts and z of a categorical type.

        Numbers of a frame may be missing, since a column of pandas has NaN for a missing number.
        """
        import pandas as pd  # type: ignore[import-untyped]  # no stubs; 0.4 s, and most functions take no frames

        base = pd.DataFrame({"x": [*self.ends] * 2, "y": list("abca"), "z": pd.Categorical(list("abca"))})
        texts = categories("a", "b", "c")
        for names, column in [("xyz", one) for one in "xyz"] if self.columns else [("xy", ""), ("x", "")]:
            for missing in (True, False) if column in ("x", "") else (False,):
                reals = [numbers(*self.ends, clipped=clipped, missing=missing) for clipped in self.clippings]
                domains = [{name: {"x": real}.get(name, texts) for name in names} for real in reals]
                yield domains, "dataframe", base[[*names]], column


def as_annotated(value: Any, parameter: inspect.Parameter) -> Any:
    """An array as a Series or DataFrame of pandas, if its parameter is annotated so; else the value itself."""
    wanted = str(parameter.annotation)
    if type(value) is not np.ndarray or not re.search(r"\b(pd|pandas)\b", wanted):
        return value
    import pandas as pd

    if value.ndim == 1:
        return pd.Series(value, name="x") if "Series" in wanted else value
    return pd.DataFrame(value, columns=[f"x{k}" for k in range(value.shape[1])]) if "DataFrame" in wanted else value


def fill_parameters(own: Parameters, known: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Values of parameters, and the names of the parameters without a known value."""
    found: dict[str, Any] = {}
    unknown: list[str] = []
    for name, one in own.items():
        if name in BOUNDS_NAMES and one.default is None and "dict" in str(one.annotation).lower():
            continue  # bounds by column have a form of the library's own
        if name in known:
            found[name] = known[name]
        elif name in DELTA_NAMES:
            found |= {name: 1e-3} if one.default is NO_DEFAULT else {}
        elif name in SENSITIVITY_NAMES:
            # The relations move numbers by 1, whatever the default. Some mechanisms accept only integers.
            found[name] = 1 if isinstance(one.default, int) else 1.0
        elif one.default is not NO_DEFAULT:
            unknown += [name] if may_restrict(name, one.default) else []
        else:
            found[name] = PARAMETER_VALUES.get(name, value_of_type(one.annotation))
            if "clip" in name:  # the mechanism clips to this bound, so its value is no assumption about the data
                found[name] = found[name] or 1.0
            elif found[name] is None or (may_restrict(name) and isinstance(found[name], int | float)):
                unknown.append(name)
    return found, unknown


def may_restrict(name: str, default: object = NO_DEFAULT) -> bool:
    """Whether a parameter's name and default suggest that it restricts the data of the claim, or spends a budget."""
    if default is NO_DEFAULT:
        return bool(LIMIT_NAMES.search(name) or MAXIMUM_NAMES.search(name))
    if isinstance(default, bool) or not isinstance(default, int | float) or "clip" in name:
        return False
    return bool(LIMIT_NAMES.search(name) or (isinstance(default, float) and MAXIMUM_NAMES.search(name)))


def value_of_type(annotation: object) -> object:
    """A value of an annotation's type; None if the annotation is unknown."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType):
        return next((value for value in map(value_of_type, arguments) if value is not None), None)
    values: dict[object, Any] = {int: 2, float: 1.0, bool: False, str: "a"}
    return values.get(annotation)


def parameters_of(thing: Any, *, bound: bool = False) -> Parameters:
    """The parameters of a function or a class, without *args and **kwargs; empty if they cannot be read.

    `bound`: whether the first parameter, self, is left out.
    """
    found: Parameters = {}
    for evaluated in (True, False):  # annotations may name objects that only type checkers import
        with suppress(Exception):
            found = found or inspect.signature(thing, eval_str=evaluated).parameters
    return {one.name: one for one in [*found.values()][bound:] if not one.kind.name.startswith("VAR_")}


def data_of(own: Parameters, method: str | None = None) -> str | None:
    """The name of the parameter that takes data: a usual name, else the first other parameter without a default.

    None if that parameter has the name of a setting, or is annotated as a number, text or flag and has no name of data;
    but the first parameter of a method whose name begins with one of `RELEASE_VERBS` is always taken.
    """
    other = {*CLAIM_NAMES, *DELTA_NAMES, *GENERATOR_NAMES, *SIZE_NAMES, *SENSITIVITY_NAMES, *BOUNDS_NAMES}
    other |= {*LABEL_NAMES, *SEED_NAMES, *chain(*END_NAMES)}
    free = [name for name, one in own.items() if one.default is NO_DEFAULT]
    if usual := next((name for name in free if name in DATA_NAMES), None):
        return usual
    releases = str(method).startswith(RELEASE_VERBS)
    first = next((name for name in free if name not in other and (releases or name not in PARAMETER_VALUES)), None)
    if first is None or releases:
        return first
    if SETTING_NAMES.search(first):
        return None
    known = FRAME_NAMES.search(first) or first.rpartition("_")[2] in DATA_NAMES
    return first if known or own[first].annotation not in (int, float, str, bool) else None


def method_of(thing: Any) -> tuple[str | None, Parameters]:
    """The method of a class that releases something about data, and its parameters; None without a releasing method."""
    verbs = [name for verb in RELEASE_VERBS for name in dir(thing) if name == verb or name.startswith(f"{verb}_")]
    for name in (*verbs, *METHOD_NAMES):
        if callable(one := getattr(thing, name, None)):
            static = isinstance(inspect.getattr_static(thing, name, None), staticmethod | classmethod)
            taken = parameters_of(one, bound=not static)
            if data_of(taken, name) is not None:
                return name, taken
    return None, {}


#: DESCRIBER is the describer of signatures.
DESCRIBER = Signatures()
