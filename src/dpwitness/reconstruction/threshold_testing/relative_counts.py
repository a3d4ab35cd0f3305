"""The adaptive attack without query noise, or with the majority of enough copies: every count, up to a common factor.

A stronger attack on private threshold testing than differences of two cells. It asks sums of cells around a base sum
just below the noisy threshold; a few reference cells come first, all others are bisected by sums of known ones, and
fresh sums of all cells next to the threshold test the result. If these are not as predicted, the attack looks for a
finer unit. If no unit suits all cells, it takes one that suits nearly all, and does not claim the others.
"""

from typing import Final

import numpy as np

from dpwitness.reconstruction.threshold_testing.bisection import OPEN, Bisection, RelativeCounts, prevailing_unit
from dpwitness.reconstruction.threshold_testing.comparison import Comparison, find_base_sum, smallest_cells
from dpwitness.reconstruction.threshold_testing.count_ratios import counts_by_ratios, ratios_hold
from dpwitness.reconstruction.threshold_testing.oracle import Cells
from dpwitness.reconstruction.threshold_testing.reference_cells import find_reference_cells

#: Reference cells, at first and when their unit is not one of all.
REFERENCES: Final = 24
#: Cells that are bisected and tested before all the others are.
PILOT: Final = 96
#: Attempts at a unit, base sums, and units on one of them.
ATTEMPTS: Final = 6
BASES: Final = 3
#: Of so few cells that are not empty other counts may explain all answers as well.
FEW: Final = 40
#: Where fewer of the cells are known, those that share no unit with the others are looked for.
NEARLY_ALL: Final = 0.98
#: How often such cells are reopened.
ROUNDS: Final = 8
#: Of each count so many cells, when a unit is looked for again: where most hold one and the same, others tell more.
EACH_COUNT: Final = (5, 2, 1)


def find_relative_counts(comparison: Comparison, rng: np.random.Generator) -> RelativeCounts:
    """Find every cell's count, up to a common factor.

    `comparison` is without query noise, or with enough copies against it. Cells that no sum of known cells reaches (one
    that outweighs all others together) keep their limits.
    """
    n = comparison.oracle.cells
    cells = rng.permutation(n)
    nothing = np.zeros(n, np.int64)
    best = RelativeCounts(low=nothing, high=nothing + 1, likeliest=np.zeros(n), fresh_sums=0, threshold=None)
    for _ in range(BASES):
        bisection = Bisection(comparison, find_base_sum(comparison, rng))
        if not len(bisection.base.above):
            break
        has_unit = _find_unit(bisection, rng)
        for _ in range(BASES):
            if not has_unit:
                break
            bisection.refine(cells, rng)
            fresh_sums = bisection.test(cells, rng)
            if not fresh_sums:
                has_unit = _find_unit(bisection, rng, cells)
                continue
            if not ratios_hold(bisection, cells):
                has_unit = counts_by_ratios(bisection, cells, rng)
                continue
            if len(bisection.base.above) <= FEW and not (bisection.reference and bisection.reference.unique(rng)):
                break
            best = max(best, bisection.result(fresh_sums), key=_number_known)
            # Sums that are all even, say, leave two counts open: cells of such counts are the next references.
            rest = cells[~bisection.known[cells] & (bisection.high[cells] < OPEN)]
            if not len(rest):
                break
            has_unit = _find_unit(bisection, rng, rest)
        if best.fresh_sums:
            break
    if best.known.mean() < NEARLY_ALL:
        most = _find_prevailing(comparison, cells, rng)
        best = best if most is None else max(best, most, key=_number_known)
    return best


def _number_known(counts: RelativeCounts) -> int:
    return int(counts.known.sum())


def _find_unit(bisection: Bisection, rng: np.random.Generator, cells: Cells | None = None) -> bool:
    """Find a unit of which a sample of cells are whole multiples; False where there is none.

    `cells`: those that are no multiples of the unit so far; the sample is chosen from among them.
    """
    comparison, base = bisection.comparison, bisection.base
    smallest = smallest_cells(comparison, base, rng, REFERENCES)
    pilot = np.union1d(smallest, rng.permutation(base.above)[:PILOT])
    references, guess = smallest, None
    for attempt in range(ATTEMPTS):
        if cells is not None:
            if attempt < 2 and counts_by_ratios(bisection, cells, rng) and bisection.test(cells, rng):
                return True
            pilot = np.union1d(pilot, rng.permutation(base.above)[: 2 * len(pilot)])
            references = _varied(bisection, smallest, cells, rng, EACH_COUNT[attempt % len(EACH_COUNT)])
            guess = np.maximum(bisection.low[references], 1).astype(np.float64)
        found = find_reference_cells(comparison, base, references, rng, guess)
        if found is None:
            if cells is None:
                return False
            continue
        bisection.restart(found.cells, found.counts, found.gap, found)
        bisection.refine(pilot, rng)
        if bisection.test(pilot, rng):
            return True
        cells = pilot
    return False


def _varied(bisection: Bisection, smallest: Cells, cells: Cells, rng: np.random.Generator, each: int) -> Cells:
    """Some of the smallest cells, and the smallest of the others, at most `each` of a count while there are more."""
    mine = cells[(bisection.low[cells] > 0) & (bisection.base.signs[cells] == 0)]
    others = rng.permutation(np.setdiff1d(mine, smallest))
    order = np.argsort(bisection.low[others], kind="stable")
    counts = bisection.low[others][order]
    turn = np.empty(len(others), np.int64)
    turn[order] = np.arange(len(others)) - np.searchsorted(counts, counts)
    some = others[np.lexsort([bisection.low[others], turn // each])][: REFERENCES - REFERENCES // 3]
    return np.concatenate([rng.permutation(smallest)[: REFERENCES // 3], some])


def _find_prevailing(comparison: Comparison, cells: Cells, rng: np.random.Generator) -> RelativeCounts | None:
    """Find counts in a unit that nearly all cells share, and reopen the others; None where there is no such unit."""
    for _ in range(BASES):
        bisection = Bisection(comparison, find_base_sum(comparison, rng))
        if len(bisection.base.above) <= FEW:
            break
        smallest = smallest_cells(comparison, bisection.base, rng, REFERENCES)
        found = find_reference_cells(comparison, bisection.base, smallest, rng)
        if found is None:
            continue
        unit = prevailing_unit(found.counts)
        multiple = found.counts % unit == 0
        bisection.restart(found.cells[multiple], found.counts[multiple] // unit, -(-found.gap // unit))
        bisection.refine(cells, rng)
        again = True
        for _ in range(ROUNDS):
            others = bisection.non_multiples(cells, rng)
            if len(others):
                if not bisection.reopen(others):
                    break
            elif fresh_sums := bisection.test(cells, rng):
                if ratios_hold(bisection, cells, reopen=False):
                    return bisection.result(fresh_sums)
                break
            elif again:  # cells were bisected by those that are reopened now: once more, by the references alone
                anew = np.setdiff1d(cells[bisection.known[cells]], found.cells)
                bisection.low[anew], bisection.high[anew] = 0, OPEN
                bisection.refine(anew, rng)
                again = False
            else:
                break
    return None
