"""Nested events {value ≥ t}: what a kind of event whose sets are cuts of a value says of itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpwitness.events.event import Event, Rows

__all__ = ["Thresholds", "thresholds_of"]


E = TypeVar("E", bound=Event, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds(Generic[E]):
    """A value of outcomes, and the events {value ≥ t} for every number t."""

    value: Callable[[Rows], NDArray[np.float64]]  # of rows (n, any width) the values (n,); −inf where there is none
    above: Callable[[float], E]


def thresholds_of(event: Event) -> Sequence[Thresholds[Any]]:
    """The nested events that an event is one of; none for kinds that do not say so (a method `thresholds`)."""
    own = getattr(event, "thresholds", None)
    found: Sequence[Thresholds[Any]] = own() if callable(own) else ()
    return found
