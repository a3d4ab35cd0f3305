"""The protocol of events: what a kind of event answers for itself."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counted", "Event", "Label", "Rows", "widen"]

Rows = NDArray[np.float64]
#: The text behind a number, for mechanisms that return texts; None where a number is a number.
Label = Callable[[float], str | None]


class Counted(Protocol):
    """What is asked of a set of outcomes that runs are counted in."""

    @property
    def width(self) -> int:
        """How many columns decide membership: entries from there on are not looked at."""

    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        """Which outcomes lie in the set.

        `rows` has the shape (n, any width); entries beyond its width are absent. The answer has the shape (n,).
        """


class Event(Counted, Protocol):
    """A set of outcomes. An outcome is a row of numbers (see `encoding`), NaN where there is no value.

    A kind of event is one class with these members, made readable from JSON by `register_event`. Its values don't
    change once they are made, and can be pickled.
    """

    kind: ClassVar[str]  # the name of the kind, as it stands in JSON

    @property
    def complexity(self) -> tuple[int, int]:
        """How much there is to say of the set; less is simpler.

        First the level: 0 for one outcome or one interval, 1 for several intervals, 2 for a list of outcomes, 3 for a
        set that only a formula describes. Then how many entries, bounds, sides, outcomes or terms there are.
        """

    def simpler(self) -> Sequence["Event"]:
        """Simpler events that are made of parts of this one; none where it has no parts."""

    def rounded(self) -> Iterator["Event"]:
        """The same event with rounder numbers, the roundest first; only those that differ from it."""

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """The set in plain English; `noun` is what one entry is called, `label` gives the text behind a number."""

    def to_json(self) -> dict[str, Any]:
        """Everything needed to build it again, with `kind` under the key "kind"."""

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """The reverse of `to_json`, of a value that nobody has checked.

        Raises `KeyError`, `TypeError` or `ValueError` for what is no such event; `event_from_json` makes
        `InvalidWitness` of them.
        """


def widen(rows: Rows, width: int) -> Rows:
    """Rows of shape (…, n, at least `width`): those given, with absent entries appended where they are narrower."""
    if rows.shape[-1] >= width:
        return rows
    return np.concatenate([rows, np.full((*rows.shape[:-1], width - rows.shape[-1]), np.nan)], axis=-1)
