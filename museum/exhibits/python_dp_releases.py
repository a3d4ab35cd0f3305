"""Exhibits of python-dp."""

from functools import partial


def statistic(name, algorithm):
    """The function of an exhibit: a statistic of numbers between 0 and 10."""

    def released(values):
        from pydp.algorithms import laplacian

        kind = getattr(laplacian, algorithm)
        return float(kind(epsilon=1.0, lower_bound=0, upper_bound=10, dtype="float").quick_result(values))

    released.__name__ = released.__qualname__ = f"python_dp_{name}"
    return released


python_dp_mean = statistic("mean", "BoundedMean")
python_dp_median = statistic("median", "Median")
python_dp_sum = statistic("sum", "BoundedSum")


def exhibits(dpw, Exhibit):
    exhibit = partial(
        Exhibit,
        release="python-dp==1.1.5",
        neighbours=dpw.records(dpw.numbers(0, 10), size=(0, 10), form="list"),
        kind="control",
        max_time=20.0,
    )
    yield exhibit(
        function=python_dp_mean,
        promised="BoundedMean computes the average of values in a dataset, in a differentially private manner.",
        source="docstring of BoundedMean",
        fault="A mean of values that are clamped to 0 and 10, from a noisy sum and a noisy count.",
    )
    yield exhibit(
        function=python_dp_median,
        promised="Median computes the Median value in the dataset, in a differentially private manner.",
        source="docstring of Median",
        fault="A median of values between 0 and 10.",
    )
    yield exhibit(
        function=python_dp_sum,
        promised="BoundedSum computes the sum of values in a dataset, in a differentially private manner.",
        source="docstring of BoundedSum",
        fault="A sum of values that are clamped to 0 and 10, with Laplace noise.",
    )
