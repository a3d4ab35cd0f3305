"""multi-freq-ldpy 0.2.5, SS_Client: the true value, where it is reported, stands first."""

from typing import Any


def subset(value: Any) -> list[int]:
    """The set of values that a person reports, in the order in which it is sent."""
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client

    return SS_Client(value, 10, 1.0).tolist()


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="multi-freq-ldpy==0.2.5",
        function=subset,
        promised="Subset Selection (SS) protocol […] epsilon: privacy guarantee; return: set of sub_k sanitized values.",
        source="docstring of SS_Client",
        fault="If the true value is in the set, it is its first entry.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.integers(0, 9), adjacency="replace-one", size=1, form="record"),
        kind="undisputed",
    )
