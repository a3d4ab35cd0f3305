"""Search runs as the learning of events sees them: half to learn from, the other half to compare events on.

Where outcomes repeat a table of them says it all, however many runs it stands for; else the rows themselves are kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpwitness.events import Event, widen
from dpwitness.events.kernels import outcome_codes

Floats = NDArray[np.float64]
Rows = NDArray[np.float64]
Whole = NDArray[np.int64]

#: A table holds at most this many outcomes, and at most one in so many runs may be an outcome of its own.
MOST = 1 << 16
REPEAT = 4


class Side(NamedTuple):
    """A column of one side: its values in order, absent ones left out, and how many runs the first k stand for."""

    values: Floats
    upto: Whole


class Sample(ABC):
    """Paired runs of one pair of inputs: `runs` of them to learn from, `tested` of them to compare events on."""

    runs: int
    tested: int
    width: int

    @abstractmethod
    def sides(self, event: Event | None = None) -> tuple[list[Side], list[Side]]:
        """Every column of D and of D′, in the runs to learn from; only of those in the event, where one is given."""

    @abstractmethod
    def learned(self, event: Event) -> tuple[float, float]:
        """The share of the event in the runs of D, and of D′, to learn from."""

    @abstractmethod
    def rates(self, event: Event) -> tuple[float, float, float]:
        """The share of the event in the other runs: of D, of D′, of both at once."""


class RowSample(Sample):
    """All rows of both sides; the first half to learn from."""

    def __init__(self, x: Rows, y: Rows) -> None:
        self.runs = len(x) // 2
        self.tested = len(x) - self.runs
        self.width = x.shape[1]
        self.train, self.test = (x[: self.runs], y[: self.runs]), (x[self.runs :], y[self.runs :])

    def sides(self, event: Event | None = None) -> tuple[list[Side], list[Side]]:
        """As in `Sample`."""
        x, y = (rows if event is None else rows[event.contains(rows)] for rows in self.train)
        return _sorted(x), _sorted(y)

    def learned(self, event: Event) -> tuple[float, float]:
        """As in `Sample`."""
        p, q = (float(event.contains(rows).mean()) for rows in self.train)
        return p, q

    def rates(self, event: Event) -> tuple[float, float, float]:
        """As in `Sample`."""
        a, b = (event.contains(rows) for rows in self.test)
        return float(a.mean()), float(b.mean()), float((a & b).mean())


def _sorted(rows: Rows) -> list[Side]:
    columns = np.sort(np.ascontiguousarray(rows.T), axis=1)  # NaN goes last
    present = columns.shape[1] - np.isnan(columns).sum(axis=1)
    upto = np.arange(len(rows) + 1)
    return [Side(column[:n], upto[: n + 1]) for column, n in zip(columns, present, strict=True)]


class Table(Sample):
    """Outcomes that repeat, each once.

    `outcomes` has the shape (k, width); `hits` and `others` say how often each came in the runs of D and of D′ to learn
    from. The runs to compare on are `pairs`, the numbers of the outcomes of D and of D′, and how often: shape (3, m).
    """

    def __init__(self, outcomes: Rows, hits: Whole, others: Whole, pairs: Whole) -> None:
        self.outcomes, self.hits, self.others, self.pairs = outcomes, hits, others, pairs
        self.runs, self.tested = int(hits.sum()), int(pairs[2].sum())
        self.width = outcomes.shape[1]

    def sides(self, event: Event | None = None) -> tuple[list[Side], list[Side]]:
        """As in `Sample`."""
        inside = slice(None) if event is None else event.contains(self.outcomes)
        columns = np.ascontiguousarray(self.outcomes[inside].T)
        order = np.argsort(columns, axis=1, kind="stable")
        columns = np.take_along_axis(columns, order, axis=1)
        present = columns.shape[1] - np.isnan(columns).sum(axis=1)
        before = np.zeros((len(columns), 1), np.int64)
        both = []
        for weights in (self.hits[inside], self.others[inside]):
            upto = np.cumsum(np.hstack([before, weights[order]]), axis=1)
            both.append([Side(c[:n], runs[: n + 1]) for c, runs, n in zip(columns, upto, present, strict=True)])
        return both[0], both[1]

    def learned(self, event: Event) -> tuple[float, float]:
        """As in `Sample`."""
        inside = event.contains(self.outcomes)
        return float(self.hits[inside].sum() / self.runs), float(self.others[inside].sum() / self.runs)

    def rates(self, event: Event) -> tuple[float, float, float]:
        """As in `Sample`."""
        return self.shares(event.contains(self.outcomes))

    def shares(self, inside: NDArray[np.bool_]) -> tuple[float, float, float]:
        """The rates of a set of outcomes, given as a mask over them."""
        first, second, times = self.pairs
        a, b = inside[first], inside[second]
        p, q, both = (float(times[mask].sum() / self.tested) for mask in (a, b, a & b))
        return p, q, both

    @cached_property
    def ranking(self) -> Whole:
        """The outcomes seen in the runs to learn from, by likelihood ratio, largest first."""
        seen = np.flatnonzero(self.hits + self.others)
        return seen[np.argsort(-shrunken_log_ratio(self.hits[seen], self.others[seen]), kind="stable")]


class Counter:
    """Makes a table, part by part."""

    def __init__(self, width: int, runs: int) -> None:
        """For at most `runs` paired runs, of rows of that width."""
        self._most = min(max(runs // (2 * REPEAT), 64), MOST)
        places = 1 << (2 * self._most - 1).bit_length()
        self._hashes, self._numbers = np.zeros(places, np.uint64), np.full(places, -1, np.int64)
        self._first, self._known = np.zeros(self._most, np.int64), 0
        self._outcomes: list[Rows] = [np.empty((0, width))]

    def codes(self, rows: Rows) -> Whole | None:
        """The number of each row's outcome; None when there are too many to be worth counting."""
        codes, before = np.empty(len(rows), np.int64), self._known
        known = outcome_codes(rows, self._hashes, self._numbers, codes, self._first, before)
        if known < 0:
            return None
        self._known = known
        self._outcomes.append(rows[self._first[before:known]])
        return codes

    def count(self, codes: Whole) -> Whole:
        """How often each outcome known by now occurs among the numbers."""
        return np.bincount(codes, minlength=self._known)

    def together(self, a: Whole, b: Whole) -> Whole:
        """Which numbers of D and of D′ occur together, and how often: shape (3, m)."""
        keys = a * self._known + b
        if self._known**2 <= 8 * len(keys):
            times = np.bincount(keys)
            keys = np.flatnonzero(times)
            times = times[keys]
        else:
            keys, times = np.unique(keys, return_counts=True)
        return np.stack([keys // self._known, keys % self._known, times])

    def table(self, hits: Whole, others: Whole, pairs: Whole) -> Table:
        """The table of these counts."""
        return Table(np.concatenate(self._outcomes), hits, others, pairs)


def sample_of(x: Rows, y: Rows) -> Sample:
    """Rows of D and of D′ as a sample, the first half of them to learn from: a table where outcomes repeat."""
    width = max(x.shape[1], y.shape[1])
    x, y = widen(x, width), widen(y, width)
    counter, half = Counter(width, len(x)), len(x) // 2
    coded = []
    for rows in (x[:half], y[:half], x[half:], y[half:]):
        codes = counter.codes(rows)
        if codes is None:
            return RowSample(x, y)
        coded.append(codes)
    return counter.table(counter.count(coded[0]), counter.count(coded[1]), counter.together(coded[2], coded[3]))


def counted(parts: Iterable[tuple[Rows, Rows]], width: int, runs: int) -> Table | None:
    """The table of `runs` paired runs that come in parts, in turn to learn from and to compare on.

    Memory does not grow with their number. None where outcomes do not repeat, or are longer than `width`.
    """
    counter = Counter(width, runs)
    hits, others, pairs = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((3, 0), np.int64)
    for turn, (x, y) in enumerate(parts):
        if max(x.shape[1], y.shape[1]) > width:
            return None
        a, b = counter.codes(widen(x, width)), counter.codes(widen(y, width))
        if a is None or b is None:
            return None
        if turn % 2:
            pairs = np.hstack([pairs, counter.together(a, b)])
        hits, others = (
            _added(total, counter.count(codes if turn % 2 == 0 else codes[:0]))
            for total, codes in ((hits, a), (others, b))
        )
    return counter.table(hits, others, pairs)


def _added(total: Whole, more: Whole) -> Whole:
    """The sum of two counts, of which the second may know more outcomes."""
    more[: len(total)] += total
    return more


def shrunken_log_ratio(hits: Whole, others: Whole) -> Floats:
    """Log ratios pulled towards 0 by as much as they are noise (empirical Bayes)."""
    ratio = np.log((hits + 0.5) / (others + 0.5))
    noise = 1 / (hits + 0.5) + 1 / (others + 0.5)
    weight = 1 / noise
    prior = max(float(np.sum(weight * (ratio**2 - noise)) / np.sum(weight)), 1e-6)
    return np.asarray(ratio * prior / (prior + noise))
