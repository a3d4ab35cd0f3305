"""dwork 0.0.13, a product of two columns: the sensitivity is the product of the widths of their ranges."""

from typing import Any


def total(people: Any) -> float:
    """The sum of the product of two columns."""
    from dwork.dataschema import DataSchema
    from dwork.dataset.pandas import PandasDataset
    from dwork.language.types import Float

    class People(DataSchema):  # type: ignore[misc]
        hours = Float(min=10.0, max=11.0)
        wage = Float(min=10.0, max=11.0)

    data = PandasDataset(People, people)
    return float((data["hours"] * data["wage"]).sum().dp(1.0))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="dwork==0.0.13",
        function=total,
        promised="A Python toolkit for differentially private data science & analytics.",
        source="summary of the package; the sensitivity is computed by Mul.sensitivity",
        fault="The sensitivity of a · b is the product of the widths of the two ranges, here 1, while a product goes from 100 to 121.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(
            {"hours": dpw.numbers(10, 11), "wage": dpw.numbers(10, 11)},
            adjacency="replace-one",
            size=(1, 20),
            form="dataframe",
        ),
        kind="undisputed",
    )
