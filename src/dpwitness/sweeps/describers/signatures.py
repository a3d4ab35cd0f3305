"""Functions and classes of any library whose signature shows a claim: a parameter for ε, such as epsilon or eps.

Parameters get values by their names, annotations and defaults; the form of the data is found by trying, and columns of
a frame by the errors that name them. A signature does not state which inputs are neighbours, and prose is not read. So
the claim is tested under every relation that it may mean (both adjacencies; numbers within the bounds, and beyond
them), and is refuted only under all of them.
"""

import datetime
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from importlib import import_module
from itertools import chain, combinations, pairwise, product
from typing import Any, Final

import numpy as np

from dpwitness.claims import ApproxDP
from dpwitness.mechanisms.signature import DELTA_NAMES, GENERATOR_NAMES, LEGACY_NAME, SIZE_NAMES
from dpwitness.neighbours import Relation, categories, integers, numbers, pairs, queries, records
from dpwitness.neighbours.records import ADJACENCIES
from dpwitness.options import NO_DEFAULT
from dpwitness.sweeps.describers import NO_DATA, Attempt, Recipe
from dpwitness.targets import target_of

#: SignatureParameters is the type of a function's parameters by name.
SignatureParameters = Mapping[str, inspect.Parameter]

#: TESTED_EPSILON is the ε in nats at which mechanisms are tested.
TESTED_EPSILON: Final = 1.0
#: LABEL_RANGE has the bounds of the labels of a regression, which differ from the bounds of features.
LABEL_RANGE: Final = (0.0, 1.0)
#: LENGTH is the public number of records.
LENGTH: Final = 10
#: DOMAIN_SIZE is the number of categories, and LETTERS has the categories that are texts.
DOMAIN_SIZE: Final = 4
LETTERS: Final = ("a", "b", "c")
#: DATES has the dates of a column of dates; they lie between the dates that parameters get.
DATES: Final = ("2024-01-08", "2024-01-15", "2024-02-01")
#: FRAME_COLUMNS has the kinds of the usual columns of frames.
FRAME_COLUMNS: Final = {"x": "numbers", "y": "texts", "z": "categories", "t": "dates"}
#: RELEASED_VALUES is the number of samples or of predictions that a fitted object releases: few, so that a run is fast.
RELEASED_VALUES: Final = 5

