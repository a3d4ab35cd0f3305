"""In what two inputs differ besides their values: a verdict on such a pair may rest on that alone."""

from typing import Any

import numpy as np

from dpwitness.neighbours.pair import Pair

__all__ = ["unlike"]


def unlike(pair: Pair) -> str | None:
    """What the types of two arrays or tables differ in; None where it is nothing, or where they are neither.

    The relations of this package make no such pair, but a user may give one.
    """
    first, second = pair.sides
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray) and first.ndim and second.ndim:
        return _told("the type of their arrays", first.dtype, second.dtype)
    kinds = type(first).__name__, type(second).__name__
    if kinds == ("DataFrame", "DataFrame"):
        return _of_frames(first, second)
    tabular = {"DataFrame", "Series", "ndarray"} & set(kinds)
    numbers = any(isinstance(side, np.ndarray) and not side.ndim for side in pair.sides)
    return _told("their type", *kinds) if tabular and not numbers else None


def _of_frames(first: Any, second: Any) -> str | None:
    if list(first.columns) != list(second.columns):
        return _told("their columns", list(first.columns), list(second.columns))
    for k, name in enumerate(first.columns):
        told = _told(f"the type of column {name!r}", first.dtypes.iloc[k], second.dtypes.iloc[k])
        if told:
            return told
    kinds = [
        f"{type(frame.index).__name__} of {frame.index.dtype}, name {frame.index.name!r}" for frame in (first, second)
    ]
    return _told("their index", *kinds)


def _told(what: str, first: object, second: object) -> str | None:
    if repr(first) == repr(second):
        return None
    return f"{what} ({first!s:.60} and {second!s:.60})"
