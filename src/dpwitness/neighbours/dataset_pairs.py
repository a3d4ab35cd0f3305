"""Pairs of datasets that differ in one record: those that break real code, and steps from one pair to others.

A slow mechanism sees the first few candidates only, so kinds of them come in turn.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice, product, repeat
from typing import Any, Final, TypeVar

import numpy as np

from dpwitness.neighbours.domains import Domain, Value, in_turn, key_of
from dpwitness.neighbours.fields import Fields, Record

T = TypeVar("T")


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
    def replaces(self) -> bool:
        """Whether a record is replaced, not added."""
        return self.before is not None

    @property
    def differs(self) -> bool:
        """Whether the two datasets do."""
        return self.before is None or not same_record(self.before, self.after)

    @property
    def absent(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of a dataset with a place for each record of both, the places that are empty in the one and in the other."""
        return () if self.replaces else (self.position,), ()

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


def _same(first: Value, second: Value) -> bool:
    """Whether two values are equal; arrays are where they are one object."""
    try:
        return bool(first == second)
    except (ValueError, ArithmeticError):
        return first is second


def same_record(first: Record, second: Record) -> bool:
    """Whether two records hold the same values. A domain reads equal values, NaN included, as one object."""
    try:
        return first == second
    except (ValueError, ArithmeticError):  # arrays inside, which are compared entry by entry; a signalling NaN
        return all(a is b for a, b in zip(first, second, strict=True))


def _key_of_side(records: tuple[Record, ...]) -> Hashable:
    """What equal datasets have in common: the values of all fields, and their types."""
    try:
        hash(records)
    except TypeError:  # arrays inside, or a signalling NaN
        return tuple(tuple(map(key_of, record)) for record in records)
    return records, tuple(map(type, chain.from_iterable(records)))


def _rank(record: Record) -> tuple[tuple[int, Value], ...]:
    """By what records are put in order: numbers, then texts, then all else, where NaN and None are."""
    return tuple(
        (0, value) if isinstance(value, int | float) and value == value
        else (1, value) if isinstance(value, str)
        else (2, repr(value))
        for value in record
    )  # fmt: skip


def _setting(path: str, value: Value) -> str:
    return f"{path}={value!r:.20}"


def with_value(record: Record, k: int, value: object) -> Record:
    """A record with another value at place k."""
    return (*record[:k], value, *record[k + 1 :])


def distinct(changes: Iterable[Any]) -> Iterator[Any]:
    """Changes, of records or units, of which the two datasets differ, none twice."""
    seen: set[object] = set()
    for change in changes:
        if change.differs and (key := frozenset(map(_key_of_side, change.datasets))) not in seen:
            seen.add(key)
            yield change


#: Candidates in total: few enough that each gets runs.
MOST: Final = 64
#: Fields that are changed one by one, and values that are tried one by one.
FIELDS: Final = 8
VALUES: Final = 24
#: How many named records are tried at one size before the first of them is tried at the next.
CORNERS_A_SIZE: Final = 1
VALUES_A_SIZE: Final = 6
#: Values of a field that are combined with those of every other field.
COMBINED: Final = 5
#: Numbers of records in the larger dataset that are tried besides a relation's own.
MORE_SIZES: Final = (500, 30, 5, 50, 256, 20, 4, 300, 64, 6, 16, 7, 8, 128, 200)
#: Of the records that fill a dataset; any fixed number will do.
SEED: Final = 20_060_101