#: ROLE_NAMES has names of parameters and of methods by their role.
ROLE_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "epsilon": ("epsilon", "eps", "privacy_budget", "privacy_level"),  # the first of them in a signature is its ε
    "bounds": ("bounds", "range", "limits", "clip", "bounds_X", "bounds_x", "bounds_y"),
    "lower": ("lower", "low", "lower_bound", "min_value", "minimum", "lo", "clip_min", "a_min", "min_val"),
    "upper": ("upper", "high", "upper_bound", "max_value", "maximum", "hi", "clip_max", "a_max", "max_val"),
    "sensitivity": ("sensitivity", "global_sensitivity", "l1_sensitivity", "l2_sensitivity", "sens"),
    "number": ("value", "true_value", "true_count", "answer", "count", "x"),  # a single number, which is data too
    "data": ("data", "array", "sample", "samples", "values", "records", "X", "xs", "df", "frame", "dataset", "scores",
             "utilities", "queries", "answers", "counts", "column", "items", "texts", "a", "arr", "seq", "inputs"),
    "labels": ("y", "Y", "labels", "target", "targets"),
    "seed": ("seed", "random_seed"),  # of the noise: drawn in each run, unless it may be None
    "length": ("n", "N", "n_records", "num_records", "n_rows", "num_rows", "n_users", "num_users", "sample_size",
               "data_size", "dataset_size", "num_samples", "population_size"),  # the public number of records
    "domain size": ("k", "d", "domain_size", "alphabet_size", "num_categories", "n_categories", "num_values",
                    "n_values", "cardinality", "num_classes", "n_classes"),  # categories from 0 or from 1 on
    "domain": ("domain", "categories", "alphabet", "options", "candidates", "choices", "universe", "classes"),
    # Verbs add noise to data, alone or before an underscore, as in release_count. The other methods come after them,
    # since a class that randomises records may also be fitted to randomised records.
    "verb": ("randomise", "randomize", "privatise", "privatize", "add_noise", "release", "obfuscate", "perturb",
             "anonymise", "anonymize", "execute"),
    "method": ("fit", "quick_result", "answer", "estimate", "sanitize", "sanitise", "run", "apply", "query",
               "transform", "__call__"),
}  # fmt: skip
#: PATTERNS matches names of parameters, and texts of annotations, by their role.
PATTERNS: Final[Mapping[str, re.Pattern[str]]] = {role: re.compile(pattern) for role, pattern in {
    # Values for no noise, for a part of the noise, and for the noise of other claims.
    "without noise": r"(?i)^no|none|non|raw|exact|plain|public|off|without|ident|true|test|debug|skip|zero|disabled|inf"
                     r"|clear|orig|base|clean|fixed|const|mock|dummy|insecure|false|null|determ|local|client|distrib"
                     r"|share|gauss|normal|rdp|renyi|cdp|concentrated|gdp|approx",
    # Parameters that may restrict the data of a claim, or that spend a budget of their own.
    "limit": r"norm(?![a-z])|bound|budget|(?:^|_)(?:eps(?:ilons?)?|deltas?|sens(?:itivit(?:y|ies))?)(?![a-z])",
    # Parameters that may restrict the data, unless the default is a count, as max_iter=100, or a bound to clip to.
    "maximum": r"(?:^|_)max(?:imum)?(?:_|$)|clip",
    # Parameters of noise, and of claims other than (ε, δ): no value fits the claimed ε.
    "noise": r"(?:^|_)(?:mu|sigma|rho|lam|lambd|lambda|scale|std|stdev|stddev|variance|noise)[\d_]*$"
             r"|noise_(?:level|multiplier|std|var|param)|(?:^|_)(?:zcdp|rdp|gdp)(?:_|$)",
    # The number, category or flag of one person, or a true answer.
    "observation":
        r"(?:^|_)(?:value|data|input|bit|item|index|answer|vote|category|observation|record|element|symbol|location"
        r"|true|raw|private|secret|count|sum|total|mean|result|string|word|label|choice|number|score|age|salary"
        r"|income)(?:_|$)",
    # Parameters that never take raw data; reports have been randomised before.
    "setting":
        r"^(?:n|num|dim|no)(?:_|$)"
        r"|(?:^|_)(?:size|shape|scale|sigma|rho|rate|steps|protocol|method|mechanism|type|name|path|file)$"
        r"|^[b-twzB-CE-WZ]$|^noisy|reports?$|perturbed|obfuscated|randomi[sz]ed|privati[sz]ed|anonymi[sz]ed",
    "array": r"ndarray|NDArray|ArrayLike|_array_like|Tensor|DataFrame|Series",
    "frame": r"^df(?:_|$)|frame$",
    # The name of a column of a frame; with an s at its end a list of names.
    "column": r"(?:^|_)(?:col|column|colname|feature|field|attribute)s?(?:_|$)",
    "date": r"date|(?:^|_)(?:time|day)|timestamp|(?:_|^)at$",
    "group": r"group|categor|(?:^|_)(?:by|key|city|region|user|id|label|class)(?:_|$)",
}.items()}  # fmt: skip
#: USUAL_DATA has the usual names of parameters for data.
USUAL_DATA: Final = ROLE_NAMES["number"] + ROLE_NAMES["data"]
#: PARAMETER_VALUES has values for parameters without a default, by name.
PARAMETER_VALUES: Final[Mapping[str, Any]] = {
    **dict.fromkeys(ROLE_NAMES["length"], LENGTH), **dict.fromkeys(ROLE_NAMES["domain size"], DOMAIN_SIZE),
    **{name: [*LETTERS] for name in ROLE_NAMES["domain"]},
    **dict.fromkeys(("mechanism", "noise_type", "noise"), "laplace"),
    "bins": 5, "n_bins": 5, "num_bins": 5, "threshold": 0.5, "quantile": 0.5, "quant": 0.5, "q": 0.5, "percent": 50,
    "percentile": 50, "alpha": 0.5, "beta": 0.05, "confidence": 0.95, "n_clusters": 2, "n_components": 1,
    "dimension": 2, "cutoff": 1, "depth": 2, "iterations": 2, "epochs": 1, "device": "cpu", "cuda_device": "cpu",
}  # fmt: skip


