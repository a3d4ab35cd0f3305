"""Groups of records: a group is all records of a unit, such as a person, or one record if records have no units.

A field names the unit of a record. Neighbours differ in one group; all other records keep their order.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.domains import Value, flags, key_of
from dpwitness.neighbours.fields import FILL_SEED, Fields, Record

#: The side of a record in both datasets.
BOTH_SIDES: Final = 0
#: The side of a record in the first dataset alone.
FIRST_SIDE: Final = 1
#: The side of a record in the second dataset alone.
SECOND_SIDE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """The records of two datasets in their order, each with its side: `BOTH_SIDES`, `FIRST_SIDE` or `SECOND_SIDE`.

    A group is added if no record has the side `FIRST_SIDE`, else it is replaced.
    """

    rows: tuple[tuple[Record, int], ...]
    label: str = "given"

    @classmethod
    def of(
        cls, others: Iterable[Record], after: Iterable[Record], before: Iterable[Record], place: int, label: str
    ) -> "GroupChange":
        """The change of a group from `before` to `after`, whose records stand before the record `others[place]`."""
        rest = [(record, BOTH_SIDES) for record in others]
        group = [*((record, FIRST_SIDE) for record in before), *((record, SECOND_SIDE) for record in after)]
        return cls(rows=(*rest[:place], *group, *rest[place:]), label=label)

    def on(self, side: int) -> tuple[Record, ...]:
        """The records of one side."""
        return tuple(record for record, own in self.rows if own == side)

    @property
    def replaces(self) -> bool:
        """Whether a group is replaced, not added."""
        return any(side == FIRST_SIDE for _, side in self.rows)

    @property
    def datasets(self) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
        """The two datasets: the first without records of `SECOND_SIDE`, the second without records of `FIRST_SIDE`."""
        return tuple(r for r, side in self.rows if side != SECOND_SIDE), tuple(
            r for r, side in self.rows if side != FIRST_SIDE
        )

    @property
    def differs(self) -> bool:
        """Whether the two datasets differ."""
        first, second = self.datasets
        return len(first) != len(second) or not all(map(same_record, first, second))

    def edited(self, side: int, edit: Callable[[Record], Record], label: str = "shrunk") -> "GroupChange":
        """The change with `edit` applied to the records of one side."""
        return GroupChange(rows=tuple((edit(r) if own == side else r, own) for r, own in self.rows), label=label)

    def without(self, places: set[int]) -> "GroupChange":
        """The change without the records at the given places."""
        return GroupChange(rows=tuple(row for k, row in enumerate(self.rows) if k not in places), label="shrunk")


def same_record(first: Record, second: Record) -> bool:
    """Whether two records hold the same values. A domain reads equal values, NaN included, as one object."""
    try:
        return first == second
    except (ValueError, ArithmeticError):  # arrays inside, whose comparison is an array; a signalling NaN
        return all(a is b for a, b in zip(first, second, strict=True))


#: Numbers of records of a unit that are tried if the claim does not bound them, the most promising number first.
CONTRIBUTIONS: Final = (3, 1, 10, 100, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The groups of datasets: the value at `place` of a flat record names its unit.

    `at_most`: the largest number of records of a unit; None: any number. Without a `place` each record is a group.
    """

    fields: Fields
    place: int | None = None
    at_most: int | None = None

    @classmethod
    def of(cls, fields: Fields, unit: object, at_most: object) -> "Groups":
        """The groups by a field, given by its name or its number from 0; None: no units. Raises `InvalidNeighbours`."""
        if unit is None:
            if at_most is not None:
                raise InvalidNeighbours(
                    f"at_most={brief(at_most)} is how many records a unit may have: give unit=, a field"
                )
            return cls(fields=fields)
        if at_most is not None and (isinstance(at_most, bool) or not isinstance(at_most, int) or at_most < 1):
            raise InvalidNeighbours(f"at_most={brief(at_most)} must be a whole number of at least 1: records of a unit")
        known = fields.names if fields.kind == "dict" else range(len(fields.parts)) if fields.kind != "value" else ()
        if isinstance(unit, bool) or not isinstance(unit, str | int) or unit not in known:
            names = ", ".join(map(repr, known)) or "no fields, as a record is one value"
            raise InvalidNeighbours(
                f"unit={brief(unit)} must be the field that says whose a record is; fields: {names:.200}"
            )
        k = list(known).index(unit)
        part = fields.parts[k]
        if isinstance(part, Fields):
            raise InvalidNeighbours(f"unit={brief(unit)} must be a field of single values, not of fields again")
        if part.holds(None) or part.holds(float("nan")):
            raise InvalidNeighbours(
                f"unit={brief(unit)} may be missing in its domain {part}: give one in which each record has a unit"
            )
        place = sum(len(one.domains) if isinstance(one, Fields) else 1 for one in fields.parts[:k])
        return cls(fields=fields, place=place, at_most=at_most)

    @property
    def rest(self) -> Fields:
        """All fields except the unit; a flag if there is no other field."""
        if self.place is None:
            return self.fields
        domains, paths = list(self.fields.domains), list(self.fields.paths)
        del domains[self.place], paths[self.place]
        return Fields(kind="dict", names=tuple(paths), parts=tuple(domains)) if domains else Fields(parts=(flags(),))

    def stripped(self, record: Record) -> Record:
        """A record without its unit."""
        if self.place is None:
            return record
        return (*record[: self.place], *record[self.place + 1 :]) if len(record) > 1 else (False,)

    def record(self, rest: Record, unit: Value) -> Record:
        """The record of a unit with the other values `rest`."""
        if self.place is None:
            return rest
        return (*rest[: self.place], unit, *rest[self.place :]) if len(self.fields.domains) > 1 else (unit,)

    def owners(self, records: Sequence[Record]) -> Sequence[Hashable]:
        """The key of each record's unit; without units its place in the dataset."""
        place = self.place
        return range(len(records)) if place is None else [key_of(record[place]) for record in records]

    def too_many(self, records: Sequence[Record]) -> str | None:
        """A text on the unit with more records than the bound, for messages; None if every unit is within the bound."""
        if self.place is None or self.at_most is None or not records:
            return None
        owners = self.owners(records)
        key, count = Counter(owners).most_common(1)[0]
        if count <= self.at_most:
            return None
        value = records[owners.index(key)][self.place]
        return f"{count} records of {self.fields.paths[self.place]} {brief(value)}, and at_most={self.at_most}"

    def change_between(self, first: Sequence[Record], second: Sequence[Record]) -> GroupChange | None:
        """The change of the only changed group, with other records in order; None unless exactly one group changed."""
        lengths = len(first), len(second)
        same = map(same_record, first, second)
        place = next((k for k, equal in enumerate(same) if not equal), min(lengths))
        if place == max(lengths):
            return None
        owners = self.owners(first), self.owners(second)
        tried: list[tuple[Hashable | None, ...]]
        if self.place is None:
            tried = [tuple(place if length == max(lengths) else None for length in lengths)]
        else:
            gone, new = set(owners[0]) - set(owners[1]), set(owners[1]) - set(owners[0])
            if len(gone) > 1 or len(new) > 1:
                return None
            tried = [(next(iter(gone), None), next(iter(new), None))]
            if not gone and not new:
                # One of the first two differing records is of the unit, or other records would differ.
                tried = [(side[place], side[place]) for side in owners if place < len(side)]
        for units in tried:
            sides = ([own == unit for own in side] for side, unit in zip(owners, units, strict=True))
            change = _merged(first, second, *sides)
            if change is not None:
                return change
        return None

    @property
    def contributions(self) -> tuple[int, ...]:
        """Numbers of records of a unit to try: the bound first; `CONTRIBUTIONS` without a bound; () without units."""
        if self.place is None:
            return ()
        if self.at_most is None:
            return CONTRIBUTIONS
        return tuple(dict.fromkeys((self.at_most, 1, min(2, self.at_most), max(self.at_most - 1, 1))))

    def units(self, n: int) -> list[Value]:
        """Up to `n` different units: a drawn unit, both ends, then drawn units; `[None]` without units."""
        if self.place is None:
            return [None]
        domain, rng = self.fields.domains[self.place], np.random.default_rng(FILL_SEED)
        first, *drawn = (domain.draw(rng) for _ in range(2 * n + 16))
        values = (first, *domain.ends()[:2], *drawn, *domain.samples())
        return list({key_of(value): value for value in values}.values())[:n]


def _merged(
    first: Sequence[Record], second: Sequence[Record], gone: Sequence[bool], new: Sequence[bool]
) -> GroupChange | None:
    """The change whose group has the records marked in `gone` and in `new`; None if other records differ."""
    rows: list[tuple[Record, int]] = []
    before = FIRST_SIDE if any(new) else SECOND_SIDE  # a group of one dataset alone is added
    i = j = 0
    while i < len(first) or j < len(second):
        if i < len(first) and gone[i]:
            rows.append((first[i], before))
            i += 1
        elif j < len(second) and new[j]:
            rows.append((second[j], SECOND_SIDE))
            j += 1
        elif i < len(first) and j < len(second) and same_record(first[i], second[j]):
            rows.append((first[i], BOTH_SIDES))
            i, j = i + 1, j + 1
        else:
            return None
    return GroupChange(rows=tuple(rows))
