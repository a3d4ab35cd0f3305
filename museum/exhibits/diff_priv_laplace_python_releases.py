"""Exhibits of diff-priv-laplace-python."""

from typing import Any


def diff_priv_laplace_max(ages: Any) -> float:
    """The max of ages."""
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.max(ages, epsilon=1.0))


def diff_priv_laplace_mean(ages: Any) -> float:
    """The mean of ages."""
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.mean(ages, epsilon=1.0))


def diff_priv_laplace_median(ages: Any) -> float:
    """The median of ages."""
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.median(ages, epsilon=1.0))


def diff_priv_laplace_min(ages: Any) -> float:
    """The min of ages."""
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.min(ages, epsilon=1.0))


def diff_priv_laplace_sum(ages: Any) -> float:
    """The sum of ages."""
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.sum(ages, epsilon=1.0))


def diff_priv_laplace_variance(ages: Any) -> float:
    """The variance of ages."""
    from diffpriv_laplace import DiffPrivStatistics

    return float(DiffPrivStatistics.variance(ages, epsilon=1.0))


def exhibits() -> list[Any]:
    """Return the exhibits."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    fixed = "The sensitivity is 1 for all data."
    from_data = "The sensitivity is computed from the least and the greatest value in the data."
    return [
        Exhibit(
            release="diff-priv-laplace-python==1.0.5",
            function=function,
            promised=f"Performs the {name} operation and anonymizes the value(s) using the provided privacy budget.",
            source=f"docstring of DiffPrivStatistics.{name}, which takes no bounds",
            fault=fault,
            claim=dpw.PureDP(1.0),
            neighbours=dpw.records(dpw.integers(0, 100), size=(1, 20)),
            kind="undisputed",
        )
        for name, function, fault in (
            ("max", diff_priv_laplace_max, fixed),
            ("mean", diff_priv_laplace_mean, from_data),
            ("median", diff_priv_laplace_median, fixed),
            ("min", diff_priv_laplace_min, fixed),
            ("sum", diff_priv_laplace_sum, from_data),
            ("variance", diff_priv_laplace_variance, from_data),
        )
    ]
