"""Cells whose counts are known, as weights: signed sums of them of a wanted value."""

from functools import cache
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.questions import Cells, Signs

__all__ = ["Weights", "signings"]

#: Light cells that are kept apart: all 3^k signed sums of them are at hand.
KEPT: Final = 9
#: How often a sum is tried from other cells where it is not met.
TRIES: Final = 24
#: Ranges so wide have room for any sum near the one that is aimed at.
WIDE: Final = 1 << 40


@cache
def signings(k: int) -> Signs:
    """All signs of k cells, shape (3^k, k)."""
    return np.array(list(product((-1, 0, 1), repeat=k)), np.int8).reshape(3**k, k)


class Weights:
    """Signed sums of known cells on top of a base.

    The heaviest cells that fit make most of a sum, and a few light ones that are kept apart for this the rest: all of
    their signed sums are at hand, so that sums need no cell of one.

    Parameters
    ----------
    base
        Coefficients of the base, shape (cells,); no cell of it is used.
    known, counts
        Which cells are known, and their counts; shape (cells,).
    """

    def __init__(self, base: Signs, known: NDArray[np.bool_], counts: Cells) -> None:
        self._base = base
        free = np.flatnonzero(known & (base == 0) & (counts > 0))
        free = free[np.argsort(counts[free], kind="stable")]
        kept = _kept(counts[free])
        self._light, self._heavy = free[kept], np.delete(free, kept)[::-1]
        self._values = counts[self._heavy]
        self._reach = np.concatenate([[0], np.cumsum(self._values)])
        sums = _sums(tuple(counts[self._light].tolist()))
        self._sums, self._codes = sums

    def between(self, first: int, last: int, aim: int, rng: np.random.Generator) -> tuple[Signs, int] | None:
        """A sum from first to last (inclusive), as near to `aim` as the heaviest cells that fit come; None: none found.

        Returns the coefficients of base and known cells, shape (cells,), and the value of what was added to the base.
        """
        for trial in range(TRIES):
            if trial:
                # Other heavy cells leave another rest.
                used = np.flatnonzero(rng.random(len(self._heavy)) < rng.choice([0.5, 0.9]))
                if (
                    trial % 4 == 3
                ):  # only up to some count: where there are few counts, one of them may stand in the way
                    used = used[self._values[used] <= rng.choice(self._values[used])] if len(used) else used
                heavy, values = self._heavy[used], self._values[used]
                reach = np.concatenate([[0], np.cumsum(values)])
                aim = (
                    int(np.clip(rng.integers(first, last + 1), aim - (1 << 20), aim + (1 << 20))) if trial % 2 else aim
                )
            else:
                heavy, values, reach = self._heavy, self._values, self._reach
            # The light cells' share of the sum, in turn, where heavy and light ones are of few counts.
            share = int(self._sums[rng.integers(len(self._sums))]) if trial % 4 == 3 else 0
            signs, value = self._offset(aim, heavy, values, reach, first, last, share)
            if first <= value <= last:
                return signs, value
        return None

    def nearest(self, aim: int) -> tuple[Signs, int]:
        """A sum near `aim`, as `between` gives it."""
        return self._offset(aim, self._heavy, self._values, self._reach, aim, aim)

    def _offset(
        self, amount: int, heavy: Cells, values: Cells, reach: Cells, first: int, last: int, share: int = 0
    ) -> tuple[Signs, int]:
        """The sum of that amount, or one near it: the largest cells first, but for a share, then the light ones."""
        direction, left = 1 if amount > share else -1, abs(amount - share)
        signs, at = self._base.copy(), 0
        while left > 0 and at < len(heavy):
            at = max(at, int(np.searchsorted(-values, -left)))  # the first weight that is not too heavy
            if at >= len(heavy):
                break
            stop = int(np.searchsorted(reach, reach[at] + left, side="right")) - 1
            signs[heavy[at:stop]] = direction
            left -= int(reach[stop] - reach[at])
            at = stop
        # Signed sums are symmetric about 0.
        made = direction * (abs(amount - share) - left)
        place = int(np.searchsorted(self._sums, amount - made))
        options = [k for k in (place, place - 1) if 0 <= k < len(self._sums)]
        outside = [not first <= made + self._sums[k] <= last for k in options]
        _, _, best = min((out, abs(made + self._sums[k] - amount), k) for out, k in zip(outside, options, strict=True))
        signs[self._light] = self._codes[best]
        return signs, made + int(self._sums[best])


@cache
def _sums(values: tuple[int, ...]) -> tuple[Cells, Signs]:
    """All signed sums of some values, in ascending order, and signs that make each."""
    codes = signings(len(values))
    sums, first = np.unique(codes.astype(np.int64) @ np.array(values, np.int64), return_index=True)
    return sums, codes[first]


def _kept(ascending: Cells) -> Cells:
    """The places of the cells to keep apart: some of each of the smallest counts, then the lightest of the others."""
    _, first, number = np.unique(ascending, return_index=True, return_counts=True)
    each = max(1, KEPT // max(len(first), 1))
    kept = [start + k for start, most in zip(first[: KEPT // 2], number, strict=False) for k in range(min(each, most))]
    rest = np.setdiff1d(np.arange(min(len(ascending), 2 * KEPT)), kept)
    return np.sort(np.concatenate([np.array(kept, np.int64), rest])[:KEPT])
