"""healthpipe 0.1.0, Count: a control."""

from typing import Any


def count(people: Any) -> int:
    """How many observations there are."""
    import threading

    import healthpipe.privacy.differential  # noqa: F401  # first: the modules import each other
    from healthpipe.deidentify.safe_harbor import DeidentifiedDataset
    from healthpipe.ingest.schema import ClinicalDataset, ClinicalRecord
    from healthpipe.privacy.budget import PrivacyBudget
    from healthpipe.privacy.differential import Count, private_stats

    records = [ClinicalRecord(resource_type=person["kind"], checksum="0") for person in people]
    budget = PrivacyBudget(total_epsilon=1.0)
    budget._lock = threading.Lock()  # by default a field of pydantic 1, which pydantic 2 does not fill
    data = DeidentifiedDataset(dataset=ClinicalDataset(records=records))
    return private_stats(data, epsilon=1.0, budget=budget, queries=[Count(field="observation")]).results[
        "count:observation"
    ]


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="healthpipe==0.1.0",
        function=count,
        promised="Run differentially private aggregate queries over *data*.",
        source="docstring of private_stats",
        fault="A count of records of one type with Laplace noise, rounded and not below 0.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records({"kind": dpw.categories("Observation", "Patient")}, size=(0, 20), form="list"),
        kind="control",
        max_time=20.0,
    )
