"""An input that many runs get, and whether one of them changed it.

A copy for each run would cost more than most runs. So the runs of a batch get one object, which is compared before they
count: with the very objects that it held before them, down to the items of all its containers.
"""

import pickle
import sys
from dataclasses import dataclass
from itertools import chain
from operator import is_
from typing import Any, Final

import numpy as np

from dpwitness.neighbours.inputs import ATOMS, Data

CONTAINERS: Final = (list, dict, tuple, set, frozenset)
#: Bytes of an array or a table that are compared as fast as an item of a list, and items that a table takes besides.
BYTES_AN_ITEM: Final = 256
TABLE: Final = 1_000
#: Levels of nesting, and things at one of them, up to which it is seen whether an input was changed.
DEEPEST: Final = 32
MOST_ITEMS: Final = 1 << 22


def parts(data: Data) -> list[list[object]] | None:
    """All that an input holds, level by level, with the number of items of each container and the bytes of arrays.

    None where a change could go unseen: in objects of kinds that are not known, or where it is nested too deep. See
    `same_parts`.
    """
    levels: list[list[Any]] = []
    level: list[Any] = [data]
    while level:
        if len(levels) > 2 * DEEPEST or len(level) > MOST_ITEMS:
            return None
        content: list[Any] = []
        inner: list[Any] = []
        kinds = dict.fromkeys(map(type, level))
        for kind in kinds:
            if kind in ATOMS or (issubclass(kind, np.generic) and kind is not np.void):
                continue
            own: list[Any] = level if len(kinds) == 1 else [item for item in level if type(item) is kind]
            if kind in CONTAINERS:
                content += map(len, own)
                inner += chain.from_iterable(own)
                if kind is dict:
                    inner += chain.from_iterable(map(dict.values, own))
                continue
            for item in own:
                written = _written(item)
                if written is None:
                    return None
                content.append(written)
        levels += (level, content)
        level = inner
    return levels


def same_parts(now: list[list[object]] | None, before: list[list[object]]) -> bool:
    """Whether an input that had these `parts` before still holds the very same objects in the same places.

    They are kept by `before`, so that no other object can be taken for one of them.
    """
    if now is None or len(now) != len(before):
        return False
    held = all(len(a) == len(b) and all(map(is_, a, b)) for a, b in zip(now[::2], before[::2], strict=True))
    return held and now[1::2] == before[1::2]


def _written(item: Data) -> tuple[object, ...] | None:
    """What changes whenever an array or a table does; None for anything else."""
    if type(item) is np.ndarray and item.dtype.kind in "biufcSUmM":
        return item.dtype.str, item.shape, item.strides, item.flags.writeable, item.tobytes()
    pandas = sys.modules.get("pandas")
    if pandas is None or type(item) not in (pandas.DataFrame, pandas.Series):
        return None
    columns = [item] if type(item) is pandas.Series else [column for _, column in item.items()]
    if not all(set(map(type, column)) <= ATOMS for column in columns if column.dtype.kind == "O"):
        return None
    categories = [column.dtype.categories for column in columns if isinstance(column.dtype, pandas.CategoricalDtype)]
    worked_out = [axis.values for axis in item.axes if type(axis) in (pandas.RangeIndex, pandas.MultiIndex)]
    try:
        # Neither attributes that a function added nor values that an index works out once would be written.
        return pickle.dumps((item, worked_out), 5), *map(tuple, map(vars, (item, *item.axes, *categories)))
    except Exception:  # pickle lets through whatever it meets: `attrs` may hold anything, such as a function
        return None


def items_of(data: Data) -> int:
    """About how many items an input holds, those of the containers in it included: what comparing it costs.

    Of lists in a list all count as much as the first. An item of an array or a table is `BYTES_AN_ITEM`.
    """
    if type(data) in CONTAINERS and data:
        return len(data) * (2 * items_of(next(iter(data))) if type(data) is not dict else 2)
    if type(data) is np.ndarray:
        return 1 + int(data.nbytes) // BYTES_AN_ITEM
    pandas = sys.modules.get("pandas")
    if pandas is not None and type(data) in (pandas.DataFrame, pandas.Series):
        return TABLE + int(data.size) * 8 // BYTES_AN_ITEM
    return 1


@dataclass(slots=True)
class SharedInput:
    """An object that many runs get."""

    #: The object, which nothing else uses.
    value: Data
    #: Its `parts` before the first run.
    before: list[list[Any]]
    #: About how many it holds; see `items_of`.
    items: int
    #: How many runs have left it as it was.
    runs: int = 0

    @property
    def changed(self) -> bool:
        """Whether a run changed it."""
        return not same_parts(parts(self.value), self.before)


def shared_input(value: Data) -> SharedInput | None:
    """An object of its own as one that many runs get; None where a change could go unseen."""
    before = parts(value)
    return None if before is None else SharedInput(value, before, items_of(value))
