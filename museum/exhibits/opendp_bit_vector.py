"""opendp 0.14.1, make_randomized_response_bitvec: the first bit of an answer is the true one."""

from functools import cache
from typing import Any


@cache
def measurement() -> Any:
    """Of eight bits with f = 0.95: map(1) is 1.6013."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=8), dp.discrete_distance(), f=0.95)


def answer(bits: Any) -> list[int]:
    """The answer to eight bits."""
    return [
        byte >> k & 1 for byte in measurement()(bytes([sum(bit << k for k, bit in enumerate(bits))])) for k in range(8)
    ]


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="opendp==0.14.1",
        function=answer,
        promised="make_randomized_response_bitvec(…, f=0.95).map(1) is 1.6013",
        source="the privacy map of the measurement",
        fault="One bit of each answer is the true one.",
        claim=dpw.PureDP(1.6013353369117223),
        neighbours=dpw.records((dpw.flags(),) * 8, adjacency="replace-one", size=1, form="record"),
        kind="undisputed",
        fixed="opendp==0.16.0",
    )
