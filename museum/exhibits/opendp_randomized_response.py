"""opendp 0.4.0, make_randomized_response_bool: an answer that is to be false may be true all the same."""

from functools import cache
from typing import Any


@cache
def measurement() -> Any:
    """Of one flag: check(1, 1.0987) is true, for ln(0.75/0.25) = 1.0986."""
    from opendp.meas import make_randomized_response_bool
    from opendp.mod import enable_features

    enable_features("contrib")
    return make_randomized_response_bool(prob=0.75)


def answer(flag: Any) -> bool:
    """The answer to a flag."""
    return bool(measurement()(bool(flag)))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="opendp==0.4.0",
        function=answer,
        promised="make_randomized_response_bool(prob=0.75).check(1, 1.0987) is true",
        source="the privacy relation of the measurement; opendp/opendp#480",
        fault="In one of four runs the answer is drawn anew, True with probability 0.75, and may be the true one.",
        claim=dpw.PureDP(1.0987),
        neighbours=dpw.records(dpw.flags(), adjacency="replace-one", size=1, form="record"),
        kind="undisputed",
        fixed="opendp==0.5.0",
        max_time=30.0,
    )
