"""opendp 0.16.0 with Polars: the codes of cut's intervals, summed."""

from functools import cache
from typing import Any


@cache
def measurement() -> Any:
    """The sum of the codes 0 to 2 of up to 20 ages, with the noise that `map` says is enough for ε = 1."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    numbers = dp.lazyframe_domain([dp.series_domain("age", dp.atom_domain(T=float, nan=False))])
    twenty = dp.with_margin(numbers, dp.polars.Margin(max_length=20))
    codes = pl.col("age").cut([18.0, 65.0]).to_physical().cast(pl.Int32, strict=False).fill_null(0)
    plan = pl.LazyFrame(schema={"age": pl.Float64}).select(codes.dp.sum((0, 2), scale=2.0))
    return dp.m.make_private_lazyframe(twenty, dp.symmetric_distance(), dp.max_divergence(), plan)


def total(frame: Any) -> int:
    """The noisy sum of the intervals' codes; `measurement().map(1)` is 1.0."""
    return int(measurement()(frame).collect().item())


def exhibit() -> Any:
    """Return the facts."""
    import polars as pl

    import dpwitness as dpw
    from museum.exhibit import Exhibit

    ages = [3.0, 17.0, 18.0, 30.0, 42.0, 50.0, 65.0, 66.0, 80.0, 100.0]
    return Exhibit(
        release="opendp==0.16.0",
        function=total,
        promised="make_private_lazyframe(…).map(1) is 1.0",
        source="the privacy map of the measurement, for one record added or removed",
        fault="Polars numbers intervals in the order in which they first appear: one record may move the codes of all others.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(base=pl.LazyFrame({"age": ages}), adjacency="add-remove", size=20),
        kind="undisputed",
    )
