"""diffpriv-pure 0.1.0, private_count: the noise is never negative."""

from typing import Any


def count(people: Any) -> int:
    """How many people there are."""
    from diffpriv_pure import private_count

    return private_count(len(people), epsilon=1.0)


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="diffpriv-pure==0.1.0",
        function=count,
        promised="Shifted geometric for pure ε-DP integer counts.",
        source="docstring of geometric_noise, which private_count adds",
        fault="The noise is never negative, so a count below the true one never comes out.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.flags()),
        kind="undisputed",
    )
