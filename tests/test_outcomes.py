"""Samples of outcomes: a table says what the rows say, and memory does not grow with the runs."""

import numpy as np
import pytest

from dpwitness.events import Box, Interval, OutcomeSet, ScoreThreshold
from dpwitness.learn import Learner, learn_events
from dpwitness.objectives import GrowthAt
from dpwitness.outcomes import Counter, RowSample, Table, counted, sample_of

EVENTS = [
    OutcomeSet([[0, 1], [2]]),
    Interval(coordinate=0, low=1.0),
    Interval(coordinate=2, low=-np.inf, high=1.0),
    Box((Interval(coordinate=0, low=0.0, high=2.0), Interval(coordinate=1, low=1.0))),
    ScoreThreshold([0, 1], [[1.0], [0.5]], [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]], 1.5),
]


def rows(seed, n=4000, shift=0.0):
    """Rows of up to three small whole numbers, NaN behind the end."""
    rng = np.random.default_rng(seed)
    out = rng.integers(0, 3, (n, 3)).astype(float)
    out[rng.random(n) < 0.3 + shift, 2] = np.nan
    out[rng.random(n) < 0.2, 1:] = np.nan
    return out


def test_a_table_says_what_the_rows_say():
    x, y = rows(1), rows(2, shift=0.2)
    table, plain = sample_of(x, y), RowSample(x, y)
    assert isinstance(table, Table)
    assert (table.runs, table.tested, table.width) == (plain.runs, plain.tested, plain.width)
    for event in EVENTS:
        assert table.learned(event) == pytest.approx(plain.learned(event))
        assert table.rates(event) == pytest.approx(plain.rates(event))
    for event in (None, EVENTS[1], EVENTS[3]):
        for columns, others in zip(table.sides(event), plain.sides(event), strict=True):
            for side, other in zip(columns, others, strict=True):
                for cut in (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0):
                    below = [s.upto[np.searchsorted(s.values, cut)] for s in (side, other)]
                    assert below[0] == below[1]
                assert side.upto[-1] == other.upto[-1] == len(other.values)


def test_rows_are_kept_where_outcomes_do_not_repeat():
    rng = np.random.default_rng(1)
    assert isinstance(sample_of(rng.normal(size=(4000, 1)), rng.normal(size=(4000, 1))), RowSample)


def test_sides_of_different_width_are_made_equal():
    sample = sample_of(rows(1)[:, :2], rows(2))
    assert sample.width == 3
    assert sample.rates(Interval(coordinate=2, low=0.0))[0] == 0.0


@pytest.mark.parametrize("parts", [2, 6])
def test_counting_in_parts_gives_the_same_table(parts):
    x, y = rows(3, 6000), rows(4, 6000)
    pieces = list(zip(np.split(x, parts), np.split(y, parts), strict=True))
    table = counted(iter(pieces), 3, 6000)
    turns = [[np.concatenate([piece[side] for piece in pieces[k::2]]) for side in range(2)] for k in range(2)]
    plain = RowSample(*(np.concatenate([turns[0][side], turns[1][side]]) for side in range(2)))
    assert (table.runs, table.tested) == (3000, 3000)
    for event in EVENTS:
        assert table.learned(event) == pytest.approx(plain.learned(event))
        assert table.rates(event) == pytest.approx(plain.rates(event))


def test_counting_gives_up_where_outcomes_do_not_repeat_or_grow_longer():
    rng = np.random.default_rng(1)
    parts = [(rng.normal(size=(2000, 1)), rng.normal(size=(2000, 1))) for _ in range(4)]
    assert counted(iter(parts), 1, 8000) is None
    assert counted(iter([(rows(1), rows(2))] * 2), 2, 8000) is None


def test_a_counter_numbers_by_first_appearance():
    counter = Counter(2, 100)
    first = counter.codes(np.array([[1.0, np.nan], [0.0, 2.0], [1.0, np.nan], [-0.0, 2.0]]))
    again = counter.codes(np.array([[0.0, 2.0], [5.0, 5.0]]))
    assert first.tolist() == [0, 1, 0, 1]
    assert again.tolist() == [1, 2]


def test_tables_and_rows_teach_the_same_event():
    """⊤ is three times as likely under D: whatever the sample is kept as, it must be found, with its rates."""
    rng = np.random.default_rng(5)
    x, y = ((rng.random((20_000, 1)) < share).astype(float) for share in (0.3, 0.1))
    objective = GrowthAt(epsilon=0.5)
    for found in (learn_events(x, y, objective), Learner(RowSample(x, y)).events(objective)):
        assert found[0].event.contains(np.array([[0.0], [1.0]])).tolist() == [False, True]
        assert found[0].estimate.p == pytest.approx(0.3, abs=0.02)
        assert found[0].estimate.q == pytest.approx(0.1, abs=0.02)
        assert not found[0].swapped
    turned = learn_events(y, x, objective)[0]
    assert turned.swapped
    assert turned.estimate.p == pytest.approx(0.3, abs=0.02)
