"""Events (sets of outcomes) of several kinds, and the encoding of outcomes as rows of numbers."""

from dpwitness.events.counting import cells_of, members_of
from dpwitness.events.event import (
    LARGEST_FLOAT,
    Counted,
    Event,
    Noun,
    Partition,
    Statistic,
    codes_in,
    event_from_json,
    is_partition,
    of_one_width,
    outcomes_of,
    register_event,
    stack,
    statistic_of,
    widen,
)
from dpwitness.events.features import FEATURES, Feature, FeatureEvent, is_of_bits
from dpwitness.events.intervals import Box, Interval, Outside
from dpwitness.events.outcome_set import OutcomeSet
from dpwitness.events.scores import Cells, ScoreThreshold

__all__ = [
    "FEATURES",
    "LARGEST_FLOAT",
    "Box",
    "Cells",
    "Counted",
    "Event",
    "Feature",
    "FeatureEvent",
    "Interval",
    "Noun",
    "OutcomeSet",
    "Outside",
    "Partition",
    "ScoreThreshold",
    "Statistic",
    "cells_of",
    "codes_in",
    "event_from_json",
    "is_of_bits",
    "is_partition",
    "members_of",
    "of_one_width",
    "outcomes_of",
    "register_event",
    "stack",
    "statistic_of",
    "widen",
]
