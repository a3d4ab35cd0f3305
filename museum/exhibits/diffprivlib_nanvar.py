"""diffprivlib 0.6.6, nanvar: the noise is for as many values as there are, NaN included."""

from typing import Any


def spread(values: Any) -> float:
    """The variance of numbers from 0 to 1, of which some are missing."""
    from diffprivlib.tools import nanvar

    return float(nanvar(values, epsilon=1.0, bounds=(0.0, 1.0)))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="diffprivlib==0.6.6",
        function=spread,
        promised="Compute the differentially private variance along the specified axis, ignoring NaNs.",
        source="docstring of nanvar",
        fault="The sensitivity is divided by the number of all values; the statistic is that of the values that are not NaN.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.numbers(0, 1, missing=True), adjacency="replace-one", size=(1, 20)),
        kind="undisputed",
    )