#: A record and what people call it.
Named = tuple[str, Record]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """Changes to try of datasets of such records; of `base` alone where it is `pinned`.

    `missing`: how the datasets hold a missing number where a field may be NaN or None.
    """

    fields: Fields
    replace: bool
    sizes: tuple[int, ...]
    missing: tuple[float | None, ...] = (math.nan,)
    base: tuple[Record, ...] | None = None
    pinned: bool = False

    def __iter__(self) -> Iterator[Change]:
        """The changes, the most promising kinds first, each kind in turn, none twice.

        The first is an ordinary dataset: what a run costs is measured on it. The first four are all that a very slow
        mechanism sees, the first twelve all that a slow one does.
        """
        of_any_data = (
            self._among_drawn(), self._outliers(near=True), self._odd_values(), self._alone(), self._among_odd(),
            self._lone_values(), self._outliers(near=False), self._among_ordinary(), self._in_order(),
            self._among_equal(), self._exchanged(), self._two_alike(), self._single_fields(),
        )  # fmt: skip
        kinds = () if self.base is None else (self._more_than_base(), self._less_than_base())
        yield from distinct(in_turn(kinds if self.pinned else (*kinds, *of_any_data)))

    def plain(self) -> Iterator[Change]:
        """Two changes of the first size that need no other record to be drawn: an outlier, and one of equal records."""
        yield next(self._outliers(near=True))
        yield next(self._among_equal())

    def unusual(self, scale: float) -> Iterator[Change]:
        """Each value of small domains, magnitudes and special numbers of others; alone, and among its copies; sizes."""
        middle, least = self.fields.middle(), self.sizes[0]
        named = self._single([domain.special(scale) for domain in self.fields.domains], most=None)
        yield from in_turn((
            (self._change([middle] * (least - 1), middle, one, "ordinary") for one in named),
            (self._change([one[1]] * (least - 1), middle, one, "equal to it") for one in named[:VALUES]),
            self._of_many_sizes(),
        ))  # fmt: skip

    def _of_many_sizes(self) -> Iterator[Change]:
        """A record at an end, all others drawn at random: numbers of records at which code may change."""
        high = self._corners()[0]
        for size in MORE_SIZES if len(self.sizes) > 2 else ():
            if min(self.sizes) <= size <= max(self.sizes):
                *others, last = self._drawn(size)
                yield self._change(others, last, high, "drawn at random")

    def _corners(self) -> list[Named]:
        """Records of which every field is at an end: high, low, and both in turn; far apart from each other."""
        ends = [domain.ends() for domain in self.fields.domains]
        corners = [("high", tuple(e[0] for e in ends)), ("low", tuple(e[1] for e in ends))]
        if len(ends) > 1:
            corners.append(("high and low", tuple(e[k % 2] for k, e in enumerate(ends))))
            corners.append(("low and high", tuple(e[1 - k % 2] for k, e in enumerate(ends))))
        return corners

    def _single(self, values: Sequence[Sequence[Value]], most: int | None = VALUES) -> list[Named]:
        """Ordinary records with one value of one field, the first of each field before the second of any."""
        middle, paths = self.fields.middle(), self.fields.paths
        places = in_turn([zip(repeat(k), own, strict=False) for k, own in enumerate(values)])
        return [(_setting(paths[k], value), with_value(middle, k, value)) for k, value in islice(places, most)]

    def _odd_of(self, domain: Domain) -> tuple[Value, ...]:
        values, held = domain.odd(), set(map(key_of, self.missing))
        left_out = {key_of(None), "NaN"} - held if "NaN" in map(key_of, values) else set()
        return tuple(value for value in values if key_of(value) not in left_out)

    def _odd(self) -> list[Named]:
        return self._single([self._odd_of(domain) for domain in self.fields.domains])

    def notable(self, part: int) -> list[Named]:
        """Corners and odd values, then combinations and single values, of which one third comes first.

        So three kinds that begin with different thirds try each early, among one kind of others at least.
        """
        odd = self._odd()
        odd[1:] = _from_third(odd[1:], part)  # the first one matters most: it is missing, or new
        corners = self._corners()[:2]
        combined = [named for named in self._combined() if named[1] not in (corner for _, corner in corners)]
        single = self._single([domain.ends()[2:] for domain in self.fields.domains])
        return [*in_turn((iter(corners), iter(odd))), *_from_third(combined, part), *_from_third(single, part)]

    def _combined(self) -> list[Named]:
        """Records in which every two values of two fields come together at least once."""
        domains, paths, middle = self.fields.domains, self.fields.paths, self.fields.middle()
        places = range(len(domains))[-FIELDS:]
        if len(places) < 2:
            return []
        values = [(*domains[k].ends()[:COMBINED], *self._odd_of(domains[k])[:1]) for k in places]
        named = []
        for combination in covering(values):
            record = (*middle[: places[0]], *combination)
            text = ", ".join(_setting(paths[k], record[k]) for k in places)
            named.append((f"{text:.60}", record))
        return named

    def opposite(self, record: Record) -> Record:
        """Every field at its other end."""
        ends = [domain.ends() for domain in self.fields.domains]
        return tuple(e[1] if _same(value, e[0]) else e[0] for value, e in zip(record, ends, strict=True))

    def _change(
        self, others: Sequence[Record], before: Record, named: Named, rest: str, place: int | None = None
    ) -> Change:
        """A record added, or put in the place of `before`."""
        name, after = named
        where = "" if place is None else ", first" if place == 0 else ", in the middle"
        what = "replaces another" if self.replace else "added"
        label = f"{name} record {what}{where}, {len(others)} others {rest}"
        return Change(
            others=tuple(others), before=before if self.replace else None, after=after, place=place, label=label
        )

    def _sized(
        self, tried: Sequence[T], a_size: int, *, least: int = 1, large: bool = False
    ) -> Iterator[tuple[int, T, int | None]]:
        """Each with every size, and a place: the last one and the first one by turns.

        A size begins once `a_size` of them were tried at the size before: one by one, all sizes would come too late.
        `least`: of a size; `large`: the largest size second, so that a mechanism of few pairs has large ones, too.
        """
        sizes = [size for size in self.sizes if size >= least]
        if large:
            sizes[1:] = sorted(sizes[1:], reverse=True)
        both = [(rank, k) for rank in range(len(tried)) for k in range(len(sizes))]
        for rank, k in sorted(both, key=lambda one: (one[0] + a_size * one[1], one[1])):
            yield sizes[k], tried[rank], 0 if (rank + k) % 2 else None

    def _outliers(self, *, near: bool) -> Iterator[Change]:
        """A record at one end, all others at the opposite end, or near it.

        At the very end many computations are degenerate, and slow.
        """
        rest = "nearly opposite" if near else "opposite"
        for size, named, place in self._sized(self._corners(), CORNERS_A_SIZE):
            other = self.opposite(named[1])
            if near:
                other = tuple(domain.inside(end) for domain, end in zip(self.fields.domains, other, strict=True))
            yield self._change([other] * (size - 1), other, named, rest, place)

    def _odd_values(self) -> Iterator[Change]:
        """A value that code often mishandles, all other records ordinary."""
        middle = self.fields.middle()
        for size, named, place in self._sized(self._odd(), VALUES_A_SIZE):
            yield self._change([middle] * (size - 1), middle, named, "ordinary", place)

    def _among_odd(self) -> Iterator[Change]:
        """A record at an end, all others missing, outside of the range, or new: what is left of them is one record."""
        odd = [self._odd_of(domain) for domain in self.fields.domains]
        first = tuple(v[0] if v else m for v, m in zip(odd, self.fields.middle(), strict=True))
        fills = [("all odd", first)] if sum(map(bool, odd)) > 1 else []
        fills += [(f"with {name}", record) for name, record in (self._odd() if any(odd) else [])]
        corners = self._corners()
        tried = [(fill, corners[(rank + turn) % 2]) for turn in range(2) for rank, fill in enumerate(fills)]
        for size, ((rest, other), named), place in self._sized(tried, VALUES_A_SIZE, least=2):
            yield self._change([other] * (size - 1), self.opposite(named[1]), named, rest, place)
            if place is None:
                mixed = [other if k % 2 else record for k, record in enumerate(self._drawn(size - 1))]
                yield self._change(mixed, self.opposite(named[1]), named, f"drawn at random, half {rest}")

    def _among_drawn(self) -> Iterator[Change]:
        """A record at an end, or odd, all others drawn at random."""
        for size, named, _ in self._sized(self.notable(1), VALUES_A_SIZE):
            *others, last = self._drawn(size)
            yield self._change(others, last, named, "drawn at random")

    def _alone(self) -> Iterator[Change]:
        """One record, or none."""
        for named in self.notable(2):
            yield self._change([], self.opposite(named[1]), named, "")

    def _lone_values(self) -> Iterator[Change]:
        """A category or a value that no other record has: without the record its class is empty."""
        paths = self.fields.paths
        for size in self.sizes if len(self.fields.domains) > 1 else ():
            *drawn, last = self._drawn(size)
            for k, domain in self._last_fields():
                value, other = domain.ends()[:2]
                named = (f"the only {_setting(paths[k], value)}", with_value(last, k, value))
                yield self._change(
                    [with_value(r, k, other) for r in drawn], with_value(last, k, other), named, "without it"
                )

    def _last_fields(self) -> list[tuple[int, Domain]]:
        """The last few fields, the very last first: a label usually comes last."""
        return list(enumerate(self.fields.domains))[::-1][:FIELDS]

    def _exchanged(self) -> Iterator[Change]:
        """Each of a few values of a field in the place of each other one."""
        middle, domains, paths = self.fields.middle(), self.fields.domains, self.fields.paths
        pairs = [combinations(domain.ends()[:COMBINED], 2) for domain in domains] if self.replace else []
        for k, (value, other) in in_turn([zip(repeat(k), own, strict=False) for k, own in enumerate(pairs)]):
            named = (_setting(paths[k], value), with_value(middle, k, value))
            others = [middle] * (self.sizes[0] - 1)
            yield self._change(others, with_value(middle, k, other), named, "ordinary")

    def _among_ordinary(self) -> Iterator[Change]:
        """A record at an end, or of a value to try, all others in the middle."""
        middle = self.fields.middle()
        for size, named, _ in self._sized(self.notable(0), VALUES_A_SIZE):
            yield self._change([middle] * (size - 1), middle, named, "ordinary")

    def _in_order(self) -> Iterator[Change]:
        """Records in rising or falling order, those of the base first, one at an end in the middle of them."""
        high, low = self._corners()[:2]
        tried = [(high, False), (low, True), (high, True), (low, False)]
        base = self.base or ()
        for named, falling in tried if len(base) > 1 else ():
            yield self._ordered(base, named, falling)
        for size, (named, falling), _ in self._sized(tried, CORNERS_A_SIZE, least=3, large=True):
            yield self._ordered(self._drawn(size), named, falling)

    def _ordered(self, records: Sequence[Record], named: Named, falling: bool) -> Change:
        ordered = sorted(records, key=_rank, reverse=falling)
        place = len(ordered) // 2
        others = ordered[:place] + ordered[place + 1 :]
        return self._change(others, ordered[place], named, f"in {'falling' if falling else 'rising'} order", place)

    def _among_equal(self) -> Iterator[Change]:
        """All records equal, with one more or fewer, or one that is ordinary."""
        for size, named, _ in self._sized(self._corners(), CORNERS_A_SIZE, large=True):
            yield self._change([named[1]] * (size - 1), self.fields.middle(), named, "equal to it")

    def _two_alike(self) -> Iterator[Change]:
        """All records equal but one, behind or before them; another one like that, or another one like the rest."""
        for size, ((name, one), behind), _ in self._sized(
            [(named, behind) for behind in (True, False) for named in self._corners()], CORNERS_A_SIZE, least=3
        ):
            rest = self.opposite(one)
            equal = [rest] * (size - 2)
            others = [*equal, one] if behind else [one, *equal]
            where = "behind" if behind else "before"
            yield self._change(others, rest, (name, one), f"opposite but one like it {where} them")
            named = ("opposite", rest)
            yield self._change(others, self.fields.middle(), named, f"equal to it but one {where} them", 0)

    def _single_fields(self) -> Iterator[Change]:
        """One field at an end; a flipped label among them."""
        paths = self.fields.paths
        for size in self.sizes if len(self.fields.domains) > 1 else ():
            *others, last = self._drawn(size)
            for k, domain in self._last_fields():
                for end in domain.ends()[:2]:
                    named = (_setting(paths[k], end), with_value(last, k, end))
                    yield self._change(others, last, named, "drawn at random")

    def _more_than_base(self) -> Iterator[Change]:
        """The base with a notable record more, or in the place of its last one."""
        base = self.base or ()
        if self.replace and not base:
            return
        others, last = (base[:-1], base[-1]) if self.replace else (base, ())
        for named in self.notable(0):
            yield self._change(others, last, named, "of the base")

    def _less_than_base(self) -> Iterator[Change]:
        """The base without one of its records, or with one moved to the other end; the outermost ones first."""
        base = self.base or ()
        for k in _outermost(base):
            others, record = (*base[:k], *base[k + 1 :]), base[k]
            if self.replace:
                label = f"record {k + 1} of the base at the opposite end"
                yield Change(others=others, before=record, after=self.opposite(record), place=k, label=label)
            else:
                yield Change(others=others, after=record, place=k, label=f"record {k + 1} of the base removed")

    def _drawn(self, n: int) -> list[Record]:
        """So many records as real data may hold them, the same ones every time; of the base where there is one."""
        rng = np.random.default_rng(SEED)
        if self.base:
            return [self.base[int(k)] for k in rng.integers(len(self.base), size=n)]
        return self.fields.draw(rng, n)


