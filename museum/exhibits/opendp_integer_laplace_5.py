"""opendp 0.14.1, make_laplace on integers with scale 5: the noise is not geometric."""

from functools import cache
from typing import Any


@cache
def measurement() -> Any:
    """Of map(1) = 0.2."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=5.0)


def noisy(value: Any) -> int:
    """A number with noise."""
    return int(measurement()(value))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="opendp==0.14.1",
        function=noisy,
        promised="make_laplace(…, scale=5.0).map(1) is 0.2",
        source="the privacy map of the measurement; make_laplace: “Make a Measurement that adds noise from the Laplace(`scale`) distribution to the input.”",
        fault="The sampler does not draw from the geometric distribution at this scale.",
        claim=dpw.PureDP(0.2),
        neighbours=dpw.records(dpw.integers(0, 1), adjacency="replace-one", size=1, form="record"),
        kind="undisputed",
        fixed="opendp==0.14.2",
    )
