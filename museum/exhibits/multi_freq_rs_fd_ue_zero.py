"""multi-freq-ldpy 0.2.5, RSpFD_UE_zero_Client: amplification by sampling an attribute, where all attributes differ."""

from typing import Any


def answers(person: Any) -> list[list[float]]:
    """What a person with two attributes reports, with unary encoding and zero vectors as fake data."""
    from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_UE_zero_Client

    return [vector.tolist() for vector in RSpFD_UE_zero_Client(person, [2, 2], 2, 1.0)]


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="multi-freq-ldpy==0.2.5",
        function=answers,
        promised="Random Sampling Plus Fake Data (RS+FD) […] epsilon: privacy guarantee",
        source="docstring of RSpFD_UE_zero_Client",
        fault="One attribute, drawn at random, gets ε′ = ln(d(e^ε − 1) + 1); this holds for people who differ in that attribute alone, not in all.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(
            (dpw.integers(0, 1), dpw.integers(0, 1)), adjacency="replace-one", size=1, form="record"
        ),
        kind="undisputed",
    )
