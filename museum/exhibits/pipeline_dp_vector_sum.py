"""pipeline-dp 0.2.1, VECTOR_SUM: the sum is clipped, not the vectors."""

from typing import Any


def total(vectors: Any) -> list[float]:
    """The sum of vectors, one a person, with ε = 1/2 for each of two coordinates."""
    import numpy as np
    import pipeline_dp as pdp
    from pipeline_dp.dp_computations import AdditiveVectorNoiseParams, add_noise_vector

    params = AdditiveVectorNoiseParams(
        eps_per_coordinate=0.5,
        delta_per_coordinate=0.0,
        max_norm=10.0,
        l0_sensitivity=1.0,
        linf_sensitivity=1.0,
        norm_kind=pdp.NormKind.Linf,
        noise_kind=pdp.NoiseKind.LAPLACE,
    )
    return [float(value) for value in add_noise_vector(np.sum(vectors, axis=0), params)]


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="pipeline-dp==0.2.1",
        function=total,
        promised="Adds noise to vector to make the vector sum computation (eps, delta)-DP.",
        source="docstring of add_noise_vector",
        fault="vector_max_norm bounds the sum of all vectors; the noise is that for a change of 1, the number of contributions, as VectorSumCombiner passes it.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records((dpw.numbers(-10, 10),) * 2, adjacency="replace-one", size=(1, 5), form="list"),
        kind="undisputed",
    )
