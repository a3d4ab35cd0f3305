"""eeprivacy 0.0.5, PrivateClampedMean: the values are not clamped."""

from typing import Any


def mean(values: Any) -> float:
    """The mean of numbers, clamped to 0 and 1."""
    from eeprivacy.operations import PrivateClampedMean

    return float(PrivateClampedMean(lower_bound=0.0, upper_bound=1.0).execute(values=values, epsilon=1.0))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="eeprivacy==0.0.5",
        function=mean,
        promised="Compute a mean, bounding sensitivity with clamping. Employs the Laplace Mechanism.",
        source="docstring of PrivateClampedMean",
        fault="The sum is that of the values as they are; only the result is clamped.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.numbers(0, 1, clipped=True)),
        kind="undisputed",
    )
