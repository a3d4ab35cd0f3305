"""diffprivlib 0.6.6, quantile: NaN is returned wherever one value is missing."""

from typing import Any


def median(values: Any) -> float:
    """The median of numbers from 0 to 1, of which some are missing."""
    from diffprivlib.tools import quantile

    return float(quantile(values, 0.5, epsilon=1.0, bounds=(0.0, 1.0)))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="diffprivlib==0.6.6",
        function=median,
        promised="Compute the differentially private quantile of the array.",
        source="docstring of quantile",
        fault="If any value is NaN, NaN is returned without noise (a note in the source says that this is to be done).",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.numbers(0, 1, missing=True), adjacency="replace-one", size=(1, 20)),
        kind="undisputed",
    )
