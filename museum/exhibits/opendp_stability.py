"""opendp 0.3.0, make_base_stability: the δ of the threshold."""

from functools import cache
from typing import Any


@cache
def measurement() -> Any:
    """Counts by text of ten texts, from a threshold on."""
    from opendp.meas import make_base_stability
    from opendp.mod import enable_features
    from opendp.trans import make_count_by
    from opendp.typing import L1Distance

    enable_features("contrib", "floating-point")
    count = make_count_by(size=10, MO=L1Distance[float], TIA=str)
    return count >> make_base_stability(size=10, scale=1.0, threshold=4.0, MI=L1Distance[float], TIK=str)


def counts(texts: Any) -> dict[str, float]:
    """How often the frequent texts occur; `measurement().check(2, (2.0, 0.001))` is true."""
    return measurement()(list(texts))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="opendp==0.3.0",
        function=counts,
        promised="check(2, (2.0, 0.001)) is true",
        source="the privacy relation of the measurement, for one of ten records replaced",
        fault="A text that occurs once comes out with probability 0.025, and δ may be as small as one likes.",
        claim=dpw.ApproxDP(2.0, 0.001),
        neighbours=dpw.records(dpw.categories("a", "b", "c"), adjacency="replace-one", size=10),
        kind="undisputed",
    )