def _from_third(values: list[T], part: int) -> list[T]:
    """The same from that third on, then those before it."""
    first = len(values) * part // 3
    return values[first:] + values[:first]


def covering(values: Sequence[Sequence[T]]) -> Iterator[tuple[T, ...]]:
    """Combinations, one value of each of two or more lists, that hold every pair of values of two lists.

    Greedy: a combination begins with a pair that is still to come, and takes of each other list the value that brings
    most of these. Its number is not the least, but near the product of the two longest lists.
    """
    lists = range(len(values))
    pairs = [
        (i, a, j, b)
        for i, j in combinations(lists, 2)
        for a, b in product(range(len(values[i])), range(len(values[j])))
    ]
    # The first values of all lists first. A dict is a set that keeps its order.
    missing = dict.fromkeys(sorted(pairs, key=lambda pair: pair[1] + pair[3]))
    while missing:
        i, a, j, b = next(iter(missing))
        chosen = {i: a, j: b}
        for k in lists:
            if k not in chosen:
                gains = [
                    sum(_joint(k, c, one, d) in missing for one, d in chosen.items()) for c in range(len(values[k]))
                ]
                chosen[k] = gains.index(max(gains))
        for i, j in combinations(lists, 2):
            missing.pop((i, chosen[i], j, chosen[j]), None)
        yield tuple(values[k][chosen[k]] for k in lists)


