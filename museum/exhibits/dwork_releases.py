"""Exhibits of dwork."""

from functools import partial


def dwork_group_by(people):
    """The cities of the dataset that have enough people."""
    from dwork.dataschema import DataSchema
    from dwork.dataset.pandas import PandasDataset

    return sorted(PandasDataset(DataSchema, people).group_by(by="city").groups)


def dwork_product_of_columns(people):
    """The sum of the product of two columns."""
    from dwork.dataschema import DataSchema
    from dwork.dataset.pandas import PandasDataset
    from dwork.language.types import Float

    class People(DataSchema):
        hours = Float(min=10.0, max=11.0)
        wage = Float(min=10.0, max=11.0)

    data = PandasDataset(People, people)
    return float((data["hours"] * data["wage"]).sum().dp(1.0))


def dwork_sum_of_columns(people):
    """The sum of two columns."""
    from dwork.dataschema import DataSchema
    from dwork.dataset.pandas import PandasDataset
    from dwork.language.types import Float

    class People(DataSchema):
        rent = Float(min=0.0, max=1.0)
        food = Float(min=0.0, max=1.0)

    data = PandasDataset(People, people)
    return float((data["rent"] + data["food"]).sum().dp(1.0))


def exhibits(dpw, Exhibit):
    exhibit = partial(
        Exhibit,
        release="dwork==0.0.13",
        promised="A Python toolkit for differentially private data science & analytics.",
    )
    yield exhibit(
        function=dwork_group_by,
        promised="The treshold is evaluated against the differentially private row count of every group.",
        source="docstring of GroupedPandasDataset, whose defaults are a threshold of 10 and ε = 0.3",
        fault="Neither threshold nor ε is used: a group of one person always comes out.",
        claim=dpw.ApproxDP(0.3, 0.05),
        neighbours=dpw.records({"city": dpw.categories("Oslo", "Rome", "Lima")}, size=(1, 20), form="dataframe"),
    )
    yield exhibit(
        function=dwork_product_of_columns,
        source="summary of the package; the sensitivity is computed by Mul.sensitivity",
        fault="The sensitivity of a · b is the product of the widths of the two ranges, here 1, while a product goes from 100 to 121.",
        neighbours=dpw.records(
            {"hours": dpw.numbers(10, 11), "wage": dpw.numbers(10, 11)},
            adjacency="replace-one",
            size=(1, 20),
            form="dataframe",
        ),
    )
    yield exhibit(
        function=dwork_sum_of_columns,
        source="summary of the package; the sensitivity is computed by Add.sensitivity",
        fault="The sensitivity of a + b is max(Δa, Δb), and should be Δa + Δb.",
        neighbours=dpw.records({"rent": dpw.numbers(0, 1), "food": dpw.numbers(0, 1)}, size=(1, 20), form="dataframe"),
    )
