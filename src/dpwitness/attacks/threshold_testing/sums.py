"""Signed sums of a few cells: such as lie near a value, and the answers about them."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.comparing import Base, Scales
from dpwitness.attacks.threshold_testing.questions import Cells, Signs
from dpwitness.attacks.threshold_testing.weights import signings

__all__ = ["PARTIALS", "Sums", "exact", "near"]

Floats = NDArray[np.float64]

#: Cells of which all 3^k signed sums are made, to complete random ones: so many, or half of all.
COMPLETED: Final = 8
PARTIALS: Final = 256


class Sums:
    """Signed sums of the cells on top of the base, and all answers so far."""

    def __init__(self, scales: Scales, base: Base, cells: Cells) -> None:
        self._scales, self._base, self.cells = scales, base, cells
        self.asked = np.zeros((0, len(cells)), np.int8)
        self.above = np.zeros(0, np.bool_)

    def ask(self, signs: Signs) -> NDArray[np.bool_]:
        """Which of the sums, coefficients of shape (sums, cells), are above."""
        questions = np.repeat(self._base.signs[None], len(signs), axis=0)
        questions[:, self.cells] = signs
        answers = self._scales.above(questions)
        self.asked, self.above = np.vstack([self.asked, signs]), np.append(self.above, answers)
        return answers

    def separated(self, counts: Cells) -> tuple[int, int] | None:
        """The largest sum below and the least above, if these counts explain all answers."""
        sums = self.asked.astype(np.int64) @ counts
        low, high = max(0, sums[~self.above].max(initial=0)), sums[self.above].min(initial=np.iinfo(np.int64).max)
        return (int(low), int(high)) if low < high else None


def near(values: Floats, target: float, rng: np.random.Generator) -> tuple[Signs, Floats]:
    """Many signed sums of the values near a target: coefficients, shape (candidates, cells), and the sums."""
    n = len(values)
    order = rng.permutation(n)
    split = min(COMPLETED, (n + 1) // 2)
    done, free = order[:split], order[split:]
    codes = signings(len(done))
    sums = codes @ values[done]
    rank = np.argsort(sums, kind="stable")
    sums = sums[rank]
    partial = rng.integers(-1, 2, (PARTIALS if len(free) else 1, len(free)), np.int8)
    # Sums near 0 of cells that are nearly alike have about as many +1 as −1, and do not tell counts that are all too
    # large by as much. Heavy cells against light ones need more of these, and do.
    against = rng.random(len(partial)) < 0.5
    partial[against] = np.abs(partial[against]) * np.where(values[free] > np.median(values), -1, 1).astype(np.int8)
    partial[::2] *= -1
    part = partial @ values[free]
    place = np.searchsorted(sums, target - part)
    signs, found = [], []
    for at in (place - 1, place):
        at = np.clip(at, 0, len(sums) - 1)
        # Among equal sums any.
        row = np.empty((len(part), n), np.int8)
        row[:, free], row[:, done] = partial, codes[rank[at]]
        signs.append(row)
        found.append(part + sums[at])
    return np.vstack(signs), np.concatenate(found)


def exact(values: Floats, target: int, number: int, rng: np.random.Generator) -> Signs:
    """Signed sums of exactly that value, as different as they come."""
    rows = []
    for _ in range(4):
        signs, made = near(values, target, rng)
        rows.append(signs[made == target])
    found = np.unique(np.vstack(rows), axis=0)
    return np.asarray(rng.permutation(found)[:number])
