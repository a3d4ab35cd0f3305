"""Which event, given outcomes of both inputs: what all learners propose, and the choice among it. Never evidence.

Events are proposed by the first half of the search runs and compared on the second; among those within 5 % of the
best the simplest wins.
"""

from typing import TypeVar

from dpwitness.events.encoding import Rows
from dpwitness.search.learners.additive_score import AdditiveScores
from dpwitness.search.learners.boxes import Boxes
from dpwitness.search.learners.features import Features
from dpwitness.search.learners.intervals import Intervals
from dpwitness.search.learners.learner import Learner, RatedEvent, choose
from dpwitness.search.learners.outcome_sets import OutcomeSets
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample, sample_of

#: Asked in turn; of equally simple events that are nearly as good, that of the first learner wins.
LEARNERS: list[Learner] = [OutcomeSets(), Intervals(), Boxes(), Features(), AdditiveScores()]

L = TypeVar("L", bound=Learner)


def register_learner(learner: L) -> L:
    """Have a learner asked in every search from now on, after those that there are; returns it."""
    LEARNERS.append(learner)
    return learner


def learn(sample: Sample, objective: Objective, *, thorough: bool = True, most: int = 4) -> list[RatedEvent]:
    """The events that an objective likes best in a sample, in either direction; at most `most`, see `choose`.

    `thorough` adds finer cuts, boxes and learned scores to outcome sets and intervals, for the final choice.
    """
    if sample.repeats:
        objective = objective.for_repeating_outcomes()
    proposals = [proposal for learner in LEARNERS for proposal in learner.propose(sample, objective, thorough=thorough)]
    return choose(sample, objective, proposals, most)


def learn_events(x: Rows, y: Rows, objective: Objective, *, thorough: bool = True, most: int = 4) -> list[RatedEvent]:
    """As `learn`, from outcomes of D and of D′; shapes (n, any width)."""
    return learn(sample_of(x, y), objective, thorough=thorough, most=most)
