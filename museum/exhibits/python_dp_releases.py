"""Exhibits of python-dp."""

from functools import partial
from typing import Any


def python_dp_mean(values: Any) -> float:
    """The mean of numbers between 0 and 10."""
    from pydp.algorithms.laplacian import BoundedMean

    return float(BoundedMean(epsilon=1.0, lower_bound=0, upper_bound=10, dtype="float").quick_result(values))


def python_dp_median(values: Any) -> float:
    """The median of numbers between 0 and 10."""
    from pydp.algorithms.laplacian import Median

    return float(Median(epsilon=1.0, lower_bound=0, upper_bound=10, dtype="float").quick_result(values))


def python_dp_sum(values: Any) -> float:
    """The sum of numbers between 0 and 10."""
    from pydp.algorithms.laplacian import BoundedSum

    return float(BoundedSum(epsilon=1.0, lower_bound=0, upper_bound=10, dtype="float").quick_result(values))


def exhibits() -> list[Any]:
    """Return the exhibits."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    exhibit = partial(
        Exhibit,
        release="python-dp==1.1.5",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.numbers(0, 10), size=(0, 10), form="list"),
        kind="control",
        max_time=20.0,
    )
    return [
        exhibit(
            function=python_dp_mean,
            promised="BoundedMean computes the average of values in a dataset, in a differentially private manner.",
            source="docstring of BoundedMean",
            fault="A mean of values that are clamped to 0 and 10, from a noisy sum and a noisy count.",
        ),
        exhibit(
            function=python_dp_median,
            promised="Median computes the Median value in the dataset, in a differentially private manner.",
            source="docstring of Median",
            fault="A median of values between 0 and 10.",
        ),
        exhibit(
            function=python_dp_sum,
            promised="BoundedSum computes the sum of values in a dataset, in a differentially private manner.",
            source="docstring of BoundedSum",
            fault="A sum of values that are clamped to 0 and 10, with Laplace noise.",
        ),
    ]
