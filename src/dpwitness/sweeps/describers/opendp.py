"""OpenDP: constructors of measurements, whose claim is `map(d_in)`, and of transformations, with OpenDP's own noise.

Inputs and neighbours follow from the input domain and the input metric of the constructed object. A transformation is
chained with a measurement of OpenDP whose noise fits the transformation's map; the chain claims its map. A
transformation to a dataset claims nothing by itself.
"""

import inspect
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, Final

from dpwitness.checks import first_line, is_ours
from dpwitness.errors import InvalidParameter
from dpwitness.mechanisms.libraries.opendp import LIBRARY
from dpwitness.neighbours import Relation, categories, flags, integers, numbers, pairs, queries, records
from dpwitness.options import NO_DEFAULT
from dpwitness.sweeps.describers import Attempt, Recipe
from dpwitness.sweeps.describers.signatures import named_after

#: LARGEST_INT32 is the largest integer of 32 bits.
LARGEST_INT32: Final = 2**31 - 1
#: KEY_THRESHOLD is the noisy count from which on a key is released.
KEY_THRESHOLD: Final = 4
#: MOST_INPUT_RECORDS is the largest number of records of an input.
MOST_INPUT_RECORDS: Final = 20

#: ATOM_VALUES has values by carrier type, from low to high; any two are neighbours where the metric is discrete.
ATOM_VALUES: Final[Mapping[str, list[Any]]] = {
    "f64": [0.0, 1.0, 5.0], "i32": [0, 1, 5], "String": ["a", "b", "c"], "bool": [False, True],
    "BitVector": [[0] * 8, [1] * 8, [1] + [0] * 7],
}  # fmt: skip
#: CONSTRUCTOR_VALUES has values for constructors' parameters that do not depend on the atom.
CONSTRUCTOR_VALUES: Final[Mapping[str, list[Any]]] = {
    "output_measure": ["max_divergence", "zero_concentrated_divergence"], "scale": [1.0], "prob": [0.75], "f": [0.95],
    "alpha": [0.5], "k": [2], "threshold": [3], "size": [5], "size_limit": [20], "leaf_count": [4],
    "branching_factor": [2], "d_in": [1.0], "d_out": [[1.0, 1e-3]], "constant": [1.0], "TIA": ["String"],
}  # fmt: skip


def spaces(dp: Any) -> dict[str, tuple[str, Any, Any]]:
    """Input spaces by name: the type of the atom, the domain, and the metric."""
    symmetric, text, atom = dp.symmetric_distance(), dp.atom_domain(T=str), dp.atom_domain
    real, whole, apart = atom(T=float, nan=False), atom(T=int), dp.absolute_distance(T=int)
    counts = dp.map_domain(text, whole)
    found = {
        "list of i32, L∞ up": ("i32", dp.vector_domain(whole), dp.linf_distance(T=int, monotonic=True)),
        "counts by text": ("String", counts, dp.l01inf_distance(apart)),
        "counts by text, L2": ("String", counts, dp.l02inf_distance(apart)),
        "sums by text": ("f64", dp.map_domain(text, real), dp.l01inf_distance(dp.absolute_distance(T=float))),
        "records of f64 in bounds": ("f64", dp.vector_domain(atom(bounds=(0.0, 5.0), nan=False)), symmetric),
        "records of i32 in bounds": ("i32", dp.vector_domain(atom(bounds=(-1, 5))), symmetric),
        "5 records of f64 in bounds": ("f64", dp.vector_domain(atom(bounds=(-1.0, 5.0), nan=False), 5), symmetric),
        "5 records of i32 in bounds": ("i32", dp.vector_domain(atom(bounds=(0, 5)), 5), symmetric),
        "records of i32": ("i32", dp.vector_domain(whole), symmetric),
        "records of text": ("String", dp.vector_domain(text), symmetric),
        "8 bits": ("i32", dp.bitvector_domain(max_weight=8), dp.discrete_distance()),
    }
    for name, kind, one in (("f64", float, real), ("i32", int, whole)):
        found[name] = (name, one, dp.absolute_distance(T=kind))
        for norm, metric in (("L1", dp.l1_distance), ("L2", dp.l2_distance), ("L∞", dp.linf_distance)):
            found[f"list of {name}, {norm}"] = (name, dp.vector_domain(one), metric(T=kind))
    return found


