"""diffprivlib 0.6.6, KMeans: a cluster without records keeps its centre without noise."""

from typing import Any


def centres(points: Any) -> list[float]:
    """The centres of four clusters, from left to right."""
    import warnings

    from diffprivlib.models import KMeans

    warnings.simplefilter("ignore")
    model = KMeans(n_clusters=4, epsilon=1.0, bounds=(0.0, 1.0)).fit(points)
    return sorted(float(centre) for centre in model.cluster_centers_.ravel())


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="diffprivlib==0.6.6",
        function=centres,
        promised="Implements the DPLloyd approach presented in [SCL16]_",
        source="docstring of KMeans",
        fault="An empty cluster is left as it is, without noise.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records((dpw.numbers(0, 1),), size=(1, 20), form="array"),
        kind="undisputed",
    )
