"""A stronger attack on private threshold testing than differences of two cells: weigh cells by known ones.

The noisy threshold z is drawn once, and any signed sum of cells is a query of sensitivity 1. A base, a sum of cells
just below z, turns every query into a balance: without query noise the base plus cell v minus known cells of sum w is ⊤
exactly if x_v ≥ w + the gap between the base and z. What makes a few cells known is `locate`: their counts relative
to each other, and the unit that makes whole numbers of them. Every cell found is one more weight.

Answers to such queries cannot tell (x, z) from a multiple of it, so counts are found up to a common factor; and a unit
of a few cells need not be one of all, so sums of all cells that lie next to the threshold try what was found, and a
finer unit is looked for where they are not as predicted. (With constants as queries, which have sensitivity 0, all
this would be easy; nothing but sums of cells is used here.)
"""

from typing import Final

import numpy as np

from dpwitness.attacks.threshold_testing.balance import Balance, Weighed
from dpwitness.attacks.threshold_testing.comparing import Scales, lay_base, lightest
from dpwitness.attacks.threshold_testing.localising import locate
from dpwitness.attacks.threshold_testing.questions import Cells
from dpwitness.attacks.threshold_testing.ratios import kinds_stand, weigh_kinds

__all__ = ["Weighed", "weigh"]

#: Cells that are located first, and when their unit is not one of all.
FIRST: Final = 24
#: Cells that are weighed and tried before all the others are.
PILOT: Final = 96
ATTEMPTS: Final = 6
BASES: Final = 3
#: Of so few cells that are not empty other counts may explain all answers as well.
FEW: Final = 40
#: Where fewer of the cells are known, those that share no unit with the others are looked for.
NEARLY_ALL: Final = 0.98
#: How often such cells are set aside.
ROUNDS: Final = 8
#: Of each count so many cells, when a unit is looked for again: where most hold one and the same, others tell more.
EACH_COUNT: Final = (5, 2, 1)


def weigh(scales: Scales, rng: np.random.Generator) -> Weighed:
    """Read every cell's count, up to a common factor; see the module.

    Cells that no known weight can balance (one that outweighs all others together) keep their limits.

    Parameters
    ----------
    scales
        Without query noise, or with enough copies against it.
    rng
        For the orders in which cells are tried.
    """
    n = scales.oracle.cells
    everything = rng.permutation(n)
    nothing = np.zeros(n, np.int64)
    best = Weighed(low=nothing, high=nothing + 1, likeliest=np.zeros(n), tried=0, threshold=None)
    for _ in range(BASES):
        balance = Balance(scales, lay_base(scales, rng))
        if not len(balance.base.above):
            break
        tuned = _tune(balance, rng)
        for _ in range(BASES):
            if not tuned:
                break
            balance.weigh(everything, rng)
            tried = balance.tried(everything, rng)
            if not tried:
                tuned = _tune(balance, rng, everything)
                continue
            if not kinds_stand(balance, everything):
                tuned = weigh_kinds(balance, everything, rng)
                continue
            if len(balance.base.above) <= FEW and not balance.alone(rng):
                break
            best = max(best, balance.weighed(tried), key=lambda found: int(found.known.sum()))
            # Weights that are all even, say, leave two counts open: cells of such counts are located next.
            rest = balance.undetermined(everything)
            if not len(rest):
                break
            tuned = _tune(balance, rng, rest)
        if best.tried:
            break
    if best.known.mean() < NEARLY_ALL:
        best = max([best, *_weigh_most(scales, everything, rng)], key=lambda found: int(found.known.sum()))
    return best


def _weigh_most(scales: Scales, everything: Cells, rng: np.random.Generator) -> list[Weighed]:
    """Weigh in a unit that nearly all cells share, and set the others aside; nothing where there is no such unit."""
    for _ in range(BASES):
        balance = Balance(scales, lay_base(scales, rng))
        if len(balance.base.above) <= FEW:
            break
        located = locate(scales, balance.base, lightest(scales, balance.base, rng, FIRST), rng)
        if located is None:
            continue
        balance.restart_coarse(located)
        balance.weigh(everything, rng)
        again = True
        for _ in range(ROUNDS):
            misfits = balance.misfits(everything, rng)
            if len(misfits):
                if not balance.set_aside(misfits):
                    break
            elif tried := balance.tried(everything, rng):
                return [balance.weighed(tried)]
            elif again:  # others were weighed by them
                balance.weigh_again(everything, rng)
                again = False
            else:
                break
    return []


def _tune(balance: Balance, rng: np.random.Generator, weighed: Cells | None = None) -> bool:
    """Find a unit that whole numbers of a sample of cells have in common; False where there is none.

    `weighed`: cells that are no whole numbers of the unit so far; the sample is chosen from among them.
    """
    scales, base = balance.scales, balance.base
    first = lightest(scales, base, rng, FIRST)
    pilot = np.union1d(first, rng.permutation(base.above)[:PILOT])
    cells, guess = first, None
    for attempt in range(ATTEMPTS):
        if weighed is not None:
            if attempt < 2 and weigh_kinds(balance, weighed, rng) and balance.tried(weighed, rng):
                return True
            pilot = np.union1d(pilot, rng.permutation(base.above)[: 2 * len(pilot)])
            cells = _varied(balance, first, weighed, rng, EACH_COUNT[attempt % len(EACH_COUNT)])
            guess = np.maximum(balance.low[cells], 1).astype(np.float64)
        located = locate(scales, base, cells, rng, guess)
        if located is None:
            if weighed is None:
                return False
            continue
        balance.restart(located)
        balance.weigh(pilot, rng)
        if balance.tried(pilot, rng):
            return True
        weighed = pilot
    return False


def _varied(balance: Balance, first: Cells, weighed: Cells, rng: np.random.Generator, each: int) -> Cells:
    """Some of the first cells, and the lightest of the others, at most `each` of a count as long as there are more."""
    mine = weighed[(balance.low[weighed] > 0) & (balance.base.signs[weighed] == 0)]
    others = rng.permutation(np.setdiff1d(mine, first))
    order = np.argsort(balance.low[others], kind="stable")
    counts = balance.low[others][order]
    turn = np.empty(len(others), np.int64)
    turn[order] = np.arange(len(others)) - np.searchsorted(counts, counts)
    some = others[np.lexsort([balance.low[others], turn // each])][: FIRST - FIRST // 3]
    return np.concatenate([rng.permutation(first)[: FIRST // 3], some])