class OpenDPDescriber:
    """The describer of OpenDP's constructors `make_…`, and of measurements and transformations in any module."""

    def describes(self, thing: object, place: str) -> bool:
        """Whether the thing belongs to OpenDP; functions `then_…`, equal in effect to `make_…`, are left out."""
        module, _, name = place.rpartition(":")
        if inspect.isroutine(thing):
            return module.startswith("opendp.") and name.startswith("make_")
        return str(type(thing).__module__).startswith("opendp.") and hasattr(thing, "input_metric")

    def recipes(self, thing: Any, place: str) -> Sequence[Recipe]:
        """The recipe of an object, or the recipes by which a constructor makes an object with a map, or one refused."""
        if not inspect.isroutine(thing):
            return [Recipe()]
        found: dict[str, Recipe] = {}
        refused = ""
        with warnings.catch_warnings(action="ignore"):  # deprecated constructors warn
            for recipe in choices(thing):
                if recipe.refused:
                    return [recipe]
                try:
                    if recipe.label not in found:
                        make_measurement(thing, recipe)
                        found[recipe.label] = recipe
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # panics of Rust are not an Exception
                    refused = first_line(error) if is_ours(error) or not refused else refused
        return [*found.values()] or [Recipe(refused=refused)]

    def attempts(self, thing: object, recipe: Recipe) -> Iterator[Attempt]:
        """The attempt at the measurement, or at the transformation with noise. Raises every error of OpenDP."""
        with warnings.catch_warnings(action="ignore"):
            measurement, relation, d_in, adjacency = make_measurement(thing, recipe)
        run, claim = LIBRARY.function(measurement), LIBRARY.claim(measurement, d_in)
        mechanism = named_after(thing, lambda data: run(data))
        yield Attempt(mechanism=mechanism, claim=claim, relations=(relation,), adjacency=adjacency)


def prelude() -> Any:
    """OpenDP's names, with all constructors that need no trust in the user's functions."""
    os.environ.setdefault("RUST_LIB_BACKTRACE", "0")  # a backtrace of each refused constructor takes 0.3 s
    import opendp.prelude as dp  # type: ignore[import-not-found,import-untyped,unused-ignore]  # an extra

    dp.enable_features("contrib")
    return dp


def choices(thing: Any) -> Iterator[Recipe]:
    """The recipes of a constructor, by input space and values of parameters; the space is "" without a domain."""
    own = inspect.signature(thing).parameters
    of_space = ("input_domain", "input_metric", "domain", "metric")
    needed = [name for name, one in own.items() if one.default is NO_DEFAULT and name not in of_space]
    known = {name: atom for name, (atom, *_) in spaces(prelude()).items()}
    for space, atom in known.items() if {"input_domain", "domain"} & set(own) else [("", "f64"), ("", "i32")]:
        low, _, high = edges = ATOM_VALUES[atom]
        ends = [(low, high), (type(low)(-1), high)]
        values = {**CONSTRUCTOR_VALUES, "bounds": ends, "TOA": [atom], "categories": [edges], "candidates": [edges]}
        if unknown := [name for name in needed if name not in values]:
            yield Recipe(refused=f"no value is known for its parameter {unknown[0]!r}")
        for chosen in product(*(values[name] for name in needed)):
            named = dict(zip(needed, chosen, strict=True))
            told = [f"{name}={value}" for name, value in named.items() if len(values[name]) > 1]
            label = ", ".join(filter(None, [space, *told]))
            yield Recipe(label=label, settings={"space": space, "parameters": named})


def make_measurement(thing: Any, recipe: Recipe) -> tuple[Any, Relation, Any, str]:
    """The measurement of a recipe, and its neighbours as `neighbours_of` gives them. Raises every error of OpenDP."""
    dp, settings = prelude(), recipe.settings
    if settings:
        named = dict(settings["parameters"])
        named |= {name: tuple(named[name]) for name in ("bounds", "d_out") if name in named}
        if "output_measure" in named:
            measure = getattr(dp, named["output_measure"])()
            named["output_measure"] = dp.approximate(measure) if "threshold" in named else measure
        thing = thing(*spaces(dp)[settings["space"]][1:] if settings["space"] else (), **named)
    relation, d_in, adjacency = neighbours_of(thing)
    return with_noise(dp, thing, d_in), relation, d_in, adjacency