def released_by(estimator: Any, features: Any, ends: tuple[float, float]) -> object:
    """The values that a fitted estimator learned, else samples, else predictions for features between `ends`.

    Learned values are numbers and arrays under public names that end with _.
    """
    of_the_fit = ("n_features_in_", "feature_names_in_", "n_iter_", "n_outputs_", "labels_")  # not learned from data
    names = [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]
    found = {name: getattr(estimator, name) for name in names if name not in of_the_fit}
    if found := {name: one for name, one in found.items() if isinstance(one, int | float | np.ndarray | np.generic)}:
        return found
    for name in ("sample", "generate", "synthesize"):
        if callable(sample := getattr(estimator, name, None)):
            return sample(RELEASED_VALUES)
    points = np.linspace(*ends, RELEASED_VALUES)
    return estimator.predict(np.tile(points[:, None], np.shape(features)[1]) if np.ndim(features) == 2 else points)


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
        return target_of(thing) is not None or any(name in own for name in ROLE_NAMES["epsilon"])

    def recipes(self, thing: Any, place: str) -> Sequence[Recipe]:
        """One recipe for each choice of bounds; a refused recipe if a parameter has no known value."""
        if target_of(thing) is not None:
            return [Recipe()]
        bounds = ((0.0, 5.0), (-1.0, 4.0))  # from zero; and with both signs, the lower end nearer to 0
        taken = [Taking(thing, ends, self.values(thing, ends)) for ends in bounds]
        if taken[0].data is None:
            return [Recipe(refused=NO_DATA)]
        if unknown := taken[0].unknown:
            why = ", which may restrict its claim" if may_restrict(unknown[0]) else ""
            return [Recipe(refused=f"no value is known for its parameter {unknown[0]!r}{why}")]
        labels = [f"{low:g} to {high:g}" for low, high in bounds] if taken[0].bounded else [""]
        return [
            Recipe(label=label, settings={"ends": ends, "parameters": one.given})
            for label, ends, one in zip(labels, bounds, taken, strict=False)
        ]

    def attempts(self, thing: Any, recipe: Recipe) -> Iterator[Attempt]:
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
            yield from Taking(thing, ends, self.values(thing, ends)).attempts()

    def values(self, thing: Any, ends: tuple[float, float]) -> Mapping[str, Any]:
        """Values of parameters by name, which precede all other values, for libraries with a describer of their own."""
        return {}


