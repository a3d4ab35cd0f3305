"""Sets of outcomes, a file a kind, and the rows of numbers that outcomes are."""

from dpwitness.events.box import Box
from dpwitness.events.cells import Cells, Partition, is_partition
from dpwitness.events.event import Counted, Event, widen
from dpwitness.events.feature_event import FeatureEvent
from dpwitness.events.features import FEATURES, Feature
from dpwitness.events.interval import Interval
from dpwitness.events.membership import cells_of, members_of
from dpwitness.events.nested import Nested, around
from dpwitness.events.outcome_set import OutcomeSet
from dpwitness.events.outside import Outside
from dpwitness.events.registry import event_from_json, register_event
from dpwitness.events.score_threshold import ScoreThreshold
from dpwitness.events.thresholds import Thresholds, thresholds_of
from dpwitness.events.writing import LARGEST, Noun, codes_in

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
    "ScoreThreshold",
    "Thresholds",
    "around",
    "cells_of",
    "codes_in",
    "event_from_json",
    "is_partition",
    "members_of",
    "register_event",
    "thresholds_of",
    "widen",
]
