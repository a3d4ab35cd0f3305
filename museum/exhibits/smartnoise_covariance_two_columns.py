"""smartnoise-synth 1.0.8, DPcovariance of two columns: a control."""

from functools import cache
from typing import Any


@cache
def covariance() -> Any:
    """The class, from its own file: the package imports PyTorch, which it does not use."""
    import runpy
    from importlib.util import find_spec
    from pathlib import Path

    package = find_spec("snsynth")
    assert package is not None
    assert package.origin is not None
    return runpy.run_path(str(Path(package.origin).with_name("models") / "dp_covariance.py"))["DPcovariance"]


def release(people: Any) -> list[float]:
    """The covariances of two columns with numbers between 0 and 1."""
    import pandas as pd

    ranges = pd.DataFrame([[0.0, 0.0], [1.0, 1.0]])
    return [float(value) for value in covariance()(10, list(people), ranges, 1.0).release(people)]


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="smartnoise-synth==1.0.8",
        function=release,
        promised="Differentially Private Linear Regression using the Covariance Method.",
        source="docstring of DPLinearRegression, which uses DPcovariance",
        fault="The covariances of two columns, whose values are censored to the ranges.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(
            {"x": dpw.numbers(0, 1, clipped=True), "y": dpw.numbers(0, 1, clipped=True)},
            adjacency="replace-one",
            size=10,
            form="dataframe",
        ),
        kind="control",
        max_time=20.0,
    )
