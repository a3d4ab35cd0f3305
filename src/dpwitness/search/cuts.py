"""Where to cut a scale: all intervals between some edges of an entry, or of a feature, counted in one pass.

A sample holds some 10⁵ runs, in which an event of probability 10⁻⁴ comes ten times: too few to place its ends. One
table of the cells between edges tells the rates of every interval of them, in as many runs as there is time for.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.candidate import Tally
from dpwitness.events import Event, Partition, Scale, scale_of
from dpwitness.events.encoding import LEAST_NUMBER
from dpwitness.evidence import Estimate
from dpwitness.search.learners import tolerance
from dpwitness.search.learners.intervals import SHARES
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample

Floats = NDArray[np.float64]

#: Besides quantiles, cuts behind so many powers of two of runs in the tails: 8, 16, 32, …
TAIL: Final = 6


@dataclass(frozen=True, slots=True, eq=False)
class CutCells(Partition):
    """The cells between rising edges of a scale, and one more for outcomes that have no value on it.

    It is counted and never written. Cell j holds the values from `edges[j − 1]` up to, and without, `edges[j]`.
    `event`: one of its intervals.
    """

    event: Event
    scale: Scale[Event]
    edges: Floats

    @property
    @override
    def cells(self) -> int:
        return len(self.edges) + 2

    @property
    @override
    def inside(self) -> NDArray[np.bool_]:
        lows, highs = np.append(-np.inf, self.edges), np.append(self.edges, np.inf)
        return np.append((lows >= self.scale.low) & (highs <= self.scale.high), False)

    @property
    @override
    def width(self) -> int:
        return self.event.width

    @override
    def cell_of(self, rows: Floats) -> NDArray[np.int64]:
        values = self.scale.value(rows)
        return np.where(np.isnan(values), len(self.edges) + 1, np.searchsorted(self.edges, values, side="right"))

    @override
    def contains(self, rows: Floats) -> NDArray[np.bool_]:
        return self.event.contains(rows)

    def best(self, tally: Tally, objective: Objective) -> tuple[Event, Estimate]:
        """The interval between edges that promises most by a table of paired runs, D first, and its rates.

        The best of so many is the luckiest: the value of each of m is lowered by √(2·log m) standard errors, the most
        that luck gives. Both ends must promise clearly more than one.
        """
        k = self.cells - 1
        table = np.reshape(tally.cells, (k + 1, k + 1)) / tally.runs
        below = np.pad(table[:k, :k].cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
        p, q = (np.append(0.0, table.sum(axis=axis)[:k].cumsum()) for axis in (1, 0))
        first, last = np.triu_indices(k + 1, 1)  # cells first … last − 1
        found = []
        for chosen in ((first == 0) ^ (last == k), (first > 0) & (last < k)):
            i, j = first[chosen], last[chosen]
            if not len(i):
                continue
            rates = np.maximum(p[j] - p[i], 0.0), np.maximum(q[j] - q[i], 0.0)
            both = np.clip(below[j, j] - below[i, j] - below[j, i] + below[i, i], 0.0, np.minimum(*rates))
            values = objective(*rates, tally.runs, math.sqrt(2 * math.log(max(len(i), 2))), both)
            best = int(np.argmax(values))
            found.append((float(values[best]), i[best], j[best]))
        value, i, j = found[0]
        if len(found) > 1 and found[1][0] > value + tolerance(value):
            _, i, j = found[1]
        ends, cells = np.concatenate([[-np.inf], self.edges, [np.inf]]), np.arange(k + 1)
        event = self.scale.between(float(ends[i]), float(ends[j]))
        return event, tally.estimate_of((cells >= i) & (cells < j))

    def estimate(self, event: Event, tally: Tally) -> Estimate:
        """The rates of one of the intervals, by a table."""
        scale = scale_of(event)
        assert scale is not None  # made by `best`
        return tally.estimate_of(replace(self, scale=scale).inside)


def cuts_around(event: Event, sample: Sample) -> CutCells | None:
    """Edges on the scale of an interval, at quantiles of what a sample shows; None of events that are none.

    The ends of the interval are among them. None, too, where no edge is finite: there is nothing to cut.
    """
    scale = scale_of(event)
    if scale is None:
        return None
    values = scale.value(sample.outcomes)
    values = np.sort(values[~np.isnan(values)])
    edges = np.array([scale.low, scale.high])
    if len(values):
        ranks = 2 ** np.arange(3, 3 + TAIL)
        ranks = ranks[ranks < len(values) // 64]
        cuts = values[np.concatenate([ranks, (SHARES * len(values)).astype(np.int64), len(values) - 1 - ranks])]
        edges = np.append(edges, cuts[cuts >= LEAST_NUMBER])  # codes of texts have no order
    edges = np.unique(edges[np.isfinite(edges)])
    return CutCells(event, scale, edges) if len(edges) else None
