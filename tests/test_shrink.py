"""Witnesses get smaller and still refute, on runs of their own."""

import math

import numpy as np
import pytest

from dpwitness import Violation, bits, check, histogram, pairs, queries
from dpwitness.algorithms.noise_addition import histogram_wrong_scale
from dpwitness.algorithms.sparse_vector import isvt1, isvt2, isvt4
from dpwitness.evidence import log_e_value
from dpwitness.rerun import replay, shrink

ALPHA = 1e-6


def violation(mechanism, **settings):
    found = check(mechanism, alpha=ALPHA, seed=5, **settings)
    assert isinstance(found, Violation)
    return found


def refutes(found):
    witness = found.witness
    assert log_e_value(witness.counts, witness.claim, witness.estimate) >= math.log(1 / ALPHA)
    assert found.log_e_value == log_e_value(witness.counts, witness.claim, witness.estimate)
    return True


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0])
def test_ten_queries_become_four_at_most(epsilon):
    """One query of isvt2 is ε₀/2-DP and no better (its two noises have scale 2/ε₀ each), so one is enough at 0.2·ε₀."""
    first = violation(isvt2, epsilon=epsilon, claim=0.2 * epsilon)
    small = shrink(first, isvt2)
    assert refutes(small)
    assert small.claim == first.claim
    assert first.witness.pair.data.size == 10
    assert small.witness.pair.data.size <= 4
    assert small.epsilon_lower_bound <= epsilon / 2 * small.witness.pair.data.size
    again = replay(small.witness, isvt2, seed=99)
    assert isinstance(again, Violation)


@pytest.mark.parametrize("mechanism", [isvt1, isvt4])
def test_small_witnesses_are_neighbours_of_the_relation(mechanism):
    small = shrink(violation(mechanism, epsilon=1.0, claim=0.2), mechanism).witness
    assert small.pair.data.size <= 2
    assert np.all(np.abs(small.pair.data - small.pair.neighbour) <= 1)
    assert np.all(np.abs(small.pair.data) <= 1)


def test_histograms_stay_histograms():
    first = violation(histogram_wrong_scale, epsilon=0.1, neighbours=histogram(5, any_length=True))
    small = shrink(first, histogram_wrong_scale).witness
    assert sorted((small.pair.data.tolist(), small.pair.neighbour.tolist())) == [[0], [1]]
    assert len(f"{small.event.low if math.isfinite(small.event.low) else small.event.high:g}") <= 4


def first_bit_leaks(rng, data, size):
    return data[0] * 1.0 + rng.normal(0, 0.2, size=size)


def test_bits():
    relation = bits(6, any_length=True)
    small = shrink(violation(first_bit_leaks, epsilon=1.0, neighbours=relation), first_bit_leaks, neighbours=relation)
    assert sorted((small.witness.pair.data.tolist(), small.witness.pair.neighbour.tolist())) == [[0], [1]]
    assert refutes(small)


def test_given_pairs_are_all_that_is_known_to_be_neighbouring():
    given = pairs(([3.0, 7.0, 5.0], [4.0, 7.0, 5.0]))
    first = violation(first_bit_leaks, epsilon=1.0, neighbours=given)
    small = shrink(first, first_bit_leaks, neighbours=given)
    assert sorted((small.witness.pair.data.tolist(), small.witness.pair.neighbour.tolist())) == [
        [3.0, 7.0, 5.0],
        [4.0, 7.0, 5.0],
    ]


def needs_ten(rng, data, size):
    if len(data) != 10:
        raise ValueError("ten answers are needed")
    return data[0] + rng.normal(0, 0.2, size=size)


def test_a_mechanism_that_takes_ten_answers_only_keeps_ten():
    relation = queries(10)
    small = shrink(violation(needs_ten, epsilon=1.0, neighbours=relation), needs_ten, neighbours=relation).witness
    assert small.pair.data.size == 10
    assert np.count_nonzero(small.pair.data != small.pair.neighbour) == 1


def test_the_same_seed_gives_the_same_small_witness_and_no_run_twice():
    first = violation(isvt2, epsilon=1.0, claim=0.2)
    one, two = (shrink(first, isvt2).witness.to_json() for _ in range(2))
    assert one == two
    assert one["seed"] != first.seed


def test_without_time_the_witness_stays():
    first = violation(isvt2, epsilon=1.0, claim=0.2)
    assert shrink(first, isvt2, max_time=1e-9) is first
