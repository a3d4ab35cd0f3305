"""Rows ranked by how often restarts make them: more of them are right than of the likeliest independent rows."""

import itertools
import time

import numpy as np
import pytest
from scipy.stats import binom, t

from dpwitness.machine import Deadline
from dpwitness.reconstruction.published_tables.attack import precision
from dpwitness.reconstruction.published_tables.ranking import (
    Pairs,
    independent_probability,
    independent_rows,
    ranked,
    relaxed_table,
    restarts,
)
from dpwitness.reconstruction.published_tables.statements import published_marginals
from dpwitness.reconstruction.table_builder.tables import Table
from running import with_all_seeds

SIZES = (3, 4, 5, 4, 3)


def chain(seed, people=200, sizes=SIZES):
    """A made-up table, each attribute drawn given the one before it."""
    rng = np.random.default_rng(seed)
    columns = [rng.choice(sizes[0], people, p=rng.dirichlet(np.ones(sizes[0])))]
    for before, size in itertools.pairwise(sizes):
        chances = rng.dirichlet(np.full(size, 0.4), before)
        columns.append(np.array([rng.choice(size, p=chances[value]) for value in columns[-1]]))
    return np.stack(columns, axis=1)


def table(rows, sizes=SIZES):
    values = {f"a{k}": range(size) for k, size in enumerate(sizes)}
    return Table(values, np.asarray(rows), np.ones(len(rows), np.int64))


def later(seconds=600.0):
    return Deadline(time.monotonic() + seconds)


def frequencies(pairs, people, number, seed):
    """In what share of restarts each row came back."""
    found = {}
    for rows in restarts(pairs, people, number, np.random.default_rng(seed), later()):
        for row in rows:
            found[row] = found.get(row, 0) + 1
    return {row: count / number for row, count in found.items()}


def test_counts_by_two_attributes_are_read_from_counts_by_more():
    rows = chain(3, people=40)
    two, three = (Pairs.of(published_marginals(table(rows), ways)).counts for ways in (2, 3))
    bounds = np.concatenate([[0], np.cumsum(SIZES)])
    inner = np.zeros(two.shape, bool)
    for low, high in itertools.pairwise(bounds):
        inner[low:high, low:high] = ~np.eye(high - low, dtype=bool)
    assert np.isnan(two[inner]).all()
    hot = np.concatenate([rows[:, [k]] == np.arange(size) for k, size in enumerate(SIZES)], axis=1).astype(int)
    assert np.array_equal(two[~inner], (hot.T @ hot)[~inner])
    assert np.array_equal(two, three, equal_nan=True)
    one = Pairs.of(published_marginals(table(rows), 1))
    assert not one.any_two
    assert [share.sum() for share in one.shares] == pytest.approx([1] * 5)


def test_a_relaxed_table_about_agrees_with_the_counts():
    rows = chain(1)
    pairs = Pairs.of(published_marginals(table(rows), 2))
    made = relaxed_table(pairs, 200, np.random.default_rng(1), later())
    assert made.shape == rows.shape
    again = relaxed_table(pairs, 200, np.random.default_rng(1), later())
    assert np.array_equal(made, again)
    missed = np.nansum(np.abs(Pairs.of(published_marginals(table(made), 2)).counts - pairs.counts))
    shuffled = np.random.default_rng(2).permuted(rows, axis=0)
    other = np.nansum(np.abs(Pairs.of(published_marginals(table(shuffled), 2)).counts - pairs.counts))
    assert missed < other / 4
    assert relaxed_table(pairs, 200, np.random.default_rng(1), later(0.0)) is None


def test_the_likeliest_independent_rows_are_those_of_all():
    shares = [np.array([0.5, 0.3, 0.2]), np.array([0.9, 0.1]), np.array([0.25, 0.45, 0.3])]
    every = sorted(
        itertools.product(range(3), range(2), range(3)), key=lambda row: -independent_probability(shares, row)
    )
    assert [row for row, _ in independent_rows(shares, 7)] == every[:7]
    assert [row for row, _ in independent_rows(shares, 100)] == every
    assert sum(chance for _, chance in independent_rows(shares, 100)) == pytest.approx(1)


def test_more_ranked_rows_are_right_than_independent_ones():
    """By chance, were each ranked row right as often as an independent one, so many would be once in 10^9 times."""
    rows = chain(1)
    published = published_marginals(table(rows), 2)
    pairs = Pairs.of(published)
    order = ranked(frequencies(pairs, 200, 8, seed=2), pairs.shares)
    (_, of_fifty, *_) = precision(order[:50], pairs.shares, set(map(tuple, rows.tolist())))[1:]
    assert of_fifty.rows == 50
    assert 50 * of_fifty.ranked > binom.isf(1e-9, 50, of_fifty.independent)


@pytest.mark.campaign
@with_all_seeds
def test_rows_come_back_about_as_often_as_they_are_right():
    """The mean over 20 made-up tables of frequency less share of right rows: at most 0.02 beside its standard error.

    The limit is Student's, passed once in 10^4 times. Frequencies are no probabilities, but here they are about that.
    """
    differences = []
    for seed in range(20):
        rows = chain(100 + seed, people=150)
        pairs = Pairs.of(published_marginals(table(rows), 2))
        right = set(map(tuple, rows.tolist()))
        found = frequencies(pairs, 150, 50, seed)
        differences.append(
            [np.mean([f - (row in right) for row, f in found.items() if f >= least]) for least in (0, 0.5, 0.9)]
        )
    mean, error = np.mean(differences, axis=0), np.std(differences, axis=0, ddof=1) / 20**0.5
    assert np.all(mean <= 0.02 + t.isf(1e-4, 19) * error), (mean, error)


def test_what_goes_together_by_threes_comes_back_and_is_wrong():
    """The third bit is whether the others differ: counts by two say nothing of it, and all eight rows come back."""
    rows = np.array([(a, b, a ^ b) for a in (0, 1) for b in (0, 1)] * 25)
    pairs = Pairs.of(published_marginals(table(rows, (2, 2, 2)), 2))
    found = frequencies(pairs, 100, 5, seed=1)
    assert len(found) == 8
    assert min(found.values()) == 1.0
