"""Which event, given outcomes of both inputs: a file a learner, and the choice among what they propose."""

from dpwitness.search.learners.features import Features, bit_features
from dpwitness.search.learners.learner import Learner, Proposal, RatedEvent, tolerance
from dpwitness.search.learners.scans import Scans
from dpwitness.search.learners.selection import (
    chosen,
    compared,
    learn,
    learn_events,
    propose,
    register_learner,
)

__all__ = [
    "Features",
    "Learner",
    "Proposal",
    "RatedEvent",
    "Scans",
    "bit_features",
    "chosen",
    "compared",
    "learn",
    "learn_events",
    "propose",
    "register_learner",
    "tolerance",
]
