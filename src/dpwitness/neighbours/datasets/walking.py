"""From a good change to others like it, and to simpler ones."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from dpwitness.neighbours.datasets.changes import Change, rank_of
from dpwitness.neighbours.datasets.domain import Domain, key_of
from dpwitness.neighbours.datasets.fields import Fields, Record

__all__ = ["simpler_changes", "varied_changes"]

#: Fields that are changed one by one.
FIELDS: Final = 8
#: Values that are tried for a field.
VALUES: Final = 4
#: Records that are left out one by one.
SINGLES: Final = 16
#: Records that variations go up to.
LARGEST: Final = 1000


def varied_changes(fields: Fields, change: Change) -> Iterator[Change]:
    """Other records beside it, other numbers of them, another place, other values of the record that differs."""
    middle = fields.middle()
    n = len(change.others)
    for size in (2 * n + 1, n // 2, 10 * n, n + 1, 1):
        if size <= max(LARGEST, n) and size != n:
            yield replace(
                change, others=_resized(change.others, size, middle), place=None, label=f"{size} other records"
            )
    yield replace(change, place=0, label="as the first record")
    yield replace(change, place=n // 2, label="as the middle record")
    for name, record in (("ordinary", middle), ("equal", change.after), ("equal", change.before)):
        if record is not None:
            yield replace(change, others=(record,) * n, label=f"all others {name}")
    for name, falling in (("rising", False), ("falling", True)):
        others = tuple(sorted(change.others, key=rank_of, reverse=falling))
        yield replace(change, others=others, place=n // 2, label=f"others in {name} order")
    for k, domain in _some(fields.domains):
        for value in islice(domain.odd(), 1):
            others = tuple(_with(record, k, value) for record in change.others)
            yield replace(change, others=others, label=f"{fields.paths[k]}={value!r:.20} in all others")
        for value in islice(domain.near(change.after[k]), VALUES):
            yield replace(change, after=_with(change.after, k, value), label=f"{fields.paths[k]}={value!r:.20}")
        for value in islice(domain.near(change.before[k]), VALUES) if change.before is not None else ():
            yield replace(change, before=_with(change.before or (), k, value), label=f"{fields.paths[k]}={value!r:.20}")
        for end in domain.ends()[:2]:
            others = tuple(_with(record, k, end) for record in change.others)
            yield replace(change, others=others, label=f"{fields.paths[k]}={end!r:.20} in all others")


def simpler_changes(fields: Fields, change: Change) -> Iterator[Change]:
    """Fewer records, fewer fields that differ, fewer kinds of records, rounder values; the largest steps first."""
    before = _length(change)
    for step in _steps(fields, change):
        if _length(step) < before:
            yield replace(step, label="shrunk")


def _steps(fields: Fields, change: Change) -> Iterator[Change]:
    others = change.others
    place = len(others) if change.place is None else change.place
    for keep in _fewer(len(others)):
        kept = tuple(others[k] for k in keep)
        yield replace(change, others=kept, place=sum(k < place for k in keep))
    if change.before is not None:
        for k in range(len(change.after)):
            yield replace(change, after=_with(change.after, k, change.before[k]))
            yield replace(change, before=_with(change.before, k, change.after[k]))
    for record in (fields.middle(), *others[:1], change.after, change.before):
        if record is not None:
            yield replace(change, others=(record,) * len(others))
    for k, domain in enumerate(fields.domains):
        yield from _rounder(change, k, domain)


def _rounder(change: Change, k: int, domain: Domain) -> Iterator[Change]:
    """One field of the record that differs, then of all others, with simpler values."""
    for value in islice(domain.simpler(change.after[k]), VALUES):
        yield replace(change, after=_with(change.after, k, value))
    if change.before is not None:
        for value in islice(domain.simpler(change.before[k]), VALUES):
            yield replace(change, before=_with(change.before, k, value))
    simplest: Callable[[Record], Record] = lambda r: _with(r, k, next(iter(domain.simpler(r[k])), r[k]))  # noqa: E731
    yield replace(change, others=tuple(map(simplest, change.others)))


def _fewer(n: int) -> Iterator[Sequence[int]]:
    """Places to keep: none, without halves, quarters, … and single ones."""
    if n:
        yield ()
    chunk = n // 2
    while chunk and n // chunk <= SINGLES:
        for start in range(0, n, chunk):
            yield [k for k in range(n) if not start <= k < start + chunk]
        chunk //= 2


def _resized(others: Sequence[Record], size: int, filler: Record) -> tuple[Record, ...]:
    """So many of the records, repeated in their order."""
    source = others or (filler,)
    return tuple(source[k % len(source)] for k in range(size))


def _with(record: Record, k: int, value: object) -> Record:
    return (*record[:k], value, *record[k + 1 :])


def _some(domains: Sequence[Domain]) -> list[tuple[int, Domain]]:
    """The last few fields, of which a label usually is the last."""
    return list(enumerate(domains))[::-1][:FIELDS]


def _length(change: Change) -> tuple[int, int, int, int]:
    """How many records, fields that differ, kinds of records, and characters; less is simpler."""
    kinds = {tuple(map(key_of, record)): record for record in (*change.others, change.after, change.before or ())}
    pairs = zip(change.after, change.before or change.after, strict=True)
    differing = len(change.after) if change.before is None else sum(a != b for a, b in pairs)
    return len(change.others), differing, len(kinds), sum(len(repr(v)) for record in kinds.values() for v in record)
