"""dwork 0.0.13, a sum of two columns: the sensitivity is the larger one of the two."""

from typing import Any


def total(people: Any) -> float:
    """The sum of two columns."""
    from dwork.dataschema import DataSchema
    from dwork.dataset.pandas import PandasDataset
    from dwork.language.types import Float

    class People(DataSchema):  # type: ignore[misc]
        rent = Float(min=0.0, max=1.0)
        food = Float(min=0.0, max=1.0)

    data = PandasDataset(People, people)
    return float((data["rent"] + data["food"]).sum().dp(1.0))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="dwork==0.0.13",
        function=total,
        promised="A Python toolkit for differentially private data science & analytics.",
        source="summary of the package; the sensitivity is computed by Add.sensitivity",
        fault="The sensitivity of a + b is max(Δa, Δb), and should be Δa + Δb.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records({"rent": dpw.numbers(0, 1), "food": dpw.numbers(0, 1)}, size=(1, 20), form="dataframe"),
        kind="undisputed",
    )
