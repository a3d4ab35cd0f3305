"""Evidence against bounds of Rényi divergences from the counts of k×k cells, at any stopping time.

With the hyperplane of `claims.hyperplane` and cells I of M(D) and J of M(D′) in one paired run, X = a_I − b_J − c has
E[X] ≤ 0 where the claim holds, whether or not the two sides hang together, and X ≥ min a − max b − c. So for a fixed
λ ≥ 0 with 1 + λX ≥ 0 the wealth ∏(1 + λX_i) is a non-negative supermartingale, and so is a mixture over λ; it depends
on the table of counts alone (Ville's inequality, as in `e_value`).

The bets λ are the same for every parameter x of the claim's family. c rises in x, so that X falls, run by run, and with
it the wealth; a bet that is too large for an x counts as lost there. The evidence against x therefore falls in x, and
the parameters that it refutes at level α are an interval from 0 on: its end is the lower bound, without a grid.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np

from dpwitness.candidate import CellsEstimate, Estimate
from dpwitness.claims import Claim
from dpwitness.claims.hyperplane import DivergenceClaim, Hyperplane, bounds_divergences
from dpwitness.evidence.counts import Counts
from dpwitness.evidence.growth import Floats

__all__ = [
    "best_cell_bet",
    "bet_on_cells",
    "detectable_of_cells",
    "divergence_seen",
    "log_e_value_of_cells",
    "lower_bound_of_cells",
    "wealth_factors",
]

#: Bets as fractions of the largest admissible λ, log-spaced: half of the wealth is spread over them.
GRID: Final = 0.95 * np.exp2(-0.75 * np.arange(16))
#: Parameters of claims that bound divergences go up to here.
LARGEST: Final = 700.0
#: Halvings of an interval of parameters.
STEPS: Final = 60


def bet_on_cells(
    counts: Counts, claim: Claim, estimate: Estimate | None
) -> tuple[DivergenceClaim, CellsEstimate] | None:
    """The claim, and the bet on cells that an estimate has, where both and the counts are of that kind; else None."""
    if estimate is None or estimate.cells is None or not bounds_divergences(claim):
        return None
    bet = estimate.cells
    told = claim.largest_divergence(bet.order, claim.parameter) < math.inf
    return (claim, bet) if told and len(counts.cells) == len(bet.joint) else None


def best_cell_bet(joint: Floats, values: Floats, most: float) -> float:
    """The λ in [0, most] of largest growth rate Σ joint·log(1 + λ·values); 0 where nothing grows."""
    if joint @ values <= 0:
        return 0.0
    low, high = 0.0, most
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if joint @ (values / (1 + middle * values)) > 0 else (low, middle)
    return low


def admissible(pays: Floats, costs: Floats, allowed: float) -> float:
    """The λ at which one run might lose everything: 1/(max b + c − min a)."""
    return float(1 / max(np.max(costs) + allowed - np.min(pays), 1e-300))


@lru_cache(maxsize=64)
def _bets(claim: DivergenceClaim, bet: CellsEstimate) -> tuple[Hyperplane, Floats, Floats, Floats]:
    """The hyperplane, X + c of every pair of cells (k²,), the bets λ (n,), and logarithms of their weights."""
    most_allowed = claim.largest_divergence(bet.order, bet.against)
    plane = Hyperplane(order=bet.order, log_ratios=bet.log_ratios, scale=most_allowed)
    pays, costs = plane.sides()
    values = (pays[:, None] - costs).ravel()
    allowed = float(plane.allowed(most_allowed))
    most = admissible(pays, costs, allowed)
    joint = np.asarray(bet.joint, np.float64)
    best = best_cell_bet(joint / joint.sum(), values - allowed, 0.999 * most)
    weights = np.append(np.full(len(GRID), 0.5 / len(GRID)), 0.5)
    return plane, values, np.append(GRID * most, best), np.log(weights)


def _evidence(counts: Counts, claim: DivergenceClaim, bet: CellsEstimate) -> Callable[[float], float]:
    """The logarithm of the e-value against a parameter of the claim's family, which falls in the parameter."""
    plane, values, bets, log_weights = _bets(claim, bet)
    cells = np.asarray(counts.cells)
    seen = np.flatnonzero(cells)
    cells, values = cells[seen], values[seen]

    def log_e_value(parameter: float) -> float:
        allowed = plane.allowed(claim.largest_divergence(bet.order, parameter))
        # A bet that could lose more than all counts as lost, whether or not such a run was seen.
        worst = 1 + bets * (_worst(plane) - allowed)
        kept = worst > 0
        if not kept.any():
            return -math.inf
        grown = np.log1p(np.outer(bets[kept], values - allowed)) @ cells
        return float(np.logaddexp.reduce(grown + log_weights[kept]))

    return log_e_value


