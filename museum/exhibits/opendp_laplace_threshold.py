"""opendp 0.16.0, then_laplace_threshold: a count that is the threshold is released."""

from functools import cache
from typing import Any


@cache
def measurement() -> Any:
    """Counts by text, with noise, from a threshold on: map(1) is (1.0, 0.0134)."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    texts = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    return texts >> dp.t.then_count_by() >> dp.m.then_laplace_threshold(scale=1.0, threshold=4)


def counts(texts: Any) -> dict[str, int]:
    """How often the frequent texts occur."""
    return measurement()(list(texts))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="opendp==0.16.0",
        function=counts,
        promised="map(1) is (1.0, 0.0134)",
        source="the privacy map of the measurement",
        fault="A count that is exactly the threshold is released, which δ does not count.",
        claim=dpw.ApproxDP(1.0, 0.01338980493269848),
        neighbours=dpw.records(dpw.categories("a", "b", "c")),
        kind="undisputed",
    )
