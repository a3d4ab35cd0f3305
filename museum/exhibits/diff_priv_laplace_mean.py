"""diff-priv-laplace-python 1.0.5, mean: the bounds are the least and the greatest value of the data."""

from typing import Any


def of_ages(ages: Any) -> float:
    """The mean of ages."""
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.mean(ages, epsilon=1.0))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="diff-priv-laplace-python==1.0.5",
        function=of_ages,
        promised="Performs the mean operation and anonymizes the value(s) using the provided privacy budget.",
        source="docstring of DiffPrivStatistics.mean, which takes no bounds",
        fault="The sensitivity is computed from the least and the greatest value in the data.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.integers(0, 100), size=(1, 20)),
        kind="undisputed",
    )
