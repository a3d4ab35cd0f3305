"""pure-ldp 1.1.2, UEClient: the bit of a person has two chances to be 1."""

from typing import Any


def bits(value: Any) -> list[int]:
    """The two bits that a person reports."""
    from pure_ldp.frequency_oracles import UEClient

    return UEClient(epsilon=1.0, d=2, index_mapper=int).privatise(value).tolist()


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="pure-ldp==1.1.2",
        function=bits,
        promised="epsilon: float - privacy budget",
        source="docstring of UEClient",
        fault="The bit of the true value is 1 with probability p + (1 − p)q in place of p.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.integers(0, 1), adjacency="replace-one", size=1, form="record"),
        kind="undisputed",
        fixed="pure-ldp==1.2.0",
    )
