"""pipeline-dp 0.2.1, COUNT: a control."""

from typing import Any


def count(people: Any) -> int:
    """How many people there are, and one more."""
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


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="pipeline-dp==0.2.1",
        function=count,
        promised="Computes DP aggregate metrics",
        source="docstring of DPEngine.aggregate",
        fault="A count in a public partition, with Laplace noise.",
        claim=dpw.ApproxDP(1.0, 1e-10),
        neighbours=dpw.records(dpw.integers(0, 1), size=(0, 10), form="list"),
        kind="control",
        max_time=20.0,
    )
