"""Samples of outcomes: a table says what the rows say, and memory does not grow with the runs."""

from collections import Counter

import numpy as np
import pytest

from dpwitness.claims import ApproxDP
from dpwitness.events import LARGEST, Box, Interval, OutcomeSet, ScoreThreshold, widen
from dpwitness.events.encoding import NONE, NOT_A_NUMBER, text_code
from dpwitness.search.learners import learn, learn_events
from dpwitness.search.learners.intervals import SINGLE_VALUES, _all_intervals, best_intervals
from dpwitness.search.objectives import BoundAt, GrowthAt
from dpwitness.search.samples import (
    OutcomeCounter,
    RowSample,
    SeenOutcomes,
    Table,
    counted,
    merged_at,
    sample_of,
)

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
    table, plain = sample_of(x, y), RowSample([(x, y)])
    assert isinstance(table, Table)
    assert (table.training_runs, table.test_runs, table.width) == (plain.training_runs, plain.test_runs, plain.width)
    for event in EVENTS:
        assert table.training_rates(event) == pytest.approx(plain.training_rates(event))
        assert table.test_rates(event) == pytest.approx(plain.test_rates(event))
    for event in (None, EVENTS[1], EVENTS[3]):
        for columns, others in zip(table.columns(event), plain.columns(event), strict=True):
            for side, other in zip(columns, others, strict=True):
                for cut in (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0):
                    below = [s.cumulative[np.searchsorted(s.values, cut)] for s in (side, other)]
                    assert below[0] == below[1]
                assert side.cumulative[-1] == other.cumulative[-1] == len(other.values)


def test_rows_are_kept_where_outcomes_do_not_repeat():
    rng = np.random.default_rng(1)
    assert isinstance(sample_of(rng.normal(size=(4000, 1)), rng.normal(size=(4000, 1))), RowSample)


def test_sides_of_different_width_are_made_equal():
    sample = sample_of(rows(1)[:, :2], rows(2))
    assert sample.width == 3
    assert sample.test_rates(Interval(coordinate=2, low=0.0))[0] == 0.0


@pytest.mark.parametrize("parts", [2, 6])
def test_counting_in_parts_gives_the_same_table(parts):
    x, y = rows(3, 6000), rows(4, 6000)
    pieces = list(zip(np.split(x, parts), np.split(y, parts), strict=True))
    table = counted(iter(pieces), 3, 6000)
    turns = [[np.concatenate([piece[side] for piece in pieces[k::2]]) for side in range(2)] for k in range(2)]
    plain = RowSample([turns[0], turns[1]])
    assert (table.training_runs, table.test_runs) == (3000, 3000)
    for event in EVENTS:
        assert table.training_rates(event) == pytest.approx(plain.training_rates(event))
        assert table.test_rates(event) == pytest.approx(plain.test_rates(event))


def test_counting_gives_up_where_outcomes_do_not_repeat_or_grow_longer():
    rng = np.random.default_rng(1)
    parts = [(rng.normal(size=(2000, 1)), rng.normal(size=(2000, 1))) for _ in range(4)]
    assert counted(iter(parts), 1, 8000) is None
    assert counted(iter([(rows(1), rows(2))] * 2), 2, 8000) is None


def test_a_counter_numbers_by_first_appearance():
    counter = OutcomeCounter(2, 100)
    first = counter.codes(np.array([[1.0, np.nan], [0.0, 2.0], [1.0, np.nan], [-0.0, 2.0]]))
    again = counter.codes(np.array([[0.0, 2.0], [5.0, 5.0]]))
    assert first.tolist() == [0, 1, 0, 1]
    assert again.tolist() == [1, 2]


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


def intervals(values, thorough):
    """The intervals that are tried in a column with these values on both sides."""
    rows = np.asarray(values, np.float64)[:, None]
    (column,) = _all_intervals(RowSample([(rows, rows)]), thorough)
    return column


@pytest.mark.parametrize("thorough", [False, True])
def test_a_continuous_column_has_no_single_values(thorough):
    """Few cuts are not few values: the intervals between them were tried as single values, and a lucky one won."""
    column = intervals(np.random.default_rng(1).normal(size=20_000), thorough)
    assert not np.any(np.isfinite(column.lows) & np.isfinite(column.highs))


