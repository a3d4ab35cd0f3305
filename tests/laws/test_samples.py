"""Events that are learned from samples: ranges, and values, infinities and the largest number that leak."""

import warnings

import numpy as np
import pytest

from dpwitness.claims import ApproxDP
from dpwitness.events import LARGEST_FLOAT, Box, Interval, OutcomeSet, ScoreThreshold
from dpwitness.events.encoding import LEAST_NUMBER, NONE, NOT_A_NUMBER
from dpwitness.search.learners import learn, learn_events
from dpwitness.search.objectives import GrowthAt
from dpwitness.search.ranges import FINE_SHARES, SINGLE_VALUES, scan_of
from dpwitness.search.samples import OutcomeCounter, RowSample, SeenOutcomes, counted, sample_of


def test_tables_and_rows_teach_the_same_event():
    """⊤ is three times as likely under D: whatever the sample is kept as, it must be found, with its rates."""
    rng = np.random.default_rng(5)
    x, y = ((rng.random((20_000, 1)) < share).astype(float) for share in (0.3, 0.1))
    objective = GrowthAt(claim=ApproxDP(0.5))
    for found in (learn_events(x, y, objective), learn(RowSample([(x, y)]), objective)):
        assert found[0].event.contains(np.array([[0.0], [1.0]])).tolist() == [False, True]
        assert found[0].estimate.p == pytest.approx(0.3, abs=0.02)
        assert found[0].estimate.q == pytest.approx(0.1, abs=0.02)
        assert not found[0].swapped
    turned = learn_events(y, x, objective)[0]
    assert turned.swapped
    assert turned.estimate.p == pytest.approx(0.3, abs=0.02)


def ranges_of(x, y, shares, paired=True):
    """The scan of one column, from its values under D and under D′ in the same runs."""
    return scan_of(np.append(x, y), np.repeat([[1, 0], [0, 1]], len(x), axis=1), shares, paired=paired)


POOLS = {
    "continuous": np.random.default_rng(0).normal(size=600),
    "few": np.arange(5.0),
    "rounded": np.round(np.random.default_rng(0).normal(size=600), 1),
    "not numbers": np.array([-np.inf, np.inf, np.nan, LARGEST_FLOAT, -LARGEST_FLOAT, 0.0, NOT_A_NUMBER, NONE, 1.0]),
}


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("runs", [1, 2, 40, 300])
def test_a_scan_counts_what_its_ranges_hold_and_its_best_is_that_of_all_ranges(pool, runs):
    x, y = np.random.default_rng(runs).choice(POOLS[pool], (2, runs))
    found = ranges_of(x, y, FINE_SHARES)
    events = [Interval(coordinate=0, low=low, high=high) for low, high in zip(found.lows, found.highs, strict=True)]
    a, b = (np.array([event.contains(side[:, None]) for event in events]).reshape(-1, runs) for side in (x, y))
    assert np.allclose([found.p, found.q, found.both], [a.mean(1), b.mean(1), (a & b).mean(1)], rtol=0, atol=1e-12)
    alone = ranges_of(x, y, FINE_SHARES, paired=False)
    assert alone.both is None
    assert [alone.p.tolist(), alone.q.tolist()] == [found.p.tolist(), found.q.tolist()]
    objective = GrowthAt(claim=ApproxDP(0.5))
    numbers = np.unique([*x, *y])
    numbers = numbers[(numbers >= LEAST_NUMBER) & (numbers < LARGEST_FLOAT)].tolist()
    every = [Interval(coordinate=0, low=low) for low in numbers] + [Interval(coordinate=0, high=low) for low in numbers]
    if pool == "few":
        every += [Interval(coordinate=0, low=low, high=low + 1e-9) for low in numbers]
    for event in every if len(numbers) <= SINGLE_VALUES else ():
        p, q = event.contains(x[:, None]), event.contains(y[:, None])
        both = np.array([(p & q).mean()])
        for first, second in ((p, q), (q, p)):
            value = objective(np.array([first.mean()]), np.array([second.mean()]), runs, 1.0, both)
            assert found.best(objective, 1.0).value >= value - 1e-12


@pytest.mark.parametrize("thorough", [False, True])
def test_a_value_that_a_continuous_column_repeats_is_an_event(thorough):
    """0 is three times as likely under D; of the numbers around it nothing is to be seen."""
    rng = np.random.default_rng(3)
    x, y = (np.where(rng.random(40_000) < share, 0.0, rng.normal(size=40_000))[:, None] for share in (0.3, 0.1))
    found = learn_events(x, y, GrowthAt(claim=ApproxDP(0.5)), thorough=thorough)[0]
    assert found.event.contains(np.array([[0.0], [-0.01], [0.01]])).tolist() == [True, False, False]
    assert found.estimate.p == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / 20_000))
    assert found.estimate.q == pytest.approx(0.1, abs=5 * np.sqrt(0.09 / 20_000))


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
@pytest.mark.parametrize("numbers", ["atom", "continuous"])
def test_an_infinite_entry_that_gives_the_input_away_is_learned(infinity, numbers):
    rng = np.random.default_rng(5)
    other = np.zeros(20_000) if numbers == "atom" else rng.normal(size=20_000)
    x, y = (np.where(rng.random(20_000) < share, infinity, other)[:, None] for share in (0.3, 0.1))
    second = np.full((20_000, 1), infinity)  # and a column that is nothing else
    found = learn_events(np.hstack([x, second]), np.hstack([y, second]), GrowthAt(claim=ApproxDP(0.5)))[0]
    probe = np.array([[-np.inf, infinity], [-3.0, infinity], [0.0, infinity], [3.0, infinity], [np.inf, infinity]])
    assert found.event.contains(probe).tolist() == (probe[:, 0] == infinity).tolist()


