"""OpenDP: constructors of measurements, whose claim is `map(d_in)`, and of transformations, with noise by their map.

Inputs and neighbours follow from the input domain and the input metric of what a constructor makes, and for plans on
frames of Polars from the margin that is declared. A transformation claims that outputs of neighbours are no further
apart than `map(d_in)` says. It is tested with noise of that scale, drawn here, so that its claim is ε = 1 (or μ = 1 for
the L2 distance).
"""

import inspect
import math
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, Final
from zlib import crc32

import numpy as np

from dpwitness.checks import first_line
from dpwitness.claims import ApproxDP, Claim, GaussianDP
from dpwitness.errors import InvalidParameter
from dpwitness.mechanisms.libraries.opendp import LIBRARY, in_carrier
from dpwitness.neighbours import Relation, categories, flags, integers, numbers, pairs, queries, records
from dpwitness.sweeps.describers import Attempt, Recipe
from dpwitness.sweeps.describers.signatures import Released

#: A relation whose pairs are at a distance of d_in, that distance, and the description for people.
Neighbours = tuple[Relation, Any, str]
EMPTY: Final = inspect.Parameter.empty
#: Recipes of one constructor on one input space.
MOST_OF_SPACE: Final = 2
#: Bins of the histogram of a transformation's output records.
BINS: Final = 16
#: The largest integer of 32 bits.
LARGEST: Final = 2**31 - 1
#: The noisy count from which on a key is released.
THRESHOLD: Final = 4
#: The most rows of a frame.
MOST_ROWS: Final = 20

#: Values by the type of an atom: a low one, a high one, and one in between.
ATOMS: Final[Mapping[str, tuple[Any, Any, Any]]] = {
    "f64": (0.0, 5.0, 1.0), "i32": (0, 5, 1), "String": ("a", "c", "b"), "bool": (False, True, True),
    "usize": (0, 5, 1),
}  # fmt: skip
#: Values of the parameters of constructors that no atom decides.
VALUES: Final[Mapping[str, list[Any]]] = {
    "output_measure": ["max_divergence", "zero_concentrated_divergence"], "scale": [1.0], "prob": [0.75], "f": [0.95],
    "alpha": [0.5], "k": [2], "total_limit": [10], "value_limit": [10], "threshold": [3], "size": [5],
    "size_limit": [20], "leaf_count": [4], "branching_factor": [2], "d_in": [1.0], "d_out": [[1.0, 1e-3]],
    "TOA": ["i32", "f64", "String", "bool"], "TIA": ["String"], "alphas": [[0.5]],
}  # fmt: skip
#: Parameters whose values are tuples, those that take the input space, and those that a label names.
TUPLES: Final = ("bounds", "d_out")
OF_SPACE: Final = ("input_domain", "input_metric", "domain", "metric")
IN_LABEL: Final = ("output_measure", "TOA", "bounds")
#: Lists of integers, of which one moves by 1.
WHOLE_LISTS: Final = (
    ([0, 0, 0], [1, 0, 0]), ([-1, 5, 0], [0, 5, 0]), ([100, 0, 0], [99, 0, 0]), ([0, 0, LARGEST - 1], [0, 0, LARGEST]),
)  # fmt: skip
#: The constructor of plans, and those of their parts.
PLAN: Final = "make_private_lazyframe"
PARTS: Final = ("make_private_expr", "make_stable_expr", "make_stable_lazyframe")
#: Values by carrier type, any two of which are neighbours.
ANY_TWO: Final[Mapping[str, Sequence[Any]]] = {
    "bool": (False, True), "String": ("a", "b", "c"), "i32": (0, 1, 5), "f64": (0.0, 1.0, 5.0),
    "BitVector": (np.zeros(8, int), np.ones(8, int), np.eye(8, dtype=int)[0]),
}  # fmt: skip
#: Metrics of datasets; in those of changes a record is replaced.
OF_CHANGES: Final = ("ChangeOneDistance", "HammingDistance")
OF_RECORDS: Final = ("SymmetricDistance", "InsertDeleteDistance", *OF_CHANGES)