@pytest.mark.parametrize("thorough", [False, True])
def test_few_values_are_taken_one_by_one_however_rare(thorough):
    values = np.append(np.repeat(np.arange(SINGLE_VALUES - 1.0), 500), [99.0, 99.0])
    column = intervals(np.random.default_rng(2).permutation(values), thorough)
    single = np.isfinite(column.lows) & np.isfinite(column.highs)
    assert column.lows[single].tolist() == list(range(SINGLE_VALUES - 1))  # 99 is what lies above 98
    assert column.highs[single].tolist() == [*range(1, SINGLE_VALUES - 1), 99.0]


@pytest.mark.parametrize("thorough", [False, True])
def test_a_value_that_a_continuous_column_repeats_is_an_event(thorough):
    """0 is three times as likely under D; of the numbers around it nothing is to be seen."""
    rng = np.random.default_rng(3)
    x, y = (np.where(rng.random(40_000) < share, 0.0, rng.normal(size=40_000))[:, None] for share in (0.3, 0.1))
    found = learn_events(x, y, GrowthAt(claim=ApproxDP(0.5)), thorough=thorough)[0]
    assert found.event.contains(np.array([[0.0], [-0.01], [0.01]])).tolist() == [True, False, False]
    assert found.estimate.p == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / 20_000))
    assert found.estimate.q == pytest.approx(0.1, abs=5 * np.sqrt(0.09 / 20_000))


@pytest.mark.parametrize("size", [2, 300])
@pytest.mark.parametrize("thorough", [False, True])
def test_infinite_entries_are_values_like_others(size, thorough):
    """No interval is empty, each share is that of its interval, and either infinity can be told from all numbers."""
    rng = np.random.default_rng(4)
    values = rng.choice([-np.inf, np.inf, LARGEST, *rng.normal(size=size)], 4000)
    values[rng.random(4000) < 0.3] = np.inf
    values[rng.random(4000) < 0.2] = -np.inf
    rows = values[:, None]
    (column,) = _all_intervals(RowSample([(rows, rows)]), thorough)
    assert np.all((column.lows < column.highs) | (column.lows == np.inf))
    for low, high, p, q in zip(column.lows, column.highs, column.p, column.q, strict=True):
        event = Interval(coordinate=0, low=low, high=high)
        assert p == q == event.contains(rows[:2000]).mean()
    ends = set(zip(column.lows.tolist(), column.highs.tolist(), strict=True))
    assert {(np.inf, np.inf), (-np.inf, -LARGEST), (-np.inf, LARGEST)} <= ends  # +∞, −∞, all but +∞


@pytest.mark.parametrize("thorough", [False, True])
def test_a_value_below_infinity_can_be_told_from_infinity(thorough):
    column = intervals(np.tile([-1.0, 0.0, np.inf], 2000), thorough)
    assert (0.0, LARGEST) in set(zip(column.lows.tolist(), column.highs.tolist(), strict=True))


@pytest.mark.parametrize("seed", [0, 1, 5, 16])
def test_the_second_event_is_the_best_three_standard_errors_lower(seed):
    """In some of these few runs it is not among the two best by one standard error."""
    rng = np.random.default_rng(seed)
    x, y = rng.laplace(0, 1, (600, 3)), rng.laplace([1, 0.9, 0.8], 1, (600, 3))
    found = learn_events(x, y, GrowthAt(claim=ApproxDP(1.0)), most=50)
    assert len(found) > 3
    assert max(f.lower_value for f in found) in [f.lower_value for f in found[:2]]
    assert [f.value for f in found[2:]] == sorted((f.value for f in found[2:]), reverse=True)


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


@pytest.mark.parametrize(
    "objective", [GrowthAt(claim=ApproxDP(1.0, 0.1)), BoundAt(planned=10_000, log_threshold=7, delta=0.1)]
)
def test_a_rare_column_with_delta_grows_no_box(objective):
    """Where the entries are there more rarely than δ nothing can be shown: the box of its best interval is none."""
    rng = np.random.default_rng(6)
    x, y = (np.where(rng.random((4000, 2)) < 0.001, rng.normal(size=(4000, 2)), np.nan) for _ in range(2))
    found = learn_events(x, y, objective)[0]
    assert found.estimate.p < 0.1 or found.estimate.q > 0.9


