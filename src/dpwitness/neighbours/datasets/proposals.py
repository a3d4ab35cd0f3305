"""The neighbours that break real code, kinds interleaved: a slow mechanism sees the first few of them only."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from dpwitness.neighbours.datasets.changes import Change, same_record
from dpwitness.neighbours.datasets.domain import key_of
from dpwitness.neighbours.datasets.fields import Fields, Record

__all__ = ["MOST", "Proposals", "in_turn"]

#: Candidates in total: few enough that each gets runs.
MOST: Final = 64
#: Fields that are changed one by one, and values that are tried one by one.
FIELDS: Final = 8
VALUES: Final = 12
#: Of the records that fill a dataset; any fixed number will do.
SEED: Final = 20_060_101

Named = tuple[str, Record]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """Changes to try of datasets of such records; of `base` alone where it is `pinned`."""

    fields: Fields
    replace: bool
    sizes: tuple[int, ...]
    base: tuple[Record, ...] | None = None
    pinned: bool = False

    def __iter__(self) -> Iterator[Change]:
        """The changes, the most promising kinds first, each kind in turn, none twice.

        The first is an ordinary dataset: what a run costs is measured on it.
        """
        made = (
            self._among_drawn(), self._near_outliers(), self._odd_values(), self._alone(), self._lone_values(),
            self._outliers(), self._among_ordinary(), self._among_equal(), self._single_fields(),
        )  # fmt: skip
        kinds = () if self.base is None else (self._of_base(), self._out_of_base())
        seen: set[object] = set()
        for change in in_turn(kinds if self.pinned else (*kinds, *made)):
            if change.before is not None and same_record(change.before, change.after):
                continue
            key = tuple(tuple(map(key_of, r)) for r in (*change.others, change.before or (), change.after))
            if key not in seen:
                seen.add(key)
                yield change
            if len(seen) == MOST:
                return

    def _corners(self) -> list[Named]:
        """Records of which every field is at an end: high, low, and both in turn; far apart from each other."""
        ends = [domain.ends() for domain in self.fields.domains]
        found = [("high", tuple(e[0] for e in ends)), ("low", tuple(e[1] for e in ends))]
        if len(ends) > 1:
            found += [
                ("high and low", tuple(e[k % 2] for k, e in enumerate(ends))),
                ("low and high", tuple(e[1 - k % 2] for k, e in enumerate(ends))),
            ]
        return found

    def _single(self, values: Sequence[Sequence[Any]]) -> list[Named]:
        """Ordinary records with one value of one field, the first of each field before the second of any."""
        middle, paths = self.fields.middle(), self.fields.paths
        ranks = range(max(map(len, values)))
        places = [(k, values[k][rank]) for rank in ranks for k in range(len(values)) if rank < len(values[k])]
        return [(f"{paths[k]}={value!r:.20}", _with(middle, k, value)) for k, value in places[:VALUES]]

    def _odd(self) -> list[Named]:
        return self._single([domain.odd() for domain in self.fields.domains])

    def _notable(self) -> list[Named]:
        """Corners, odd values, values just inside the ends."""
        return [*in_turn((iter(self._corners()), iter(self._odd()))), *self._single(self._inner_ends())]

    def _inner_ends(self) -> list[tuple[Any, ...]]:
        return [domain.ends()[2:] for domain in self.fields.domains]

    def _opposite(self, record: Record) -> Record:
        """Every field at its other end."""
        ends = [domain.ends() for domain in self.fields.domains]
        return tuple(e[1] if value == e[0] else e[0] for value, e in zip(record, ends, strict=True))

    def _change(self, others: Sequence[Record], before: Record, named: Named, rest: str) -> Change:
        """A record added, or put in the place of `before`."""
        name, after = named
        label = f"{name} record {'replaces another' if self.replace else 'added'}, {len(others)} others {rest}"
        return Change(others=tuple(others), before=before if self.replace else None, after=after, label=label)

    def _near_outliers(self) -> Iterator[Change]:
        """A record at one end, all others near the opposite end; at it many computations are degenerate, and slow."""
        domains = self.fields.domains
        for size in self.sizes:
            for named in self._corners():
                ends = self._opposite(named[1])
                other = tuple(domain.inside(end) for domain, end in zip(domains, ends, strict=True))
                yield self._change([other] * (size - 1), other, named, "nearly opposite")

    def _outliers(self) -> Iterator[Change]:
        """A record at one end, all others at the opposite end."""
        for size in self.sizes:
            for named in self._corners():
                other = self._opposite(named[1])
                yield self._change([other] * (size - 1), other, named, "opposite")

    def _odd_values(self) -> Iterator[Change]:
        """A value that code stumbles over, all other records ordinary."""
        middle = self.fields.middle()
        for size in self.sizes:
            for named in self._odd():
                yield self._change([middle] * (size - 1), middle, named, "ordinary")

    def _among_drawn(self) -> Iterator[Change]:
        """A record at an end, or odd, all others drawn at random."""
        for size in self.sizes:
            *others, last = self._drawn(size)
            for named in self._notable():
                yield self._change(others, last, named, "drawn at random")

    def _alone(self) -> Iterator[Change]:
        """One record, or none."""
        for named in self._notable():
            yield self._change([], self._opposite(named[1]), named, "")

    def _lone_values(self) -> Iterator[Change]:
        """A category or a value that no other record has: without the record its class is empty."""
        domains = self.fields.domains
        for size in self.sizes if len(domains) > 1 else ():
            *drawn, last = self._drawn(size)
            for k in list(range(len(domains)))[-FIELDS:][::-1]:  # a label usually comes last
                value, other = domains[k].ends()[:2]
                named = (f"the only {self.fields.paths[k]}={value!r:.20}", _with(last, k, value))
                yield self._change([_with(r, k, other) for r in drawn], _with(last, k, other), named, "without it")

    def _among_ordinary(self) -> Iterator[Change]:
        """A record at an end, all others in the middle."""
        middle = self.fields.middle()
        for size in self.sizes:
            for named in self._notable():
                yield self._change([middle] * (size - 1), middle, named, "ordinary")

    def _among_equal(self) -> Iterator[Change]:
        """All records equal, with one more or fewer, or one that is ordinary."""
        for size in self.sizes:
            for named in self._corners():
                yield self._change([named[1]] * (size - 1), self.fields.middle(), named, "equal to it")

    def _single_fields(self) -> Iterator[Change]:
        """One field at an end; a flipped label among them."""
        for size in self.sizes if len(self.fields.domains) > 1 else ():
            *others, last = self._drawn(size)
            for k, domain in list(enumerate(self.fields.domains))[-FIELDS:][::-1]:
                for end in domain.ends()[:2]:
                    named = (f"{self.fields.paths[k]}={end!r:.20}", _with(last, k, end))
                    yield self._change(others, last, named, "drawn at random")

    def _of_base(self) -> Iterator[Change]:
        """The base with a notable record more, or in the place of its last one."""
        base = self.base or ()
        if self.replace and not base:
            return
        others, last = (base[:-1], base[-1]) if self.replace else (base, ())
        for named in self._notable():
            yield self._change(others, last, named, "of the base")

    def _out_of_base(self) -> Iterator[Change]:
        """The base without one of its records, or with one moved to the other end; the outermost ones first."""
        base = self.base or ()
        for k in _outermost(base):
            others, record = (*base[:k], *base[k + 1 :]), base[k]
            if self.replace:
                label = f"record {k + 1} of the base at the opposite end"
                yield Change(others=others, before=record, after=self._opposite(record), place=k, label=label)
            else:
                yield Change(others=others, after=record, place=k, label=f"record {k + 1} of the base removed")

    def _drawn(self, n: int) -> list[Record]:
        """So many records as real data may hold them, the same ones every time; of the base where there is one."""
        rng = np.random.default_rng(SEED)
        if self.base:
            return [self.base[int(k)] for k in rng.integers(len(self.base), size=n)]
        return self.fields.draw(rng, n)


def _with(record: Record, k: int, value: object) -> Record:
    return (*record[:k], value, *record[k + 1 :])


def _outermost(base: Sequence[Record]) -> list[int]:
    """Places of the greatest and the least value of each field, and of the last, first and middle record."""
    found = []
    for k in range(min(len(base[0]), FIELDS) if base else 0):
        numbers = [(r[k], place) for place, r in enumerate(base) if isinstance(r[k], int | float) and r[k] == r[k]]
        found += [max(numbers)[1], min(numbers)[1]] if numbers else []
    return list(dict.fromkeys([*found, *([len(base) - 1, 0, len(base) // 2] if base else [])]))


def in_turn(kinds: Sequence[Iterator[T]]) -> Iterator[T]:
    """One of each, then the second of each, and so on."""
    waiting = list(kinds)
    while waiting:
        for kind in list(waiting):
            try:
                yield next(kind)
            except StopIteration:
                waiting.remove(kind)
