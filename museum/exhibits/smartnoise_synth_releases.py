"""Exhibits of smartnoise-synth."""

from functools import cache, partial


@cache
def covariance():
    """The class DPcovariance, from its own file: the package imports PyTorch, which the class does not use."""
    import runpy
    from importlib.util import find_spec
    from pathlib import Path

    package = find_spec("snsynth")
    assert package is not None
    assert package.origin is not None
    return runpy.run_path(str(Path(package.origin).with_name("models") / "dp_covariance.py"))["DPcovariance"]


def released(people, highest):
    """The covariances of columns with values from 0 to their highest ones."""
    import pandas as pd

    ranges = pd.DataFrame([[0.0] * len(highest), highest])
    return [float(value) for value in covariance()(10, list(people), ranges, 1.0).release(people)]


def smartnoise_covariance(people):
    """The covariances of two columns with numbers between 0 and 1."""
    return released(people, [1.0, 1.0])


def smartnoise_covariance_order(people):
    """The covariances of three columns, of which the second goes from 0 to 100."""
    return released(people, [1.0, 100.0, 1.0])


def smartnoise_covariance_two_columns(people):
    """The covariances of two columns with numbers between 0 and 1."""
    return released(people, [1.0, 1.0])


def exhibits(dpw, Exhibit):
    exhibit = partial(
        Exhibit,
        release="smartnoise-synth==1.0.8",
        neighbours=dpw.records(
            {"x": dpw.numbers(0, 1, clipped=True), "y": dpw.numbers(0, 1, clipped=True)},
            adjacency="replace-one",
            size=10,
            form="dataframe",
        ),
        promised="Differentially Private Linear Regression using the Covariance Method.",
        source="docstring of DPLinearRegression, which uses DPcovariance",
    )
    yield exhibit(
        function=smartnoise_covariance,
        release="smartnoise-synth==1.0.5",
        fault="The covariances are those of the data before they are censored to the ranges.",
        fixed="smartnoise-synth==1.0.6",
    )
    yield exhibit(
        function=smartnoise_covariance_order,
        fault="Covariances come by rows of the lower triangle, sensitivities by rows of the upper one: from three columns on, one gets the noise of another.",
        neighbours=dpw.records(
            {"x": dpw.numbers(0, 1), "y": dpw.numbers(0, 100), "z": dpw.numbers(0, 1)},
            adjacency="replace-one",
            size=10,
            form="dataframe",
        ),
    )
    yield exhibit(
        function=smartnoise_covariance_two_columns,
        fault="The covariances of two columns, whose values are censored to the ranges.",
        kind="control",
        max_time=20.0,
    )
