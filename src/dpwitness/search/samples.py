"""Samples of search runs: events are learned from one half of the runs and compared on the other half.

Repeating outcomes are kept as a table of different outcomes with counts, so that memory does not grow with the runs;
other outcomes are kept as rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.arrays import Floats, Integers, Rows
from dpwitness.events import Event, ScoreThreshold, of_one_width, widen
from dpwitness.events.counting import row_hashes

T = TypeVar("T")

#: The largest number of different outcomes of a table.
MOST_OUTCOMES = 1 << 16
#: The least ratio of an input's training runs (half of its runs) to different outcomes at which outcomes count as
#: repeating.
RUNS_PER_OUTCOME = 4
#: The largest number of different outcomes for which sets of whole outcomes replace scans and statistics.
OUTCOMES_WITHOUT_SCANS = 64
#: The least difference, in standard errors, between the counts of an informative bin on D and on D′.
INFORMATIVE_STANDARD_ERRORS = 4


#: The number of rows of the first block in which outcomes are numbered; every further block doubles the number.
FIRST_BLOCK_ROWS = 1 << 10


class OutcomeCounter:
    """A numbering of different outcomes by first appearance.

    Two outcomes share a hash with probability 2^−64: the search tolerates shared hashes, and evidence uses no numbers
    of outcomes.
    """

    def __init__(self, width: int, runs: int) -> None:
        """A counter for at most `runs` paired runs whose outcomes have `width` entries."""
        #: The largest number of different outcomes at which outcomes count as repeating.
        self.most = min(max(runs // (2 * RUNS_PER_OUTCOME), 64), MOST_OUTCOMES)
        self._hashes, self._numbers = np.zeros(0, np.uint64), np.zeros(0, np.int64)  # the hashes rise
        self._parts: list[Rows] = [np.empty((0, width))]
        #: The number of runs from which on outcomes may count as repeating, set once outcomes did not repeat.
        self.worth_counting_from = 0
        self._rows, self._full = 0, False

    @property
    def distinct(self) -> int:
        """The number of different outcomes so far."""
        return len(self._hashes)

    @property
    def outcomes(self) -> Rows:
        """The different outcomes so far, in the order of their numbers; shape (k, width)."""
        return np.concatenate(self._parts)

    def codes(self, rows: Rows) -> Integers | None:
        """The number of each row's outcome, shape (n,); None from the first time on that outcomes do not repeat."""
        codes, start, size = np.empty(len(rows), np.int64), 0, FIRST_BLOCK_ROWS
        while start < len(rows) and not self._full:
            block = slice(start, start + size)
            codes[block] = self._block_codes(rows[block])
            start, size = start + size, 2 * size
        return None if self._full else codes

    def _block_codes(self, rows: Rows) -> Integers:
        """The number of each row's outcome, after new outcomes are numbered; useless if these are too many."""
        hashes = row_hashes(rows)
        places = np.searchsorted(self._hashes, hashes)
        new = np.flatnonzero(np.append(self._hashes, np.uint64(0))[places] != hashes)
        new = new if self.distinct else np.arange(len(rows))  # a hash may be 0
        if len(new):
            different, first = np.unique(hashes[new], return_index=True)
            order = np.argsort(first)
            different, first = different[order], new[first[order]]
            if self.distinct + len(first) > self.most:
                # Birthday problem: r repeats in m rows suggest m²/2r equally likely outcomes; half as many are assumed.
                runs = self._rows + int(first[self.most - self.distinct]) + 1
                self._full = True
                self.worth_counting_from = RUNS_PER_OUTCOME * runs**2 // (2 * max(runs - self.most, 1))
            self._parts.append(rows[first])
            hashes_so_far = np.append(self._hashes, different)
            numbers = np.append(self._numbers, np.arange(self.distinct, self.distinct + len(first)))
            rising = np.argsort(hashes_so_far)
            self._hashes, self._numbers = hashes_so_far[rising], numbers[rising]
            places = np.searchsorted(self._hashes, hashes)
        self._rows += len(rows)
        return self._numbers[places]


