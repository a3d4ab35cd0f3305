"""The protocol of learners: given search runs and an objective, a learner proposes events. Never evidence."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpwitness.events import Event
from dpwitness.evidence import Estimate
from dpwitness.neighbours import Pair
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """An event that a learner proposes; `swapped`: it is frequent under D′ and rare under D, so D′ plays D."""

    event: Event
    swapped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedEvent:
    """An event, the input that plays D, the rates of the event and its value by the objective."""

    event: Event
    swapped: bool  # D′ plays D
    estimate: Estimate  # on runs that the event was not learned from
    value: float  # by the objective, lowered by one standard error
    lower_value: float = -np.inf  # lowered by three

    @property
    def telling(self) -> bool:
        """Whether the event holds some runs and not all: a pass that rests on another event says nothing."""
        return 0 < self.estimate.p + self.estimate.q < 2

    def directed(self, pair: Pair) -> Pair:
        """The pair with D first."""
        return pair.swapped() if self.swapped else pair


class Learner(Protocol):
    """Proposes events of one form.

    A learner has no state: it may serve several threads. Long computations that are the same for every objective are
    kept by the sample (`Sample.once`).
    """

    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterable[Proposal]:
        """The most promising events of this form in the training runs of a sample, for either direction.

        At most a handful: each is compared with those of all other learners, on the test runs. `thorough`: for the
        final choice; else one of many quick looks at a pair, where only what costs little should be tried.
        """


def tolerance(best: float) -> float:
    """The difference from the best value that a simpler event may have: 5 %."""
    return 0.05 * abs(best)