class Taking:
    """A function, or a class with its method that takes data, and values for the parameters.

    `ends`: the bounds; `values`: see `Signatures.values`; `unknown`: the parameters without a known value.
    """

    def __init__(self, thing: Any, ends: tuple[float, float], values: Mapping[str, Any]) -> None:
        self.thing, self.made, self.own = thing, inspect.isclass(thing), parameters_of(thing)
        self.method, self.taking = method_of(thing) if self.made else (None, self.own)
        self.all = {**self.taking, **self.own}
        self.releases = str(self.method or getattr(thing, "__name__", "")).startswith(ROLE_NAMES["verb"])
        self.data = data_of(self.taking, releases=self.releases)
        labels = [name for name in ROLE_NAMES["labels"] if name in self.taking]
        self.inputs = [str(self.data), *labels[:1]]
        self.labelled = any(self.taking[name].default is NO_DEFAULT for name in labels)
        self.classifies = self.labelled and "bounds_y" not in self.all
        # If both occur, eps is not the ε.
        epsilon = next((name for name in ROLE_NAMES["epsilon"] if name in self.all), "")
        known = {**dict.fromkeys(ROLE_NAMES["bounds"], ends), "bounds_y": LABEL_RANGE, epsilon: TESTED_EPSILON}
        known |= {**dict.fromkeys(ROLE_NAMES["lower"], ends[0]), **dict.fromkeys(ROLE_NAMES["upper"], ends[1])}
        free = {name: one for name, one in self.all.items() if one.default is NO_DEFAULT and name != self.data}
        self.columns = [name for name in free if PATTERNS["column"].search(name) and free[name].annotation is not int]
        annotated = self.data and "DataFrame" in str(self.taking[self.data].annotation)
        self.takes_frame = bool(self.columns or annotated or PATTERNS["frame"].search(str(self.data)))
        # A default such as 42 is for examples; a claim is about the noise of a secret seed.
        self.seeds = [name for name in ROLE_NAMES["seed"] if name in self.all and self.all[name].default is not None]
        drawn = GENERATOR_NAMES & set(self.all)
        self.random = {name for name in drawn if name != LEGACY_NAME or self.all[name].default is NO_DEFAULT}
        other = {self.data, *labels, *self.columns, *self.seeds, *GENERATOR_NAMES, *SIZE_NAMES}
        settings = {name: one for name, one in self.all.items() if name not in other}
        self.given, self.unknown = fill_parameters(settings, {**known, **values})
        self.bounded = bool({*ROLE_NAMES["bounds"], *ROLE_NAMES["lower"], *ROLE_NAMES["upper"]} & set(self.given))
        self.clippings = (True, False) if self.bounded else (False,)
        # Claims without bounds are often about values of at most 1; a number of unknown meaning, of 1 or more, may be a
        # bound too.
        self.ends = ends if self.bounded else (0.0, 1.0)
        self.lengths = [name for name in ROLE_NAMES["length"] if name in self.given]
        self.drawn_values = [name for name in SIZE_NAMES if name in free]  # one draw of the noise, not several
        self.sized = any(name in self.given for name in ROLE_NAMES["domain size"])
        self.listed: list[Any] = next((self.given[name] for name in ROLE_NAMES["domain"] if name in self.given), [])

    def call(
        self, value: Any, rng: Any = None, *, public: bool = False, column: str = "x", one: bool = False,
        tensor: bool = False, dates: Sequence[str] = (),
    ) -> object:  # fmt: skip
        """Run the function, or make an object of the class and run its method, on an input.

        `public`: whether a public record of each class is added, since many classifiers refuse a single class.
        `column`: the name of a frame's column, for functions that take such a name. `one`: whether the input is of one
        person; then the public number of records is 1. `tensor`: whether arrays and lists are given as tensors.
        `dates`: the names of the columns of dates.
        """
        if getattr(value, "shape", None) == ():
            value = (value.item(),)
        elif public:
            features, classes = map(np.asarray, value)
            value = np.vstack([features, np.full((2, features.shape[1]), self.ends[0])]), np.append(classes, [0, 1])
        elif not self.labelled:
            value = (value,)
        inputs = dict(zip(self.inputs, value, strict=False))
        if dates:
            inputs = {name: given.astype(dict.fromkeys(dates, "datetime64[ns]")) for name, given in inputs.items()}
        inputs = {name: as_annotated(given, self.taking[name], tensor) for name, given in inputs.items()}
        named = {**self.given, **dict.fromkeys(self.random, rng), **inputs, **dict.fromkeys(self.drawn_values, 1)}
        named |= dict.fromkeys(self.lengths, 1) if one else {}
        for name in self.columns:
            role = "t" if PATTERNS["date"].search(name) else "y" if PATTERNS["group"].search(name) else column
            named[name] = [role] if name.endswith("s") else role
        named |= {name: int(rng.integers(1 << 31)) for name in self.seeds}
        if self.method is None:
            return self.thing(**named)
        made = self.thing(**{name: one for name, one in named.items() if name in self.own})
        found = getattr(made, self.method)(**{name: one for name, one in named.items() if name in self.taking})
        if self.method != "fit":
            return found
        return released_by(made if found is None else found, value[0], self.ends)

    def attempt(
        self,
        relations: Sequence[Relation],
        adjacency: str,
        *,
        how: Mapping[str, Any] = types.MappingProxyType({}),
        **more: Any,
    ) -> Attempt:
        """An attempt that tests the function under `relations`.

        `how`: arguments of `call`; `more`: further fields of `Attempt`.
        """
        draws = self.seeds or self.random - {LEGACY_NAME}
        run = (lambda rng, data: self.call(data, rng, **how)) if draws else lambda data: self.call(data, **how)
        delta = {**{name: one.default for name, one in self.all.items()}, **self.given}.get("delta", 0.0)
        return Attempt(
            mechanism=named_after(self.thing, run),
            claim=ApproxDP(TESTED_EPSILON, float(delta) if isinstance(delta, int | float) and 0 <= delta < 1 else 0.0),
            relations=tuple(relations),
            adjacency=adjacency,
            unknown="" if self.data in USUAL_DATA or self.labelled else str(self.data),
            **more,
        )

    def attempts(self) -> Iterator[Attempt]:
        """The attempts at inputs of several shapes, the most likely first.

        Numbers beyond the bounds are relations of their own, as a signature does not say whether its claim covers them.
        """
        if set(ROLE_NAMES["sensitivity"]) & set(self.all):
            yield from self.of_sensitivity()
            return
        annotation = self.taking[str(self.data)].annotation
        scalar = annotation in (float, int, bool, str)
        first = scalar or self.data in ROLE_NAMES["number"] or (self.releases and self.sized)
        first = first and (self.releases or not self.made)
        alone = not (self.labelled or self.lengths)  # a true answer of a number of records has an unknown sensitivity
        if alone and first:
            yield from self.of_one(annotation)
        if not scalar:
            yield from self.of_records(self.forms())
        if alone and not (first or self.takes_frame) and self.method != "fit":
            yield from self.of_one(annotation)
        if not (scalar or self.labelled):
            yield from self.of_records(self.frames())
        if alone:  # a mechanism that answers for each record makes a claim about one record
            yield from self.of_one_record()

    def of_sensitivity(self) -> Iterator[Attempt]:
        """Attempts at inputs, numbers or lists, of which one number differs by the sensitivity."""
        low, high = self.ends
        values = [low, low + 1, high - 1] if self.bounded else [0.0, 1.0, -1.0, 0.5, 10.0]
        for kind in (float, int):
            near = pairs(*((kind(one), kind(one) + 1) for one in values))
            yield self.attempt([near], "numbers that differ by the sensitivity", how={"one": True})
        if not self.bounded:
            told = "lists of which one number differs by the sensitivity"
            for tensor in (False, True) if "torch" in sys.modules else (False,):
                yield self.attempt([queries(3, may_move="one")], told, how={"tensor": tensor})

    def of_one(self, annotation: object) -> Iterator[Attempt]:
        """Attempts at one observation, whose neighbours are other values, or at a number, which may be a true answer.

        A number may be a count, a value from 0 to 1 or from −1 to 1, or a bit, so all readings have 0 and 1 in common.
        """
        (low, high), attempt = self.ends, partial(self.attempt, how={"one": True})
        if self.listed:
            yield attempt([pairs(*combinations(self.listed, 2))], f"any two of {', '.join(map(str, self.listed))}")
        if self.sized:
            codes = range(1, DOMAIN_SIZE)  # these are categories whether the first is 0 or 1
            near = pairs(*pairwise(codes))
            told = "any two categories, and those that differ by 1"
            yield attempt([pairs(*combinations(codes, 2)), near], told, strict=True)
        if self.bounded and annotation not in (str, bool):
            within = ((low, high), (low, (low + high) / 2))
            span, told = high - low, f"any two numbers from {low:g} to {high:g}, and 0 and {high:g}"
            beyond = pairs((low - span, high + span), (low, high + 10 * span), *within)
            readings = [pairs(*within), pairs((max(low, 0.0), high))]  # the second is a sum, which gets a record
            yield attempt([beyond, *readings], f"{told}, and beyond", strict=True)
            yield attempt(readings, told)
        elif annotation not in (str, bool):
            for kind in (int, float) if annotation is int else (float, int):
                near, bit = pairs(*((kind(one), kind(one) + 1) for one in (0, 1, 10))), pairs((kind(0), kind(1)))
                yield attempt([near, bit], "numbers that differ by 1, which is assumed, and 0 and 1", strict=True)
                yield attempt([bit], "0 and 1")
        if annotation in (bool, NO_DEFAULT):
            yield attempt([pairs((False, True))], "False and True")
        if annotation in (str, NO_DEFAULT):
            yield attempt([pairs(*combinations(LETTERS, 2))], f"any two of {', '.join(LETTERS)}")

    def of_one_record(self) -> Iterator[Attempt]:
        """Attempts at a list, an array or a frame of one record."""
        (low, high), told = self.ends, "any two values of one record"
        for form in self.frames() if self.takes_frame else ():
            one = replace(form, base=form.base[:1]).relations([("replace-one", 1)])
            yield self.attempt(one, told + form.told, strict=True, how={"column": form.column, "one": True})
        within: list[Any] = [(low, high), (low, (low + high) / 2)] if self.bounded else [(0.0, 1.0), (0, 1)]
        numeric, texts = [within[:1], within[1:]], [*combinations(LETTERS, 2)]
        kinds: list[tuple[bool, Any]] = [(False, list), (False, np.array)]
        for tensor, kind in [*kinds, *([(True, np.array)] if "torch" in sys.modules else [])]:
            said, how = told + "; tensors" * tensor, {"tensor": tensor}
            for values in numeric if tensor else [texts, *numeric]:
                alone = [tuple(kind([one]) for one in pair) for pair in values]
                yield self.attempt([pairs(*alone)], said, how={"one": True, **how})
                # A mechanism may take its categories from the data, so public records have both, or all.
                for public in ((), LETTERS) if values is texts else ((),):
                    beside = [tuple(kind([*(public or pair), one]) for one in pair) for pair in values]
                    yield self.attempt([pairs(*beside)], f"{said}, beside public records", how=how)

    def of_records(self, forms: Iterator["RecordForm"]) -> Iterator[Attempt]:
        """Attempts at records in these forms, under both adjacencies."""
        sizes, publics = (1, 4) if self.made else (1,), (False, True) if self.classifies else (False,)
        for form, tensor in product(forms, (False, True) if "torch" in sys.modules else (False,)):
            final = len(form.domains) - 1
            tried = [*product(range(len(form.domains)), sizes, publics, [True])]
            # A mechanism may refuse few records or a single class, so the last attempts are not strict, except for
            # values that many mechanisms refuse.
            tried += [] if form.missing else [(final, least, False, False) for least in sorted({sizes[-1], 4})]
            if tensor:  # most functions take none
                tried = tried[:1] if form.name in ("array", "xy") else []
            for first, least, public, strict in tried:
                how = {"public": public, "column": form.column, "tensor": tensor, "dates": form.dates}
                for told, sized in self.lengths_of(least):
                    relations = form.relations(sized, first)
                    said = told + self.assumption(relations[-1], beyond=first < final) + form.told
                    said += "; tensors" if tensor else ""
                    yield self.attempt(relations, said, how=how, of_records=True, strict=strict)

    def assumption(self, relation: Relation, *, beyond: bool) -> str:
        """The text on the range of numbers in the records; empty for records without numbers."""
        if not re.search(r"(numbers|integers)\(", str(relation)):
            return ""
        if self.bounded:
            return f"; numbers within the bounds{', and beyond' if beyond else ''}"
        return f"; numbers from {self.ends[0]:g} to {self.ends[1]:g}, which is assumed"

    def lengths_of(self, least: int) -> list[tuple[str, list[tuple[str, Any]]]]:
        """The adjacencies with the numbers of records of their inputs, and their text.

        A public number of records is the inputs' number of records, or one less, if the mechanism accepts both.
        """
        both, known = " and ".join(ADJACENCIES), ("replace-one", LENGTH)
        if not self.lengths:
            return [(both, [(one, (least, 20)) for one in ADJACENCIES])]
        near = ("add-remove", (LENGTH, LENGTH + 1))
        return [(f"{both}, {LENGTH} records", [near, known]), (f"replace-one, {LENGTH} records", [known])]

    def forms(self) -> Iterator["RecordForm"]:
        """Forms of records other than frames; records to start from have both classes, as many classifiers require."""
        low, high = self.ends
        reals = [numbers(low, high, clipped=clipped) for clipped in self.clippings]
        if self.labelled:
            steps = np.linspace(0.0, 1.0, 10)
            features = low + (high - low) * steps
            if self.classifies:
                plane = np.stack([features, features[-np.arange(10)]], axis=1)
                yield RecordForm([((real, real), categories(0, 1)) for real in reals], "xy", (plane, [0, 1] * 5))
            labels = [numbers(*LABEL_RANGE, clipped=clipped) for clipped in self.clippings]
            yield RecordForm([((real,), label) for real, label in zip(reals, labels, strict=True)], "xy",
                       (features[:, None], steps))  # fmt: skip
        elif not self.takes_frame:
            listed: list[Any] = [[categories(*self.listed)]] if self.listed else []
            both: list[Any] = [[categories(*range(1, DOMAIN_SIZE))]] if self.sized else []
            if self.thing.__name__.startswith("nan"):  # ignores missing values, like NumPy's functions
                missing = [numbers(low, high, clipped=clipped, missing=True) for clipped in self.clippings]
                yield from (RecordForm(missing, name) for name in ("array", "list"))
            yield from (RecordForm(domains, "list") for domains in listed)
            yield from (RecordForm(domains, name) for domains, name in product([*both, reals], ("array", "list")))
            yield RecordForm([integers(int(low), int(high))], "list")
            yield RecordForm([(real, real) for real in reals], "array")
            yield from (RecordForm([domain], "list") for domain in (categories(*LETTERS), categories(False, True)))

    def frames(self) -> Iterator["RecordForm"]:
        """The forms of records as frames; the last forms have the columns that the function asks for.

        Numbers of a frame may be missing, since a column of pandas has NaN for a missing number.
        """
        names = "xyzt" if any(map(PATTERNS["date"].search, self.columns)) else "xyz"
        usual = [(names, one) for one in "xyz"] if self.columns else [("xy", ""), ("x", "")]
        plain = [({name: FRAME_COLUMNS[name] for name in names}, column) for names, column in usual]
        for kinds, column in chain(plain, self.columns_asked()):
            asked = ", ".join(name for name in kinds if name not in FRAME_COLUMNS)
            for missing in (True, False) if column in ("x", "") else (False,):
                reals = [numbers(*self.ends, clipped=clipped, missing=missing) for clipped in self.clippings]
                found = [{"numbers": real, "dates": categories(*DATES)} for real in reals]
                domains = [{name: one.get(kind, categories(*LETTERS)) for name, kind in kinds.items()} for one in found]
                missing = missing and "numbers" in kinds.values()
                told = "; missing values, which it accepts" if missing else ""
                told += f"; column {column!r}" if column else ""
                told += f"; columns {asked}, for which it asks" if asked else ""
                dates = [name for name, kind in kinds.items() if kind == "dates"]
                yield RecordForm(domains, "dataframe", self.frame_of(kinds), column, dates, missing, told)

    def frame_of(self, kinds: Mapping[str, str]) -> Any:
        """A frame with columns of these kinds: see `FRAME_COLUMNS`."""
        import pandas as pd  # type: ignore[import-untyped]  # no stubs; 0.4 s, and most functions take no frames

        values: dict[str, Any] = {"numbers": [*self.ends] * 6, "texts": [*LETTERS] * 4, "dates": [*DATES] * 4}
        values["categories"] = pd.Categorical(values["texts"])
        return pd.DataFrame({name: values[kind] for name, kind in kinds.items()})

    def columns_asked(self) -> Iterator[tuple[dict[str, str], str]]:
        """The kinds of the columns that the function asks for by errors; no kinds if the function still fails."""
        column = "x" if self.columns else ""
        kinds = {name: FRAME_COLUMNS[name] for name in ("xy" if column else "")}
        following = {"numbers": "texts", "texts": "dates"}
        for _ in range(30):
            new: list[str] = []
            try:
                dates = [name for name, kind in kinds.items() if kind == "dates"]
                self.call(self.frame_of(kinds), np.random.default_rng(0), dates=dates)
            except Exception as error:
                if isinstance(error, KeyError) or re.search(r"KeyError: |'DataFrame' object", str(error)):
                    said = str(error).rpartition("KeyError: ")[2]  # the error may be the text of another
                    said = re.sub(r"dtype='\w+'|'DataFrame'", "", said)
                    new = [name for name in re.findall(r"'([^'\[\]]+)'", said) if name not in kinds]
            else:
                yield from [(kinds, column)] if len(kinds) > 2 * len(column) else []
                return
            if new:
                kinds |= {name: "dates" if PATTERNS["date"].search(name) else "numbers" for name in new}
            elif kinds and (kind := following.get(kinds[last := [*kinds][-1]])):
                kinds[last] = kind
            else:
                return