def spaces(dp: Any) -> dict[str, tuple[str, Any, Any]]:
    """Input spaces by name: the type of the atom, the domain, and the metric."""
    vector, symmetric = dp.vector_domain, dp.symmetric_distance()
    real, whole = dp.atom_domain(T=float, nan=False), dp.atom_domain(T=int)
    reals, wholes = vector(real), vector(whole)
    within, between = dp.atom_domain(bounds=(0.0, 5.0), nan=False), dp.atom_domain(bounds=(-1, 5))
    counts, by_text = dp.absolute_distance(T=int), dp.map_domain(dp.atom_domain(T=str), whole)
    sums = dp.map_domain(dp.atom_domain(T=str), real)
    return {
        "f64": ("f64", real, dp.absolute_distance(T=float)),
        "i32": ("i32", whole, counts),
        "bool": ("bool", dp.atom_domain(T=bool), dp.discrete_distance()),
        "list of f64, L1": ("f64", reals, dp.l1_distance(T=float)),
        "list of i32, L1": ("i32", wholes, dp.l1_distance(T=int)),
        "list of f64, L2": ("f64", reals, dp.l2_distance(T=float)),
        "list of i32, L2": ("i32", wholes, dp.l2_distance(T=int)),
        "list of f64, L∞": ("f64", reals, dp.linf_distance(T=float)),
        "list of i32, L∞": ("i32", wholes, dp.linf_distance(T=int)),
        "list of i32, L∞ up": ("i32", wholes, dp.linf_distance(T=int, monotonic=True)),
        "counts by text": ("String", by_text, dp.l01inf_distance(counts)),
        "counts by text, L2": ("String", by_text, dp.l02inf_distance(counts)),
        "sums by text": ("f64", sums, dp.l01inf_distance(dp.absolute_distance(T=float))),
        "records of f64 in bounds": ("f64", vector(within), symmetric),
        "records of i32 in bounds": ("i32", vector(between), symmetric),
        "5 records of f64 in bounds": ("f64", vector(dp.atom_domain(bounds=(-1.0, 5.0), nan=False), 5), symmetric),
        "5 records of i32 in bounds": ("i32", vector(dp.atom_domain(bounds=(0, 5)), 5), symmetric),
        "5 records of f64, one changed": ("f64", vector(within, 5), dp.change_one_distance()),
        "records of f64": ("f64", reals, symmetric),
        "records of f64, NaN among them": ("f64", vector(dp.atom_domain(T=float)), symmetric),
        "records of i32": ("i32", wholes, symmetric),
        "records of text": ("String", vector(dp.atom_domain(T=str)), symmetric),
        "records of bool": ("bool", vector(dp.atom_domain(T=bool)), symmetric),
        "records of i32 in order": ("i32", wholes, dp.insert_delete_distance()),
        "records of usize": ("usize", vector(dp.atom_domain(T="usize")), symmetric),
        "8 bits": ("bool", dp.bitvector_domain(max_weight=8), dp.discrete_distance()),
    }


