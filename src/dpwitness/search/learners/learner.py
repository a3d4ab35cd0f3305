"""The protocol of learners: a learner proposes events by search runs, which are never evidence, and an objective."""

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
    """An event that a learner proposes; `swapped`: whether it is more frequent under D′ than under D."""

    event: Event
    swapped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedEvent:
    """An event, its direction, its rates and its value by the objective."""

    event: Event
    swapped: bool  # whether D and D′ are exchanged
    estimate: Estimate  # the rates in runs from which the event was not learned
    value: float  # the value by the objective, lowered by one standard error
    lower_value: float = -np.inf  # the value lowered by three standard errors

    @property
    def telling(self) -> bool:
        """Whether the event holds some runs but not all runs; a pass by an event of no run or all runs says nothing."""
        return 0 < self.estimate.p + self.estimate.q < 2

    def directed(self, pair: Pair) -> Pair:
        """The pair, exchanged if `swapped`."""
        return pair.swapped() if self.swapped else pair


class Learner(Protocol):
    """A learner proposes events of one form.

    It has no state, as several threads may use it. The sample keeps long computations that are the same for every
    objective (`Sample.once`).
    """

    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterable[Proposal]:
        """The most promising events of this form in the training runs of a sample, for either direction.

        A learner proposes a few events: each is compared with the proposals of all other learners on the test runs.
        `thorough`: whether the choice is final; else the call is one of many quick looks and must cost little.
        """


def tolerance(best: float) -> float:
    """The difference from the best value that is allowed for a simpler event: 5 % of the best value."""
    return 0.05 * abs(best)
