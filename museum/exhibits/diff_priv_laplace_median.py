"""diff-priv-laplace-python 1.0.5, median: the sensitivity is 1, whatever the values are."""

from typing import Any


def of_ages(ages: Any) -> float:
    """The median of ages."""
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.median(ages, epsilon=1.0))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="diff-priv-laplace-python==1.0.5",
        function=of_ages,
        promised="Performs the median operation and anonymizes the value(s) using the provided privacy budget.",
        source="docstring of DiffPrivStatistics.median, which takes no bounds",
        fault="The sensitivity is 1 for all data.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.integers(0, 100), size=(1, 20)),
        kind="undisputed",
    )