def test_codes_of_texts_have_no_order_and_numbers_are_told_from_what_is_no_number():
    """An interval between two texts would mean nothing to a reader; one text alone, or no number at all, does."""
    texts = [text_code(word) for word in ("yes", "no", "perhaps")]
    rng = np.random.default_rng(1)
    x = rng.choice(texts, (4_000, 1), p=[0.6, 0.3, 0.1])
    y = rng.choice(texts, (4_000, 1), p=[0.2, 0.3, 0.5])
    for found in best_intervals(RowSample([(x, y)]), GrowthAt(claim=ApproxDP(0.1)), thorough=True):
        assert found.interval.describe(label={texts[0]: "yes", texts[2]: "perhaps"}.get) in (
            "first value yes",
            "first value perhaps",
        )
    x, y = rng.normal(size=(4_000, 1)), rng.normal(size=(4_000, 1))
    x[:2_000] = NOT_A_NUMBER
    x[2_000:3_000] = NONE
    (found,) = best_intervals(RowSample([(rng.permutation(x), y)]), GrowthAt(claim=ApproxDP(0.1)), thorough=True)
    assert found.interval.describe() == "first value no number, or −∞"
    assert not found.swapped


def drawn(rng, kind, n, width):
    """Rows that repeat, that never do, that do among many runs alone, and that are of several lengths."""
    if kind == "continuous":
        return rng.normal(size=(n, width))
    rows = rng.integers(0, {"few": 3, "many": 40, "longer": 2}[kind], (n, width)).astype(float)
    if kind == "longer":
        rows[rng.random(n) < 0.3, 1:] = np.nan
    return rows


def sample_at_once(x, y):
    """The sample of all rows: a dict numbers the outcomes as they come, those of the runs to learn from first."""
    half, numbers = len(x) // 2, {}
    sides = (x[:half], y[:half], x[half:], y[half:])
    a, b, c, d = ([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows] for rows in sides)
    known = len(numbers)
    if known > OutcomeCounter(1, len(x)).most:
        return RowSample([(x, y)])
    outcomes = np.array([np.frombuffer(row) for row in numbers])
    times = np.array([np.bincount(codes, minlength=known) for codes in (a, b)])
    together = Counter(zip(c, d, strict=True))
    pairs = np.array([(*both, together[both]) for both in sorted(together)]).reshape(-1, 3).T
    return Table(outcomes, times, pairs)


@pytest.mark.parametrize("kind", ["few", "many", "continuous", "longer"])
def test_outcomes_that_come_in_parts_make_the_sample_of_all_of_them(kind):
    rng, seen, parts = np.random.default_rng(1), SeenOutcomes(), []
    for turn, n in enumerate((50, 8, 700, 3000, 3001)):
        earlier, before = seen, [rows.copy() for rows in seen.rows]
        parts.append([drawn(rng, kind, n, 2 + (turn > 1)) for _ in range(2)])
        seen = seen.plus(*parts[-1])
        for rows, as_it_was in zip(earlier.rows, before, strict=True):
            np.testing.assert_array_equal(rows, as_it_was)
        width = max(x.shape[1] for x, _ in parts)
        x, y = (np.concatenate([widen(part[side], width) for part in parts]) for side in range(2))
        sample, plain = seen.sample, sample_at_once(x, y)
        np.testing.assert_array_equal(seen.rows[0], x)
        np.testing.assert_array_equal(seen.rows[1], y)
        np.testing.assert_array_equal(sample.outcomes, plain.outcomes)
        np.testing.assert_array_equal(sample.times, plain.times)
        assert sample.repeats == plain.repeats
        assert sample.repeats or kind in ("many", "continuous")
        assert sample.test_rates(EVENTS[3]) == plain.test_rates(EVENTS[3])
        if sample.repeats:
            np.testing.assert_array_equal(sample.pairs, plain.pairs)


def test_once_there_were_too_many_outcomes_nothing_more_is_counted():
    """The second part filled the table of hashes before; what was looked up in it was looked for without end."""
    counter = OutcomeCounter(1, 512)
    assert counter.codes(np.arange(65.0)[:, None]) is None  # 64 are worth counting, of 128 places
    assert counter.codes(np.arange(100.0, 300.0)[:, None]) is None
    assert counter.codes(np.arange(3.0)[:, None]) is None


@pytest.mark.parametrize("sizes", [(40, 25), (0, 9), (9, 0), (1, 1)])
@pytest.mark.parametrize("ties", [False, True])
def test_two_sorted_columns_are_looked_up_as_if_they_were_merged(sizes, ties):
    rng = np.random.default_rng(3)
    sides = [np.sort(rng.integers(0, 6, n).astype(float) if ties else rng.normal(size=n)) for n in sizes]
    merged = np.sort(np.concatenate(sides))
    np.testing.assert_array_equal(merged_at(sides, np.arange(len(merged))), merged)
