"""python-dp 1.1.5, Median: a control."""

from typing import Any


def middle(values: Any) -> float:
    """The median of numbers between 0 and 10."""
    from pydp.algorithms.laplacian import Median

    return float(Median(epsilon=1.0, lower_bound=0, upper_bound=10, dtype="float").quick_result(values))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="python-dp==1.1.5",
        function=middle,
        promised="Median computes the Median value in the dataset, in a differentially private manner.",
        source="docstring of Median",
        fault="A median of values between 0 and 10.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.numbers(0, 10), size=(0, 10), form="list"),
        kind="control",
        max_time=20.0,
    )