class OpenDP:
    """Constructors `make_…` of the modules of OpenDP, and measurements and transformations that a module holds."""

    def describes(self, thing: object, place: str) -> bool:
        """Whether the thing is of OpenDP; functions `then_…` make the same as functions `make_…`."""
        module, _, name = place.rpartition(":")
        if inspect.isroutine(thing):
            return module.startswith("opendp.") and name.startswith("make_")
        return str(type(thing).__module__).startswith("opendp.") and hasattr(thing, "input_metric")

    def recipes(self, thing: Any, place: str) -> Sequence[Recipe]:
        """A recipe for each input space, or plan, and values of parameters that make something with a map."""
        if not inspect.isroutine(thing):
            return [Recipe()]
        if thing.__name__ in PARTS:
            return [Recipe(refused="expressions and plans without noise are run as parts of make_private_lazyframe")]
        made: list[Recipe] = []
        refused = ""
        for space, values in choices(thing):
            if unknown := next((name for name, value in values.items() if value is None), None):
                return [Recipe(refused=f"no value is known for its parameter {unknown!r}")]
            recipe = Recipe(label=label_of(space, values), settings={"space": space, "parameters": values})
            before = [one.settings["space"] for one in made].count(space)
            if before == MOST_OF_SPACE or recipe.label in [one.label for one in made]:
                continue
            try:
                next(self.attempts(thing, recipe))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # of a constructor: panics of Rust are no Exception
                refused = refused or first_line(error)
            else:
                made.append(recipe)
        return made or [Recipe(refused=refused)]

    def attempts(self, thing: object, recipe: Recipe, records: object = None) -> Iterator[Attempt]:
        """The measurement, or the transformation with noise."""
        made, (relation, d_in, adjacency) = self.made(thing, recipe)
        is_exact = not hasattr(made, "output_measure")
        call, claim = with_noise(made, relation, d_in) if is_exact else (released(made), LIBRARY.claim(made, d_in))
        yield Attempt(
            mechanism=Released(thing, str(getattr(thing, "__name__", type(thing).__name__)), call, generator=is_exact),
            claim=claim,
            relations=(relation,),
            adjacency=adjacency,
            bits=not is_exact,
        )

    def made(self, thing: Any, recipe: Recipe) -> tuple[Any, Neighbours]:
        """The measurement or transformation of a recipe, and its neighbours. Raises whatever OpenDP raises."""
        if not inspect.isroutine(thing):
            return thing, neighbours_of(thing)
        dp, space, values = prelude(), recipe.settings["space"], recipe.settings["parameters"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of constructors that will be gone one day
            if thing.__name__ == PLAN:
                query, _, margin = space.partition("; ")
                return plan_of(dp, thing, query, margin), frames_of(margin)
            named: dict[str, Any] = {name: tuple(one) if name in TUPLES else one for name, one in values.items()}
            if "output_measure" in named:
                measure = getattr(dp, named["output_measure"])()
                named["output_measure"] = dp.approximate(measure) if "threshold" in named else measure
            made = thing(*spaces(dp)[space][1:] if space else (), **named)
        if not hasattr(made, "input_domain"):
            raise InvalidParameter("it is post-processing, which claims nothing")
        return made, neighbours_of(made)


def prelude() -> Any:
    """OpenDP's names, with all constructors that need no trust in the user's functions."""
    os.environ.setdefault("RUST_LIB_BACKTRACE", "0")  # with it each refusal of a constructor takes 0.3 s
    import opendp.prelude as dp  # type: ignore[import-not-found,import-untyped,unused-ignore]  # an extra

    dp.enable_features("contrib")
    return dp


def choices(thing: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Input spaces by name, each with values of the parameters that need one; None stands for an unknown value.

    The space of a plan is the plan with its margin; the space of a constructor without an input domain is "".
    """
    if thing.__name__ == PLAN:
        yield from ((f"{query}; {margin}", {}) for query, margin in product(QUERIES, MARGINS))
        return
    own = inspect.signature(thing).parameters
    needed = [name for name, one in own.items() if one.default is EMPTY or name == "value_limit"]
    needed = [name for name in needed if name not in OF_SPACE]
    known = spaces(prelude()) if {"input_domain", "domain"} & set(own) else {"": ("", None, None)}
    for space, (of_space, *_) in known.items():
        for atom, (low, high, middle) in ATOMS.items():
            ends, edges = [low, high], [low, middle, high]
            values: dict[str, list[Any]] = {
                "bounds": [ends, [type(low)(-1), high]] if atom in ("f64", "i32") else [ends],
                "categories": [["a", "b", "c"] if atom == "String" else edges],
                "candidates": [edges], "edges": [edges], "bin_edges": [edges],
                "constant": [middle], "value": [middle], "null": [low],
                **VALUES,
            }  # fmt: skip
            if atom in (of_space or atom):
                yield from (
                    (space, dict(zip(needed, chosen, strict=True)))
                    for chosen in product(*(values.get(name, [None]) for name in needed))
                )


def label_of(space: str, values: Mapping[str, Any]) -> str:
    """The text that tells a recipe from others of its constructor."""
    told = [
        f"{name}={tuple(one) if isinstance(one, list) else one}" for name, one in values.items() if name in IN_LABEL
    ]
    return ", ".join([*([space] if space else []), *told])


def neighbours_of(made: Any) -> Neighbours:
    """Neighbours by the input domain and the input metric. Raises `InvalidParameter` if they are not known."""
    relation: Relation
    domain, metric, carrier = map(str, (made.input_domain, made.input_metric, made.input_domain.carrier_type))
    kind, whole = metric.partition("(")[0], not ("f64" in carrier or "f32" in carrier)
    one = 1 if whole else 1.0
    if kind == "AbsoluteDistance":
        values: tuple[float, ...] = (0, -1, 4, 100, LARGEST - 1) if whole else (0.0, -1.0, 0.5, 4.0, 100.0, 2.0**52)
        inside = [(value, value + one) for value in values]
        if inside := [pair for pair in inside if all(map(made.input_domain.member, pair))]:
            return pairs(*inside), one, "numbers that differ by 1"
    if kind in ("L1Distance", "L2Distance"):
        relation = pairs(*WHOLE_LISTS) if whole else queries(3, may_move="one")
        return relation, one, f"lists at an {kind[:2]} distance of 1"
    if kind == "LInfDistance":
        up = "monotonic" in metric
        relation = queries(3, direction="up" if up else "any")
        return relation, one, f"lists whose numbers move by 1{', all one way' if up else ''}"
    if kind in ("L01InfDistance", "L02InfDistance"):
        dicts: Any = ({"a": one}, {}), ({"a": one, "b": 3 * one}, {"b": 3 * one}), ({"a": 3 * one}, {"a": 2 * one})
        return pairs(*dicts, ({"a": one, "b": one}, {"b": one})), (1, one, one), "one value of a dict moves by 1"
    if kind == "DiscreteDistance" and carrier in ANY_TWO:
        return pairs(*combinations(ANY_TWO[carrier], 2)), 1, "any two values"
    record = record_of(domain, carrier[len("Vec<") : -1]) if carrier.startswith("Vec<") else None
    if kind not in OF_RECORDS or record is None:
        raise InvalidParameter(f"no neighbours are known for {domain} and {metric}")
    sized = re.search(r"size=(\d+)", domain)
    replaced = sized is not None or kind in OF_CHANGES
    adjacency = "replace-one" if replaced else "add-remove"
    relation = records(record, adjacency=adjacency, size=int(sized[1]) if sized else (0, MOST_ROWS), form="list")
    d_in = 2 if replaced and kind not in OF_CHANGES else 1  # one record replaced is one removed and one added
    return relation, d_in, f"{adjacency}, {kind} {d_in}"


def record_of(domain: str, atom: str) -> Any:
    """The domain of one record of a list; None if it is not known."""
    bounds = re.search(r"bounds=\[(\S+), (\S+)\]", domain)
    if atom == "f64":
        low, high = (float(bounds[1]), float(bounds[2])) if bounds else (-10.0, 10.0)
        return numbers(low, high, clipped=bounds is None, missing="nan=true" in domain)
    if atom in ("i32", "i64", "usize"):
        least = 0 if atom == "usize" else -LARGEST - 1
        return integers(int(bounds[1]), int(bounds[2])) if bounds else integers(least, LARGEST)
    return {"String": categories("a", "b", "c", "1", "a,1", ""), "bool": flags()}.get(atom)


def released(measurement: Any) -> Callable[[Any, Any], object]:
    """A function that runs a measurement; an interactive one answers two questions."""
    run = LIBRARY.function(measurement)

    def call(value: Any, rng: object) -> object:
        output: Any = run(value)
        return [output(key) for key in ("a", "b")] if callable(output) else output

    return call


def with_noise(made: Any, relation: Relation, d_in: Any) -> tuple[Callable[[Any, Any], object], Claim]:
    """A transformation with noise of the scale of its map, and what that claims. Raises `InvalidParameter`."""
    if not hasattr(made, "output_metric"):
        raise InvalidParameter("it is post-processing, which claims nothing")
    dp, carrier = prelude(), str(made.input_domain.carrier_type)
    if "Option" in str(made.output_domain.carrier_type):
        made = made >> dp.t.then_drop_null()  # Python cannot read optional values
    metric, d_out = str(made.output_metric).partition("(")[0], made.map(d_in)
    if metric == "L01InfDistance":
        counted = made >> dp.m.then_laplace_threshold(scale=float(d_out[1]), threshold=THRESHOLD)
        return released(counted), LIBRARY.claim(counted, d_in)
    of_records, normal, scale = metric in OF_RECORDS, metric == "L2Distance", d_out
    if not of_records and metric not in ("AbsoluteDistance", "L1Distance", "L2Distance", "LInfDistance"):
        raise InvalidParameter(f"no noise is known for a transformation to {metric}")
    if not 0 < scale < math.inf:
        raise InvalidParameter(f"its map gives {d_out!r} for {d_in!r}: there is no noise for that")
    if metric in OF_CHANGES:
        scale *= 2  # one record replaced lowers one count of the histogram and raises another
    if metric == "LInfDistance":
        scale *= np.size(made(in_carrier(next(relation.candidates()).data, carrier)))

    def call(value: Any, rng: Any) -> object:
        output = made(in_carrier(value, carrier))
        exact = np.asarray(histogram(output) if of_records else output, np.float64)
        return exact + (rng.normal if normal else rng.laplace)(0.0, float(scale), exact.shape)

    return call, GaussianDP(1.0) if normal else ApproxDP(1.0)


def histogram(output: Any) -> object:
    """How many records of a dataset fall into each bin, by a hash of their texts. Raises `InvalidParameter`."""
    if not isinstance(output, list):
        raise InvalidParameter(f"it returns {type(output).__name__}, whose records are not known")
    return np.bincount([crc32(repr(row).encode()) % BINS for row in output], minlength=BINS)


# Plans on frames of Polars: queries, each with a margin, which declares what is known of the frame.


def of_numbers(pl: Any) -> Any:
    """The column of floats without null and NaN."""
    return pl.col("x").fill_null(0.0).fill_nan(0.0)


def whole(column: Any, pl: Any) -> Any:
    """A column as integers without null."""
    return column.cast(pl.Int32, strict=False).fill_null(0)


#: Aggregates by name, each with noise of about ε = 1.
QUERIES: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "len": lambda dp, pl: dp.len(scale=1.0),
    "count": lambda dp, pl: pl.col("x").dp.count(scale=1.0),
    "null_count": lambda dp, pl: pl.col("x").dp.null_count(scale=1.0),
    "n_unique": lambda dp, pl: pl.col("x").dp.n_unique(scale=1.0),
    "sum of floats": lambda dp, pl: of_numbers(pl).dp.sum((0.0, 5.0), scale=5.0),
    "sum of integers": lambda dp, pl: pl.col("n").fill_null(0).dp.sum((-1, 5), scale=5.0),
    "mean": lambda dp, pl: of_numbers(pl).dp.mean((0.0, 5.0), scale=5.0),
    "quantile": lambda dp, pl: of_numbers(pl).dp.quantile(0.25, [0.0, 1.0, 2.0, 5.0], scale=6.0),
    "median": lambda dp, pl: pl.col("n").fill_null(0).dp.median([0, 1, 2, 5], scale=2.0),
    "sum of texts, cast": lambda dp, pl: whole(pl.col("text"), pl).dp.sum((0, 5), scale=5.0),
    "sum of floats, cast": lambda dp, pl: whole(pl.col("x"), pl).dp.sum((0, 5), scale=5.0),
    "sum of a cut": lambda dp, pl: whole(of_numbers(pl).cut([1.0, 2.0]).to_physical(), pl).dp.sum((0, 2), scale=2.0),
}
#: Margins by name: what is declared to be known of a frame. Without an invariant only the rows of a frame are limited.
MARGINS: Final[Mapping[str, Mapping[str, Any]]] = {
    "no margin": {},
    "at most 20 rows": {"max_length": MOST_ROWS},
    "length known": {"max_length": MOST_ROWS, "invariant": "lengths"},
    "by key": {"by": ("key",), "max_length": MOST_ROWS, "max_groups": MOST_ROWS},
}


def schema_of(pl: Any) -> dict[str, Any]:
    """The columns of the frames."""
    return {"x": pl.Float64, "n": pl.Int64, "text": pl.String, "key": pl.String}


def plan_of(dp: Any, thing: Any, query: str, margin: str) -> Any:
    """What a constructor makes of a query on frames of which a margin is known. Raises what OpenDP raises."""
    import polars as pl

    declared = MARGINS[margin]
    atoms = {"x": dp.atom_domain(T="f64"), "n": dp.atom_domain(T="i64")}
    columns = {name: dp.option_domain(one) for name, one in atoms.items()}
    columns |= dict.fromkeys(("text", "key"), dp.atom_domain(T="String"))
    domain = dp.lazyframe_domain([dp.series_domain(name, one) for name, one in columns.items()])
    if declared:
        by = [pl.col(name) for name in declared.get("by", ())]
        domain = dp.with_margin(domain, dp.polars.Margin(**{**declared, "by": by}))
    frame = pl.LazyFrame(schema=schema_of(pl))
    aggregate = QUERIES[query](dp, pl)
    if "by" not in declared:
        return thing(domain, dp.symmetric_distance(), dp.max_divergence(), frame.select(aggregate))
    # Keys are released where their noisy count is large enough, so each group is counted.
    plan = frame.group_by("key").agg(*([] if query == "len" else [dp.len(scale=2.0)]), aggregate)
    return thing(domain, dp.symmetric_distance(), dp.approximate(dp.max_divergence()), plan, threshold=THRESHOLD)


def frames_of(margin: str) -> Neighbours:
    """Frames that keep what a margin declares, with numbers beyond the bounds of the queries, null and NaN."""
    import polars as pl

    columns: dict[str, Any] = {
        "x": numbers(0.0, 5.0, clipped=True, missing=True),
        "n": integers(-1, 5, clipped=True, missing=True),
        "text": categories("1", "2.5", "", "x", "99999999999"),
        "key": categories("a", "b", "c", ""),
    }
    # NaN comes only in columns that hold it at the start.
    rows = {"x": [math.nan, 1.0, None], "n": [None, 0, 5], "text": ["1", "x", ""], "key": ["a", "b", "a"]}
    known = "invariant" in MARGINS[margin]
    adjacency, d_in = ("replace-one", 2) if known else ("add-remove", 1)  # replaced: one removed and one added
    base, size = pl.LazyFrame(rows, schema=schema_of(pl)), (int(known), MOST_ROWS)
    relation = records(columns, adjacency=adjacency, size=size, base=base, form="polars-lazy")
    return relation, d_in, adjacency + (", length kept" if known else "")


DESCRIBER = OpenDP()
