"""The change from one dataset to a neighbour, and steps from it to changes like it, or simpler.

Neighbours differ in one group of records: those of one unit, such as a person, or without units in one record.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Final

from dpwitness.neighbours.domains import Value, key_of
from dpwitness.neighbours.fields import Fields, Record

#: The sides of a record: it stands in both datasets, in the one alone, or in the other alone.
BOTH: Final = 0
BEFORE: Final = 1
AFTER: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The records of two datasets in their order, each with its side: `BOTH`, `BEFORE` or `AFTER`.

    A group is added where there are no records `BEFORE`, else it is replaced.
    """

    records: tuple[Record, ...]
    sides: tuple[int, ...]
    label: str = "given"

    @classmethod
    def of(
        cls, others: Sequence[Record], after: Sequence[Record], before: Sequence[Record], place: int, label: str
    ) -> "Change":
        """A group among others, all its records before the one at `place`."""
        sides = (BOTH,) * place + (BEFORE,) * len(before) + (AFTER,) * len(after) + (BOTH,) * (len(others) - place)
        return cls(records=(*others[:place], *before, *after, *others[place:]), sides=sides, label=label)

    def on(self, side: int) -> tuple[Record, ...]:
        """The records of one side."""
        return tuple(record for record, own in zip(self.records, self.sides, strict=True) if own == side)

    @property
    def replaces(self) -> bool:
        """Whether a group is replaced, not added."""
        return BEFORE in self.sides

    @property
    def datasets(self) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
        """The two datasets, the one with the records `BEFORE` first."""
        both = list(zip(self.records, self.sides, strict=True))
        return tuple(r for r, side in both if side != AFTER), tuple(r for r, side in both if side != BEFORE)

    @property
    def differs(self) -> bool:
        """Whether the two datasets do."""
        first, second = self.datasets
        return len(first) != len(second) or not all(map(same_record, first, second))

    @property
    def absent(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of a dataset with a place for each record of both, the places that are empty in the one and in the other.

        A record takes the place of the one that it replaces.
        """
        empty: dict[int, list[int]] = {BEFORE: [], AFTER: []}
        start, counts = 0, {BEFORE: 0, AFTER: 0}  # of the group's records since the last record of both
        for side in (*self.sides, BOTH):
            if side != BOTH:
                counts[side] += 1
                continue
            places = max(counts.values())
            for own, count in counts.items():
                empty[own] += range(start + count, start + places)
            start, counts = start + places + 1, {BEFORE: 0, AFTER: 0}
        return tuple(empty[BEFORE]), tuple(empty[AFTER])

    def spread(self) -> "Change":
        """The same with the records of the group apart, as evenly as may be."""
        group = [row for row in zip(self.records, self.sides, strict=True) if row[1] != BOTH]
        rows: list[tuple[Record, int]] = [(record, BOTH) for record in self.on(BOTH)]
        n = len(rows)
        for k, row in reversed(list(enumerate(group))):
            rows.insert(k * n // max(len(group) - 1, 1), row)
        return Change(records=tuple(r for r, _ in rows), sides=tuple(side for _, side in rows), label=self.label)

    def edited(self, side: int, edit: Callable[[Record], Record], label: str = "shrunk") -> "Change":
        """The same with other values in the records of one side."""
        both = zip(self.records, self.sides, strict=True)
        return replace(self, records=tuple(edit(r) if own == side else r for r, own in both), label=label)

    def without(self, places: set[int]) -> "Change":
        """The same without the records at some places."""
        kept = [k for k in range(len(self.records)) if k not in places]
        records = tuple(self.records[k] for k in kept)
        return Change(records=records, sides=tuple(self.sides[k] for k in kept), label="shrunk")


def change_between(first: Sequence[Record], second: Sequence[Record]) -> Change | None:
    """The record that was added or replaced between two datasets, the order of the other records unchanged.

    None for equal datasets, and where more than one record differs. Order counts, since mechanisms see it: the same
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
    others = (*first[:place], *first[place + replaced :])
    return Change.of(others, [second[place]], first[place : place + replaced], place, "given")


def same_record(first: Record, second: Record) -> bool:
    """Whether two records hold the same values. A domain reads equal values, NaN included, as one object."""
    try:
        return first == second
    except (ValueError, ArithmeticError):  # arrays inside, which are compared entry by entry; a signalling NaN
        return all(a is b for a, b in zip(first, second, strict=True))


def order_of(record: Record) -> tuple[tuple[int, Value], ...]:
    """The sort key of a record: numbers come first, then texts, then all else, NaN and None too."""
    return tuple(
        (0, value) if isinstance(value, int | float) and value == value
        else (1, value) if isinstance(value, str)
        else (2, repr(value))
        for value in record
    )  # fmt: skip


def setting(path: str, value: Value) -> str:
    """The value of a field, for labels."""
    return f"{path}={value!r:.20}"


def with_value(record: Record, k: int, value: object) -> Record:
    """A record with another value at place k."""
    return (*record[:k], value, *record[k + 1 :])


#: Fields that are changed one by one.
FIELDS: Final = 8
#: Values that are tried for a field.
NEAR_VALUES: Final = 4
#: Records that are left out one by one.
SINGLES: Final = 16
#: Records that variations go up to.
LARGEST: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Steps from a change to others.

    The field at place `unit`, if any, says whose a record is; `contributions` are numbers of records of a unit to try.
    """

    fields: Fields
    unit: int | None = None
    contributions: tuple[int, ...] = ()

    def varied(self, change: Change) -> Iterator[Change]:
        """Other records beside the group, other numbers of them, another place, other values of the group's records."""
        middle, paths = self.fields.middle(), self.fields.paths
        others, after, before = map(change.on, (BOTH, AFTER, BEFORE))
        n = len(others)
        for count in self.contributions:
            alike = Change.of(others, after[:1] * count, before[:1] * count, n, f"{count} equal records, apart")
            yield alike.spread()
        for size in (2 * n + 1, n // 2, 10 * n, n + 1, 1):
            if size <= max(LARGEST, n) and size != n:
                repeated = others or (middle,)
                resized = [repeated[k % len(repeated)] for k in range(size)]
                yield Change.of(resized, after, before, size, f"{size} other records")
        yield Change.of(others, after, before, 0, "as the first record")
        yield Change.of(others, after, before, n // 2, "as the middle record")
        for name, records in (("ordinary", [middle]), ("equal", after[:1]), ("equal", before[:1])):
            yield from (self._all_others(change, record, f"all others {name}") for record in records)
        for name, falling in (("rising", False), ("falling", True)):
            ordered = sorted(others, key=order_of, reverse=falling)
            yield Change.of(ordered, after, before, n // 2, f"others in {name} order")
        for k in reversed(range(len(paths))[-FIELDS:]):
            domain = self.fields.domains[k]
            in_others = [self._with_value(change, BOTH, k, v) for v in (*domain.odd()[:1], *domain.ends()[:2])]
            if k != self.unit:
                yield from (*in_others[:-2], *self._with_values(change, k, domain.near), *in_others[-2:])

    def simpler(self, change: Change) -> Iterator[Change]:
        """Fewer records, fewer fields that differ, fewer kinds of records, rounder values; the largest steps first."""
        length = self._length(change)
        for step in self._simpler(change):
            if step.differs and self._length(step) < length:
                yield replace(step, label="shrunk")

    def _simpler(self, change: Change) -> Iterator[Change]:
        others, after, before = map(change.on, (BOTH, AFTER, BEFORE))
        for side in (BOTH, AFTER, BEFORE):
            places = [k for k, own in enumerate(change.sides) if own == side]
            for left_out in list(_parts(places))[side != BOTH :]:  # some records of a group stay
                yield change.without(set(left_out))
        yield Change.of(others, after[:1] * len(after), before[:1] * len(before), len(others), "alike")
        yield Change.of(others, after, before, len(others), "at the end")
        for k in range(len(after[0]) if before else 0):
            yield self._with_value(change, AFTER, k, before[0][k])
            yield self._with_value(change, BEFORE, k, after[0][k])
        for record in (self.fields.middle(), *others[:1], after[0], *before[:1]):
            yield self._all_others(change, record, "equal")
        for k, domain in enumerate(self.fields.domains):
            yield from self._with_values(change, k, domain.simpler)
            if k != self.unit:
                simplest = {key_of(r[k]): next(domain.simpler(r[k]), r[k]) for r in others}
                yield change.edited(BOTH, partial(_mapped, k, simplest), "simplest")

    def _length(self, change: Change) -> tuple[int, ...]:
        """The length of a change to read; less is simpler.

        Numbers of other records, of records of the group, of fields that differ, of different records of the group, of
        different records but for their unit, of records of the group before others, and of characters.
        """
        others, after, before = map(change.on, (BOTH, AFTER, BEFORE))
        group = {tuple(map(key_of, record)) for record in (*after, *before)}
        kinds = {
            tuple(key_of(value) for k, value in enumerate(record) if k != self.unit): record
            for record in change.records
        }
        pairs = zip(after[0], (before or after)[0], strict=True)
        differing = sum(key_of(a) != key_of(b) for a, b in pairs) if before else len(after[0])
        last = max((k for k, side in enumerate(change.sides) if side == BOTH), default=0)
        letters = sum(len(repr(value)) for record in kinds.values() for value in record)
        ahead = sum(map(bool, change.sides[:last]))
        return len(others), len(after) + len(before), differing, len(group), len(kinds), ahead, letters

    def _all_others(self, change: Change, record: Record, label: str) -> Change:
        """All other records equal to one, but for their units."""
        k = self.unit
        return change.edited(BOTH, lambda own: record if k is None else with_value(record, k, own[k]), label)

    def _with_value(self, change: Change, side: int, k: int, value: Value) -> Change:
        """One field of the records of one side with one value."""
        label = setting(self.fields.paths[k], value) + (" in all others" if side == BOTH else "")
        return change.edited(side, lambda record: with_value(record, k, value), label)

    def _with_values(self, change: Change, k: int, to_try: Callable[[Value], Iterator[Value]]) -> Iterator[Change]:
        """One field of the records that differ with a few values, then of those that they replace."""
        for side in (AFTER, BEFORE):
            for record in change.on(side)[:1]:
                for value in islice(to_try(record[k]), NEAR_VALUES):
                    yield self._with_value(change, side, k, value)


def _mapped(k: int, values: dict[Hashable, Value], record: Record) -> Record:
    """A record with the value of one field replaced by that of a table."""
    return with_value(record, k, values[key_of(record[k])])


def _parts(places: Sequence[int]) -> Iterator[Sequence[int]]:
    """All of some places, halves, quarters, … and single ones."""
    n = len(places)
    if n:
        yield places
    chunk = n // 2
    while chunk and n // chunk <= SINGLES:
        for start in range(0, n, chunk):
            yield places[start : start + chunk]
        chunk //= 2
