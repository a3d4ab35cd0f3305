"""OpenDP's plans on frames of Polars: queries, each with what is declared to be known of the frame (its margin).

The inputs keep what a margin declares: rows up to a maximum, the same groups, or groups of the same lengths. What a
plan releases of other frames is no part of its claim.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dpwitness.claims import ApproxDP
from dpwitness.mechanisms.libraries.opendp import LIBRARY
from dpwitness.neighbours import categories, integers, numbers, records
from dpwitness.sweeps.describers.describer import Attempt, Recipe
from dpwitness.sweeps.describers.opendp import (
    KEYS,
    THRESHOLD,
    Neighbours,
    attempt_of,
    histogram,
    kinds_of,
    noisy,
    prelude,
    undeprecated,
    why_not,
)

#: The most rows of a frame.
MOST_ROWS: Final = 20
#: Numbers go beyond the bounds of the queries; texts are numbers or not.
TEXTS: Final = ("1", "2.5", "", "x", "99999999999")

Query = Callable[[Any, Any], Any]


def of_numbers(pl: Any) -> Any:
    """The column of floats without null and NaN."""
    return pl.col("x").fill_null(0.0).fill_nan(0.0)


#: Aggregates by name, each of noise of about ε = 1.
AGGREGATES: Final[Mapping[str, Query]] = {
    "len": lambda dp, pl: dp.len(scale=1.0),
    "count": lambda dp, pl: pl.col("x").dp.count(scale=1.0),
    "null_count": lambda dp, pl: pl.col("x").dp.null_count(scale=1.0),
    "n_unique": lambda dp, pl: pl.col("x").dp.n_unique(scale=1.0),
    "sum of floats": lambda dp, pl: of_numbers(pl).dp.sum((0.0, 5.0), scale=5.0),
    "sum of integers": lambda dp, pl: pl.col("n").fill_null(0).dp.sum((-1, 5), scale=5.0),
    "mean": lambda dp, pl: of_numbers(pl).dp.mean((0.0, 5.0), scale=5.0),
    "quantile": lambda dp, pl: of_numbers(pl).dp.quantile(0.25, [0.0, 1.0, 2.0, 5.0], scale=6.0),
    "median": lambda dp, pl: pl.col("n").fill_null(0).dp.median([0, 1, 2, 5], scale=2.0),
    "sum of texts, cast": lambda dp, pl: (
        pl.col("text").cast(pl.Int32, strict=False).fill_null(0).dp.sum((0, 5), scale=5.0)
    ),
    "sum of floats, cast": lambda dp, pl: (
        pl.col("x").cast(pl.Int32, strict=False).fill_null(0).dp.sum((0, 5), scale=5.0)
    ),
    "sum of a cut": lambda dp, pl: (
        of_numbers(pl).cut([1.0, 2.0]).to_physical().cast(pl.Int32, strict=False).fill_null(0).dp.sum((0, 2), scale=2.0)
    ),
}
#: Plans that keep each row or leave it out, by name.
ROWS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "filter": lambda frame, pl: frame.filter(pl.col("x") > 1.0),
    "fill_null": lambda frame, pl: frame.with_columns(pl.col("x").fill_null(0.0)),
    "fill_nan": lambda frame, pl: frame.with_columns(pl.col("x").fill_nan(0.0)),
    "cast": lambda frame, pl: frame.with_columns(pl.col("text").cast(pl.Int32, strict=False)),
    "cut": lambda frame, pl: frame.with_columns(pl.col("x").cut([1.0, 2.0])),
    "select": lambda frame, pl: frame.select(pl.col("n"), pl.col("key")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """What is declared to be known of a frame, and inputs that keep it."""

    by: tuple[str, ...] = ()  # the columns of its groups
    declared: Mapping[str, Any] | None = None  # the settings of OpenDP's `Margin`; None: no margin
    kept: str = ""  # what neighbours have in common, for people


#: Margins by name. One row more than `MOST_ROWS` a key: see `keyed`.
MARGINS: Final[Mapping[str, Margin]] = {
    "no margin": Margin(),
    "at most 20 rows": Margin(declared={"max_length": MOST_ROWS}),
    "length known": Margin(declared={"max_length": MOST_ROWS, "invariant": "lengths"}, kept="length"),
    "by key": Margin(by=("key",), declared={"max_length": MOST_ROWS, "max_groups": MOST_ROWS}),
    "by key, keys known": Margin(
        by=("key",),
        declared={"max_length": MOST_ROWS + 1, "max_groups": len(KEYS), "invariant": "keys"},
        kept="keys",
    ),
    "by key, lengths known": Margin(
        by=("key",),
        declared={"max_length": MOST_ROWS, "max_groups": len(KEYS), "invariant": "lengths"},
        kept="lengths of groups",
    ),
}


class OpenDPPlans:
    """`make_private_lazyframe` and `make_stable_lazyframe`; expressions are parts of their plans."""

    def describes(self, thing: object, place: str) -> bool:
        """Whether it is a constructor of a plan, or of an expression."""
        module, _, name = place.rpartition(":")
        made = name.startswith("make_") and name.endswith(("_lazyframe", "_expr"))
        return inspect.isroutine(thing) and module.startswith("opendp.") and made

    def recipes(self, thing: Any, place: str) -> Sequence[Recipe]:
        """One for each query and margin of which it makes something."""
        if str(thing.__name__).endswith("_expr"):
            return [Recipe(refused="expressions are run as parts of plans, of which make_…_lazyframe makes some")]
        found, refused = [], []
        margins = [*MARGINS] if is_private(thing) else ["no margin"]
        for query in AGGREGATES if is_private(thing) else ROWS:
            for margin in margins:
                recipe = Recipe(label=f"{query}; {margin}", settings={"query": query, "margin": margin})
                if why := why_not(self.attempts(thing, recipe)):
                    refused.append(why)
                else:
                    found.append(recipe)
        return found or [Recipe(refused=refused[0])]

    def attempts(self, thing: object, recipe: Recipe, records: object = None) -> Iterator[Attempt]:
        """The plan; what releases rows with noise on how often each occurs."""
        margin = MARGINS[recipe.settings["margin"]]
        made, neighbours = plan_of(thing, recipe.settings["query"], margin), neighbours_of(margin)
        if not is_private(thing):
            yield attempt_of(thing, with_noise(made, neighbours), ApproxDP(1.0), neighbours, noisy=True)
            return
        call, keep = LIBRARY.function(made), keeping(margin)
        claim = LIBRARY.claim(made, neighbours.d_in)
        yield attempt_of(thing, lambda value, rng: call(keep(value)), claim, neighbours, noisy=False)


def is_private(thing: Any) -> bool:
    """Whether a constructor makes a measurement."""
    return "private" in str(thing.__name__)


def schema_of(pl: Any) -> dict[str, Any]:
    """The columns of the frames."""
    return {"x": pl.Float64, "n": pl.Int64, "text": pl.String, "key": pl.String}


def plan_of(thing: Any, query: str, margin: Margin) -> Any:
    """What a constructor makes of a query on frames of which a margin is known. Raises what OpenDP raises."""
    import polars as pl

    dp = prelude()
    columns = (("x", "f64"), ("n", "i64"), ("text", "String"), ("key", "String"))
    atoms = {name: dp.atom_domain(T=kind) for name, kind in columns}
    domain = dp.lazyframe_domain(
        [dp.series_domain(name, dp.option_domain(atom) if name in ("x", "n") else atom) for name, atom in atoms.items()]
    )
    if margin.declared is not None:
        domain = dp.with_margin(domain, dp.polars.Margin(by=[pl.col(name) for name in margin.by], **margin.declared))
    frame = pl.LazyFrame(schema=schema_of(pl))
    if not is_private(thing):
        return thing(domain, dp.symmetric_distance(), ROWS[query](frame, pl))
    aggregate = undeprecated(AGGREGATES[query], dp, pl)
    measure, more = dp.max_divergence(), {}
    if margin.by:
        keys_known = margin.kept != ""
        released = [aggregate] if keys_known or query == "len" else [undeprecated(dp.len, scale=2.0), aggregate]
        plan = frame.group_by(*margin.by).agg(*released)
        if not keys_known:
            measure, more = dp.approximate(measure), {"threshold": THRESHOLD}
    else:
        plan = frame.select(aggregate)
    return thing(domain, dp.symmetric_distance(), measure, plan, **more)


def with_noise(made: Any, neighbours: Neighbours) -> Callable[[Any, Any], Any]:
    """How often each row occurs of those that a transformation returns, with noise for how many may differ."""
    (bound,) = made.map(neighbours.d_in)
    known = kinds_of(made, neighbours)
    return lambda value, rng: noisy(rng.laplace, histogram(made(value), known), float(bound.per_group))


def neighbours_of(margin: Margin) -> Neighbours:
    """Frames that keep what a margin declares."""
    columns: dict[str, Any] = {
        "x": numbers(0.0, 5.0, clipped=True, missing=True),
        "n": integers(-1, 5, clipped=True, missing=True),
        "text": categories(*TEXTS),
        "key": categories(*KEYS) if margin.kept else categories(*KEYS, "c", ""),
    }
    if margin.kept == "lengths of groups":
        del columns["key"]  # `keeping` adds it
    # One row replaced is one removed and one added.
    replaced = margin.kept.startswith("length")
    adjacency, d_in = ("replace-one", 2) if replaced else ("add-remove", 1)
    size = (1, MOST_ROWS) if replaced else (0, MOST_ROWS)
    relation = records(columns, adjacency=adjacency, size=size, base=base_of(columns), form="polars-lazy")
    return Neighbours(relation, d_in, f"{adjacency}{f', {margin.kept} kept' if margin.kept else ''}")


def base_of(columns: Mapping[str, object]) -> Any:
    """Records to start from, NaN among them: it comes in columns alone that hold it."""
    import polars as pl

    rows = {"x": [math.nan, 1.0, None], "n": [None, 0, 5], "text": ["1", "x", ""], "key": ["a", "b", "a"]}
    schema = {name: kind for name, kind in schema_of(pl).items() if name in columns}
    return pl.LazyFrame({name: rows[name] for name in schema}, schema=schema)


def keeping(margin: Margin) -> Callable[[Any], Any]:
    """What makes a frame of an input, such that neighbours keep the groups, or their lengths."""
    import polars as pl

    if margin.kept == "keys":  # one row of each key is there always, and public
        public = pl.LazyFrame(
            {"x": [0.0, 0.0], "n": [0, 0], "text": ["", ""], "key": [*KEYS]},
            schema=schema_of(pl),
        )
        return lambda value: pl.concat([value, public])
    if margin.kept == "lengths of groups":  # the group of a row is its number's
        return lambda value: value.with_columns(key=pl.lit(pl.Series([*KEYS] * MOST_ROWS)).head(pl.len()))
    return lambda value: value


DESCRIBER = OpenDPPlans()
