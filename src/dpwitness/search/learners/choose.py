"""The choice among events: the simplest of those that are nearly as good as the best one."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpwitness.evidence import Estimate
from dpwitness.search.learners.base import Proposal, RatedEvent
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample

__all__ = ["choose", "tolerance"]

Floats = NDArray[np.float64]

#: A simpler event may be this much worse than the best one.
TOLERANCE = 0.05


def tolerance(best: float) -> float:
    """How much less than the best value a simpler event may have: 5 %."""
    return TOLERANCE * abs(best)


def _simplest(rated: Sequence[RatedEvent]) -> int:
    """The place of the first event of the lowest level of complexity among those whose value is nearly the best.

    Within a level the order of the proposals counts: of two intervals, say, that of the better column comes first.
    """
    best = max(event.value for event in rated)
    good = [k for k, event in enumerate(rated) if event.value >= best - tolerance(best)]
    return min(good, key=lambda k: rated[k].event.complexity[0])


def choose(sample: Sample, objective: Objective, proposals: Iterable[Proposal], most: int) -> list[RatedEvent]:
    """At most `most` of the proposed events, valued on the test runs of the sample.

    The first is the simplest that is nearly as good as the best one, the second the best three standard errors
    lower, in case that the first owes its value to luck; the others follow by value.
    """
    tried = sorted(proposals, key=lambda proposal: proposal.event.complexity[0])  # the sort is stable
    rated = _rated(sample, objective, tried)
    if max(event.value for event in rated) <= 0:  # where nothing promises anything, an event that happens
        rated = [event for event in rated if event.telling] or rated
    values, lower = (np.array([getattr(event, name) for event in rated]) for name in ("value", "lower_value"))
    order = [_simplest(rated), int(np.argmax(lower)), *map(int, np.argsort(-values, kind="stable"))]
    return [rated[k] for k in list(dict.fromkeys(order))[:most]]


def _rated(sample: Sample, objective: Objective, proposals: Sequence[Proposal]) -> list[RatedEvent]:
    """The events with their rates in the test runs, and what the objective makes of these."""
    shares = np.array([sample.test_rates(proposal.event) for proposal in proposals])
    swapped = np.array([proposal.swapped for proposal in proposals])
    p, q = np.where(swapped, shares[:, 1], shares[:, 0]), np.where(swapped, shares[:, 0], shares[:, 1])
    both = shares[:, 2]
    values, lower = (objective(p, q, sample.test_runs, errors, both) for errors in (1.0, 3.0))
    return [
        RatedEvent(
            event=proposal.event,
            swapped=proposal.swapped,
            estimate=Estimate(p=float(p[k]), q=float(q[k]), both=float(both[k])),
            value=float(values[k]),
            lower_value=float(lower[k]),
        )
        for k, proposal in enumerate(proposals)
    ]
