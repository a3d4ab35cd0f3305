"""Datasets of which neighbours differ in all records of one unit, such as a person, whose records a field names.

What is tried of single records (`dataset_pairs`) is tried of units: each of their records becomes one of several of a
unit, alike or different, together or apart.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

import numpy as np

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.dataset_pairs import (
    SEED,
    Change,
    Proposals,
    distinct,
    fewer,
    same_record,
    simpler_changes,
    varied_changes,
    with_value,
)
from dpwitness.neighbours.domains import Domain, Value, flags, in_turn, key_of
from dpwitness.neighbours.fields import Fields, Record

#: Records of a unit that are tried where no bound is given.
CONTRIBUTIONS: Final = (3, 1, 10, 100, 2)
#: Units of a base that are removed or replaced one by one.
MOST_UNITS: Final = 24
#: Whether two numbers of records may be those of neighbours.
Allowed = Callable[[int, int], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitChange:
    """Records that both datasets hold, and those of one unit: `before` in one of them, `after` in the other.

    Each record of the unit stands in a gap: gap k is before record k of the others, counted from 0, and the last one
    behind all. `before` is empty where the unit is added.
    """

    others: tuple[Record, ...]
    after: tuple[Record, ...]
    gaps: tuple[int, ...]
    before: tuple[Record, ...] = ()
    gaps_before: tuple[int, ...] = ()
    label: str = "given"

    @property
    def replaces(self) -> bool:
        """Whether other records of a unit are replaced."""
        return bool(self.before)

    @property
    def differs(self) -> bool:
        """Whether the two datasets do."""
        first, second = self.datasets
        return len(first) != len(second) or not all(map(same_record, first, second))

    @property
    def datasets(self) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
        """The two datasets, the one without `after` first."""
        return _inserted(self.others, self.before, self.gaps_before), _inserted(self.others, self.after, self.gaps)

    @property
    def absent(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of a dataset with a place for each record of both, the places that are empty in the one and in the other."""
        counts = Counter(self.gaps_before), Counter(self.gaps)
        empty: tuple[list[int], list[int]] = ([], [])
        used = 0
        for gap in sorted({*self.gaps_before, *self.gaps}):
            places = max(count[gap] for count in counts)
            for own, count in zip(empty, counts, strict=True):
                own += range(gap + used + count[gap], gap + used + places)
            used += places
        return tuple(empty[0]), tuple(empty[1])


