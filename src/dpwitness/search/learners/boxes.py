"""Boxes: intervals of several entries at once."""

from collections.abc import Iterator

import numpy as np
from typing_extensions import override

from dpwitness.events import Box
from dpwitness.search.learners.intervals import RankedInterval, best_intervals, intervals_within
from dpwitness.search.learners.learner import Learner, Proposal, tolerance
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample

#: How many intervals are grown into boxes, and how many sides these may have.
GROWN = 2
SIDES = 3


class Boxes(Learner):
    """The best intervals of two columns, narrowed and joined by further ones while each makes them clearly better.

    Nothing in a quick look.
    """

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        if not thorough or sample.width < 2:
            return
        for first in best_intervals(sample, objective, thorough=thorough)[:GROWN]:
            box = _grown(sample, objective, first)
            if box.sides != (first.interval,):
                yield Proposal(event=box, swapped=first.swapped)


def _grown(sample: Sample, objective: Objective, first: RankedInterval) -> Box:
    """The interval as a box, with sides added while each makes it clearly better."""
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
    """The box with the best further interval among the runs in it; None where there is none."""
    better = [item for item in intervals_within(sample, objective, box) if item.swapped == swapped]
    if not better:
        return None
    new = better[0].interval
    sides = {side.coordinate: side for side in box.sides}
    side = sides.get(new.coordinate, new).intersection(new)
    if side is None:
        return None
    sides[side.coordinate] = side
    return Box(tuple(sides.values())) if len(sides) <= SIDES else None


def _value(sample: Sample, objective: Objective, box: Box, *, swapped: bool) -> float:
    """What the objective makes of a box in the training runs."""
    p, q = np.array(sample.training_rates(box))[:, None]
    return float((objective(q, p, sample.training_runs) if swapped else objective(p, q, sample.training_runs))[0])