@dataclass(frozen=True, slots=True)
class RecordForm:
    """A form of records, with a domain for each choice of clipping.

    `base`: records to start from; `column`: the column whose name a function gets; `dates`: the columns of dates;
    `missing`: whether numbers may be missing; `told`: the text on missing values and on the columns of a frame.
    """

    domains: Sequence[Any]
    name: str
    base: Any = None
    column: str = ""
    dates: Sequence[str] = ()
    missing: bool = False
    told: str = ""

    def relations(self, sized: Sequence[tuple[str, Any]], first: int = 0) -> list[Relation]:
        """The relations of the domains from the `first` on, by adjacency and number of records."""
        return [
            records(domain, adjacency=adjacency, size=size, form=self.name, base=self.base)
            for domain, (adjacency, size) in product(self.domains[first:], sized)
        ]


def as_annotated(value: Any, parameter: inspect.Parameter, tensor: bool) -> Any:
    """An array as a Series, DataFrame or tensor, if its parameter is annotated so; else the value itself.

    `tensor`: whether arrays and lists are given as tensors of torch, whatever the annotation.
    """
    wanted = str(parameter.annotation)
    if type(value) is np.ndarray and re.search(r"\b(pd|pandas)\b", wanted):
        pd = import_module("pandas")
        if value.ndim == 1:
            return pd.Series(value, name="x") if "Series" in wanted else value
        return pd.DataFrame(value, columns=[f"x{k}" for k in range(value.shape[1])]) if "DataFrame" in wanted else value
    if isinstance(value, np.ndarray | list | float | int) and (tensor or "Tensor" in wanted):
        module = getattr(parameter.annotation, "__module__", "") if wanted.endswith("Tensor'>") else "torch"
        return sys.modules[module.partition(".")[0]].as_tensor(value)
    return value


