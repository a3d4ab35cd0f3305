"""opendp 0.16.0 with Polars: a cast that is not strict, then count."""

from functools import cache
from typing import Any


@cache
def measurement() -> Any:
    """Of how many of ten texts are whole numbers: map of one text replaced is 0.0."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    texts = dp.lazyframe_domain([dp.series_domain("answer", dp.atom_domain(T=str))])
    ten = dp.with_margin(texts, dp.polars.Margin(max_length=10, invariant="lengths"))
    numbers = pl.col("answer").cast(pl.Int64, strict=False).count()
    plan = pl.LazyFrame(schema={"answer": pl.String}).select(numbers.dp.noise())
    distances = dp.frame_distance(dp.symmetric_distance()), dp.max_divergence()
    return dp.m.make_private_lazyframe(ten, *distances, plan, global_scale=1.0)


def count(frame: Any) -> int:
    """How many texts are whole numbers; `measurement().map([dp.polars.Bound(per_group=2)])` is 0.0."""
    return int(measurement()(frame).collect().item())


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="opendp==0.16.0",
        function=count,
        promised="make_private_lazyframe(…).map([Bound(per_group=2)]) is 0.0",
        source="the privacy map of the measurement, for one of ten records replaced; opendp/opendp#2938",
        fault="A text that is no number becomes null and is not counted; the count is taken for the length and gets no noise.",
        claim=dpw.PureDP(0.0),
        neighbours=dpw.records(
            {"answer": dpw.categories("1", "none")}, adjacency="replace-one", size=10, form="polars-lazy"
        ),
        kind="undisputed",
    )
