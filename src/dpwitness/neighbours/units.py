"""Datasets whose neighbours differ in all records of one unit, such as a person, whose records a field names.

A change of single records (`dataset_pairs`) becomes a change of units: each of their records becomes one of several of
a unit, alike or different.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.dataset_changes import AFTER, BEFORE, BOTH, Change, Steps, same_record
from dpwitness.neighbours.dataset_pairs import SEED, Proposals, distinct
from dpwitness.neighbours.domains import Domain, Value, flags, in_turn, key_of
from dpwitness.neighbours.fields import Fields, Record

#: Records of a unit that are tried where no bound is given.
CONTRIBUTIONS: Final = (3, 1, 10, 100, 2)
#: Units of a base that are removed or replaced one by one.
MOST_UNITS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The units of datasets: the field at `place` of a flat record says whose it is; a unit has `at_most` records."""

    fields: Fields
    place: int
    at_most: int | None = None

    @classmethod
    def of(cls, fields: Fields, unit: object, at_most: object) -> "Units":
        """Units by the name of a field, or by its number from 0 where fields have no names.

        Raises `InvalidNeighbours` for no such field, one that may be missing, and a bound that makes no sense.
        """
        if at_most is not None and (isinstance(at_most, bool) or not isinstance(at_most, int) or at_most < 1):
            raise InvalidNeighbours(f"at_most={brief(at_most)} must be a whole number of at least 1: records of a unit")
        known = fields.names if fields.kind == "dict" else range(len(fields.parts)) if fields.kind != "value" else ()
        if isinstance(unit, bool) or not isinstance(unit, str | int) or unit not in known:
            names = ", ".join(map(repr, known)) or "none: a record is one value"
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
    def domain(self) -> Domain:
        """The values of the field."""
        return self.fields.domains[self.place]

    @property
    def rest(self) -> Fields:
        """All other fields; a flag where there is no other field."""
        domains, paths = list(self.fields.domains), list(self.fields.paths)
        del domains[self.place], paths[self.place]
        return Fields(kind="dict", names=tuple(paths), parts=tuple(domains)) if domains else Fields(parts=(flags(),))

    def stripped(self, record: Record) -> Record:
        """A record without its unit."""
        return (*record[: self.place], *record[self.place + 1 :]) if len(record) > 1 else (False,)

    def record(self, rest: Record, unit: Value) -> Record:
        """A record of a unit."""
        return (*rest[: self.place], unit, *rest[self.place :]) if len(self.fields.domains) > 1 else (unit,)

    def key(self, record: Record) -> Hashable:
        """The unit of a record: equal units have equal keys."""
        return key_of(record[self.place])

    def too_many(self, records: Sequence[Record]) -> str | None:
        """The unit that exceeds the bound, for messages; None where there is none."""
        if self.at_most is None:
            return None
        counts = Counter(map(self.key, records))
        if not counts or max(counts.values()) <= self.at_most:
            return None
        key, count = counts.most_common(1)[0]
        value = next(record[self.place] for record in records if self.key(record) == key)
        return f"{count} records of {self.fields.paths[self.place]} {brief(value)}, and at_most={self.at_most}"

    def change_between(self, first: Sequence[Record], second: Sequence[Record]) -> Change | None:
        """The unit that was added, or whose records were replaced; None where more or nothing differs.

        The records of all other units are the same, in the same order.
        """
        keys = [set(map(self.key, side)) for side in (first, second)]
        gone, new = keys[0] - keys[1], keys[1] - keys[0]
        if len(gone) > 1 or len(new) > 1:
            return None
        if gone or new:
            if gone and not new:
                first, second, gone, new = second, first, new, gone
            return self._merged(first, second, next(iter(gone), None), next(iter(new)))
        # The same units: at the first record that differs one of the two is of the unit, or the others would differ.
        place = next((k for k, (a, b) in enumerate(zip(first, second, strict=False)) if not same_record(a, b)), None)
        if place is None:
            place = min(len(first), len(second))
        units = [self.key(side[place]) for side in (first, second) if place < len(side)]
        return next(filter(None, (self._merged(first, second, unit, unit) for unit in units)), None)

    def _merged(
        self, first: Sequence[Record], second: Sequence[Record], gone: Hashable | None, new: Hashable
    ) -> Change | None:
        """The change from the records of one unit, if any, to those of another; None if other records differ."""
        records: list[Record] = []
        sides: list[int] = []
        i = j = 0
        while i < len(first) or j < len(second):
            if i < len(first) and self.key(first[i]) == gone:
                side = BEFORE
            elif j < len(second) and self.key(second[j]) == new:
                side = AFTER
            elif i < len(first) and j < len(second) and same_record(first[i], second[j]):
                side = BOTH
            else:
                return None
            records.append(second[j] if side == AFTER else first[i])
            sides.append(side)
            i, j = i + (side != AFTER), j + (side != BEFORE)
        change = Change(records=tuple(records), sides=tuple(sides))
        return change if change.differs else None

    @property
    def steps(self) -> Steps:
        """Steps from a change of units to others."""
        return Steps(fields=self.fields, unit=self.place, contributions=self.contributions)

    @property
    def contributions(self) -> tuple[int, ...]:
        """Numbers of records of a unit that are tried: the bound first, and one."""
        if self.at_most is None:
            return CONTRIBUTIONS
        return tuple(dict.fromkeys((self.at_most, 1, min(2, self.at_most), max(self.at_most - 1, 1))))

    def identifiers(self, n: int) -> list[Value]:
        """The first `n` different values of the field, or all there are; values that real data may hold come first."""
        rng = np.random.default_rng(SEED)
        found = {key_of(value): value for value in (self.domain.draw(rng) for _ in range(2 * n + 16))}
        if len(found) < n:
            found = {**{key_of(value): value for value in self.domain.samples()}, **found}
        return list(found.values())[:n]