def fill_parameters(own: SignatureParameters, known: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Values of parameters, and the names of the parameters without a known value."""
    found: dict[str, Any] = {}
    unknown: list[str] = []
    guessed = 0
    for name, one in own.items():
        optional = one.default is not NO_DEFAULT
        if name in ROLE_NAMES["bounds"] and one.default is None and "dict" in str(one.annotation).lower():
            continue  # bounds by column have a form of the library's own
        if name in known:
            found[name] = known[name]
        elif name in ROLE_NAMES["sensitivity"]:
            # The relations move numbers by 1, whatever the default. Some mechanisms accept only integers.
            found[name] = 1 if isinstance(one.default, int) else 1.0
        elif optional:
            unknown += [name] if name not in DELTA_NAMES and may_restrict(name, one.default) else []
        elif name in DELTA_NAMES:
            found[name] = 1e-3
        else:
            value = value_of(name, one.annotation)
            if "clip" in name:  # the mechanism clips to this bound, so its value is no assumption about the data
                value = value or 1.0
            elif value is None or (isinstance(value, int | float) and may_restrict(name)):
                unknown.append(name)
            elif isinstance(value, float) and name not in PARAMETER_VALUES:
                value, guessed = value + guessed, guessed + 1  # several numbers in ascending order
            found[name] = value
    return found, unknown


def noisy(choices: Iterable[Any]) -> Any:
    """The first of the values that a parameter may have, a value for Laplace noise if possible; None without one.

    Values that may mean no noise, or noise that needs a δ, are left out.
    """
    private = [one for one in choices if not PATTERNS["without noise"].search(str(getattr(one, "name", one)))]
    return min(private, key=lambda one: "lap" not in str(getattr(one, "name", one)).lower(), default=None)


def may_restrict(name: str, default: object = NO_DEFAULT) -> bool:
    """Whether a parameter's name and default suggest that it restricts the data of the claim, or spends a budget.

    A parameter of the noise, or of another claim, restricts the claim unless it has a default.
    """
    if default is NO_DEFAULT:
        return any(PATTERNS[role].search(name) for role in ("limit", "maximum", "noise"))
    if isinstance(default, bool) or not isinstance(default, int | float) or "clip" in name:
        return False
    return any(PATTERNS[role].search(name) for role in ("limit", "maximum")[: 1 + isinstance(default, float)])


def value_of(name: str, annotation: Any) -> Any:
    """A value of a parameter without a default by its name, else by its annotation; None without a known value."""
    if PATTERNS["date"].search(name) and annotation in (str, NO_DEFAULT, datetime.date, datetime.datetime):
        day = datetime.datetime(2024, 3 if re.search(r"end|stop|until|last", name) else 1, 1)
        return f"{day:%Y-%m-%d}" if annotation is str else day.date() if annotation is datetime.date else day
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if arguments[:1] in ((int,), (float,)) and "list" in str(annotation).lower():  # numbers, or edges of bins
        return [arguments[0](one) for one in range(DOMAIN_SIZE)]
    if name in PARAMETER_VALUES and not (annotation is float and isinstance(PARAMETER_VALUES[name], str)):
        return PARAMETER_VALUES[name]
    if origin is typing.Literal:
        return noisy(arguments)
    if origin in (typing.Union, types.UnionType):
        return next((value for value in (value_of("", one) for one in arguments) if value is not None), None)
    if origin is list and arguments == (str,):
        return [*LETTERS]
    if inspect.isclass(annotation) and issubclass(annotation, Enum):
        return noisy(annotation)
    return {int: 2, float: 1.0, bool: False, str: "a"}.get(annotation)


def parameters_of(thing: Any, *, bound: bool = False) -> SignatureParameters:
    """The parameters of a function or a class, without *args and **kwargs; empty if they cannot be read.

    `bound`: whether the first parameter, self, is left out.
    """
    found: SignatureParameters = {}
    for evaluated in (True, False):  # annotations may name objects that only type checkers import
        with suppress(Exception):
            found = found or inspect.signature(thing, eval_str=evaluated).parameters
    return {one.name: one for one in [*found.values()][bound:] if not one.kind.name.startswith("VAR_")}


def data_of(own: SignatureParameters, *, releases: bool) -> str | None:
    """The name of the parameter that takes data: a usual name, else the first other parameter without a default.

    None if that parameter has the name of a setting, or is annotated as a number, text or flag and has no name of an
    observation. `releases`: whether the function has the name of a release, so that its first parameter is data.
    """
    roles = ("epsilon", "sensitivity", "bounds", "lower", "upper", "labels", "seed")
    other = {*DELTA_NAMES, *GENERATOR_NAMES, *SIZE_NAMES, *chain(*(ROLE_NAMES[role] for role in roles))}
    free = [name for name, one in own.items() if one.default is NO_DEFAULT]
    if usual := next((name for name in free if name in USUAL_DATA), None):
        return usual
    free = [name for name in free if name not in other]
    arrays = [name for name in free if PATTERNS["array"].search(str(own[name].annotation))]
    first = next((name for name in free if releases or name not in PARAMETER_VALUES), None)
    first = next((name for name in arrays if not PATTERNS["setting"].search(name)), first)
    if first is None or releases:
        return first
    known = PATTERNS["frame"].search(first) or PATTERNS["observation"].search(first)
    data = not PATTERNS["setting"].search(first) and (known or own[first].annotation not in (int, float, str))
    return first if data else None


def method_of(thing: Any) -> tuple[str | None, SignatureParameters]:
    """The method of a class that releases something about data, and its parameters; None without a releasing method.

    A method with an unusual name is taken if it is the only one of the class that takes data.
    """
    public = [name for name in dir(thing) if not name.startswith("_") or name == "__call__"]
    verbs = [name for verb in ROLE_NAMES["verb"] for name in public if name == verb or name.startswith(f"{verb}_")]
    usual, only = dict[str, SignatureParameters](), dict[str, SignatureParameters]()
    for name in dict.fromkeys((*verbs, *ROLE_NAMES["method"], *public)):
        if name in public and callable(one := getattr(thing, name, None)) and not inspect.isclass(one):
            static = isinstance(inspect.getattr_static(thing, name, None), staticmethod | classmethod)
            taken = parameters_of(one, bound=not static)
            if data_of(taken, releases=name.startswith(ROLE_NAMES["verb"])) is not None:
                (usual if name in (*verbs, *ROLE_NAMES["method"]) else only)[name] = taken
    for name, taken in usual.items() or (only.items() if len(only) == 1 else ()):
        return name, taken
    return None, {}


#: DESCRIBER is the describer of signatures.
DESCRIBER = Signatures()
