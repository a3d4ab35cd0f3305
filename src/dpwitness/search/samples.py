"""Search runs as learners of events see them: half to learn from, the other half to compare events on.

If outcomes repeat, a table of them holds everything: memory grows with the different outcomes, not with the runs. Else
the rows themselves are kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.events import Event, widen
from dpwitness.events.counting import outcome_codes

Rows = NDArray[np.float64]
Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
T = TypeVar("T")

#: A table holds at most this many outcomes, and at most one in so many runs may be an outcome of its own.
MOST = 1 << 16
REPEAT = 4
#: By how many standard errors a bin of an entry that tells anything stands out.
STANDARD_ERRORS = 4


class OutcomeCounter:
    """Numbers outcomes by first appearance, and counts the numbers."""

    def __init__(self, width: int, runs: int) -> None:
        """For at most `runs` paired runs, of rows of that width."""
        self._most = min(max(runs // (2 * REPEAT), 64), MOST)
        places = 1 << (2 * self._most - 1).bit_length()
        self._hashes, self._numbers = np.zeros(places, np.uint64), np.full(places, -1, np.int64)
        self._first, self._distinct = np.zeros(self._most, np.int64), 0
        self._parts: list[Rows] = [np.empty((0, width))]

    @property
    def outcomes(self) -> Rows:
        """The different outcomes so far, by number; shape (k, width)."""
        return np.concatenate(self._parts)

    def codes(self, rows: Rows) -> Whole | None:
        """The number of each row's outcome, shape (n,); None when there are too many to be worth counting."""
        codes, before = np.empty(len(rows), np.int64), self._distinct
        distinct = outcome_codes(rows, self._hashes, self._numbers, codes, self._first, before)
        if distinct < 0:
            return None
        self._distinct = distinct
        self._parts.append(rows[self._first[before:distinct]])
        return codes

    def times(self, a: Whole, b: Whole) -> Whole:
        """How often each outcome so far occurs among the numbers of D, and of D′; shape (2, k)."""
        return np.stack([np.bincount(codes, minlength=self._distinct) for codes in (a, b)])

    def together(self, a: Whole, b: Whole) -> Whole:
        """Which numbers of D and of D′ occur together, and how often; shape (3, m)."""
        keys = a * self._distinct + b
        if self._distinct**2 <= 8 * len(keys):
            times = np.bincount(keys)
            keys = np.flatnonzero(times)
            times = times[keys]
        else:
            keys, times = np.unique(keys, return_counts=True)
        return np.stack([keys // self._distinct, keys % self._distinct, times])


class SortedColumn(NamedTuple):
    """One entry of the outcomes on one input: m values in order, absent ones left out, shape (m,).

    `cumulative` says how many runs the first k values stand for, shape (m + 1,).
    """

    values: Floats
    cumulative: Whole


class Sample(ABC):
    """Paired runs of one pair (D, D′): `training_runs` to learn from, `test_runs` to compare events on.

    `width` is the number of columns of an outcome.
    """

    #: Whether outcomes repeat, so that each is held once, with how often it came.
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
    @abstractmethod
    def times(self) -> Whole:
        """How often each of `outcomes` came in the training runs of D, and of D′; shape (2, k)."""

    @abstractmethod
    def columns(self, event: Event | None = None) -> tuple[list[SortedColumn], list[SortedColumn]]:
        """Every column of D and of D′ in the training runs; only of the runs in the event, where one is given."""

    @cached_property
    def sorted_columns(self) -> tuple[list[SortedColumn], list[SortedColumn]]:
        """`columns()`, kept: sorting is most of what a learner costs."""
        return self.columns()

    @abstractmethod
    def some(self, most: int) -> tuple[Rows, Whole]:
        """Outcomes of at most so many training runs of each input, and how often each came, like `times`.

        Where outcomes repeat: at most twice so many outcomes, those that came first, of all runs.
        """

    @abstractmethod
    def training_rates(self, event: Event) -> tuple[float, float]:
        """The share of the event in the training runs of D, and of D′."""

    @abstractmethod
    def test_rates(self, event: Event) -> tuple[float, float, float]:
        """The share of the event in the test runs: of D, of D′, of both at once."""

    def once(self, compute: Callable[..., T], *settings: Hashable) -> T:
        """`compute(self, *settings)`, computed the first time and kept: learners serve many objectives."""
        key = (compute, *settings)
        if key not in self._computed:
            self._computed[key] = compute(self, *settings)
        return self._computed[key]  # type: ignore[no-any-return]  # what `compute` returned


class RowSample(Sample):
    """All rows of both inputs, shape (n, width) each; the first half to learn from."""

    repeats = False

    def __init__(self, x: Rows, y: Rows) -> None:
        super().__init__()
        self.training_runs = len(x) // 2
        self.test_runs = len(x) - self.training_runs
        self.width = x.shape[1]
        n = self.training_runs
        self._training, self._test = (x[:n], y[:n]), (x[n:], y[n:])

    @cached_property
    @override
    def outcomes(self) -> Rows:
        return np.concatenate(self._training)

    @cached_property
    @override
    def times(self) -> Whole:
        first = np.repeat([1, 0], self.training_runs)
        return np.stack([first, 1 - first])

    @override
    def columns(self, event: Event | None = None) -> tuple[list[SortedColumn], list[SortedColumn]]:
        x, y = (rows if event is None else rows[event.contains(rows)] for rows in self._training)
        return _sorted(x), _sorted(y)

    @override
    def some(self, most: int) -> tuple[Rows, Whole]:
        x, y = (rows[:most] for rows in self._training)
        first = np.repeat([1, 0], len(x))
        return np.concatenate([x, y]), np.stack([first, 1 - first])

    @override
    def training_rates(self, event: Event) -> tuple[float, float]:
        p, q = (float(event.contains(rows).mean()) for rows in self._training)
        return p, q

    @override
    def test_rates(self, event: Event) -> tuple[float, float, float]:
        a, b = (event.contains(rows) for rows in self._test)
        return float(a.mean()), float(b.mean()), float((a & b).mean())


def _sorted(rows: Rows) -> list[SortedColumn]:
    columns = np.sort(np.ascontiguousarray(rows.T), axis=1)  # NaN goes last
    present = columns.shape[1] - np.isnan(columns).sum(axis=1)
    cumulative = np.arange(len(rows) + 1)
    return [SortedColumn(column[:n], cumulative[: n + 1]) for column, n in zip(columns, present, strict=True)]


class Table(Sample):
    """Outcomes that repeat, each once.

    `outcomes` has the shape (k, width) and `times` the shape (2, k): how often each came in the training runs of D and
    of D′. The test runs are `pairs`, the numbers of the outcomes of D and of D′, and how often: shape (3, m).
    """

    repeats = True

    def __init__(self, outcomes: Rows, times: Whole, pairs: Whole) -> None:
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
    def times(self) -> Whole:
        return self._times

    @override
    def columns(self, event: Event | None = None) -> tuple[list[SortedColumn], list[SortedColumn]]:
        inside = slice(None) if event is None else event.contains(self.outcomes)
        columns = np.ascontiguousarray(self.outcomes[inside].T)
        order = np.argsort(columns, axis=1, kind="stable")
        columns = np.take_along_axis(columns, order, axis=1)
        present = columns.shape[1] - np.isnan(columns).sum(axis=1)
        before = np.zeros((len(columns), 1), np.int64)
        both = []
        for times in self.times[:, inside]:
            cumulative = np.cumsum(np.hstack([before, times[order]]), axis=1)
            both.append(
                [SortedColumn(c[:n], runs[: n + 1]) for c, runs, n in zip(columns, cumulative, present, strict=True)]
            )
        return both[0], both[1]

    @override
    def some(self, most: int) -> tuple[Rows, Whole]:
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
    """Outcomes of D and of D′ as a sample, the first half of the runs to learn from: a table where outcomes repeat.

    `x` and `y` have the shapes (n, any width): row i of both is one paired run.
    """
    width = max(x.shape[1], y.shape[1])
    x, y = widen(x, width), widen(y, width)
    counter, half = OutcomeCounter(width, len(x)), len(x) // 2
    coded = []
    for rows in (x[:half], y[:half], x[half:], y[half:]):
        codes = counter.codes(rows)
        if codes is None:
            return RowSample(x, y)
        coded.append(codes)
    return Table(counter.outcomes, counter.times(coded[0], coded[1]), counter.together(coded[2], coded[3]))


def counted(parts: Iterable[tuple[Rows, Rows]], width: int, runs: int) -> Table | None:
    """The table of `runs` paired runs that come in parts, in turn to learn from and to compare on.

    Memory does not grow with their number. None where outcomes do not repeat, or are longer than `width`.
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
            pairs = np.hstack([pairs, counter.together(a, b)])
            a, b = a[:0], b[:0]  # to learn from, these runs add outcomes only
        more = counter.times(a, b)
        more[:, : times.shape[1]] += times
        times = more
    return Table(counter.outcomes, times, pairs)


def shrunken_log_ratio(hits: Whole, others: Whole) -> Floats:
    """Logarithms of `hits` / `others`, pulled towards 0 by as much as they are noise (empirical Bayes); same shape."""
    ratio = np.log((hits + 0.5) / (others + 0.5))
    noise = 1 / (hits + 0.5) + 1 / (others + 0.5)
    weight = 1 / noise
    prior = max(float(np.sum(weight * (ratio**2 - noise)) / np.sum(weight)), 1e-6)
    return np.asarray(ratio * prior / (prior + noise))


def informative_bins(
    sides: Sequence[Floats], shares: Floats, runs: int, *, few: int = 0
) -> tuple[Floats, Floats] | None:
    """Edges of the bins of an entry, and the log-ratio of each and of its absence; None where it tells nothing.

    `sides`: its values on D and on D′ in so many runs each, sorted. Bins end at `shares` of them; where there are fewer
    than `few` different ones each has a bin. Entries that tell nothing only add noise, and time: a bin must stand out.
    """
    values = np.sort(np.concatenate(sides), kind="stable")  # a merge
    if not len(values):
        return None
    starts = np.append(True, values[1:] != values[:-1])
    single = np.count_nonzero(starts[1:]) < few
    edges = np.unique(values[starts] if single else values[(shares * len(values)).astype(np.int64)])
    edges = edges[edges > values[0]]
    # The bins between the edges, and one more for the runs without this entry.
    places = [np.concatenate([[0], np.searchsorted(side, edges), [len(side), runs]]) for side in sides]
    hits, others = (np.diff(place) for place in places)
    if np.max(np.abs(hits - others) / np.sqrt(hits + others + 1)) < STANDARD_ERRORS:
        return None
    return edges, shrunken_log_ratio(hits, others)