def _inserted(others: Sequence[Record], records: Sequence[Record], gaps: Sequence[int]) -> tuple[Record, ...]:
    """The others with records in these gaps, which rise."""
    found: list[Record] = []
    start = 0
    for gap, record in zip(gaps, records, strict=True):
        found += others[start:gap]
        found.append(record)
        start = gap
    return (*found, *others[start:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Whose records are whose: the field at `place` of the flat record; a unit may have `at_most` so many, if given."""

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
        """All other fields; a flag in place of none."""
        domains, paths = list(self.fields.domains), list(self.fields.paths)
        del domains[self.place], paths[self.place]
        return Fields(kind="dict", names=tuple(paths), parts=tuple(domains)) if domains else Fields(parts=(flags(),))

    def stripped(self, record: Record) -> Record:
        """A record without its unit."""
        return (*record[: self.place], *record[self.place + 1 :]) if len(record) > 1 else (False,)

    def record(self, rest: Record, unit: Value) -> Record:
        """A record of a unit."""
        if len(self.fields.domains) == 1:
            return (unit,)
        return (*rest[: self.place], unit, *rest[self.place :])

    def too_many(self, records: Sequence[Record]) -> str | None:
        """What exceeds the bound, for messages; None where nothing does."""
        if self.at_most is None:
            return None
        counts = Counter(key_of(record[self.place]) for record in records)
        if not counts or max(counts.values()) <= self.at_most:
            return None
        key, count = counts.most_common(1)[0]
        value = next(record[self.place] for record in records if key_of(record[self.place]) == key)
        return f"{count} records of {self.fields.paths[self.place]} {brief(value)}, and at_most={self.at_most}"

    def change_between(self, first: Sequence[Record], second: Sequence[Record]) -> UnitChange | None:
        """The unit that was added, or whose records were replaced; None where more differs, or nothing.

        The records of all other units are the same, in the same order.
        """
        keys = [{key_of(record[self.place]) for record in side} for side in (first, second)]
        gone, new = keys[0] - keys[1], keys[1] - keys[0]
        if len(gone) > 1 or len(new) > 1:
            return None
        if gone or new:
            if gone and not new:
                first, second, gone, new = second, first, new, gone
            return self._between(first, second, next(iter(gone), None), next(iter(new)))
        # The same units: at the first record that differs one of the two is of the unit, or the others would differ.
        place = next((k for k, (a, b) in enumerate(zip(first, second, strict=False)) if not same_record(a, b)), None)
        if place is None:
            place = min(len(first), len(second))
        for side in (first, second):
            if place < len(side):
                unit = key_of(side[place][self.place])
                found = self._between(first, second, unit, unit)
                if found is not None:
                    return found
        return None

    def _between(
        self, first: Sequence[Record], second: Sequence[Record], gone: Hashable | None, new: Hashable
    ) -> UnitChange | None:
        """The change from the records of one unit to those of another, or from none, all others being equal."""
        others, before, gaps_before = self.apart(first, gone)
        rest, after, gaps = self.apart(second, new)
        if len(others) != len(rest) or not all(map(same_record, others, rest)):
            return None
        change = UnitChange(others=others, after=after, gaps=gaps, before=before, gaps_before=gaps_before)
        return change if change.differs else None

    def apart(
        self, records: Sequence[Record], unit: Hashable | None
    ) -> tuple[tuple[Record, ...], tuple[Record, ...], tuple[int, ...]]:
        """The records of all other units, those of this one, by its key, and the gaps in which these stand."""
        others: list[Record] = []
        own: list[Record] = []
        gaps: list[int] = []
        for record in records:
            if key_of(record[self.place]) == unit:
                own.append(record)
                gaps.append(len(others))
            else:
                others.append(record)
        return tuple(others), tuple(own), tuple(gaps)

    def varied(self, change: UnitChange) -> Iterator[UnitChange]:
        """Other numbers of records of the unit, in other places, other units; then what varies single records."""
        n, template = len(change.others), change.after
        for count in self.contributions:
            alike = replace(change, after=template[:1] * count, gaps=(change.gaps[0],) * count, label=f"{count} alike")
            yield alike
            yield replace(alike, gaps=_spread(count, n), label=f"{count} alike, apart")
        if len(template) > 1:
            yield replace(change, gaps=_spread(len(template), n), label="apart")
        own = {key_of(record[self.place]) for record in (*change.after, *change.before)}
        units = _Identifiers(self.domain)
        one_each = [value for value in units.first(n + 3) if key_of(value) not in own][:n]
        if len(one_each) == n:
            others = tuple(map(self.record, map(self.stripped, change.others), one_each))
            yield replace(change, others=others, label="all other units of one record")
        single = self._single(change)
        yield from (found for step in varied_changes(self.rest, single) if (found := self._again(step, single, change)))

    def simpler(self, change: UnitChange) -> Iterator[UnitChange]:
        """Fewer other records, fewer of the unit, alike, together; then what simplifies single records."""
        length = self._length(change)
        for step in self._simpler(change):
            if self._length(step) < length:
                yield replace(step, label="shrunk")

    def _simpler(self, change: UnitChange) -> Iterator[UnitChange]:
        others, after, before = change.others, change.after, change.before
        for keep in fewer(len(others)):
            kept = set(keep)
            left = [0]  # of the first k others
            for k in range(len(others)):
                left.append(left[-1] + (k in kept))
            yield replace(
                change,
                others=tuple(others[k] for k in keep),
                gaps=tuple(left[gap] for gap in change.gaps),
                gaps_before=tuple(left[gap] for gap in change.gaps_before),
            )
        for keep in list(fewer(len(after)))[1:]:
            yield replace(change, after=tuple(after[k] for k in keep), gaps=tuple(change.gaps[k] for k in keep))
        for keep in list(fewer(len(before)))[1:]:
            gaps_before = tuple(change.gaps_before[k] for k in keep)
            yield replace(change, before=tuple(before[k] for k in keep), gaps_before=gaps_before)
        yield replace(change, after=after[:1] * len(after), before=before[:1] * len(before))
        yield replace(change, gaps=(len(others),) * len(after), gaps_before=(len(others),) * len(before))
        if before:
            yield replace(change, after=tuple(with_value(r, self.place, before[0][self.place]) for r in after))
        single = self._single(change)
        for step in simpler_changes(self.rest, single):
            if len(step.others) == len(others) and (found := self._again(step, single, change)):
                yield found

    def _length(self, change: UnitChange) -> tuple[int, ...]:
        """How many records, of the unit and others, kinds of them, those apart, and characters; less is simpler."""
        rows = (*change.after, *change.before)
        units = {key_of(record[self.place]) for record in rows}
        kinds = {tuple(map(key_of, self.stripped(record))) for record in (*rows, *change.others)}
        n = len(change.others)
        apart = sum(gap != n for gap in (*change.gaps, *change.gaps_before))
        if change.before:
            pairs = zip(change.after[0], change.before[0], strict=True)
            differing = sum(key_of(a) != key_of(b) for a, b in pairs)
        else:
            differing = len(change.after[0])
        of_unit = len({tuple(map(key_of, record)) for record in rows})
        letters = sum(len(repr(value)) for record in kinds for value in record)
        return n, len(rows), differing, of_unit, len(units), len(kinds), apart, letters

    @property
    def contributions(self) -> tuple[int, ...]:
        """Numbers of records of a unit that are tried: the bound first, and one."""
        if self.at_most is None:
            return CONTRIBUTIONS
        return tuple(dict.fromkeys((self.at_most, 1, min(2, self.at_most), max(self.at_most - 1, 1))))

    def _single(self, change: UnitChange) -> Change:
        """The change of single records that begins where the unit's do."""
        return Change(
            others=tuple(map(self.stripped, change.others)),
            after=self.stripped(change.after[0]),
            before=self.stripped(change.before[0]) if change.before else None,
            place=change.gaps[0],
        )

    def _again(self, step: Change, single: Change, change: UnitChange) -> UnitChange | None:
        """What a step of single records is to a unit: fields that it changes change in all of the unit's records.

        Others keep their units where their number stays. None where there are too few units for them.
        """
        own = {key_of(record[self.place]): record[self.place] for record in (*change.after, *change.before)}
        n = len(step.others)
        if n == len(change.others):
            units = [record[self.place] for record in change.others]
        else:
            per = max(Counter(key_of(record[self.place]) for record in change.others).values(), default=1)
            found = self.units_of(n, per, _Identifiers(self.domain), set(own))
            if found is None:
                return None
            units = found
        moved = step.place != single.place or n != len(change.others)
        place = step.position
        return UnitChange(
            others=tuple(map(self.record, step.others, units)),
            after=self._changed(change.after, single.after, step.after),
            gaps=(place,) * len(change.after) if moved else change.gaps,
            before=self._changed(change.before, single.before or (), step.before or ()),
            gaps_before=(place,) * len(change.before) if moved else change.gaps_before,
            label=step.label,
        )

    def _changed(self, records: tuple[Record, ...], before: Record, after: Record) -> tuple[Record, ...]:
        """Records of a unit with the fields that differ between two stripped records set to the second's."""
        changed = []
        for record in records:
            rest = self.stripped(record)
            values = (own if key_of(a) == key_of(b) else b for own, a, b in zip(rest, before, after, strict=True))
            changed.append(self.record(tuple(values), record[self.place]))
        return tuple(changed)

    def units_of(
        self, n: int, per: int, identifiers: "_Identifiers", taken: set[object], *, mixed: bool = False
    ) -> list[Value] | None:
        """The units of so many other records, so many of each at least; None where the domain holds too few.

        `mixed`: the records of one do not follow each other.
        """
        if not n:
            return []
        free = [value for value in identifiers.first(-(-n // per) + len(taken)) if key_of(value) not in taken]
        if not free:
            return None
        per = max(per, -(-n // len(free)))
        if self.at_most is not None and per > self.at_most:
            return None
        count = -(-n // per)
        return [free[k % count if mixed else k // per] for k in range(n)]


def _spread(count: int, n: int) -> tuple[int, ...]:
    """Gaps of so many records among n others, the first and the last one at the ends."""
    return tuple(k * n // (count - 1) for k in range(count)) if count > 1 else (n // 2,)


class _Identifiers:
    """Values of a domain that differ from each other, those first that real data may hold."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._rng = np.random.default_rng(SEED)
        self._found: dict[object, Value] = {}
        self._all = False

    def first(self, n: int) -> list[Value]:
        """So many, or as many as there are."""
        draws = 2 * max(n - len(self._found), 0) + 16
        while len(self._found) < n and not self._all:
            value = self._domain.draw(self._rng)
            self._found.setdefault(key_of(value), value)
            draws -= 1
            if not draws:
                self._all = True
                for value in self._domain.samples():
                    self._found.setdefault(key_of(value), value)
        return list(islice(self._found.values(), n))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the records of the unit that differs are like: how many, alike or not, apart or together."""

    count: int
    alike: bool = True
    apart: bool = False
    before: int | None = None  # records that they replace; None: as many


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitProposals:
    """Changes to try, of units: those of `Proposals`, of single records, with several in the place of each.

    `allowed`: which two numbers of records neighbours may have; all else as there.
    """

    units: Units
    single: Proposals  # of the fields without the unit
    allowed: Allowed
    base: tuple[Record, ...] | None = None
    identifiers: _Identifiers = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "identifiers", _Identifiers(self.units.domain))

    def __iter__(self) -> Iterator[UnitChange]:
        """The changes, the most promising first, none twice: each of a full unit, and of one of the other shapes."""
        kinds = [] if self.base is None else [self._more_than_base(), self._less_than_base()]
        if not self.single.pinned:
            kinds.append(self._of_single(iter(self.single)))
        yield from distinct(in_turn(kinds))

    def plain(self) -> Iterator[UnitChange]:
        """Changes of the first size, of a full unit."""
        yield from self._of_single(self.single.plain())

    def unusual(self, scale: float) -> Iterator[UnitChange]:
        """Special values and sizes, of a full unit and of other shapes by turns."""
        yield from self._of_single(self.single.unusual(scale))

    @property
    def _shapes(self) -> list[Shape]:
        """A full unit first."""
        full, *counts = self.units.contributions
        different = [Shape(count=full, alike=False, apart=True), Shape(count=full, alike=False)] if full > 1 else []
        unequal = [Shape(count=full, before=1)] if full > 1 and self.single.replace else []
        others = [Shape(count=count) for count in counts if count != full]
        return [Shape(count=full), *others[:1], *different[:1], *unequal, Shape(count=full, apart=True), *different[1:],
                *others[1:]]  # fmt: skip

    def _of_single(self, changes: Iterator[Change]) -> Iterator[UnitChange]:
        full, *others = self._shapes
        for turn, change in enumerate(changes):
            for shape in dict.fromkeys((full, others[turn % len(others)])):
                found = self._lifted(change, shape, turn)
                if found is not None:
                    yield found

    def _lifted(self, change: Change, shape: Shape, turn: int) -> UnitChange | None:
        """The change of a unit of that shape; None where sizes or the values of the unit's field do not allow it."""
        for others in (change.others, change.others[: max(len(change.others) + 1 - shape.count, 0)]):
            n, more = len(others), (shape.before or shape.count) if change.before is not None else 0
            if not self.allowed(n + more, n + shape.count):
                continue
            unit, unit_before = self._differing(turn)
            per = 1 if turn % 2 == 0 else self.units.at_most or CONTRIBUTIONS[0]
            taken = {key_of(unit), key_of(unit_before)}
            units = self.units.units_of(n, per, self.identifiers, taken, mixed=turn % 4 == 3)
            if units is None:
                continue
            place = min(change.position, n)
            gaps = _spread(shape.count, n) if shape.apart else (place,) * shape.count
            before = [] if change.before is None else self._records(change.before, shape, more)
            return UnitChange(
                others=tuple(map(self.units.record, others, units)),
                after=tuple(self.units.record(r, unit) for r in self._records(change.after, shape, shape.count)),
                gaps=gaps,
                before=tuple(self.units.record(r, unit_before) for r in before),
                gaps_before=gaps[:more] if more <= len(gaps) else (place,) * more,
                label=f"{_many(shape)} of a unit: {change.label}",
            )
        return None

    def _differing(self, turn: int) -> tuple[Value, Value]:
        """The unit that differs, and the one that it replaces: the same or another one, ordinary or at an end."""
        ends = self.units.domain.ends()[:2]
        ordinary = self.identifiers.first(1)
        values = [*ordinary, *ends]
        unit = values[turn % len(values)]
        return unit, unit if turn % 2 else values[(turn + 1) % len(values)]

    def _records(self, first: Record, shape: Shape, count: int) -> list[Record]:
        """So many records that begin with this one, without their unit."""
        if shape.alike or count == 1:
            return [first] * count
        fields = self.single.fields
        different = [first, self.single.opposite(first), fields.middle()]
        if count > len(different):
            different += fields.draw(np.random.default_rng(SEED), min(count, 100) - len(different))
        return [different[k % len(different)] for k in range(count)]

    def _more_than_base(self) -> Iterator[UnitChange]:
        """The base with another unit, or with one in the place of its last one."""
        base = self.base or ()
        if self.single.replace and not base:
            return
        last = key_of(base[-1][self.units.place]) if self.single.replace else None
        others, before, gaps_before = self.units.apart(base, last)
        known = {key_of(record[self.units.place]) for record in base}
        candidates = (*self.identifiers.first(len(known) + 1), *self.units.domain.samples())
        free = [value for value in candidates if key_of(value) not in known]
        units = [*free[:1], *(before[0][self.units.place : self.units.place + 1] if before else ())]
        if not units:
            return
        shapes = self._shapes
        for turn, (name, first) in enumerate(self.single.notable(0)):
            for shape in dict.fromkeys((shapes[0], shapes[turn % len(shapes)])):
                unit = units[turn % len(units)]
                records = (self.units.record(r, unit) for r in self._records(first, shape, shape.count))
                label = f"{_many(shape)} of a unit: {name} {'in the place of another' if before else 'added'}"
                # Behind the others where there are more than before: rows of the base keep their labels.
                gaps = (*gaps_before, *(len(others),) * shape.count)[: shape.count]
                if self.allowed(len(base), len(others) + shape.count):
                    yield UnitChange(
                        others=others, before=before, gaps_before=gaps_before, after=tuple(records), gaps=gaps,
                        label=f"{label}, the others of the base",
                    )  # fmt: skip

    def _less_than_base(self) -> Iterator[UnitChange]:
        """The base without one of its units, or with other records of it; those with most records first."""
        base = self.base or ()
        counts = Counter(key_of(record[self.units.place]) for record in base)
        ranked = [key for key, _ in counts.most_common()]
        chosen = dict.fromkeys(in_turn((iter(ranked), reversed(ranked))))
        for key in islice(chosen, MOST_UNITS):
            others, records, gaps = self.units.apart(base, key)
            unit = records[0][self.units.place]
            name = brief(unit)
            if not self.single.replace:
                yield UnitChange(others=others, after=records, gaps=gaps, label=f"unit {name} of the base removed")
                continue
            opposite = tuple(
                self.units.record(self.single.opposite(self.units.stripped(record)), unit) for record in records
            )
            change = UnitChange(others=others, before=records, gaps_before=gaps, after=opposite, gaps=gaps)
            yield replace(change, label=f"unit {name} of the base at the opposite end")
            if len(records) > 1:
                yield replace(
                    change, after=records[:1], gaps=gaps[:1], label=f"unit {name} of the base with its first record"
                )


def _many(shape: Shape) -> str:
    if shape.count == 1:
        return "1 record"
    return f"{shape.count} {'equal' if shape.alike else 'different'} records{', apart,' if shape.apart else ''}"
