"""Sets of outcomes, a file a kind, and the rows of numbers that outcomes are."""

from dpwitness.events.counting import Nested, around, cells_of, members_of
from dpwitness.events.event import (
    LARGEST,
    Counted,
    Event,
    Noun,
    Partition,
    Scale,
    Statistic,
    Thresholds,
    codes_in,
    event_from_json,
    in_event,
    is_partition,
    outcomes_of,
    register_event,
    require_described,
    require_event,
    scale_of,
    statistic_of,
    thresholds_of,
    widen,
)
from dpwitness.events.features import FEATURES, Feature, FeatureEvent, is_of_bits
from dpwitness.events.intervals import Box, Interval, Outside
from dpwitness.events.outcome_set import OutcomeSet
from dpwitness.events.scores import Cells, ScoreThreshold, SplitEvent
from dpwitness.events.trees import Tree, TreeScore
from dpwitness.events.weighted import Weighted, of_outcomes, weighted_of

__all__ = [
    "FEATURES",
    "LARGEST",
    "Box",
    "Cells",
    "Counted",
    "Event",
    "Feature",
    "FeatureEvent",
    "Interval",
    "Nested",
    "Noun",
    "OutcomeSet",
    "Outside",
    "Partition",
    "Scale",
    "ScoreThreshold",
    "SplitEvent",
    "Statistic",
    "Thresholds",
    "Tree",
    "TreeScore",
    "Weighted",
    "around",
    "cells_of",
    "codes_in",
    "event_from_json",
    "in_event",
    "is_of_bits",
    "is_partition",
    "members_of",
    "of_outcomes",
    "outcomes_of",
    "register_event",
    "require_described",
    "require_event",
    "scale_of",
    "statistic_of",
    "thresholds_of",
    "weighted_of",
    "widen",
]
