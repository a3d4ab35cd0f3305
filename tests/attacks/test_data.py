"""The histograms of `data/` are those that its page describes."""

import numpy as np
import pytest

from dpwitness.files import read_column
from dpwitness.reconstruction.table_builder.tables import read_table


@pytest.mark.parametrize(
    ("name", "total", "occurring", "small"),
    [("adult_capital_loss", 17_665, 15, 4062), ("medical_cost", 9_415, 26, 3878),
     ("income", 20_787_122, 98, 2369), ("hepth", 347_414, 274, 1153)],
)  # fmt: skip
def test_histograms_of_chen_and_machanavajjhala(data_folder, name, total, occurring, small):
    counts = read_column(data_folder / f"{name}.csv")
    assert counts.shape == (4096,)
    assert counts.sum() == total
    assert np.sum(counts <= 5) == small
    values = np.unique(counts)
    assert values[: occurring + 1].tolist() == list(range(occurring + 1))
    assert occurring + 1 not in values


@pytest.mark.parametrize(
    ("name", "attribute", "people", "sizes"),
    [("adult_age", "age", 32_561, [38, 4, 16, 53]), ("table_builder_synthetic", "value", 600_000, [56, 6, 8, 37])],
)
def test_columns_of_asghar_and_kaafar(data_folder, name, attribute, people, sizes):
    table = read_table(data_folder / f"{name}.csv")
    counts = table.histogram(attribute)
    assert table.people == people
    assert [
        np.sum((counts >= low) & (counts <= high)) for low, high in ((0, 0), (1, 4), (5, 100), (101, people))
    ] == sizes
