"""opendp 0.16.0, make_canonical_noise: a control."""

from functools import cache
from typing import Any


@cache
def measurement() -> Any:
    """Of one number that moves by at most one: map(1.0) is (1.0, 1e-6)."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    number = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    return dp.m.make_canonical_noise(*number, d_in=1.0, d_out=(1.0, 1e-6))


def release(values: Any) -> float:
    """One number with noise."""
    return float(measurement()(float(values[0])))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="opendp==0.16.0",
        function=release,
        promised="make_canonical_noise(…, d_in=1.0, d_out=(1.0, 1e-6)).map(1.0) is (1.0, 1e-6)",
        source="the privacy map of the measurement",
        fault="A number with noise of the Tulap distribution.",
        claim=dpw.ApproxDP(1.0, 1e-6),
        neighbours=dpw.queries(1),
        kind="control",
        max_time=20.0,
    )
