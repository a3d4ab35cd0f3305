"""Sets of outcomes, and the rows of numbers that outcomes are."""

from dpwitness.events.events import LARGEST, Box, Event, Interval, OutcomeSet, ScoreThreshold, event_from_json, widen

__all__ = ["LARGEST", "Box", "Event", "Interval", "OutcomeSet", "ScoreThreshold", "event_from_json", "widen"]
