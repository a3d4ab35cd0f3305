"""Damaged tables and bad parameters of bundled targets are refused by line and by name."""

import math

import numpy as np
import pytest

from dpwitness.algorithms import table_builder
from dpwitness.algorithms.subset_sum import bounded_subset_sums
from dpwitness.errors import InvalidData
from dpwitness.reconstruction.table_builder.tables import read_table


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "holds no people"),
        ("age,sex\n17,F\nNaN,M\n", "line 3: the value of 'age' is missing"),
        ("age,sex\n17\n", "line 2: 1 values for 2 columns"),
        ("age,age\n17,18\n", "name of its own"),
        ("age,count\n17,-1\n", "count -1 must be"),
        ("age,count\n17,100000000000000000000000\n", "count 100000000000000000000000 must be"),
        ("age,count\n17,many\n", "count many must be"),
        ("age,count\n17,0\n", "no people"),
    ],
)
def test_bad_tables_are_refused_with_their_line(tmp_path, text, named):
    (tmp_path / "people.csv").write_text(text)
    with pytest.raises(InvalidData, match=named):
        read_table(tmp_path / "people.csv")


def noisy(**parameters):
    return table_builder.bounded_noisy_counts(rng(), np.full(7, 40), **parameters)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        *((lambda values=values: bounded_subset_sums(rng(), np.zeros(3, np.int64), **values), "must be")
          for values in ({"error": -1.0}, {"error": math.inf}, {"queries": 0}, {"law": "gauss"})),
        (lambda: noisy(perturbation=0), "perturbation"),
        (lambda: noisy(perturbation=5), "suppression"),
        (lambda: noisy(base=1), "base"),
        (lambda: noisy(partitions=0), "partitions"),
    ],
)  # fmt: skip
def test_a_bundled_target_names_a_bad_parameter(call, named):
    with pytest.raises(ValueError, match=named):
        call()