class Shape(NamedTuple):
    """The records of the unit that differs: how many, whether alike, and how many they replace."""

    size: int
    alike: bool
    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitProposals:
    """Changes to try, of units: those of `Proposals`, of single records, with several in the place of each.

    `single`: of records without their unit; `allowed`: which two numbers of records neighbours may have.
    """

    units: Units
    single: Proposals
    allowed: Callable[[int, int], bool]
    base: tuple[Record, ...] | None = None

    def __iter__(self) -> Iterator[Change]:
        """The changes, the most promising kinds first, each kind in turn, no change twice."""
        kinds = [] if self.base is None else [self._more_than_base(), self._less_than_base()]
        kinds += [self._lifted(kind, turn) for turn, kind in enumerate(self.single.of_any_data())]
        yield from distinct(in_turn(kinds))

    def plain(self) -> Iterator[Change]:
        """Changes of the first size, of a full unit."""
        return self._lifted(self.single.plain())

    def unusual(self, scale: float) -> Iterator[Change]:
        """Special values and sizes, of a full unit and of other shapes by turns."""
        return self._lifted(self.single.unusual(scale))

    @property
    def _shapes(self) -> list[Shape]:
        """A full unit first."""
        full, *counts = self.units.contributions
        more = [Shape(full, False, full), *([Shape(full, True, 1)] if self.single.replace else [])] if full > 1 else []
        others = [Shape(count, True, count) for count in counts if count != full]
        return [Shape(full, True, full), *others[:1], *more, *others[1:]]

    def _lifted(self, changes: Iterator[Change], start: int = 0) -> Iterator[Change]:
        """Each change as one of a full unit, and as one of another shape in turn."""
        full, *others = self._shapes
        identifiers = self.units.identifiers(max(self.single.sizes) + 2)
        for turn, change in enumerate(changes, start):
            for shape in dict.fromkeys((full, others[turn % len(others)] if others else full)):
                found = self._of_shape(change, shape, turn, identifiers)
                if found is not None:
                    yield found

    def _of_shape(self, change: Change, shape: Shape, turn: int, identifiers: Sequence[Value]) -> Change | None:
        """The change of a unit of a shape; None where sizes or the values of the unit's field do not allow it."""
        others, after, before = map(change.on, (BOTH, AFTER, BEFORE))
        values = [*identifiers[:1], *self.units.domain.ends()[:2]]
        unit = values[turn % len(values)]
        unit_before = unit if turn // 2 % 2 else values[(turn + 1) % len(values)]
        free = [value for value in identifiers if key_of(value) not in map(key_of, (unit, unit_before))]
        replaced = shape.before if before else 0
        for n in (len(others), max(len(others) + 1 - shape.size, 0)):
            owners = self._owners(n, free, several=turn % 2 == 1)
            if owners is None or not self.allowed(n + replaced, n + shape.size):
                continue
            rest = tuple(map(self.units.record, others[:n], owners))
            group = [self.units.record(r, unit) for r in self._records(after[0], shape.size, alike=shape.alike)]
            first = self._records(before[0], replaced, alike=shape.alike) if before else []
            group_before = [self.units.record(r, unit_before) for r in first]
            size = f"{shape.size} {'equal' if shape.alike else 'different'} records" if shape.size > 1 else "1 record"
            label = f"{size} of a unit: {change.label}"
            place = min(change.sides.index(AFTER), n)
            found = Change.of(rest, group, group_before, place, label)
            return found.spread() if turn % 2 else found
        return None

    def _owners(self, n: int, free: Sequence[Value], *, several: bool) -> list[Value] | None:
        """The units of other records, whose records lie apart; None where the domain holds too few.

        `several`: each unit has several records.
        """
        most = self.units.at_most
        per = max((most or CONTRIBUTIONS[0]) if several else 1, -(-n // len(free)) if free else n)
        if n and (not free or (most is not None and per > most)):
            return None
        return [free[k % -(-n // per)] for k in range(n)]

    def _records(self, first: Record, count: int, *, alike: bool) -> list[Record]:
        """Records without their unit that begin with this one."""
        fields = self.single.fields
        drawn = fields.draw(np.random.default_rng(SEED), 0 if alike else count)
        return [first] * count if alike else [first, self.single.opposite(first), fields.middle(), *drawn][:count]

    def _more_than_base(self) -> Iterator[Change]:
        """The base with another unit, or with one in the place of its last one."""
        base, key = self.base or (), self.units.key
        if self.single.replace and not base:
            return
        last = key(base[-1]) if self.single.replace else None
        sides = [BEFORE if key(record) == last else BOTH for record in base]
        known = set(map(key, base))
        candidates = (*self.units.identifiers(len(known) + 1), *self.units.domain.samples())
        new = [value for value in candidates if key_of(value) not in known][:1]
        units = [*new, *([base[-1][self.units.place]] if self.single.replace else [])]
        shapes = self._shapes
        for turn, (name, first) in enumerate(self.single.notable(0) if units else ()):
            for shape in dict.fromkeys((shapes[0], shapes[turn % len(shapes)])):
                unit = units[turn % len(units)]
                group = [self.units.record(r, unit) for r in self._records(first, shape.size, alike=shape.alike)]
                label = f"{shape.size} records of unit {brief(unit)}, {name}, with the others of the base"
                if self.allowed(len(base), sides.count(BOTH) + shape.size):
                    # At the end: rows of the base keep their labels.
                    all_sides = (*sides, *[AFTER] * shape.size)
                    yield Change(records=(*base, *group), sides=all_sides, label=label)

    def _less_than_base(self) -> Iterator[Change]:
        """The base without one of its units, or with its records at the other end; units of most records first."""
        base, key = self.base or (), self.units.key
        ranked = [unit for unit, _ in Counter(map(key, base)).most_common()]
        for unit in islice(dict.fromkeys(in_turn((iter(ranked), reversed(ranked)))), MOST_UNITS):
            rows: list[tuple[Record, int]] = []
            for record in base:
                rows.append((record, BOTH if key(record) != unit else BEFORE if self.single.replace else AFTER))
                if rows[-1][1] == BEFORE:
                    other = self.single.opposite(self.units.stripped(record))
                    rows.append((self.units.record(other, record[self.units.place]), AFTER))
            records, sides = zip(*rows, strict=True)
            what = "at the opposite end" if self.single.replace else "removed"
            yield Change(records=records, sides=sides, label=f"a unit of the base {what}")
