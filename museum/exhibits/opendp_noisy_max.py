"""opendp 0.16.0, make_noisy_max for zero-concentrated differential privacy: a control."""

from functools import cache
from typing import Any


@cache
def measurement() -> Any:
    """Of map(…) = 0.5."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    scores = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    return dp.m.make_noisy_max(*scores, dp.zero_concentrated_divergence(), scale=1.0)


def release(values: Any) -> int:
    """The place of the largest of three scores, each of which moves by at most one."""
    return measurement()([int(value) for value in values])


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="opendp==0.16.0",
        function=release,
        promised="make_noisy_max(…, zero_concentrated_divergence(), scale=1.0).map(1) is 0.5",
        source="the privacy map of the measurement",
        fault="The largest of three noisy scores.",
        claim=dpw.ZCDP(0.5),
        neighbours=dpw.queries(3),
        kind="control",
        max_time=20.0,
    )
