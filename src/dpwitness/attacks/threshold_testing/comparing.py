"""An oracle as a pair of scales: signed sums of cells against one fixed threshold above 0, and a base just below it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.oracle import Change, Queries
from dpwitness.attacks.threshold_testing.questions import Cells, Signs

__all__ = ["Base", "Scales", "lay_base", "lightest"]

Flags = NDArray[np.bool_]

#: The lightest cells are looked for among so many times as many.
SAMPLE: Final = 6
#: Rounds without progress after which they are looked for no longer.
IDLE: Final = 4


class Scales:
    """Whether a signed sum of cells reaches the noisy threshold z, in a sense in which the empty sum does not.

    If z ≤ 0 all queries are asked negated: −q is ⊥ exactly if q > −z, so that −z stands for z.

    Parameters
    ----------
    oracle
        What may be asked.
    copies, cut
        A sum counts as reaching z where more than a share `cut` of so many copies say so (Theorem 3.5: the majority).
    negated
        The sense, where it is known already.
    """

    def __init__(self, oracle: Queries, *, copies: int = 1, cut: float = 0.5, negated: bool | None = None) -> None:
        self.oracle, self.copies, self._least = oracle, copies, cut * copies
        if negated is None:
            negated = 2 * oracle.ask(np.zeros(oracle.cells, np.int8), copies) > copies
        self.negated = negated

    def above(self, signs: Signs) -> Flags:
        """Whether each of the sums with these coefficients, shape (sums, cells), is at least z."""
        return self._read(self.oracle.ask_all(-signs if self.negated else signs, self.copies))

    def above_each(self, signs: Signs, cells: Cells, change: int) -> Flags:
        """The same for `signs` with `change` added to the coefficient of one of `cells` each."""
        return self.above_changes([(signs, cells, change)])[0]

    def above_changes(self, changes: Sequence[Change]) -> list[Flags]:
        """The same for several such sets of sums, asked at once."""
        if self.negated:
            changes = [(-signs, cells, -change) for signs, cells, change in changes]
        return [self._read(hits) for hits in self.oracle.ask_changes(changes, self.copies)]

    def _read(self, hits: Cells) -> Flags:
        return np.asarray((self.copies - hits if self.negated else hits) > self._least)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Base:
    """A sum below z that every single one of the cells `above` brings to z.

    `signs`: 1 for the cells in it, shape (cells,). The gap, z less the base's sum, is at most the least count of
    `above`.
    """

    signs: Signs
    above: Cells


def lay_base(scales: Scales, rng: np.random.Generator) -> Base:
    """Add cells while the sum stays below z, by bisection over random orders: about two queries a cell.

    `above` is empty where all cells together do not reach z: then no query tells anything.
    """
    signs = np.zeros(scales.oracle.cells, np.int8)
    rest = rng.permutation(len(signs))
    above: list[Cells] = []
    while len(rest):
        stop = _below(scales, signs, rest)
        signs[rest[:stop]] = 1
        if stop == len(rest):
            break
        rest = rest[stop:]
        top = scales.above_each(signs, rest, 1)
        top[0] = True  # with query noise the two answers may differ
        above.append(rest[top])
        rest = rng.permutation(rest[~top])
    return Base(signs=signs, above=np.concatenate(above) if above else np.zeros(0, np.int64))


def _below(scales: Scales, signs: Signs, cells: Cells) -> int:
    """How many of the cells, in this order, can be added to the sum before it reaches z."""
    low, high = 0, len(cells) + 1
    # All of them first: at the end of the laying that is the answer.
    tried = np.array([len(cells)])
    while high - low > 1:
        rows = np.repeat(signs[None], len(tried), axis=0)
        for row, number in zip(rows, tried, strict=True):
            row[cells[:number]] = 1
        above = scales.above(rows)
        high = int(tried[above].min(initial=high))
        low = int(tried[~above & (tried < high)].max(initial=low))
        tried = np.unique(np.linspace(low, high, scales.oracle.together + 2).astype(np.int64)[1:-1])
        tried = tried[(tried > low) & (tried < high)]
    return low


def lightest(scales: Scales, base: Base, rng: np.random.Generator, number: int) -> Cells:
    """About `number` of the lightest cells of a sample of `base.above`, as far as differences of two of them tell.

    x_u − x_v is seen to be positive where it is at least the base's gap.
    """
    cells, idle = rng.permutation(base.above)[: SAMPLE * number], 0
    while len(cells) > number and idle < IDLE:
        pivot = rng.choice(cells)
        others = cells[cells != pivot]
        signs = base.signs.copy()
        signs[pivot] = -1
        kept = np.append(others[~scales.above_each(signs, others, 1)], pivot)
        if number <= len(kept) < len(cells):
            cells, idle = kept, 0
        else:  # too few are lighter than the pivot, or none is heavier
            idle += 1
    return rng.permutation(cells)[:number]
