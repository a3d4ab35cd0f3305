"""What a learner of events is: given search runs and an objective, it proposes events.

The choice among events: the simplest of those that are nearly as good as the best one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpwitness.events import Event
from dpwitness.evidence import Estimate
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """An event that a learner proposes; `swapped`: it is frequent under D′ and rare under D, so D′ plays D."""

    event: Event
    swapped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedEvent:
    """An event, which input plays D, its rates and what the objective makes of them."""

    event: Event
    swapped: bool  # D′ plays D
    estimate: Estimate  # on runs that the event was not learned from
    value: float  # by the objective, lowered by one standard error
    lower_value: float = -np.inf  # lowered by three

    @property
    def telling(self) -> bool:
        """Whether some run was in the event and some was not: a pass that rests on another one says nothing."""
        return 0 < self.estimate.p + self.estimate.q < 2


class Learner(Protocol):
    """Proposes events of one form. Everything here is heuristic and never evidence.

    A learner has no state: it may serve several threads. What takes long and is the same for every objective is kept
    by the sample (`Sample.once`).
    """

    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterable[Proposal]:
        """The most promising events of this form in the training runs of a sample, for either direction.

        At most a handful: each is compared with those of all other learners, on the test runs. `thorough`: for the
        final choice; else one of many quick looks at a pair, where only what costs little should be tried.
        """


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
