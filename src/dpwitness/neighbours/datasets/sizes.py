"""How many records a dataset may have, and how many candidates have."""

from typing import Any, Final

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours

__all__ = ["Size", "allowed", "check_size", "sizes_to_try"]

#: A number of records, the least and the most, or None for any number.
Size = int | tuple[int, int] | None

#: Records in the larger dataset, the most promising numbers first.
SIZES: Final = (10, 2, 100, 1000, 3)
#: Records that a dataset may be asked to have: each is made.
MOST_RECORDS: Final = 1_000_000


def check_size(size: Any) -> None:
    """Raise `InvalidNeighbours` unless it is a `Size` of datasets that may differ in a record."""
    ends = size if isinstance(size, tuple) else (size, size)
    if size is None:
        return
    if (
        len(ends) != 2
        or any(isinstance(end, bool) or not isinstance(end, int) for end in ends)
        or not 0 <= ends[0] <= ends[1]
    ):
        raise InvalidNeighbours(f"size={brief(size)} must be a number of records, (least, most), or None")
    if ends[0] > MOST_RECORDS:
        raise InvalidNeighbours(f"size={brief(size)}: give at most {MOST_RECORDS} records, all of which are made")
    if ends[1] < 1:
        raise InvalidNeighbours(f"size={brief(size)}: neighbours need a record that differs: give at least 1")


def allowed(size: Size, first: int, second: int) -> bool:
    """Whether two datasets of so many records may be neighbours."""
    if size is None:
        return True
    if isinstance(size, tuple):
        return size[0] <= min(first, second) and max(first, second) <= size[1]
    return size in (first, second)


def sizes_to_try(size: Size) -> tuple[int, ...]:
    """Numbers of records in the larger dataset of a candidate."""
    if size is None:
        return SIZES
    if isinstance(size, int):
        return (size, size + 1)
    least, most = size
    usual = [n for n in SIZES if least < n <= most]
    return tuple(dict.fromkeys([*usual, min(least + 1, most), min(most, max(*SIZES, least + 1))]))
