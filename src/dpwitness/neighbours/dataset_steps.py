"""Steps from one change of a dataset to similar and to simpler changes."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Final

from dpwitness.neighbours.domains import Value, key_of, parts_of
from dpwitness.neighbours.fields import Record
from dpwitness.neighbours.groups import BOTH_SIDES, FIRST_SIDE, SECOND_SIDE, GroupChange, Groups


def order_of(record: Record) -> tuple[tuple[int, Value], ...]:
    """The sort key of a record: numbers come first, then texts, then all other values, NaN and None too."""
    return tuple(
        (0, value) if isinstance(value, int | float) and value == value
        else (1, value) if isinstance(value, str)
        else (2, repr(value))
        for value in record
    )  # fmt: skip


def setting(path: str, value: Value) -> str:
    """The name and the value of a field, for labels."""
    return f"{path}={value!r:.20}"


def with_value(record: Record, k: int, value: object) -> Record:
    """The record with `value` as its field k."""
    return (*record[:k], value, *record[k + 1 :])


#: The largest number of fields that are changed one by one: the last fields, since a label is usually last.
CHANGED_FIELDS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The variations and the shrinking steps of a change of a group."""

    groups: Groups

    def varied(self, change: GroupChange) -> Iterator[GroupChange]:
        """Variations of a change: other records beside the group, another place of the group, or other values in it."""
        middle, paths = self.groups.fields.middle(), self.groups.fields.paths
        others, after, before = map(change.on, (BOTH_SIDES, SECOND_SIDE, FIRST_SIDE))
        n = len(others)
        for count in self.groups.contributions:
            yield GroupChange.of(others, after[:1] * count, before[:1] * count, n, f"{count} equal records")
        for size in (2 * n + 1, n // 2, 10 * n, n + 1, 1):
            if size <= max(1000, n) and size != n:
                repeated = others or (middle,)
                resized = [repeated[k % len(repeated)] for k in range(size)]
                yield GroupChange.of(resized, after, before, size, f"{size} other records")
        yield GroupChange.of(others, after, before, 0, "as the first record")
        yield GroupChange.of(others, after, before, n // 2, "as the middle record")
        for name, records in (("ordinary", [middle]), ("equal", after[:1]), ("equal", before[:1])):
            yield from (self._all_others(change, record, f"all others {name}") for record in records)
        for k in reversed(range(len(paths))[-CHANGED_FIELDS:]):
            domain = self.groups.fields.domains[k]
            in_others = [self._with_value(change, BOTH_SIDES, k, v) for v in (*domain.odd()[:1], *domain.ends()[:2])]
            if k != self.groups.place:
                yield from (*in_others[:-2], *self._with_values(change, k, domain.near), *in_others[-2:])

    def simpler(self, change: GroupChange) -> Iterator[GroupChange]:
        """Changes with fewer records, differing fields or kinds of records, or rounder values; largest steps first."""
        length = self._length(change)
        for step in self._simpler(change):
            if step.differs and self._length(step) < length:
                yield replace(step, label="shrunk")

    def _simpler(self, change: GroupChange) -> Iterator[GroupChange]:
        others, after, before = map(change.on, (BOTH_SIDES, SECOND_SIDE, FIRST_SIDE))
        for side in (BOTH_SIDES, SECOND_SIDE, FIRST_SIDE):
            places = [k for k, (_, own) in enumerate(change.rows) if own == side]
            whole = [places] if side == BOTH_SIDES else []  # some records of a group stay
            for left_out in (*whole, *parts_of(places, 16)):
                yield change.without(set(left_out))
        yield GroupChange.of(others, after[:1] * len(after), before[:1] * len(before), len(others), "alike")
        yield GroupChange.of(others, after, before, len(others), "at the end")
        for k in range(len(after[0]) if before else 0):
            yield self._with_value(change, SECOND_SIDE, k, before[0][k])
            yield self._with_value(change, FIRST_SIDE, k, after[0][k])
        for record in (self.groups.fields.middle(), *others[:1], after[0], *before[:1]):
            yield self._all_others(change, record, "equal")
        for k, domain in enumerate(self.groups.fields.domains):
            yield from self._with_values(change, k, domain.simpler)
            if k != self.groups.place:
                simplest = {key_of(r[k]): next(domain.simpler(r[k]), r[k]) for r in others}
                yield change.edited(BOTH_SIDES, partial(_mapped, k, simplest))

    def _length(self, change: GroupChange) -> tuple[int, ...]:
        """The length of a change for a reader; a change of smaller length is simpler.

        Its entries count the other records, the group's records, the differing fields, the group's different records,
        all different records (units aside), the group's records ahead of other records, and the characters.
        """
        others, after, before = map(change.on, (BOTH_SIDES, SECOND_SIDE, FIRST_SIDE))
        group = {tuple(map(key_of, record)) for record in (*after, *before)}
        kinds = {
            tuple(key_of(value) for k, value in enumerate(record) if k != self.groups.place): record
            for record, _ in change.rows
        }
        pairs = zip(after[0], (before or after)[0], strict=True)
        differing = sum(key_of(a) != key_of(b) for a, b in pairs) if before else len(after[0])
        last = max((k for k, (_, side) in enumerate(change.rows) if side == BOTH_SIDES), default=0)
        letters = sum(len(repr(value)) for record in kinds.values() for value in record)
        ahead = sum(side != BOTH_SIDES for _, side in change.rows[:last])
        return len(others), len(after) + len(before), differing, len(group), len(kinds), ahead, letters

    def _all_others(self, change: GroupChange, record: Record, label: str) -> GroupChange:
        """The change with all other records equal to `record`, except for their units."""
        k = self.groups.place
        return change.edited(BOTH_SIDES, lambda own: record if k is None else with_value(record, k, own[k]), label)

    def _with_value(self, change: GroupChange, side: int, k: int, value: Value) -> GroupChange:
        """The change with one value of one field in all records of one side."""
        label = setting(self.groups.fields.paths[k], value) + (" in all others" if side == BOTH_SIDES else "")
        return change.edited(side, lambda record: with_value(record, k, value), label)

    def _with_values(
        self, change: GroupChange, k: int, to_try: Callable[[Value], Iterator[Value]]
    ) -> Iterator[GroupChange]:
        """Changes with up to 4 other values of field k in the group's records, then in the replaced records."""
        for side in (SECOND_SIDE, FIRST_SIDE):
            for record in change.on(side)[:1]:
                for value in islice(to_try(record[k]), 4):
                    yield self._with_value(change, side, k, value)


def _mapped(k: int, values: dict[Hashable, Value], record: Record) -> Record:
    return with_value(record, k, values[key_of(record[k])])
