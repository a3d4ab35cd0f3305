"""Changes of datasets in one group of records (the records of one unit), chosen to break real code.

A slow mechanism runs on the first few changes only, so changes of different kinds alternate. Most kinds change a single
record without its unit; if the relation has units, the record then becomes a group of equal or different records.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, islice, permutations, repeat
from typing import Final, TypeVar

import numpy as np

from dpwitness.neighbours.dataset_steps import CHANGED_FIELDS, order_of, setting, with_value
from dpwitness.neighbours.domains import Domain, Value, in_turn, key_of
from dpwitness.neighbours.fields import FILL_SEED, Fields, Record
from dpwitness.neighbours.groups import BOTH_SIDES, FIRST_SIDE, SECOND_SIDE, GroupChange, Groups, same_record

T = TypeVar("T")


def _key_of_side(records: tuple[Record, ...]) -> Hashable:
    """The key of a dataset: the values of all fields, and their types. Equal datasets have equal keys."""
    try:
        hash(records)
    except TypeError:  # arrays inside, or a signalling NaN
        return tuple(tuple(map(key_of, record)) for record in records)
    return records, tuple(map(type, chain.from_iterable(records)))


def distinct(changes: Iterable[GroupChange]) -> Iterator[GroupChange]:
    """The changes whose two datasets differ; of several changes of the same two datasets only the first."""
    seen: set[object] = set()
    for change in changes:
        if change.differs and (key := frozenset(map(_key_of_side, change.datasets))) not in seen:
            seen.add(key)
            yield change


#: The largest number of field values that one kind of change tries, each in an ordinary record.
MOST_FIELD_VALUES: Final = 24
#: The number of records that are tried at one size before the next size begins, so that all sizes come early.
RECORDS_A_SIZE: Final = 6
#: The number of values of a field that are exchanged, and combined with other fields' values: the number of pairs grows
#: with its square.
COMBINED_VALUES: Final = 5

#: The name of a record, for labels, and the record.
NamedRecord = tuple[str, Record]


@dataclass(frozen=True, kw_only=True)
class Proposals:
    """The changes of datasets that a relation proposes; if `pinned`, changes of the dataset `base` alone.

    `sizes`: numbers of records of the larger dataset; `missing`: the values of a missing number in these datasets.
    """

    groups: Groups
    replace: bool
    sizes: tuple[int, ...]
    missing: tuple[float | None, ...] = (math.nan,)
    base: tuple[Record, ...] | None = None
    pinned: bool = False

    @cached_property
    def fields(self) -> Fields:
        """The fields of a record without its unit."""
        return self.groups.rest

    def __iter__(self) -> Iterator[GroupChange]:
        """The changes without repetitions: one change of each kind in turn, the most promising kinds first.

        The first dataset is ordinary, since the cost of a run is measured on it. A very slow mechanism runs on the
        first four changes, a slow one on the first twelve.
        """
        of_base = [] if self.base is None else [self._more_than_base(self.base), self._less_than_base(self.base)]
        of_any_data = [] if self.pinned else [
            self._among_drawn(), self._outliers(), self._among_ordinary(), self._alone(), self._among_odd(),
            self._single_fields(), self._in_order(), self._among_equal(),
        ]  # fmt: skip
        yield from distinct(in_turn([*of_base, *(self._of_groups(kind, k) for k, kind in enumerate(of_any_data))]))

    def unusual(self, scale: float) -> Iterator[GroupChange]:
        """Changes of a record with one special value, among ordinary records or copies of the record."""
        middle, least = self.fields.middle(), self.sizes[0]
        named = self._single([domain.special(scale) for domain in self.fields.domains], most=None)
        return self._of_groups(in_turn((
            (self._change([middle] * (least - 1), middle, one, "ordinary") for one in named),
            (self._change([one[1]] * (least - 1), middle, one, "equal to it") for one in named[:MOST_FIELD_VALUES]),
        )))  # fmt: skip

    def _of_groups(self, changes: Iterable[GroupChange], start: int = 0) -> Iterator[GroupChange]:
        """Each change of a record as changes of groups: of a full group, and in turn of a group of another shape."""
        if self.groups.place is None:
            yield from changes
            return
        units = self.groups.units(max(self.sizes) + 2)
        own = units[0]
        for turn, change in enumerate(changes, start):
            others, after, before = map(change.on, (BOTH_SIDES, SECOND_SIDE, FIRST_SIDE))
            # A unit's records are replaced by other records of this unit, or by records of another unit.
            other = units[turn % 2] if self.replace and len(units) > 1 else own
            free = [unit for unit in units[1:] if unit is not other]
            owners = min(len(others), len(free))
            if len(others) > owners * (self.groups.at_most or len(others)):
                continue  # the domain holds too few units
            rest = [self.groups.record(record, free[k % owners]) for k, record in enumerate(others)]
            place = next(k for k, (_, side) in enumerate(change.rows) if side != BOTH_SIDES)
            for size, alike, replaced in self._shapes(turn):
                group = self._group(after[0], own, size, alike=alike)
                gone = self._group(before[0], other, replaced, alike=alike) if before else []
                yield GroupChange.of(rest, group, gone, place, f"{_counted(size, alike)}: {change.label}")

    def _shapes(self, turn: int) -> list[tuple[int, bool, int]]:
        """The shapes of a full group and of another group, which changes with `turn`: size, whether alike, size before.

        A record without unit is a group of one record.
        """
        if self.groups.place is None:
            return [(1, True, 1)]
        full, *counts = self.groups.contributions
        others = [(full, False, full), *((count, True, count) for count in counts if count != full)]
        others += [(full, True, 1)] if self.replace else []
        return list(dict.fromkeys([(full, True, full), others[turn % len(others)]]))

    def _group(self, first: Record, unit: Value, size: int, *, alike: bool) -> list[Record]:
        """`size` records of a unit: copies of `first` if `alike`, else `first` and other records."""
        more = [self._opposite(first), self.fields.middle(), *self.fields.draw(size)] if size > 1 and not alike else []
        return [self.groups.record(one, unit) for one in ([first] * size if alike else [first, *more][:size])]

    def _corners(self) -> list[NamedRecord]:
        """Records with every field at one of its ends: all high, all low, and high and low in turn."""
        ends = [domain.ends() for domain in self.fields.domains]
        corners = [("high", tuple(e[0] for e in ends)), ("low", tuple(e[1] for e in ends))]
        if len(ends) > 1:
            corners.append(("high and low", tuple(e[k % 2] for k, e in enumerate(ends))))
            corners.append(("low and high", tuple(e[1 - k % 2] for k, e in enumerate(ends))))
        return corners

    def _single(self, values: Sequence[Sequence[Value]], most: int | None = MOST_FIELD_VALUES) -> list[NamedRecord]:
        """Ordinary records with one of a field's `values`; each field's first value comes before any second value."""
        middle, paths = self.fields.middle(), self.fields.paths
        places = in_turn([zip(repeat(k), own, strict=False) for k, own in enumerate(values)])
        return [(setting(paths[k], value), with_value(middle, k, value)) for k, value in islice(places, most)]

    def _odd_of(self, domain: Domain) -> tuple[Value, ...]:
        """The field's values that code often mishandles, without missing values that this form cannot hold."""
        values, held = domain.odd(), set(map(key_of, self.missing))
        left_out = {key_of(None), "NaN"} - held if "NaN" in map(key_of, values) else set()
        return tuple(value for value in values if key_of(value) not in left_out)

    def _odd(self) -> list[NamedRecord]:
        return self._single([self._odd_of(domain) for domain in self.fields.domains])

    def _notable(self, part: int) -> list[NamedRecord]:
        """Corners and odd values in turn, then combinations and single values in turn, then all single values.

        `part`, from 0 to 2, selects the third of the single values that comes first: three kinds of changes together
        try all single values early.
        """
        single = self._single([domain.ends()[2:] for domain in self.fields.domains])
        early = in_turn((iter(single[part::3]), iter(self._combined())))
        return [*in_turn((iter(self._corners()), iter(self._odd()))), *early, *single]

    def _combined(self) -> list[NamedRecord]:
        """Records whose fields all have notable values, combined at random, the same every time."""
        domains, paths, middle = self.fields.domains, self.fields.paths, self.fields.middle()
        places = range(len(domains))[-CHANGED_FIELDS:]
        values = {k: (*domains[k].ends()[:COMBINED_VALUES], *self._odd_of(domains[k])[:1]) for k in places}
        rng = np.random.default_rng(FILL_SEED)
        named = []
        for _ in range(MOST_FIELD_VALUES if len(places) > 1 else 0):
            chosen = {k: own[int(rng.integers(len(own)))] for k, own in values.items()}
            text = ", ".join(setting(paths[k], value) for k, value in chosen.items())
            named.append((f"{text:.60}", (*middle[: places[0]], *chosen.values())))
        return named

    @property
    def _change_text(self) -> str:
        return "replaces another" if self.replace else "added"

    def _opposite(self, record: Record) -> Record:
        """The record with each field at an end of its domain: at the second end for a field at the first end."""
        ends = [domain.ends() for domain in self.fields.domains]
        return tuple(e[1] if same_record((value,), e[:1]) else e[0] for value, e in zip(record, ends, strict=True))

    def _change(
        self, others: Sequence[Record], before: Record, named: NamedRecord, rest: str, place: int | None = None
    ) -> GroupChange:
        """The change that adds a record, or replaces `before`, at `place` or the end; `rest`: the text on `others`."""
        name, after = named
        where = "" if place is None else ", first" if place == 0 else ", in the middle"
        label = f"{name} record {self._change_text}{where}, {len(others)} others {rest}"
        place = len(others) if place is None else min(place, len(others))
        return GroupChange.of(others, [after], [before] if self.replace else [], place, label)

    def _sized(
        self, tried: Sequence[T], items_a_size: int = 1, *, least: int = 1, large: bool = False
    ) -> Iterator[tuple[int, T, int | None]]:
        """Triples of a size, an item of `tried` and a place: None (the end) or 0 (the start), each for two items.

        A size begins after `items_a_size` items of the size before, so that no size comes late. `least`: the smallest
        size; `large`: the largest size comes second, for mechanisms that get few pairs.
        """
        sizes = [size for size in self.sizes if size >= least]
        if large:
            sizes[1:] = sorted(sizes[1:], reverse=True)
        both = [(rank, k) for rank in range(len(tried)) for k in range(len(sizes))]
        for rank, k in sorted(both, key=lambda one: (one[0] + items_a_size * one[1], one[1])):
            yield sizes[k], tried[rank], 0 if (rank // 2 + k) % 2 else None

    def _among_drawn(self) -> Iterator[GroupChange]:
        """Changes of a notable record among drawn records."""
        for size, named, _ in self._sized(self._notable(1), RECORDS_A_SIZE):
            *others, last = self._draw(size)
            yield self._change(others, last, named, "drawn at random")

    def _outliers(self) -> Iterator[GroupChange]:
        """Changes of a corner record among records near or at the opposite corner, where computations degenerate."""
        tried = [(named, near) for named in self._corners() for near in (True, False)]
        for size, (named, near), place in self._sized(tried):
            other = self._opposite(named[1])
            if near:
                other = tuple(domain.inside(end) for domain, end in zip(self.fields.domains, other, strict=True))
            yield self._change([other] * (size - 1), other, named, f"{'nearly ' * near}opposite", place)

    def _among_ordinary(self) -> Iterator[GroupChange]:
        """Changes of an odd or notable record among equal ordinary records."""
        middle = self.fields.middle()
        for size, named, place in self._sized([*self._odd(), *self._notable(0)], RECORDS_A_SIZE):
            yield self._change([middle] * (size - 1), middle, named, "ordinary", place)

    def _alone(self) -> Iterator[GroupChange]:
        """Changes of a dataset's only record, and exchanges of two values of a field."""
        alone = (self._change([], self._opposite(named[1]), named, "") for named in self._notable(2))
        yield from in_turn((alone, self._exchanged()))

    def _exchanged(self) -> Iterator[GroupChange]:
        middle, domains, paths = self.fields.middle(), self.fields.domains, self.fields.paths
        pairs = [combinations(domain.ends()[:COMBINED_VALUES], 2) for domain in domains] if self.replace else []
        for k, (value, other) in in_turn([zip(repeat(k), own, strict=False) for k, own in enumerate(pairs)]):
            named = (setting(paths[k], value), with_value(middle, k, value))
            yield self._change([middle] * (self.sizes[0] - 1), with_value(middle, k, other), named, "ordinary")

    def _among_odd(self) -> Iterator[GroupChange]:
        """Changes of a corner record among odd records (missing, outside the range or new), which code may drop."""
        odd = [self._odd_of(domain) for domain in self.fields.domains]
        first = tuple(v[0] if v else m for v, m in zip(odd, self.fields.middle(), strict=True))
        fills = [("all odd", first)] if sum(map(bool, odd)) > 1 else []
        fills += [(f"with {name}", record) for name, record in (self._odd() if any(odd) else [])]
        corners = self._corners()
        tried = [(fill, corners[(rank + turn) % 2]) for turn in range(2) for rank, fill in enumerate(fills)]
        for size, ((rest, other), named), place in self._sized(tried, RECORDS_A_SIZE, least=2):
            yield self._change([other] * (size - 1), self._opposite(named[1]), named, rest, place)

    def _single_fields(self) -> Iterator[GroupChange]:
        """Changes of one field to an end, such as a flipped label, also to a value that no other record has.

        The last field comes first, since a label is usually the last field.
        """
        domains, paths = self.fields.domains, self.fields.paths
        for size in self.sizes if len(domains) > 1 else ():
            *drawn, last = self._draw(size)
            for k in reversed(range(len(domains))[-CHANGED_FIELDS:]):
                for value, other in permutations(domains[k].ends()[:2]):
                    name, record = setting(paths[k], value), with_value(last, k, value)
                    without = [with_value(r, k, other) for r in drawn]
                    yield self._change(without, with_value(last, k, other), (f"the only {name}", record), "without it")
                    yield self._change(drawn, last, (name, record), "drawn at random")

    def _in_order(self) -> Iterator[GroupChange]:
        """Changes of a corner record in the middle of sorted records, first of the base, then of drawn records."""
        high, low = self._corners()[:2]
        tried = [(high, False), (low, True), (high, True), (low, False)]
        base = list(map(self.groups.stripped, self.base or ()))
        for named, falling in tried if len(base) > 1 else ():
            yield self._ordered(base, named, falling)
        for size, (named, falling), _ in self._sized(tried, least=3, large=True):
            yield self._ordered(self._draw(size), named, falling)

    def _ordered(self, records: Sequence[Record], named: NamedRecord, falling: bool) -> GroupChange:
        ordered = sorted(records, key=order_of, reverse=falling)
        place = len(ordered) // 2
        others = ordered[:place] + ordered[place + 1 :]
        return self._change(others, ordered[place], named, f"in {'falling' if falling else 'rising'} order", place)

    def _among_equal(self) -> Iterator[GroupChange]:
        """Changes of a corner record among its copies, or among opposite records and one copy."""
        tried = [(named, where) for named in self._corners() for where in ("", "behind", "before")]
        for size, (named, where), _ in self._sized(tried, large=True):
            one = named[1]
            if not where:
                yield self._change([one] * (size - 1), self.fields.middle(), named, "equal to it")
            elif size > 2:
                rest = self._opposite(one)
                others = [*[rest] * (size - 2), one] if where == "behind" else [one, *[rest] * (size - 2)]
                yield self._change(others, rest, named, f"opposite but one like it {where} them")
                equal = f"equal to it but one {where} them"
                yield self._change(others, self.fields.middle(), ("opposite", rest), equal, 0)

    def _more_than_base(self, base: Sequence[Record]) -> Iterator[GroupChange]:
        """Changes of the base in which a group of a notable record is added, or replaces the last record's group."""
        owners = self.groups.owners(base)
        if self.replace and not base:
            return
        last = owners[-1] if self.replace else None
        rows = [(record, FIRST_SIDE if own == last else BOTH_SIDES) for record, own in zip(base, owners, strict=True)]
        stay = sum(side == BOTH_SIDES for _, side in rows)
        new = [unit for unit in self.groups.units(len(base) + 1) if key_of(unit) not in set(owners)][:1]
        place = self.groups.place
        units = [*new, *([base[-1][place]] if self.replace and place is not None else [])]
        for turn, (name, first) in enumerate(self._notable(0) if units else ()):
            label = f"{name} record {self._change_text}, {stay} others of the base"
            for size, alike, _ in self._shapes(turn):
                # At the end: rows of the base keep their labels.
                group = self._group(first, units[turn % len(units)], size, alike=alike)
                more = ((record, SECOND_SIDE) for record in group)
                yield GroupChange(
                    rows=(*rows, *more), label=label if place is None else f"{_counted(size, alike)}: {label}"
                )

    def _less_than_base(self, base: Sequence[Record]) -> Iterator[GroupChange]:
        """Changes of the base in which its largest or an outermost group is removed, or gets the opposite values."""
        owners = self.groups.owners(base)
        counts = Counter(owners)
        tried = [*(owners[k] for k in _outermost(base)), *(owner for owner, _ in counts.most_common(1))]
        for owner in sorted(dict.fromkeys(tried), key=lambda own: -counts[own]):
            rows = [(record, BOTH_SIDES) for record in base]
            for k in reversed([k for k, own in enumerate(owners) if own == owner]):
                rows[k] = (base[k], FIRST_SIDE if self.replace else SECOND_SIDE)
                if self.replace:
                    unit = None if self.groups.place is None else base[k][self.groups.place]
                    moved = self.groups.record(self._opposite(self.groups.stripped(base[k])), unit)
                    rows.insert(k + 1, (moved, SECOND_SIDE))
            name = f"record {k + 1}" if self.groups.place is None else "a unit"
            what = "at the opposite end" if self.replace else "removed"
            yield GroupChange(rows=tuple(rows), label=f"{name} of the base {what}")

    def _draw(self, n: int) -> list[Record]:
        """`n` records drawn from the base, or from the fields if there is no base; the same records every time."""
        if not self.base:
            return self.fields.draw(n)
        rng = np.random.default_rng(FILL_SEED)
        return [self.groups.stripped(self.base[int(k)]) for k in rng.integers(len(self.base), size=n)]


def _counted(size: int, alike: bool) -> str:
    """The number of records of a group, for labels."""
    return "1 record of a unit" if size == 1 else f"{size} {'equal' if alike else 'different'} records of a unit"


def _outermost(base: Sequence[Record]) -> list[int]:
    """The places of each field's greatest and least number, and of the last, first and middle record."""
    if not base:
        return []
    places = []
    for k in range(min(len(base[0]), CHANGED_FIELDS)):
        numbers = [(r[k], place) for place, r in enumerate(base) if isinstance(r[k], int | float) and r[k] == r[k]]
        places += [max(numbers)[1], min(numbers)[1]] if numbers else []
    return list(dict.fromkeys([*places, len(base) - 1, 0, len(base) // 2]))
