"""python-dp (Google's C++ library), and pipeline_dp on top of it."""

from functools import partial
from typing import Any

from calls.call import Call
from dpwitness import categories, numbers, records

DATA = records(numbers(0, 1))


def mechanism(name: str, *settings: float) -> Any:
    import pydp.algorithms.numerical_mechanisms as mechanisms

    return getattr(mechanisms, name)(*settings)


def algorithm(name: str, *more: Any, **settings: Any) -> Any:
    import pydp.algorithms.laplacian as algorithms

    return getattr(algorithms, name)(*more, epsilon=1.0, **settings)


def over_numbers(name: str, *more: Any, tight: bool = False) -> Call:
    """Over numbers between 0 and 1."""
    make = partial(algorithm, name, *more, lower_bound=0, upper_bound=1, dtype="float")
    return Call(name=f"python-dp {name}", make=make, neighbours=DATA, tight=tight)


def aggregated(*metrics: str) -> Any:
    """Statistics of each of two groups, one contribution a person, as pipeline_dp makes them in one process."""
    import pipeline_dp

    wanted = [getattr(pipeline_dp.Metrics, name) for name in metrics]

    def aggregate(data):
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        parameters = pipeline_dp.AggregateParams(
            metrics=wanted, max_partitions_contributed=1, max_contributions_per_partition=1, min_value=0, max_value=1,
            noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        )  # fmt: skip
        extractors = pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1][0],
            value_extractor=lambda row: row[1][1],
        )
        found = engine.aggregate(list(enumerate(data)), parameters, extractors, public_partitions=["a", "b"])
        accountant.compute_budgets()
        return {group: list(values) for group, values in sorted(found)}

    return aggregate


GROUPED = records((categories("a", "b"), numbers(0, 1)))

CALLS = (
    Call(
        name="python-dp LaplaceMechanism",
        make=partial(mechanism, "LaplaceMechanism", 1.0, 1.0),
        neighbours=[(0.0, 1.0)],
    ),
    Call(
        name="python-dp GaussianMechanism",
        make=partial(mechanism, "GaussianMechanism", 1.0, 0.05, 1.0),
        neighbours=[(0.0, 1.0)],
        delta=0.05,
    ),
    over_numbers("BoundedSum", tight=True),
    over_numbers("BoundedMean"),
    over_numbers("BoundedVariance"),
    over_numbers("BoundedStandardDeviation"),
    Call(name="python-dp Count", make=partial(algorithm, "Count", dtype="float"), neighbours=DATA),
    over_numbers("Max"),
    over_numbers("Min"),
    over_numbers("Median"),
    Call(
        name="pipeline_dp COUNT",
        make=partial(aggregated, "COUNT"),
        neighbours=GROUPED,
        delta=1e-6,
    ),
    Call(
        name="pipeline_dp COUNT, SUM",
        make=partial(aggregated, "COUNT", "SUM"),
        neighbours=GROUPED,
        delta=1e-6,
        tight=False,
    ),
)
