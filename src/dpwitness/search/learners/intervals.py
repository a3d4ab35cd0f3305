"""Intervals of one entry, between the cuts that tell D from D′ best, and boxes: intervals of several entries."""

from collections.abc import Iterator

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Floats
from dpwitness.events import Box, Event
from dpwitness.search.learners.learner import Learner, Proposal, tolerance
from dpwitness.search.objectives import Objective
from dpwitness.search.ranges import COARSE_SHARES, FINE_SHARES, Best, Scan, best_of, scan
from dpwitness.search.samples import Sample

#: The number of columns whose best interval is proposed.
PROPOSED_COLUMNS = 3


class Intervals(Learner):
    """The learner of the best interval of each of the best columns."""

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        ranked = best_intervals(sample, objective, thorough=thorough)[:PROPOSED_COLUMNS]
        if thorough:
            # The best of many intervals is overestimated, so the best by values three errors lower is proposed too.
            tried = [item.interval for item in ranked]
            lower = best_intervals(sample, objective, thorough=thorough, standard_errors=3.0)[:PROPOSED_COLUMNS]
            ranked = ranked + [item for item in lower if item.interval not in tried]
        for item in ranked:
            yield Proposal(event=item.interval, swapped=item.swapped)


def best_intervals(sample: Sample, objective: Objective, *, thorough: bool, standard_errors: float = 1.0) -> list[Best]:
    """The best interval of each column, in falling order of value."""
    scans = sample.once(_all_scans, thorough)
    return sorted(best_of(scans, objective, standard_errors), key=lambda item: -item.value)


def _all_scans(sample: Sample, thorough: bool) -> list[Scan]:
    return _scans(sample, None, FINE_SHARES if thorough else COARSE_SHARES)


def _scans(sample: Sample, event: Event | None, shares: Floats) -> list[Scan]:
    """The intervals of each column among the training runs in an event, or among all training runs."""
    columns = enumerate(zip(*sample.columns(event), strict=True))
    found = (scan(both, shares, sample.training_runs, coordinate=j) for j, both in columns)
    return [column for column in found if len(column.lows)]


#: The number of intervals that are grown into boxes.
GROWN_INTERVALS = 2
#: The largest number of sides of a box.
MOST_SIDES = 3


class Boxes(Learner):
    """The learner of boxes, grown from the best intervals of two columns while a side clearly raises the value."""

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        if not thorough or sample.width < 2:
            return
        for first in best_intervals(sample, objective, thorough=thorough)[:GROWN_INTERVALS]:
            box = _grown(sample, objective, first)
            if box.sides != (first.interval,):
                yield Proposal(event=box, swapped=first.swapped)


def _grown(sample: Sample, objective: Objective, first: Best) -> Box:
    """The box of an interval, with sides added while each side clearly raises the value of the box."""
    box = Box((first.interval,))
    value = _value(sample, objective, box, swapped=first.swapped)
    while True:
        larger = _with_best_side(sample, objective, box, swapped=first.swapped)
        if larger is None:
            return box
        new = _value(sample, objective, larger, swapped=first.swapped)
        if new <= value + tolerance(value):
            return box
        box, value = larger, new


def _with_best_side(sample: Sample, objective: Objective, box: Box, *, swapped: bool) -> Box | None:
    """The box with the best further side for the runs in the box; None if no side can be added."""
    found = best_of(_scans(sample, box, FINE_SHARES), objective, 1.0)
    better = [item for item in found if item.swapped == swapped]
    if not better:
        return None
    new = max(better, key=lambda item: item.value).interval
    sides = {side.coordinate: side for side in box.sides}
    side = sides.get(new.coordinate, new).intersection(new)
    if side is None:
        return None
    sides[side.coordinate] = side
    return Box(tuple(sides.values())) if len(sides) <= MOST_SIDES else None


def _value(sample: Sample, objective: Objective, box: Box, *, swapped: bool) -> float:
    """The value of a box in the training runs."""
    p, q = np.array(sample.training_rates(box))[:, None]
    return float((objective(q, p, sample.training_runs) if swapped else objective(p, q, sample.training_runs))[0])
