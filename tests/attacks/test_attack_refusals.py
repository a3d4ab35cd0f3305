"""What no attack can do is refused by name, also where it is called from Python."""

import math

import numpy as np
import pytest

from dpwitness.algorithms import table_builder
from dpwitness.algorithms.subset_sum import bounded_subset_sums
from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.reconstruction.subset_sum.theory import allowed_queries, threshold
from dpwitness.reconstruction.table_builder.averaging import two_partitions, value_positions
from dpwitness.reconstruction.table_builder.histogram import recover_histogram
from dpwitness.reconstruction.table_builder.noise_laws import (
    maximum_entropy,
    truncated_laplace,
    truncated_normal,
    uniform,
)
from dpwitness.reconstruction.table_builder.perturbation import in_sub_populations, largest_sum, pairs_within
from dpwitness.reconstruction.table_builder.supply import Plan
from dpwitness.reconstruction.table_builder.systems import BoundedNoisyCounts
from dpwitness.reconstruction.table_builder.tables import Table, read_table
from dpwitness.reconstruction.threshold_testing.attack import adaptive_attack, reconstruct_supported
from dpwitness.reconstruction.threshold_testing.oracle import Noise, Queries, ThresholdOracle, check_histogram


def rng():
    return np.random.default_rng(0)


def counts():
    return BoundedNoisyCounts(Table.from_counts([40, 50, 60, 2, 0]), noise=2, suppression=4, rng=rng())


def people():
    return Table.from_columns({"age": [20, 20, 30, 40], "sex": ["M", "F", "F", "M"]})


def recovered(**plan):
    return recover_histogram(counts(), rng(), "value", Plan(**plan))


def thresholds(counts=(1, 2), **noise):
    return ThresholdOracle(np.array(counts), rng(), **{"epsilon1": 1.0, **noise})


def no_sub_population():
    return largest_sum(in_sub_populations(counts(), "value", (0, 1), [], 0)[1])


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: threshold(0.5), "delta=0.5"),
        (lambda: allowed_queries("gaussian", 0.1, 0.1, 0.05), "error=0.1"),
        (lambda: allowed_queries("gaussian", 4, 0.1, 1.0), "failure=1.0"),
        (lambda: two_partitions(rng(), 5, 0), "partitions=0"),
        (lambda: two_partitions(rng(), 40), "at most 1048576 of them, not all"),
        (lambda: value_positions(counts(), "value", [0, 7]), "below 5"),
        (lambda: recovered(base=()), "0 of the 0 base values"),
        (lambda: recovered(base=(0, 1, 4)), "above 0; all of them"),
        (no_sub_population, "no sub-population"),
        (lambda: pairs_within(counts(), rng(), "value", [0], 3), "at least 2"),
        (lambda: people().column("height"), "'height'"),
        (lambda: people().profiles({"age": ["90"]}), "'90'"),
        (lambda: counts().values("height"), "'height'"),
        (lambda: uniform(0), None),
        (lambda: uniform(10**9), None),
        (lambda: maximum_entropy(2, 0.0), None),
        (lambda: maximum_entropy([-2, -1, 1, 4], 0.5), None),
        (lambda: truncated_normal(2, 0.0), None),
        (lambda: truncated_laplace(2, math.inf), None),
        (lambda: Noise(epsilon2=0.0), "epsilon2=0"),
        (lambda: Queries(lambda questions: np.zeros(0), 1), "cells=1"),
        (lambda: adaptive_attack(thresholds(), rng(), copies=0), "copies=0"),
        (lambda: reconstruct_supported(thresholds(range(9), threshold=3), 6), "must exceed 2α = 6"),
        (lambda: reconstruct_supported(thresholds(range(9), threshold=2), 10), "threshold=2"),
    ],
)
def test_what_no_attack_can_do_is_refused(call, named):
    with pytest.raises(InvalidParameter, match=named):
        call()


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: check_histogram(np.array([])), "at least 2 cells"),
        (lambda: check_histogram(np.array([1, 1 << 41])), "cell 2 holds 2.19902e.12"),
        (lambda: Table.from_counts([0, 0]), None),
    ],
)
def test_what_are_no_counts_is_refused(call, named):
    with pytest.raises(InvalidData, match=named):
        call()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "holds no table"),
        ("age,sex\n17,F\nNaN,M\n", "line 3: the value of 'age' is missing"),
        ("age,sex\n17\n", "line 2: 1 values for 2 columns"),
        ("age,age\n17,18\n", "name of its own"),
        ("age,count\n17,-1\n", "line 2: count '-1'"),
        ("age,count\n17,100000000000000000000000\n", "line 2: count '100000000000000000000000'"),
        ("age,count\n17,many\n", "line 2: count 'many'"),
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
