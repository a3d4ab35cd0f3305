"""Partitions whose one table of counts gives the rates of many events: ranges of a statistic, or sets of outcomes.

A sample holds some 10⁵ runs, in which an event of probability 10⁻⁴ comes ten times: too few to place its ends, or to
find the best of a thousand outcomes. The memory of a table does not grow with the runs, so that time alone limits them.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Booleans, Floats, Integers, Rows
from dpwitness.candidate import Tally
from dpwitness.events import Event, OutcomeSet, Partition, Statistic, outcomes_of, statistic_of
from dpwitness.events.counting import cells_between
from dpwitness.events.encoding import LEAST_NUMBER
from dpwitness.evidence import Estimate
from dpwitness.search.learners import tolerance
from dpwitness.search.objectives import Objective
from dpwitness.search.ranges import FINE_SHARES, all_ranges, counts_of, ends_of
from dpwitness.search.samples import Sample, shrunken_log_ratio

#: The number of standard errors by which the compared values of events are lowered: by chance the largest of forty
#: values is too high by two standard errors.
COMPARISON_STANDARD_ERRORS: Final = 2.0
#: The number of cuts in each tail, behind its first 8, 16, 32, … runs.
TAIL_CUTS: Final = 6
#: The number of outcomes at either end of the order by likelihood ratio that have a cell each.
OUTCOME_CELLS_AT_EITHER_END: Final = 24
#: The number of cells for the outcomes between both ends of the order.
OUTCOME_GROUPS: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class CutCells(Partition):
    """The cells between rising edges of a statistic, and one cell for outcomes without a value; see `ranges`.

    The partition is never written to a file. `event`: one of the ranges of the statistic.
    """

    event: Event
    statistic: Statistic
    edges: Floats

    @property
    def key(self) -> Hashable:
        """The key of the statistic; cells of other ranges of the statistic have the same key."""
        return self.statistic.key

    @property
    @override
    def cells(self) -> int:
        return len(self.edges) + 2

    @property
    @override
    def inside(self) -> Booleans:
        lows, highs = np.append(-np.inf, self.edges), np.append(self.edges, np.inf)
        within = (lows >= self.statistic.low) & (highs <= self.statistic.high)
        return np.asarray(np.append(within, False) != self.statistic.outside)

    @property
    @override
    def width(self) -> int:
        return self.event.width

    @override
    def cell_of(self, rows: Rows) -> Integers:
        return cells_between(self.edges, self.statistic.value(rows), len(self.edges) + 1)

    @override
    def contains(self, rows: Rows) -> Booleans:
        return self.event.contains(rows)

    def best(self, tally: Tally, objective: Objective) -> tuple[Event, Estimate]:
        """The range between edges with the largest value by a table of paired runs, D first, and its rates.

        Each value is lowered by `COMPARISON_STANDARD_ERRORS` standard errors, as the best of many ranges is
        overestimated. A range with two ends must be clearly better than the best half-line.
        """
        k, n, between = self.cells - 1, tally.runs, self.statistic.between
        assert between is not None  # `cuts_around` cuts ranges only
        first, last, outside = all_ranges(k)
        first, last = first[~outside], last[~outside]
        p, q, both = (counts / n for counts in counts_of(np.reshape(tally.cells, (k + 1, k + 1)), first, last))
        values = objective(p, q, n, COMPARISON_STANDARD_ERRORS, both)
        one_end, two_ends = (first == 0) ^ (last == k), (first > 0) & (last < k) & self.statistic.two_ended
        i, j = (int(np.argmax(np.where(chosen, values, -np.inf))) for chosen in (one_end, two_ends))
        if two_ends[j] and values[j] > values[i] + tolerance(float(values[i])):
            i = j
        starts, ends = ends_of(self.edges)
        event = between(float(starts[first[i]]), float(ends[last[i]]))
        return event, Estimate(p=float(p[i]), q=float(q[i]), both=float(both[i]))

    def half_lines(self) -> list[Event]:
        """The half-lines: below each edge, then from each edge on."""
        between = self.statistic.between
        assert between is not None  # `cuts_around` cuts ranges only
        edges = self.edges.tolist()
        return [*(between(-np.inf, edge) for edge in edges), *(between(edge, np.inf) for edge in edges)]

    def four_cells(self, tally: Tally) -> Integers:
        """The counts n10, n11, n01, n00 of each of `half_lines`, by a table of paired runs; shape (k, 4)."""
        places, end = np.arange(1, self.cells - 1), self.cells - 1
        first, last = np.concatenate([0 * places, places]), np.concatenate([places, 0 * places + end])
        hits, others, both = counts_of(np.reshape(tally.cells, (self.cells, self.cells)), first, last)
        return np.stack([hits - both, both, others - both, tally.runs - hits - others + both], axis=1)

    def estimate(self, event: Event, tally: Tally) -> Estimate:
        """The rates of one of the ranges, by a table."""
        statistic = statistic_of(event)
        assert statistic is not None  # every range has a statistic
        return tally.estimate_of(replace(self, statistic=statistic).inside)


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeCells(Partition):
    """The cells of single outcomes or groups of outcomes, and one cell for all other outcomes.

    The partition is never written to a file. `numbers[i]` is the cell of row i of `outcomes`; `event` is a set of some
    of the cells.
    """

    event: Event
    outcomes: OutcomeSet
    numbers: Integers
    key: Hashable = OutcomeSet.kind

    @property
    @override
    def cells(self) -> int:
        return int(self.numbers.max()) + 2

    @property
    @override
    def inside(self) -> Booleans:
        return self._holds(self.event)

    @property
    @override
    def width(self) -> int:
        return self.outcomes.width

    @override
    def cell_of(self, rows: Rows) -> Integers:
        numbers = np.append(self.numbers, self.cells - 1)  # the place of any other outcome is −1
        return numbers[self.outcomes.places(rows)]

    @override
    def contains(self, rows: Rows) -> Booleans:
        return self.event.contains(rows)

    def best(self, tally: Tally, objective: Objective) -> tuple[Event, Estimate]:
        """The set with the largest value by a table of paired runs, D first, and its rates.

        Sets are single cells, and the cells of largest likelihood ratio (Neyman and Pearson). The values of m sets are
        lowered by √(2·log m) standard errors, about the largest of m normal errors.
        """
        k = self.cells - 1
        table = np.reshape(tally.cells, (k + 1, k + 1))
        hits, others = table.sum(axis=1)[:k], table.sum(axis=0)[:k]
        order = np.argsort(-shrunken_log_ratio(hits, others), kind="stable")
        hits, others, square = hits[order], others[order], table[np.ix_(order, order)]
        p, q, both = (
            np.append(single, together) / tally.runs
            for single, together in (
                (hits, hits.cumsum()),
                (others, others.cumsum()),
                (square.diagonal(), square.cumsum(axis=0).cumsum(axis=1).diagonal()),
            )
        )
        values = objective(p, q, tally.runs, math.sqrt(2 * math.log(max(len(p), 2))), both)
        sizes = np.append(np.ones(k), np.arange(1, k + 1))
        good = np.flatnonzero(values >= values.max() - tolerance(float(values.max())))
        best = int(good[np.argmin(sizes[good])])
        chosen = order[[best]] if best < k else order[: best - k + 1]
        event = OutcomeSet(self.outcomes.rows[np.isin(self.numbers, chosen)])
        return event, Estimate(p=float(p[best]), q=float(q[best]), both=float(both[best]))

    def estimate(self, event: Event, tally: Tally) -> Estimate:
        """The rates of a set of some of the cells, by a table."""
        return tally.estimate_of(self._holds(event))

    def _holds(self, event: Event) -> Booleans:
        inside = np.zeros(self.cells, np.bool_)
        inside[self.numbers[event.contains(self.outcomes.rows)]] = True
        return inside


def cuts_around(event: Event, sample: Sample) -> CutCells | OutcomeCells | None:
    """Cells of outcomes: ranges of the event's statistic, cut at quantiles of a sample, or sets of outcomes.

    The cells are sets if the event is a set of outcomes. None for an event that is neither a set nor a range, for a set
    if outcomes do not repeat, and for a range if no edge is finite.
    """
    if outcomes_of(event) is not None:
        return _cells_of_outcomes(event, sample) if sample.repeats else None
    statistic = statistic_of(event)
    if statistic is None or statistic.between is None:
        return None
    values = statistic.value(sample.outcomes)
    values = np.sort(values[~np.isnan(values)])
    edges = np.array([statistic.low, statistic.high])
    different, times = np.unique(values, return_counts=True)
    # Where most runs have one value, quantiles of the values that came once cut the others.
    for some in (values, different[times == 1]):
        if len(some):
            ranks = 2 ** np.arange(3, 3 + TAIL_CUTS)
            ranks = ranks[ranks < len(some) // 64]
            cuts = some[np.concatenate([ranks, (FINE_SHARES * len(some)).astype(np.int64), len(some) - 1 - ranks])]
            edges = np.append(edges, cuts[cuts >= LEAST_NUMBER])  # codes of texts have no order
    edges = np.unique(edges[np.isfinite(edges)])
    return CutCells(event, statistic, edges) if len(edges) else None


def _cells_of_outcomes(event: Event, sample: Sample) -> OutcomeCells:
    """The cells of the outcomes of a sample: single outcomes of extreme likelihood ratio, and groups of outcomes."""
    hits, others = sample.times
    ranks = np.argsort(np.argsort(-shrunken_log_ratio(hits, others), kind="stable"))
    outcomes = OutcomeSet(sample.outcomes)
    between = len(ranks) - 2 * OUTCOME_CELLS_AT_EITHER_END
    if between > OUTCOME_GROUPS:
        last = ranks - (len(ranks) - OUTCOME_CELLS_AT_EITHER_END)
        middle = OUTCOME_CELLS_AT_EITHER_END + (ranks - OUTCOME_CELLS_AT_EITHER_END) * OUTCOME_GROUPS // between
        last_cells = OUTCOME_CELLS_AT_EITHER_END + OUTCOME_GROUPS + last
        ranks = np.where(ranks < OUTCOME_CELLS_AT_EITHER_END, ranks, np.where(last >= 0, last_cells, middle))
    # A cell on both sides of the event is split; `OutcomeSet` sorts its outcomes.
    place = outcomes.places(sample.outcomes)
    numbers = np.empty(len(ranks), np.int64)
    numbers[place] = np.unique(2 * ranks + event.contains(sample.outcomes), return_inverse=True)[1]
    return OutcomeCells(event, outcomes, numbers)
