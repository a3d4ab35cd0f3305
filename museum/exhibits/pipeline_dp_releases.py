"""Exhibits of pipeline-dp."""

from functools import partial


def pipeline_dp_count(people):
    """The number of people plus one, with noise."""
    import pipeline_dp as pdp

    accountant = pdp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-10)
    params = pdp.AggregateParams(
        metrics=[pdp.Metrics.COUNT],
        noise_kind=pdp.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
    )
    extractors = pdp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda _: "all",
        value_extractor=lambda row: row[1],
    )
    rows = [(0, 0), *enumerate(people, 1)]
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    results = engine.aggregate(rows, params, extractors, public_partitions=["all"])
    accountant.compute_budgets()
    return int(next(iter(results))[1].count)


def pipeline_dp_vector_sum(vectors):
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


def exhibits(dpw, Exhibit):
    exhibit = partial(Exhibit, release="pipeline-dp==0.2.1")
    yield exhibit(
        function=pipeline_dp_count,
        promised="Computes DP aggregate metrics",
        source="docstring of DPEngine.aggregate",
        fault="A count in a public partition, with Laplace noise.",
        claim=dpw.ApproxDP(1.0, 1e-10),
        neighbours=dpw.records(dpw.integers(0, 1), size=(0, 10), form="list"),
        kind="control",
        max_time=20.0,
    )
    yield exhibit(
        function=pipeline_dp_vector_sum,
        promised="Adds noise to vector to make the vector sum computation (eps, delta)-DP.",
        source="docstring of add_noise_vector",
        fault="vector_max_norm bounds the sum of all vectors; the noise is that for a change of 1, the number of contributions, as VectorSumCombiner passes it.",
        neighbours=dpw.records((dpw.numbers(-10, 10),) * 2, adjacency="replace-one", size=(1, 5), form="list"),
    )
