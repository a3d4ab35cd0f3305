"""The learners, which propose events from outcomes of both inputs, and the choice among their proposals."""

from dpwitness.search.learners.learner import Learner, Proposal, RatedEvent, tolerance
from dpwitness.search.learners.scans import Scans
from dpwitness.search.learners.selection import (
    chosen,
    compared,
    learn,
    learn_events,
    propose,
    rate,
    register_learner,
)
from dpwitness.search.learners.statistics import Statistics, bit_families

__all__ = [
    "Learner",
    "Proposal",
    "RatedEvent",
    "Scans",
    "Statistics",
    "bit_families",
    "chosen",
    "compared",
    "learn",
    "learn_events",
    "propose",
    "rate",
    "register_learner",
    "tolerance",
]
