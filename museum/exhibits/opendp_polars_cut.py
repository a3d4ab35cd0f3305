"""opendp 0.16.0 with Polars: cut makes null of NaN, then count."""

from functools import cache
from typing import Any


@cache
def measurement() -> Any:
    """Of how many of ten numbers are in an interval: map of one number replaced is 0.0."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    numbers = dp.lazyframe_domain([dp.series_domain("age", dp.atom_domain(T=float))])  # with NaN
    ten = dp.with_margin(numbers, dp.polars.Margin(max_length=10, invariant="lengths"))
    intervals = pl.col("age").cut([18.0, 65.0]).count()
    plan = pl.LazyFrame(schema={"age": pl.Float64}).select(intervals.dp.noise())
    distances = dp.frame_distance(dp.symmetric_distance()), dp.max_divergence()
    return dp.m.make_private_lazyframe(ten, *distances, plan, global_scale=1.0)


def count(frame: Any) -> int:
    """How many numbers are in an interval; `measurement().map([dp.polars.Bound(per_group=2)])` is 0.0."""
    return int(measurement()(frame).collect().item())


def exhibit() -> Any:
    """Return the facts."""
    import polars as pl

    import dpwitness as dpw
    from museum.exhibit import Exhibit

    ages = [
        float("nan"),
        0.0,
        17.0,
        18.0,
        30.0,
        42.0,
        50.0,
        65.0,
        80.0,
        100.0,
    ]  # a column in which NaN is NaN, not null
    return Exhibit(
        release="opendp==0.16.0",
        function=count,
        promised="make_private_lazyframe(…).map([Bound(per_group=2)]) is 0.0",
        source="the privacy map of the measurement, for one of ten records replaced; opendp/opendp#2939",
        fault="NaN becomes null and is not counted; the count is taken for the length and gets no noise.",
        claim=dpw.PureDP(0.0),
        neighbours=dpw.records(base=pl.LazyFrame({"age": ages}), adjacency="replace-one", size=10),
        kind="undisputed",
    )