def neighbours_of(thing: Any) -> tuple[Relation, Any, str]:
    """The relation by the input domain and the input metric, its distance d_in, and its description in words.

    Raises `InvalidParameter` if no neighbours are known.
    """
    if not hasattr(thing, "input_domain"):
        raise InvalidParameter("it is post-processing, which makes no claim")
    domain, metric, carrier = map(str, (thing.input_domain, thing.input_metric, thing.input_domain.carrier_type))
    kind, whole = metric.partition("(")[0], not ("f64" in carrier or "f32" in carrier)
    one = 1 if whole else 1.0
    if kind == "AbsoluteDistance":
        values = (0, -1, 4, 100, LARGEST_INT32 - 1) if whole else (0.0, -1.0, 0.5, 4.0, 100.0, 2.0**52)
        near = [(value, value + one) for value in values]
        if inside := [pair for pair in near if all(map(thing.input_domain.member, pair))]:
            return pairs(*inside), one, "numbers that differ by 1"
    if kind in ("L1Distance", "L2Distance"):
        return queries(3, may_move="one"), one, f"lists at an {kind[:2]} distance of 1"
    if kind == "LInfDistance" and "monotonic" in metric:
        return queries(3, direction="up"), one, "lists whose numbers move by 1, all one way"
    if kind == "LInfDistance":
        return queries(3), one, "lists whose numbers move by 1"
    if kind in ("L01InfDistance", "L02InfDistance"):
        dicts: Any = ({"a": one}, {}), ({"a": one, "b": 3 * one}, {"b": 3 * one}), ({"a": 3 * one}, {"a": 2 * one})
        return pairs(*dicts, ({"a": one, "b": one}, {"b": one})), (1, one, one), "one value of a dict moves by 1"
    if kind == "DiscreteDistance" and carrier in ATOM_VALUES:
        return pairs(*combinations(ATOM_VALUES[carrier], 2)), 1, "any two values"
    record = record_of(domain, carrier.removeprefix("Vec<")[:-1])
    if kind not in ("SymmetricDistance", "InsertDeleteDistance", "ChangeOneDistance") or record is None:
        raise InvalidParameter(f"no neighbours are known for {domain} and {metric}")
    sized, changed = re.search(r"size=(\d+)", domain), kind == "ChangeOneDistance"
    adjacency = "replace-one" if sized or changed else "add-remove"
    relation = records(
        record, adjacency=adjacency, size=int(sized[1]) if sized else (0, MOST_INPUT_RECORDS), form="list"
    )
    d_in = 2 if sized and not changed else 1  # one record replaced is one removed and one added
    return relation, d_in, f"{adjacency}, {kind} {d_in}"


def record_of(domain: str, atom: str) -> Any:
    """The domain of one record of a list; None if it is not known."""
    bounds = re.search(r"bounds=\[(\S+), (\S+)\]", domain)
    if atom == "f64":
        low, high = (float(bounds[1]), float(bounds[2])) if bounds else (-10.0, 10.0)
        return numbers(low, high, clipped=bounds is None, missing="nan=true" in domain)
    if atom in ("i32", "i64"):
        return integers(*map(int, bounds.groups())) if bounds else integers(-LARGEST_INT32 - 1, LARGEST_INT32)
    return {"String": categories("a", "b", "c", "1", "a,1", ""), "bool": flags()}.get(atom)


def with_noise(dp: Any, made: Any, d_in: Any) -> Any:
    """The measurement as it is, or the transformation with OpenDP's noise at the scale of its map.

    Raises `InvalidParameter` for a transformation to a dataset, and every error of OpenDP.
    """
    if hasattr(made, "output_measure"):
        return made
    metric, d_out = str(made.output_metric).partition("(")[0], made.map(d_in)
    if metric == "L01InfDistance":
        return made >> dp.m.then_laplace_threshold(scale=float(d_out[1]), threshold=KEY_THRESHOLD)
    if metric == "LInfDistance":
        return made >> dp.m.then_noisy_max(dp.max_divergence(), scale=float(d_out))
    if metric not in ("AbsoluteDistance", "L1Distance", "L2Distance"):
        raise InvalidParameter(f"it is a transformation to {metric}, which no measurement of numbers takes")
    return made >> (dp.m.then_gaussian if metric == "L2Distance" else dp.m.then_laplace)(scale=float(d_out))


#: DESCRIBER is the describer of OpenDP.
DESCRIBER = OpenDPDescriber()
