"""healthpipe 0.1.0, Histogram: the categories are those of the data."""

from typing import Any


def histogram(people: Any) -> dict[str, int]:
    """How many people have each colour."""
    import threading

    import healthpipe.privacy.differential  # noqa: F401  # first: the modules import each other
    from healthpipe.deidentify.safe_harbor import DeidentifiedDataset
    from healthpipe.ingest.schema import ClinicalDataset, ClinicalRecord
    from healthpipe.privacy.budget import PrivacyBudget
    from healthpipe.privacy.differential import Histogram, private_stats

    records = [ClinicalRecord(resource_type="Observation", data=person, checksum="0") for person in people]
    budget = PrivacyBudget(total_epsilon=1.0)
    budget._lock = threading.Lock()  # by default a field of pydantic 1, which pydantic 2 does not fill
    data = DeidentifiedDataset(dataset=ClinicalDataset(records=records))
    return private_stats(data, epsilon=1.0, budget=budget, queries=[Histogram(field="colour")]).results[
        "histogram:colour"
    ]


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="healthpipe==0.1.0",
        function=histogram,
        promised="Run differentially private aggregate queries over *data*.",
        source="docstring of private_stats",
        fault="Only the categories that are in the data come out, so a category of one person tells that person.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records({"colour": dpw.categories("red", "green", "blue")}, size=(0, 20), form="list"),
        kind="undisputed",
    )
