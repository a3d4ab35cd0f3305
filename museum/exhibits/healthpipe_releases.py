"""Exhibits of healthpipe."""

from functools import partial


def answer(records, query, key):
    """The private answer to one query about records, from the results under a key."""
    import threading

    from healthpipe.deidentify.safe_harbor import DeidentifiedDataset
    from healthpipe.ingest.schema import ClinicalDataset, ClinicalRecord
    from healthpipe.privacy.budget import PrivacyBudget
    from healthpipe.privacy.differential import private_stats

    budget = PrivacyBudget(total_epsilon=1.0)
    budget._lock = threading.Lock()  # the default is a field of pydantic 1, which pydantic 2 does not fill
    data = ClinicalDataset(records=[ClinicalRecord(checksum="0", **record) for record in records])
    return private_stats(DeidentifiedDataset(dataset=data), epsilon=1.0, budget=budget, queries=[query]).results[key]


def healthpipe_count(people):
    """The number of observations, with noise."""
    from healthpipe.privacy.differential import Count  # the first import: the modules import each other

    records = [{"resource_type": person["kind"]} for person in people]
    return answer(records, Count(field="observation"), "count:observation")


def healthpipe_gaussian(values):
    """The sum of numbers between 0 and 1."""
    from healthpipe.privacy.differential import GaussianMechanism

    return GaussianMechanism(sensitivity=1.0, epsilon=7.0, delta=0.2).release(sum(values))


def healthpipe_histogram(people):
    """The number of people with each colour, with noise."""
    from healthpipe.privacy.differential import Histogram

    records = [{"resource_type": "Observation", "data": person} for person in people]
    return answer(records, Histogram(field="colour"), "histogram:colour")


def healthpipe_mean(people):
    """The mean of a field between 0 and 100 that not every record has."""
    from healthpipe.privacy.differential import Mean

    records = [{"resource_type": "Observation", "data": person} for person in people]
    return answer(records, Mean(field="value", clamp_range=(0.0, 100.0)), "mean:value")


def exhibits(dpw, Exhibit):
    exhibit = partial(
        Exhibit,
        release="healthpipe==0.1.0",
        promised="Run differentially private aggregate queries over *data*.",
        source="docstring of private_stats",
    )
    yield exhibit(
        function=healthpipe_count,
        fault="A count of records of one type with Laplace noise, rounded and not below 0.",
        neighbours=dpw.records({"kind": dpw.categories("Observation", "Patient")}, size=(0, 20), form="list"),
        kind="control",
        max_time=20.0,
    )
    yield exhibit(
        function=healthpipe_gaussian,
        promised="Uses the analytic Gaussian mechanism calibration.",
        source="docstring of GaussianMechanism",
        fault="σ = Δ√(2 ln(1.25/δ))/ε is the classical formula, which holds for ε < 1 only; it is used for all ε.",
        claim=dpw.ApproxDP(7.0, 0.2),
        neighbours=dpw.records(dpw.numbers(0, 1), size=(0, 20), form="list"),
    )
    yield exhibit(
        function=healthpipe_histogram,
        fault="Only the categories that are in the data come out, so a category of one person tells that person.",
        neighbours=dpw.records({"colour": dpw.categories("red", "green", "blue")}, size=(0, 20), form="list"),
    )
    yield exhibit(
        function=healthpipe_mean,
        fault="The sensitivity is (high − low)/number of records; the mean is that of the records which have the field.",
        neighbours=dpw.records(
            {"value": dpw.numbers(0, 100, missing=True)}, adjacency="replace-one", size=(1, 20), form="list"
        ),
    )