def test_the_largest_number_gives_the_input_away_without_a_warning():
    """`numpy.nan_to_num` returns it for infinity."""
    rng = np.random.default_rng(5)
    x, y = (np.where(rng.random(4_000) < share, LARGEST_FLOAT, rng.normal(size=4_000))[:, None] for share in (0.3, 0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = learn_events(np.hstack([x, x]), np.hstack([y, y]), GrowthAt(claim=ApproxDP(0.5)))[0]
    assert found.event.contains(np.array([[LARGEST_FLOAT, LARGEST_FLOAT], [3.0, 3.0]])).tolist() == [True, False]


def test_outcomes_are_numbered_by_first_appearance_until_there_are_too_many():
    """A part filled the table of hashes once; what was looked up in it was looked for without end."""
    counter = OutcomeCounter(2, 100)
    assert counter.codes(np.array([[1.0, np.nan], [0.0, 2.0], [1.0, np.nan], [-0.0, 2.0]])).tolist() == [0, 1, 0, 1]
    assert counter.codes(np.array([[0.0, 2.0], [5.0, 5.0]])).tolist() == [1, 2]
    counter = OutcomeCounter(1, 512)
    for values in (np.arange(65.0), np.arange(100.0, 300.0), np.arange(3.0)):  # 64 are worth counting, of 128 places
        assert counter.codes(values[:, None]) is None


def drawn(rng, kind, n, width=3):
    """Rows that repeat, that never do, that do among many runs alone, and that are of several lengths."""
    if kind == "continuous":
        return rng.normal(size=(n, width))
    rows = rng.integers(0, {"few": 3, "many": 7, "longer": 3}[kind], (n, width)).astype(float)
    if kind == "longer":
        rows[rng.random(n) < 0.3, 1:] = np.nan
    return rows


def in_parts(parts, runs):
    """The sample that counts outcomes as they come; None where they do not repeat."""
    return counted(iter(parts), parts[0][0].shape[1], runs)


def growing(parts, runs):
    """The sample of outcomes of which more and more are seen; what was seen stays what it was."""
    seen = SeenOutcomes()
    for x, y in parts:
        before, held = seen.rows, [rows.copy() for rows in seen.rows]
        seen = seen.plus(x, y)
        for rows, as_it_was in zip(before, held, strict=True):
            np.testing.assert_array_equal(rows, as_it_was)
    return seen.sample


EVENTS = [
    OutcomeSet([[0, 1], [2]]),
    Interval(coordinate=0, low=1.0),
    Interval(coordinate=2, low=-np.inf, high=1.0),
    Box((Interval(coordinate=0, low=0.0, high=2.0), Interval(coordinate=1, low=1.0))),
    ScoreThreshold([0, 1], [[1.0], [0.5]], [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]], 1.5),
]


def at_once(parts, runs):
    return sample_of(*(np.concatenate([part[side] for part in parts]) for side in range(2)))


@pytest.mark.parametrize("kind", ["few", "many", "continuous", "longer"])
@pytest.mark.parametrize("make", [at_once, in_parts, growing])
def test_a_sample_says_what_its_rows_say_however_it_was_made(make, kind):
    rng = np.random.default_rng(1)
    sizes = (1_000,) * 6 if make is in_parts else (50, 8, 700, 3000, 3002)
    parts = [[drawn(rng, kind, n), drawn(rng, kind, n)] for n in sizes]
    sample = make(parts, sum(sizes))
    x, y = (np.concatenate([part[side] for part in parts]) for side in range(2))
    if make is in_parts:  # each second part is one to learn from
        turns = [[np.concatenate([part[side] for part in parts[k::2]]) for side in range(2)] for k in range(2)]
        plain = RowSample([turns[0], turns[1]])
    else:
        plain = RowSample([(x, y)])
    if kind == "continuous":
        assert sample is None or not sample.repeats
    if sample is None:
        assert (kind, make) == ("continuous", in_parts)
        return
    assert (sample.training_runs, sample.test_runs, sample.width) == (plain.training_runs, plain.test_runs, plain.width)
    for event in EVENTS:
        assert sample.training_rates(event) == pytest.approx(plain.training_rates(event))
        assert sample.test_rates(event) == pytest.approx(plain.test_rates(event))
    for event in (None, EVENTS[1], EVENTS[3]):
        for columns, others in zip(sample.columns(event), plain.columns(event), strict=True):
            for side, other in zip(columns, others, strict=True):
                for cut in (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0):
                    below = [s.cumulative[np.searchsorted(s.values, cut)] for s in (side, other)]
                    assert below[0] == below[1]
