"""eeprivacy 0.0.5, PrivateHistogram: sensitivity 1, where a record may be replaced."""

from typing import Any


def histogram(values: Any) -> list[float]:
    """How many numbers are below 5, and how many are not."""
    from eeprivacy.operations import PrivateHistogram

    return PrivateHistogram(bins=[0.0, 5.0, 10.0]).execute(values=values, epsilon=1.0).tolist()


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="eeprivacy==0.0.5",
        function=histogram,
        promised="max_individual_contribution: Maximum count any individual in the dataset could contribute",
        source="docstring of PrivateHistogram; no adjacency is named",
        fault="A record that is replaced changes two counts by one, and the scale is 1/ε.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.numbers(0, 10), adjacency="replace-one", size=(1, 100)),
        kind="depends on the adjacency",
    )
