"""Shrinking steps that the relations share. They know nothing of adjacency: each relation keeps those inside it."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpwitness.neighbours.inputs import Data
from dpwitness.neighbours.pair import Pair, make_pair

LABEL = "shrunk"


def drop_coordinate(pair: Pair) -> Iterator[Pair]:
    """Without some of the coordinates of a list: halves, quarters, … single ones."""
    if pair.data.ndim != 1:
        return
    for dropped in _chunks(np.arange(pair.data.size)):
        keep = np.ones(pair.data.size, bool)
        keep[dropped] = False
        if np.any(pair.data[keep] != pair.neighbour[keep]):
            yield make_pair(pair.data[keep], pair.neighbour[keep], LABEL)


def drop_differing_coordinate(pair: Pair) -> Iterator[Pair]:
    """With fewer coordinates that differ: without half of them, a quarter, … a single one."""
    differing = np.flatnonzero(pair.data != pair.neighbour)
    for places in _chunks(differing):
        if len(places) < len(differing):
            changed = pair.neighbour.copy()
            changed.flat[places] = pair.data.flat[places]
            yield make_pair(pair.data, changed, LABEL)


def nearer_to_zero(pair: Pair) -> Iterator[Pair]:
    """Smaller or rounder numbers; what differs keeps its difference, and integers stay integers."""
    base: Data = np.minimum(*pair.sides).ravel()
    shifts: list[Data] = [base, np.full_like(base, base.min() if base.min() > 0 else base.max())]
    shifts += [np.where(np.arange(base.size) == i, base, 0) for i in range(base.size if 1 < base.size <= 16 else 0)]
    shifts += [np.where(np.abs(base) >= 2, base - _rounded(base / 2, base), 0), base - _rounded(base, base)]
    for move in shifts:
        shift = move.reshape(pair.data.shape).astype(base.dtype)
        smaller = make_pair(pair.data - shift, pair.neighbour - shift, LABEL)
        if _length(smaller) < _length(pair):
            yield smaller


def _chunks(places: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Halves of some places, quarters, … single ones."""
    chunk = len(places) // 2
    while chunk:
        for start in range(0, len(places), chunk):
            yield places[start : start + chunk]
        chunk //= 2


def _rounded(values: Data, like: Data) -> Data:
    """Whole numbers of the same kind as another array."""
    return np.round(values).astype(like.dtype)


def _length(pair: Pair) -> tuple[float, int]:
    """How large, then how long to write, the numbers of a pair are; less is simpler."""
    digits = sum(len(f"{value:g}") for side in pair.sides for value in side.ravel())
    return float(sum(np.abs(side.astype(np.float64)).sum() for side in pair.sides)), digits
