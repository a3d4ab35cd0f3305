"""Relative counts of a few cells, from signed sums that are likely to lie near the threshold, and their common unit.

Nothing is known of the cells but that each is positive. Their counts and the gap g between the base and the threshold,
relative to one of the cells, have a normal distribution as a prior; each query is a signed sum of the cells that the
distribution puts about as likely above g as below, so that each answer halves what is possible, and the distribution is
brought up to date by the moments of the half that is left (assumed-density filtering). As soon as whole numbers
explain all answers they are tried on fresh sums next to the threshold. They are known up to a common factor: answers
say nothing of it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.belief import Belief
from dpwitness.attacks.threshold_testing.comparing import Base, Scales
from dpwitness.attacks.threshold_testing.questions import Cells
from dpwitness.attacks.threshold_testing.sums import PARTIALS, Sums, exact, near
from dpwitness.attacks.threshold_testing.uniqueness import another_explanation

__all__ = ["Located", "locate"]

Floats = NDArray[np.float64]

#: Fresh sums next to the threshold, all of which whole numbers must predict.
FRESH: Final = 40
FEWEST_FRESH: Final = 20
#: Other explanations that are ruled out one after the other.
RIVALS: Final = 40
SEPARATING: Final = 8
#: Sums that were asked already may lie on the border of what their answers allow, but for rounding errors.
ROUNDING: Final = 1e-6
#: Queries between two attempts at whole numbers.
EACH: Final = 16


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Located:
    """Counts of some cells in their common unit, and what the base lacks of the threshold, rounded up.

    The base plus a signed sum of value s of the cells is ⊤ exactly if s ≥ `gap`. `sums`: what was asked of them.
    """

    cells: Cells
    counts: Cells
    gap: int
    sums: Sums

    def alone(self, rng: np.random.Generator) -> bool:
        """Whether further sums rule out all other counts that explain the answers; False where one stays.

        For histograms of few cells: of many, sums of all of them say more.
        """
        sums, counts, gap = self.sums, self.counts, self.gap
        values = counts.astype(np.float64)
        for _ in range(RIVALS):
            rival = another_explanation(sums.asked, sums.above, counts, gap, rng)
            if rival is None:
                return True
            # Sums next to the gap on which the two differ.
            rows = np.vstack([exact(values, target, PARTIALS, rng) for target in (gap, gap - 1)])
            margin = (rows @ rival[0] - rival[1]) * np.where(rows.astype(np.int64) @ counts == gap, 1, -1)
            split = np.argsort(margin)[:SEPARATING]
            split = split[margin[split] < -ROUNDING]
            if not len(split):
                return False
            above = sums.ask(rows[split])
            if not np.array_equal(above, rows[split].astype(np.int64) @ counts == gap):
                return False
        return False


def locate(
    scales: Scales, base: Base, cells: Cells, rng: np.random.Generator, guess: Floats | None = None
) -> Located | None:
    """Counts of the cells, shape (k,), all of `base.above`; None where the answers do not determine them.

    `guess`: about what the counts are, in any unit; the first one is taken for exact. By default all are alike.
    """
    k = len(cells)
    sums = Sums(scales, base, cells)
    if guess is None:
        belief = Belief(np.append(np.ones(k), 0.5), np.append(np.full(k, 0.6), 0.4))
    else:
        belief = Belief(np.append(guess / guess[0], 0.5 / guess[0]), np.append(0.7 + 0.1 * guess, 0.6) / guess[0])
    belief.covariance[0, 0] = 0
    together = min(scales.oracle.together, k)
    for asked in range(together, 36 * k + 200, together):
        signs = belief.questions(rng, together)
        belief.learn_all(signs, sums.ask(signs))
        if asked % EACH < together:
            belief.relearn(sums)
            found = belief.whole(sums)
            if found is not None:
                gap = _confirmed(sums, belief, found, rng)
                if gap is not None:
                    return Located(cells=cells, counts=found[0], gap=gap, sums=sums)
    return None


def _confirmed(
    sums: Sums, belief: Belief, found: tuple[Cells, tuple[int, int]], rng: np.random.Generator
) -> int | None:
    """Find the gap among whole numbers, then try sums next to it; None where one is not as predicted."""
    counts, (low, high) = found
    values = counts.astype(np.float64)
    while high - low > 1:
        target = (low + high) // 2
        signs, made = near(values, target, rng)
        inside = np.flatnonzero((made > low) & (made < high))
        if not len(inside):
            return None
        at = inside[np.argmin(np.abs(made[inside] - target))]
        above = sums.ask(signs[at : at + 1])
        belief.learn_all(signs[at : at + 1], above)
        low, high = (low, int(made[at])) if above[0] else (int(made[at]), high)
    fresh = np.vstack([exact(values, target, FRESH // 2, rng) for target in (low, high)])
    above = sums.ask(fresh)
    belief.learn_all(fresh, above)
    if not np.array_equal(above, fresh.astype(np.int64) @ counts == high) or len(fresh) < FEWEST_FRESH:
        return None
    return high