def _times(a: Integers, b: Integers, outcomes: int) -> Integers:
    """The counts of `outcomes` outcomes among the numbers of D, and of D′; shape (2, k)."""
    return np.stack([np.bincount(codes, minlength=outcomes) for codes in (a, b)])


def _together(a: Integers, b: Integers, outcomes: int) -> Integers:
    """The pairs of numbers of D and of D′ that occur in one run, and their counts; shape (3, m)."""
    keys = a * outcomes + b
    if outcomes**2 <= 8 * len(keys):
        times = np.bincount(keys)
        keys = np.flatnonzero(times)
        times = times[keys]
    else:
        keys, times = np.unique(keys, return_counts=True)
    return np.stack([keys // outcomes, keys % outcomes, times])


class SortedColumn(NamedTuple):
    """The present values of one entry of the outcomes on one input, sorted; shape (m,).

    `cumulative[k]` is the number of runs with one of the first k values; shape (m + 1,).
    """

    values: Floats
    cumulative: Integers


class Sample(ABC):
    """Paired runs of one pair (D, D′) to learn events from, and to compare events on; `width` entries an outcome."""

    #: Whether outcomes repeat, so that each different outcome is held once, with its count.
    repeats: ClassVar[bool]
    training_runs: int
    test_runs: int
    width: int

    def __init__(self) -> None:
        self._computed: dict[tuple[Hashable, ...], Any] = {}

    @property
    @abstractmethod
    def outcomes(self) -> Rows:
        """The outcomes of the training runs; shape (k, width)."""

    @property
    def few_outcomes(self) -> bool:
        """Whether so few outcomes differ that no other event is better than the sets of whole outcomes tried."""
        return self.repeats and len(self.outcomes) <= OUTCOMES_WITHOUT_SCANS

    @property
    @abstractmethod
    def times(self) -> Integers:
        """The numbers of training runs of D, and of D′, that returned each of `outcomes`; shape (2, k)."""

    @abstractmethod
    def columns(self, event: Event | None = None) -> tuple[list[SortedColumn], list[SortedColumn]]:
        """The columns of D and of D′ in all training runs, or in the training runs that lie in `event`."""

    def forget_columns(self) -> None:  # noqa: B027  # a sample that keeps no columns has nothing to free
        """Free the memory of the sorted columns."""

    @abstractmethod
    def some(self, most: int) -> tuple[Rows, Integers]:
        """Outcomes of at most `most` training runs of each input, and their counts, like `times`.

        A table gives its first 2·`most` outcomes, with their counts in all training runs.
        """

    @abstractmethod
    def training_rates(self, event: Event) -> tuple[float, float]:
        """The shares of the training runs of D, and of D′, that lie in the event."""

    @abstractmethod
    def test_rates(self, event: Event) -> tuple[float, float, float]:
        """The shares of the test runs in which the outcome of D, the outcome of D′, and both lie in the event."""

    def once(self, compute: Callable[..., T], *settings: Hashable) -> T:
        """The value of `compute(self, *settings)`, kept from the first call for later calls with these settings."""
        key = (compute, *settings)
        if key not in self._computed:
            self._computed[key] = compute(self, *settings)
        return self._computed[key]  # type: ignore[no-any-return]  # what `compute` returned


class RowSample(Sample):
    """A sample of outcomes as rows, in parts of shape (any number, width); the first half is for training."""

    repeats = False

    def __init__(self, parts: Sequence[tuple[Rows, Rows]]) -> None:
        super().__init__()
        self._columns: tuple[list[SortedColumn], list[SortedColumn]] | None = None
        runs = sum(len(x) for x, _ in parts)
        self.training_runs = runs // 2
        self.test_runs = runs - self.training_runs
        self.width = parts[0][0].shape[1]
        self._training, self._test = list[tuple[Rows, Rows]](), list[tuple[Rows, Rows]]()
        left = self.training_runs
        for x, y in parts:
            self._training.append((x[:left], y[:left]))
            self._test.append((x[left:], y[left:]))
            left = max(left - len(x), 0)

    @cached_property
    @override
    def outcomes(self) -> Rows:
        return np.concatenate([part[side] for side in (0, 1) for part in self._training])

    @cached_property
    @override
    def times(self) -> Integers:
        first = np.repeat([1, 0], self.training_runs)
        return np.stack([first, 1 - first])

    @override
    def columns(self, event: Event | None = None) -> tuple[list[SortedColumn], list[SortedColumn]]:
        if event is not None:
            return self._within(event, 0), self._within(event, 1)
        columns = self._columns  # read once, as another thread may call `forget_columns`
        if columns is None:
            x, y = (np.concatenate([part[side].T for part in self._training], axis=1) for side in (0, 1))
            columns = self._columns = _sorted(x), _sorted(y)
        return columns

    def _within(self, event: Event, side: int) -> list[SortedColumn]:
        """The sorted columns of one side's training outcomes that lie in an event."""
        rows = [part[side] for part in self._training]
        return _sorted(np.concatenate([part.T.compress(event.contains(part), axis=1) for part in rows], axis=1))

    @override
    def forget_columns(self) -> None:
        self._columns = None

    @override
    def some(self, most: int) -> tuple[Rows, Integers]:
        x, y = (np.concatenate([part[side][:most] for part in self._training])[:most] for side in (0, 1))
        first = np.repeat([1, 0], len(x))
        return np.concatenate([x, y]), np.stack([first, 1 - first])

    @override
    def training_rates(self, event: Event) -> tuple[float, float]:
        p, q, _ = _rates(event, self._training, self.training_runs)
        return p, q

    @override
    def test_rates(self, event: Event) -> tuple[float, float, float]:
        return _rates(event, self._test, self.test_runs)


def _rates(event: Event, parts: Sequence[tuple[Rows, Rows]], runs: int) -> tuple[float, float, float]:
    """The shares of `runs` runs in which the outcome of D, the outcome of D′, and both lie in an event."""
    counts = np.zeros(3, np.int64)
    for x, y in parts:
        a, b = event.contains(x), event.contains(y)
        counts += [np.count_nonzero(a), np.count_nonzero(b), np.count_nonzero(a & b)]
    p, q, both = (counts / runs).tolist()
    return p, q, both


#: The number of rows transposed at a time, so that they stay in the processor's cache.
TRANSPOSED_ROWS = 1 << 10


def _by_column(rows: Rows) -> Rows:
    """The rows in column-major order, in which learners read one column in an eighth of the time."""
    if rows.strides[0] == rows.itemsize:
        return rows
    columns = np.empty(rows.shape[::-1])
    for first in range(0, len(rows), TRANSPOSED_ROWS):
        part = rows[first : first + TRANSPOSED_ROWS]
        columns[:, first : first + len(part)] = part.T
    return columns.T


def _sorted(columns: Floats) -> list[SortedColumn]:
    """Sorted columns of an array of shape (width, n), which is sorted in place."""
    columns.sort(axis=1)  # NaN goes last
    n = columns.shape[1]
    cumulative = np.arange(n + 1)
    present = np.full(len(columns), n)
    some = np.isnan(columns[:, -1:]).any(axis=1)
    present[some] -= np.isnan(columns[some]).sum(axis=1)
    return [SortedColumn(column[:k], cumulative[: k + 1]) for column, k in zip(columns, present.tolist(), strict=True)]


def counted_columns(columns: Floats, times: Integers) -> tuple[list[SortedColumn], list[SortedColumn]]:
    """The sorted columns of D and of D′ of outcomes, shape (width, k), whose counts are `times`, shape (2, k)."""
    order = np.argsort(columns, axis=1)  # not stable: the order of equal values does not matter
    columns = np.take_along_axis(columns, order, axis=1)
    present = columns.shape[1] - np.isnan(columns).sum(axis=1)
    before = np.zeros((len(columns), 1), np.int64)
    both = []
    for side in times:
        cumulative = np.cumsum(np.hstack([before, side[order]]), axis=1)
        both.append(
            [SortedColumn(c[:n], runs[: n + 1]) for c, runs, n in zip(columns, cumulative, present, strict=True)]
        )
    return both[0], both[1]


class OutcomeTable(Sample):
    """A sample of repeating outcomes, which keeps each different outcome once; shape (k, width).

    `times`, of shape (2, k): the count of each outcome in the training runs of D and of D′. `pairs`, of shape (3, m):
    the outcome numbers of D and of D′ in the test runs, and the count of each such pair.
    """

    repeats = True

    def __init__(self, outcomes: Rows, times: Integers, pairs: Integers) -> None:
        super().__init__()
        self._outcomes, self._times, self.pairs = outcomes, times, pairs
        self.training_runs, self.test_runs = int(times[0].sum()), int(pairs[2].sum())
        self.width = outcomes.shape[1]

    @property
    @override
    def outcomes(self) -> Rows:
        return self._outcomes

    @property
    @override
    def times(self) -> Integers:
        return self._times

    @override
    def columns(self, event: Event | None = None) -> tuple[list[SortedColumn], list[SortedColumn]]:
        inside = slice(None) if event is None else event.contains(self.outcomes)
        return counted_columns(np.ascontiguousarray(self.outcomes[inside].T), self.times[:, inside])

    @override
    def some(self, most: int) -> tuple[Rows, Integers]:
        return self.outcomes[: 2 * most], self.times[:, : 2 * most]

    @override
    def training_rates(self, event: Event) -> tuple[float, float]:
        p, q = self.times[:, event.contains(self.outcomes)].sum(axis=1) / self.training_runs
        return float(p), float(q)

    @override
    def test_rates(self, event: Event) -> tuple[float, float, float]:
        inside = event.contains(self.outcomes)
        first, second, times = self.pairs
        a, b = inside[first], inside[second]
        p, q, both = (float(times[mask].sum() / self.test_runs) for mask in (a, b, a & b))
        return p, q, both


def sample_of(x: Rows, y: Rows) -> Sample:
    """The sample of outcomes of D and of D′, shapes (n, any width); row i of `x` and of `y` is one paired run."""
    return SeenOutcomes().plus(x, y).sample


class SeenOutcomes:
    """The outcomes of D and of D′ so far, run by run; immutable.

    Repeating outcomes are kept as one number a run, other outcomes in column-major order. Outcomes are numbered or
    reordered once, when they come: repeating this for each sample makes checks of wide outcomes a quarter slower.
    """

    def __init__(self) -> None:
        self.runs, self.width = 0, 1
        #: The different outcomes, by number; None where outcomes do not repeat.
        self._outcomes: Rows | None = np.empty((0, 1))
        self._numbers: list[tuple[Integers, Integers]] = []
        self._parts: list[tuple[Rows, Rows]] = []
        #: The number of runs from which outcomes that did not repeat are numbered again.
        self._numbered_from = 0

    def plus(self, x: Rows, y: Rows) -> "SeenOutcomes":
        """A new object that also holds the outcomes of more paired runs; shapes (n, any width)."""
        more = SeenOutcomes()
        sides = of_one_width(x, y, self.width)
        more.runs, more.width = self.runs + len(x), sides[0].shape[1]
        if self._outcomes is not None:
            numbered = more._number(self._outcomes, self._numbers, sides)
        elif more.runs >= self._numbered_from:
            alone = OutcomeCounter(more.width, more.runs)
            if alone.codes(sides[0]) is None:  # the new runs alone have too many different outcomes
                numbered, more._numbered_from = False, alone.worth_counting_from
            else:
                before = [np.ascontiguousarray(widen(rows, more.width)) for rows in self.rows]
                a, b = map(np.concatenate, zip(before, sides, strict=True))
                numbered = more._number(np.empty((0, more.width)), [], (a, b))
        else:
            numbered, more._numbered_from = False, self._numbered_from
        if not numbered:
            parts = self._parts if self._outcomes is None else [(self.rows[0], self.rows[1])] if self.runs else []
            if more.width > self.width:
                parts = [(widen(a, more.width), widen(b, more.width)) for a, b in parts]
            more._outcomes, more._parts = None, [(_by_column(a), _by_column(b)) for a, b in (*parts, sides)]
        return more

    def _number(self, outcomes: Rows, numbers: Sequence[tuple[Integers, Integers]], sides: tuple[Rows, Rows]) -> bool:
        """Number the outcomes of more runs, and return whether outcomes repeat.

        `outcomes`, `numbers`: the different outcomes, and the number of each run's outcome, in the runs before.
        """
        counter = OutcomeCounter(self.width, self.runs)
        counter.codes(widen(outcomes, self.width))
        a = counter.codes(sides[0])
        b = None if a is None else counter.codes(sides[1])
        if a is None or b is None:
            self._numbered_from = counter.worth_counting_from
            return False
        self._outcomes, self._numbers = counter.outcomes, [*numbers, (a, b)]
        return True

    @property
    def rows(self) -> tuple[Rows, Rows]:
        """The outcomes of D and of D′; shape (runs, width) each."""
        if self._outcomes is not None:
            known = self._outcomes
            x, y = (known[np.concatenate([[], *both]).astype(np.int64)] for both in self._by_side(self._numbers))
        else:
            x, y = (np.concatenate(both) for both in self._by_side(self._parts))
        return x, y

    @staticmethod
    def _by_side(parts: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> list[list[NDArray[Any]]]:
        return [[part[side] for part in parts] for side in (0, 1)]

    @cached_property
    def sample(self) -> Sample:
        """The sample of the outcomes so far: an `OutcomeTable` where outcomes repeat."""
        if self._outcomes is None:
            return RowSample(self._parts)
        half, known = self.runs // 2, len(self._outcomes)
        x, y = (np.concatenate(both) for both in self._by_side(self._numbers))
        numbers = np.concatenate([x[:half], y[:half], x[half:], y[half:]])
        # Outcomes are renumbered by their first place in `numbers`; NumPy keeps the last of repeated assignments.
        first = np.empty(known, np.int64)
        first[numbers[::-1]] = np.arange(len(numbers))[::-1]
        order = np.argsort(first)
        renumbered = np.empty(known, np.int64)
        renumbered[order] = np.arange(known)
        a, b, c, d = np.split(renumbered[numbers], [half, 2 * half, half + self.runs])
        return OutcomeTable(self._outcomes[order], _times(a, b, known), _together(c, d, known))


def counted(parts: Iterable[tuple[Rows, Rows]], width: int, runs: int) -> OutcomeTable | None:
    """The table of `runs` paired runs in parts: every second part is for tests, the other parts are for training.

    Memory does not grow with `runs`. None where outcomes do not repeat, or have more than `width` entries.
    """
    counter = OutcomeCounter(width, runs)
    times, pairs = np.zeros((2, 0), np.int64), np.zeros((3, 0), np.int64)
    for turn, (x, y) in enumerate(parts):
        if max(x.shape[1], y.shape[1]) > width:
            return None
        a, b = counter.codes(widen(x, width)), counter.codes(widen(y, width))
        if a is None or b is None:
            return None
        if turn % 2:
            pairs = np.hstack([pairs, _together(a, b, counter.distinct)])
            a, b = a[:0], b[:0]  # test runs add new outcomes to `times`, with counts of 0
        more = _times(a, b, counter.distinct)
        more[:, : times.shape[1]] += times
        times = more
    return OutcomeTable(counter.outcomes, times, pairs)


def shrunken_log_ratio(hits: Integers, others: Integers) -> Floats:
    """Logarithms of `hits` / `others`, shrunken towards 0 by the noise's share of their variance; same shape.

    The variance without noise is estimated from all logarithms (empirical Bayes).
    """
    ratio = np.log((hits + 0.5) / (others + 0.5))
    noise = 1 / (hits + 0.5) + 1 / (others + 0.5)
    weight = 1 / noise
    prior = max(float(np.sum(weight * (ratio**2 - noise)) / np.sum(weight)), 1e-6)
    return np.asarray(ratio * prior / (prior + noise))


def informative_bins(
    sides: Sequence[Floats], shares: Floats, runs: int, *, single_values: int = 0
) -> tuple[Floats, Floats] | None:
    """Edges of the bins of an entry, and the log-ratio of each bin and of absence; None if no bin is informative.

    `sides`: the sorted values of the entry on D and on D′, in `runs` runs each. Bins end at `shares` of the values; up
    to `single_values` different values have a bin each. Entries without an informative bin would only add noise to a
    score.
    """
    count = sum(map(len, sides))
    if not count:
        return None
    if single_values:
        values = np.sort(np.concatenate(sides), kind="stable")  # the stable sort merges sorted parts in linear time
        different = values[np.append(True, values[1:] != values[:-1])]
    least = min(side[0] for side in sides if len(side))
    if single_values and len(different) <= single_values:
        edges = different
    else:
        edges = np.unique(merged_at(sides, (shares * count).astype(np.int64)))
    edges = edges[edges > least]
    # The bins between the edges, and one more for the runs without this entry.
    places = [np.concatenate([[0], np.searchsorted(side, edges), [len(side), runs]]) for side in sides]
    hits, others = (np.diff(place) for place in places)
    if np.max(np.abs(hits - others) / np.sqrt(hits + others + 1)) < INFORMATIVE_STANDARD_ERRORS:
        return None
    return edges, shrunken_log_ratio(hits, others)


def telling_entries(
    x: Rows, y: Rows, shares: Floats, *, single_values: int, columns: Iterable[int] | None = None
) -> list[tuple[int, Floats, Floats]]:
    """The entries of outcomes that tell D from D′, each with its `informative_bins`; shapes (n, width)."""
    found = []
    for j in range(x.shape[1]) if columns is None else columns:
        sides = [np.sort(side[~np.isnan(side)]) for side in (x[:, j], y[:, j])]
        bins = informative_bins(sides, shares, len(x), single_values=single_values)
        if bins is not None:
            found.append((j, *bins))
    return found


def score_of(entries: Sequence[tuple[int, Floats, Floats]]) -> ScoreThreshold:
    """The score that sums the log-ratios of entries, each with its `informative_bins`; at least one entry."""
    coordinates, edges, weights = zip(*entries, strict=True)
    return ScoreThreshold(coordinates, edges, weights, 0.0)


def merged_at(sides: Sequence[Floats], places: Integers) -> Floats:
    """The values at some places of the sorted union of two sorted columns, found without merging the columns."""
    first, second = sides
    low, high = np.maximum(places - len(second), 0), np.minimum(places, len(first))
    while np.any(low < high):  # bisects the number of values before a place that are of the first column
        middle = (low + high) // 2
        more = first[np.minimum(middle, len(first) - 1)] < second[places - middle - 1]
        undecided = low < high
        low, high = np.where(undecided & more, middle + 1, low), np.where(undecided & ~more, middle, high)
    a, b = (
        np.where(k < len(side), side[np.minimum(k, len(side) - 1)] if len(side) else np.inf, np.inf)
        for k, side in ((low, first), (places - low, second))
    )
    return np.minimum(a, b)
