"""A pair of datasets as what it is: records that both hold, and one that is added or replaced."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpwitness.neighbours.datasets.fields import Record

__all__ = ["Change", "change_between", "rank_of", "same_record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Records that both datasets hold, and at `place` the record `after`, in the other dataset `before` or nothing."""

    others: tuple[Record, ...]
    after: Record
    before: Record | None = None
    place: int | None = None  # None: the end
    label: str = "given"

    @property
    def position(self) -> int:
        """Where `after` stands among the others."""
        return len(self.others) if self.place is None else min(self.place, len(self.others))

    @property
    def datasets(self) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
        """The two datasets, the one without `after` first."""
        place = self.position
        head, tail = self.others[:place], self.others[place:]
        first = head + tail if self.before is None else (*head, self.before, *tail)
        return first, (*head, self.after, *tail)


def change_between(first: Sequence[Record], second: Sequence[Record]) -> Change | None:
    """What was added or replaced between two datasets, the order of the other records unchanged.

    None where they are equal, or where more than one record differs. Order counts, since mechanisms see it: the same
    records in another order are another dataset.
    """
    if len(first) > len(second):
        first, second = second, first
    if len(second) - len(first) > 1:
        return None
    pairs = enumerate(zip(first, second, strict=False))
    place = next((k for k, (a, b) in pairs if not same_record(a, b)), len(first))
    replaced = len(first) == len(second)
    if replaced and place == len(first):
        return None
    if not all(map(same_record, first[place + replaced :], second[place + 1 :])):
        return None
    return Change(
        others=(*first[:place], *first[place + replaced :]),
        before=first[place] if replaced else None,
        after=second[place],
        place=place,
    )


def same_record(first: Record, second: Record) -> bool:
    """Whether two records hold the same values. A domain reads equal values, NaN included, as one object."""
    try:
        return first == second
    except ValueError:  # arrays inside, which are compared entry by entry
        return all(a is b for a, b in zip(first, second, strict=True))


def rank_of(record: Record) -> tuple[tuple[int, Any], ...]:
    """By what records are put in order: numbers, then texts, then all else, where NaN and None are."""
    return tuple(
        (0, value) if isinstance(value, int | float) and value == value
        else (1, value) if isinstance(value, str)
        else (2, repr(value))
        for value in record
    )  # fmt: skip