def wealth_factors(claim: DivergenceClaim, bet: CellsEstimate) -> tuple[Floats, Floats]:
    """Logarithms of 1 + λX by pair of cells and bet, shape (k², n), and of the weights of the bets, shape (n,)."""
    plane, values, bets, log_weights = _bets(claim, bet)
    allowed = plane.allowed(claim.largest_divergence(bet.order, claim.parameter))
    kept = 1 + bets * (_worst(plane) - allowed) > 0
    return np.log1p(np.outer(values - allowed, bets[kept])), log_weights[kept]


@lru_cache(maxsize=64)
def _worst(plane: Hyperplane) -> float:
    """The least X + c that a run can bring."""
    pays, costs = plane.sides()
    return float(np.min(pays) - np.max(costs))


def log_e_value_of_cells(counts: Counts, claim: DivergenceClaim, bet: CellsEstimate) -> float:
    """Log of the e-value against the claim; half of the wealth is bet as is best for the estimate, half over a grid."""
    return _evidence(counts, claim, bet)(claim.parameter)


def divergence_seen(counts: Counts, bet: CellsEstimate) -> float:
    """The divergence in nats whose bound the mean of X just meets: at least 0, and no evidence by itself."""
    plane = Hyperplane(order=bet.order, log_ratios=bet.log_ratios)
    pays, costs = plane.sides()
    table = np.array(counts.cells, np.float64).reshape(len(pays), len(pays))
    mean = float(table.sum(axis=1) @ pays - table.sum(axis=0) @ costs) / counts.runs
    if bet.order == 1:
        return max(mean, 0.0)
    return math.log(max(mean, 1.0)) / (bet.order - 1)


def lower_bound_of_cells(counts: Counts, claim: DivergenceClaim, bet: CellsEstimate, *, alpha: float) -> float:
    """The parameter of the claim's family that the mechanism exceeds with confidence 1 − alpha; 0.0 if none.

    At least the claim's own where that is refuted. Valid at any stopping time: the true parameter is refuted with
    probability alpha at most, and what is below a refuted one is refuted as well.
    """
    evidence, threshold = _evidence(counts, claim, bet), math.log(1 / alpha)
    if evidence(0.0) < threshold:
        return 0.0
    low, high = 0.0, LARGEST
    for start in (claim.parameter, bet.against, 1.25 * bet.against, 2 * bet.against):
        if low < start < high:
            low, high = (start, high) if evidence(start) >= threshold else (low, start)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if evidence(middle) >= threshold else (low, middle)
    return low


def in_reach(bet: CellsEstimate, claim: DivergenceClaim) -> CellsEstimate | None:
    """The bet, where runs in cells that were seen can pay against the claim at all; else None."""
    plane = Hyperplane(order=bet.order, log_ratios=bet.log_ratios)
    pays, costs = plane.sides()
    seen = np.reshape(bet.joint, (len(pays), len(pays))) > 0
    most = np.max((pays[:, None] - costs)[seen])
    return bet if most > plane.allowed(claim.largest_divergence(bet.order, claim.parameter)) else None


def detectable_of_cells(
    counts: Counts, claim: DivergenceClaim, bet: CellsEstimate, *, alpha: float, margin: float
) -> float:
    """The smallest parameter that these cells, so many runs and this alpha would have refuted; infinite if none.

    Meant for a mechanism whose X varies as observed and has the mean that the hyperplane gives to a mechanism which
    touches it at that parameter. The log e-value is taken as normal around its mean, of the bet λ: n·(λ·m − λ²·s²/2)
    with a standard deviation of λ·s·√n, `margin` of which are kept clear. Infinite, too, where no law over the cells
    that were seen has that mean: a hyperplane for likelihood ratios near 1 is far from what a weak claim allows.
    """
    plane, values, bets, log_weights = _bets(claim, bet)
    n, cells = counts.runs, np.asarray(counts.cells)
    allowed = float(plane.allowed(claim.largest_divergence(bet.order, claim.parameter)))
    mean = float(cells @ values) / n
    with np.errstate(over="ignore", invalid="ignore"):
        spread = math.sqrt(max(float(cells @ (values - mean) ** 2) / n, 1e-300))
    if not math.isfinite(spread):
        return math.inf
    bets, log_weights = bets[bets > 0], log_weights[bets > 0]
    needed = (math.log(1 / alpha) - log_weights + n * bets**2 * spread**2 / 2) / (n * bets) + margin * spread / n**0.5
    target = allowed + float(np.min(needed))
    if target >= np.max(values[cells > 0]):  # no law over the cells that were seen has such a mean
        return math.inf

    def reaches(parameter: float) -> bool:
        return float(plane.allowed(claim.largest_divergence(bet.order, parameter))) >= target

    low, high = claim.parameter, LARGEST
    if not reaches(high):
        return math.inf
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high