def _joint(i: int, a: int, j: int, b: int) -> tuple[int, int, int, int]:
    return (i, a, j, b) if i < j else (j, b, i, a)


def _outermost(base: Sequence[Record]) -> list[int]:
    """Places of the greatest and the least value of each field, and of the last, first and middle record."""
    if not base:
        return []
    places = []
    for k in range(min(len(base[0]), FIELDS)):
        numbers = [(r[k], place) for place, r in enumerate(base) if isinstance(r[k], int | float) and r[k] == r[k]]
        places += [max(numbers)[1], min(numbers)[1]] if numbers else []
    return list(dict.fromkeys([*places, len(base) - 1, 0, len(base) // 2]))


#: Values that are tried for a field.
NEAR_VALUES: Final = 4
#: Records that are left out one by one.
SINGLES: Final = 16
#: Records that variations go up to.
LARGEST: Final = 1000


def varied_changes(fields: Fields, change: Change) -> Iterator[Change]:
    """Other records beside it, other numbers of them, another place, other values of the record that differs."""
    middle, paths, others, n = fields.middle(), fields.paths, change.others, len(change.others)
    for size in (2 * n + 1, n // 2, 10 * n, n + 1, 1):
        if size <= max(LARGEST, n) and size != n:
            repeated = others or (middle,)
            resized = tuple(repeated[k % len(repeated)] for k in range(size))
            yield replace(change, others=resized, place=None, label=f"{size} other records")
    yield replace(change, place=0, label="as the first record")
    yield replace(change, place=n // 2, label="as the middle record")
    for name, record in (("ordinary", middle), ("equal", change.after), ("equal", change.before)):
        if record is not None:
            yield replace(change, others=(record,) * n, label=f"all others {name}")
    for name, falling in (("rising", False), ("falling", True)):
        ordered = tuple(sorted(others, key=_rank, reverse=falling))
        yield replace(change, others=ordered, place=n // 2, label=f"others in {name} order")
    for k, domain in list(enumerate(fields.domains))[::-1][:FIELDS]:
        for value in domain.odd()[:1]:
            yield _with_in_others(change, k, value, paths[k])
        yield from _with_values(change, k, domain.near, paths[k])
        for value in domain.ends()[:2]:
            yield _with_in_others(change, k, value, paths[k])


def _with_values(change: Change, k: int, to_try: Callable[[Value], Iterator[Value]], path: str) -> Iterator[Change]:
    """One field of the record that differs with a few values, then of the one that it replaces."""
    for name, record in (("after", change.after), ("before", change.before)):
        if record is not None:
            for value in islice(to_try(record[k]), NEAR_VALUES):
                changed: Any = {name: with_value(record, k, value)}
                yield replace(change, **changed, label=_setting(path, value))


def _with_in_others(change: Change, k: int, value: Value, path: str) -> Change:
    others = tuple(with_value(record, k, value) for record in change.others)
    return replace(change, others=others, label=f"{_setting(path, value)} in all others")


def simpler_changes(fields: Fields, change: Change) -> Iterator[Change]:
    """Fewer records, fewer fields that differ, fewer kinds of records, rounder values; the largest steps first."""
    before = _length(change)
    for step in _steps(fields, change):
        if _length(step) < before:
            yield replace(step, label="shrunk")


def _steps(fields: Fields, change: Change) -> Iterator[Change]:
    others = change.others
    for keep in fewer(len(others)):
        kept = tuple(others[k] for k in keep)
        yield replace(change, others=kept, place=sum(k < change.position for k in keep))
    if change.before is not None:
        for k in range(len(change.after)):
            yield replace(change, after=with_value(change.after, k, change.before[k]))
            yield replace(change, before=with_value(change.before, k, change.after[k]))
    for record in (fields.middle(), *others[:1], change.after, change.before):
        if record is not None:
            yield replace(change, others=(record,) * len(others))
    for k, domain in enumerate(fields.domains):
        yield from _with_values(change, k, domain.simpler, fields.paths[k])
        simplest = (with_value(record, k, next(domain.simpler(record[k]), record[k])) for record in others)
        yield replace(change, others=tuple(simplest))


def fewer(n: int) -> Iterator[Sequence[int]]:
    """Places to keep: none, without halves, quarters, … and single ones."""
    if n:
        yield ()
    chunk = n // 2
    while chunk and n // chunk <= SINGLES:
        for start in range(0, n, chunk):
            yield [k for k in range(n) if not start <= k < start + chunk]
        chunk //= 2


def _length(change: Change) -> tuple[int, int, int, int]:
    """How many records, fields that differ, kinds of records, and characters; less is simpler."""
    kinds = {tuple(map(key_of, record)): record for record in (*change.others, change.after, change.before or ())}
    pairs = zip(change.after, change.before or change.after, strict=True)
    differing = len(change.after) if change.before is None else sum(key_of(a) != key_of(b) for a, b in pairs)
    return len(change.others), differing, len(kinds), sum(len(repr(v)) for record in kinds.values() for v in record)
