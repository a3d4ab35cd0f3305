"""The choice of an event from outcomes of both inputs: all learners propose, and the best proposal wins.

Events are learned from the training runs of a sample and compared on its test runs; of the events within 5 % of the
best value the simplest wins. Neither half of the sample is evidence.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from dpwitness.arrays import Rows
from dpwitness.checks import brief
from dpwitness.errors import InvalidParameter
from dpwitness.evidence import Estimate
from dpwitness.search.learners.additive_score import AdditiveScores
from dpwitness.search.learners.intervals import Boxes, Intervals
from dpwitness.search.learners.learner import Learner, Proposal, RatedEvent, tolerance
from dpwitness.search.learners.outcome_sets import OutcomeSets
from dpwitness.search.learners.scans import Scans
from dpwitness.search.learners.statistics import Statistics
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample, sample_of

#: The learners in order of precedence: of equally simple events that are nearly the best, the first event wins.
LEARNERS: list[Learner] = [
    OutcomeSets(),
    Intervals(),
    Scans(),
    Boxes(),
    Statistics(),
    AdditiveScores(),
]

L = TypeVar("L", bound=Learner)


def register_learner(learner: L) -> L:
    """Add a learner to all later searches, after the present learners; return it."""
    if isinstance(learner, type) or not callable(getattr(learner, "propose", None)):
        raise InvalidParameter(f"learner={brief(learner)} must be an object with a method `propose`, not a class")
    LEARNERS.append(learner)
    return learner


def propose(sample: Sample, objective: Objective, *, thorough: bool) -> list[Proposal]:
    """The proposals of all learners; see `Learner.propose`."""
    return [found for learner in LEARNERS for found in learner.propose(sample, objective, thorough=thorough)]


def learn(sample: Sample, objective: Objective, *, thorough: bool = True, most: int = 4) -> list[RatedEvent]:
    """The events with the largest objective in a sample, in either direction; at most `most`, see `chosen`.

    `thorough`: for the final choice, with finer cuts, boxes and learned scores beside outcome sets and intervals.
    """
    return chosen(compared(sample, objective, thorough=thorough), most)


def compared(sample: Sample, objective: Objective, *, thorough: bool = True) -> list[RatedEvent]:
    """All events that learners propose, rated by an objective on the test runs; `thorough` as in `learn`."""
    if sample.repeats:
        objective = objective.for_repeating_outcomes()
    rated = rate(sample, objective, propose(sample, objective, thorough=thorough))
    sample.forget_columns()
    return rated


def learn_events(x: Rows, y: Rows, objective: Objective, *, thorough: bool = True, most: int = 4) -> list[RatedEvent]:
    """The events that `learn` finds in outcomes of D and of D′; shapes (n, any width)."""
    return learn(sample_of(x, y), objective, thorough=thorough, most=most)


def _simplest(rated: Sequence[RatedEvent]) -> int:
    """The place of the first event of the lowest level of complexity among the events of nearly the best value.

    Within a level the order of the proposals decides: learners propose intervals of the better column first.
    """
    best = max(event.value for event in rated)
    good = [k for k, event in enumerate(rated) if event.value >= best - tolerance(best)]
    return min(good, key=lambda k: rated[k].event.complexity[0])


def chosen(rated: list[RatedEvent], most: int) -> list[RatedEvent]:
    """At most `most` of the proposed events, by their values on the test runs of the sample.

    The first event is the simplest event that is nearly as good as the best event. The second event has the largest
    `lower_value`, in case the first event has its value by chance. Other events follow by value.
    """
    rated = sorted(rated, key=lambda found: found.event.complexity[0])  # the sort is stable
    if max(event.value for event in rated) <= 0:  # no event looks good: prefer events that hold some runs and not all
        rated = [event for event in rated if event.telling] or rated
    values, lower = (np.array([getattr(event, name) for event in rated]) for name in ("value", "lower_value"))
    order = [_simplest(rated), int(np.argmax(lower)), *map(int, np.argsort(-values, kind="stable"))]
    return [rated[k] for k in list(dict.fromkeys(order))[:most]]


def rate(sample: Sample, objective: Objective, proposals: Sequence[Proposal]) -> list[RatedEvent]:
    """The proposed events with their rates in the test runs, and the objective's values of these rates."""
    if not proposals:
        return []
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
