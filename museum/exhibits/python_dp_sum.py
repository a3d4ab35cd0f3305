"""python-dp 1.1.5, BoundedSum: a control."""

from typing import Any


def total(values: Any) -> float:
    """The sum of numbers between 0 and 10."""
    from pydp.algorithms.laplacian import BoundedSum

    return float(BoundedSum(epsilon=1.0, lower_bound=0, upper_bound=10, dtype="float").quick_result(values))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="python-dp==1.1.5",
        function=total,
        promised="BoundedSum computes the sum of values in a dataset, in a differentially private manner.",
        source="docstring of BoundedSum",
        fault="A sum of values that are clamped to 0 and 10, with Laplace noise.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.numbers(0, 10), size=(0, 10), form="list"),
        kind="control",
        max_time=20.0,
    )
