"""healthpipe 0.1.0, Mean: the noise is for the mean of all records, the mean is that of those that have the field."""

from typing import Any


def mean(people: Any) -> float:
    """The mean of a field between 0 and 100 that not every record has."""
    import threading

    import healthpipe.privacy.differential  # noqa: F401  # first: the modules import each other
    from healthpipe.deidentify.safe_harbor import DeidentifiedDataset
    from healthpipe.ingest.schema import ClinicalDataset, ClinicalRecord
    from healthpipe.privacy.budget import PrivacyBudget
    from healthpipe.privacy.differential import Mean, private_stats

    records = [ClinicalRecord(resource_type="Observation", data=person, checksum="0") for person in people]
    budget = PrivacyBudget(total_epsilon=1.0)
    budget._lock = threading.Lock()  # by default a field of pydantic 1, which pydantic 2 does not fill
    data = DeidentifiedDataset(dataset=ClinicalDataset(records=records))
    result = private_stats(data, epsilon=1.0, budget=budget, queries=[Mean(field="value", clamp_range=(0.0, 100.0))])
    return result.results["mean:value"]


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="healthpipe==0.1.0",
        function=mean,
        promised="Run differentially private aggregate queries over *data*.",
        source="docstring of private_stats",
        fault="The sensitivity is (high − low)/number of records; the mean is that of the records which have the field.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(
            {"value": dpw.numbers(0, 100, missing=True)}, adjacency="replace-one", size=(1, 20), form="list"
        ),
        kind="undisputed",
    )
