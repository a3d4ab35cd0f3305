"""eeprivacy 0.0.5, PrivateVectorClampedMeanLaplace: all coordinates get the same noise."""

from typing import Any


def mean(vectors: Any) -> list[float]:
    """The mean of ten vectors of three numbers between 0 and 1."""
    from eeprivacy.operations import PrivateVectorClampedMeanLaplace

    operation = PrivateVectorClampedMeanLaplace(lower_bound=0.0, upper_bound=1.0, k=3, N=10)
    return operation.execute(vectors=vectors, epsilon=1.0, delta=0.0).tolist()


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="eeprivacy==0.0.5",
        function=mean,
        promised="With the Laplace Mechanism, noise is scaled to the L1 norm of the dataset.",
        source="docstring of PrivateVectorClampedMeanLaplace",
        fault="One draw of noise is added to all coordinates, so their differences have none.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records((dpw.numbers(0, 1),) * 3, adjacency="replace-one", size=10),
        kind="undisputed",
    )
