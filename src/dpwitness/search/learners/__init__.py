"""Which event, given outcomes of both inputs: a file a learner, and the choice among what they propose."""

from dpwitness.search.learners.base import Learner, Proposal, RatedEvent
from dpwitness.search.learners.choose import tolerance
from dpwitness.search.learners.feature_choice import bit_features
from dpwitness.search.learners.features import Features
from dpwitness.search.learners.learning import learn, learn_events, register_learner

__all__ = [
    "Features",
    "Learner",
    "Proposal",
    "RatedEvent",
    "bit_features",
    "learn",
    "learn_events",
    "register_learner",
    "tolerance",
]
