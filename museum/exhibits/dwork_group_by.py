"""dwork 0.0.13, group_by: the threshold for the size of a group is not applied."""

from typing import Any


def groups(people: Any) -> list[str]:
    """The cities of the dataset that have enough people."""
    from dwork.dataschema import DataSchema
    from dwork.dataset.pandas import PandasDataset

    return sorted(PandasDataset(DataSchema, people).group_by(by="city").groups)


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="dwork==0.0.13",
        function=groups,
        promised="The treshold is evaluated against the differentially private row count of every group.",
        source="docstring of GroupedPandasDataset, whose defaults are a threshold of 10 and ε = 0.3",
        fault="Neither threshold nor ε is used: a group of one person always comes out.",
        claim=dpw.ApproxDP(0.3, 0.05),
        neighbours=dpw.records({"city": dpw.categories("Oslo", "Rome", "Lima")}, size=(1, 20), form="dataframe"),
        kind="undisputed",
    )
