"""multi-freq-ldpy 0.2.5, GRR_Client: a control."""

from typing import Any


def answer(value: Any) -> int:
    """The value out of four that a person reports."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    return int(GRR_Client(value, 4, 1.0))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="multi-freq-ldpy==0.2.5",
        function=answer,
        promised="Generalized Randomized Response (GRR) protocol […] epsilon: privacy guarantee",
        source="docstring of GRR_Client",
        fault="Generalised randomised response over four values.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.integers(0, 3), adjacency="replace-one", size=1, form="record"),
        kind="control",
        max_time=20.0,
    )
