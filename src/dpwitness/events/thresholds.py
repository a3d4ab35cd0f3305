"""Nested events {value ≥ t}: what a kind of event whose sets are cuts of a value says of itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpwitness.events.event import Event, Rows

__all__ = ["Thresholds", "thresholds_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """A value of outcomes, and the events {value ≥ t} for every number t."""

    value: Callable[[Rows], NDArray[np.float64]]  # of rows (n, any width) the values (n,); −inf where there is none
    above: Callable[[float], Event]


def thresholds_of(event: Event) -> Sequence[Thresholds]:
    """The nested events that an event is one of; none for kinds that do not say so (a method `thresholds`)."""
    own = getattr(event, "thresholds", None)
    found: Sequence[Thresholds] = own() if callable(own) else ()
    return found
