"""A stronger attack on private threshold testing than differences of two cells: locate the threshold, then weigh.

The noisy threshold z is drawn once, and any signed sum of cells is a query of sensitivity 1. Let K = ⌈z⌉, so that
without query noise the answer to q is ⊤ exactly if q ≥ K. One greedy pass adds cells to a set S while the sum stays ⊥.
Once the sum of S is K − 1, "S plus cell v minus known cells of sum w" is ⊤ exactly if x_v ≥ w + 1: a balance, on which
cells whose counts are known are the weights. Every cell found is one more weight.

Answers to such queries cannot tell (x, K) from a multiple of it, so the greatest common divisor of the counts is taken
for 1. If z ≤ 0 all queries are asked negated: −q is ⊥ exactly if q ≥ 1 − K. (With constants as queries, which have
sensitivity 0, all this would be easy; nothing but sums of cells is used here.)
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.oracle import Counts, ThresholdOracle
from dpwitness.attacks.threshold_testing.reconstruction import Reconstruction

__all__ = ["Weights", "weigh", "widen_split"]

Cells = NDArray[np.int64]
Signs = NDArray[np.int8]

PASSES: Final = 4
#: No upper limit known yet.
OPEN: Final = np.iinfo(np.int64).max


@dataclass(slots=True)
class _Balance:
    """The oracle with a sense such that the empty query is ⊥, and the coefficients of S."""

    oracle: ThresholdOracle
    sense: int
    signs: Signs
    copies: int
    cut: float

    def above(self, signs: Signs) -> bool:
        hits = self.oracle.ask(self.sense * signs, self.copies)
        return (hits > self.cut * self.copies) == (self.sense > 0)

    def above_each(self, signs: Signs, cells: Cells, change: int) -> NDArray[np.bool_]:
        hits = self.oracle.ask_each(self.sense * signs, cells, self.sense * change, self.copies)
        return np.asarray((hits > self.cut * self.copies) == (self.sense > 0))

    def plus(self, *cells: int) -> Signs:
        signs = self.signs.copy()
        signs[list(cells)] += 1
        return signs


class Weights:
    """Known cells as weights: those outside S may be put on either side, those in S be taken off once or twice."""

    def __init__(self, signs: Signs, known: NDArray[np.bool_], guess: Counts) -> None:
        out = np.flatnonzero(known & (signs == 0) & (guess > 0))
        inside = np.flatnonzero(known & (signs == 1) & (guess > 0))
        self._signs = signs
        # Up: outside cells alone. Down: outside cells, and inside cells from +1 to 0 and on to −1.
        self._up, self._down = (self._sorted(cells, guess) for cells in (out, np.concatenate([out, inside, inside])))

    @staticmethod
    def _sorted(cells: Cells, guess: Counts) -> tuple[Cells, Counts, Counts]:
        order = cells[np.argsort(-guess[cells], kind="stable")]
        return order, guess[order], np.concatenate([[0], np.cumsum(guess[order])])

    def most(self, direction: int) -> int:
        """The largest offset that the weights reach."""
        return int((self._up if direction > 0 else self._down)[2][-1])

    def offset(self, direction: int, amount: int) -> tuple[Signs, int]:
        """S with known cells of sum at most `amount` put on (+1) or taken off (−1), the largest first; and that sum."""
        cells, values, sums = self._up if direction > 0 else self._down
        signs, left, at = self._signs.copy(), amount, 0
        while left > 0:
            at = max(at, int(np.searchsorted(-values, -left)))  # the first weight that is not too heavy
            if at >= len(cells):
                break
            stop = int(np.searchsorted(sums, sums[at] + left, side="right")) - 1
            np.add.at(signs, cells[at:stop], direction)
            left -= int(sums[stop] - sums[at])
            at = stop
        return signs, amount - left


def widen_split(low: int, high: int, known: Counts) -> int:
    """Where to split low..high (inclusive): at the median of the sorted counts known in between, else in the middle.

    Doubles where there is no upper limit.
    """
    if high == OPEN:
        return max(2 * low, low + 1)
    first, last = np.searchsorted(known, [low, high + 1])
    if last - first < 8:
        return (low + high + 1) // 2
    return int(np.clip(known[(first + last) // 2], low + 1, high))


def weigh(oracle: ThresholdOracle, rng: np.random.Generator, *, copies: int = 1, cut: float = 0.5) -> Reconstruction:
    """Read every cell's count through an oracle without query noise; see the module.

    With query noise every answer is the majority over `copies` (Theorem 3.5), or whether the share of ⊤'s exceeds
    another `cut`; right only where the copies are many enough.
    Cells that no known weight can balance (one that outweighs all others together) get the best lower limit as a
    guess. If the noisy threshold is beyond the sum of all cells nothing can be learned, and all guesses are 0.
    """
    n = oracle.cells
    empty = np.zeros(n, np.int8)
    balance = _Balance(oracle, -1 if oracle.ask(empty, copies) > cut * copies else 1, empty, copies, cut)
    low, high = np.zeros(n, np.int64), np.full(n, OPEN)
    order = rng.permutation(n)
    for _ in range(PASSES):
        _fill(balance, order)
        outside = np.flatnonzero(balance.signs == 0)
        if not len(outside):
            return Reconstruction(np.zeros(n, np.int64), oracle.queries)
        unit = _lightest(balance, outside)
        low[:], high[:] = 0, OPEN
        again = _first_limits(balance, outside, unit, low, high)
        if again is None:
            break
        order = again
    _narrow(balance, low, high)
    return Reconstruction(low, oracle.queries)


def _fill(balance: _Balance, order: Cells) -> None:
    """The greedy pass: add cells while the sum stays ⊥. Whatever is left out would make it ⊤."""
    signs = balance.signs = np.zeros(len(order), np.int8)
    for cell in order:
        signs[cell] = 1
        if balance.above(signs):
            signs[cell] = 0


def _lightest(balance: _Balance, outside: Cells) -> int:
    """A cell outside S that no other one is lighter than."""
    unit = int(outside[0])
    signs = balance.plus(unit)
    for cell in outside[1:]:
        signs[cell] = -1
        if balance.above(signs):  # x_unit − x_cell ≥ the gap below K
            signs[cell], signs[unit] = 1, 0
            unit = int(cell)
        else:
            signs[cell] = 0
    return unit


def _first_limits(balance: _Balance, outside: Cells, unit: int, low: Counts, high: Counts) -> Cells | None:
    """Sort out 0 inside S and 1 outside, taking the sum of S for K − 1 and the unit for a count of 1.

    Returns None, or a better order for the greedy pass where the answers contradict that.
    """
    inside = np.flatnonzero(balance.signs == 1)
    others = outside[outside != unit]
    nothing = balance.above_each(balance.plus(unit), inside, -1)  # x ≤ x_unit − 1
    zeros, rest = inside[nothing], inside[~nothing]
    signs = balance.signs.copy()
    signs[unit] = -1
    more = balance.above_each(signs, others, 1)  # x − x_unit ≥ 1
    twins = others[~more]
    retry = np.concatenate([outside, rest, zeros])
    if len(zeros):
        together = balance.plus(unit)
        together[zeros] = 0
        if not balance.above(together):  # they hold something after all, less than the unit each
            return retry
    if len(twins) and len(rest):
        # S + unit + twin − 2·cell ≥ K: never if the unit is 1 and the cell is not 0.
        pair = balance.plus(unit, int(twins[0]))
        pair[rest] = 0
        for cell in rest:
            trial = balance.plus(unit, int(twins[0]))
            trial[cell] = -1
            if balance.above(trial):
                return retry
    high[zeros] = 0
    low[unit] = high[unit] = 1
    low[twins] = high[twins] = 1
    low[rest] = 1
    low[others[more]] = 2
    return None


def _narrow(balance: _Balance, low: Counts, high: Counts) -> None:
    """Weigh until every cell is known, or until no weight can tell more."""
    while True:
        known = low == high
        weights = Weights(balance.signs, known, low)
        counts = np.sort(low[known])
        progress = False
        pending = np.flatnonzero(~known)
        if not len(pending):
            return
        side = balance.signs[pending]
        keys, group = np.unique(np.stack([side, low[pending], high[pending]]), axis=1, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        parts = np.split(pending[order], np.cumsum(np.bincount(group.ravel()))[:-1])
        for (inside, least, most), cells in zip(keys.T, parts, strict=True):
            split = widen_split(int(least), int(most), counts)
            if inside:
                # S − cell + w is ⊤ exactly if x ≤ w − 1.
                signs, w = weights.offset(1, min(split, weights.most(1)))
                split = w
                if split <= least:
                    continue
                at_least = ~balance.above_each(signs, cells, -1)
            else:
                # S + cell − w is ⊤ exactly if x ≥ w + 1.
                signs, w = weights.offset(-1, min(split - 1, weights.most(-1)))
                split = w + 1
                if split <= least:
                    continue
                at_least = balance.above_each(signs, cells, 1)
            progress = True
            low[cells[at_least]] = split
            high[cells[~at_least]] = split - 1
        if not progress:
            return
