"""eeprivacy 0.0.5, PrivateQuantile: noise for scores that all move one way, on scores that do not."""

from typing import Any


def median(values: Any) -> int:
    """The median of numbers between 0 and 10, out of two options."""
    from eeprivacy.operations import PrivateQuantile

    return PrivateQuantile(options=[3, 7]).execute(values=values, epsilon=1.0, quantile=0.5)


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="eeprivacy==0.0.5",
        function=median,
        promised="Implemented using Report Noisy Max (Claim 3.9) of [Dwork and Roth].",
        source="docstring of PrivateQuantile.execute",
        fault="The scale is Δ/ε, which Claim 3.9 gives for counts; of these scores some rise and others fall, which needs 2Δ/ε.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.numbers(0, 10), adjacency="replace-one", size=(1, 20)),
        kind="depends on the adjacency",
    )
