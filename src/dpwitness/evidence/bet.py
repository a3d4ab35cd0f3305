"""Evidence against bounds of Rényi divergences from the counts of k×k cells, at any stopping time.

With the hyperplane of `claims.hyperplane` and cells I of M(D) and J of M(D′) in one paired run, X = a_I − b_J − c has
E[X] ≤ 0 where the claim holds, whether or not the two sides hang together, and X ≥ min a − max b − c. So for a fixed
λ ≥ 0 with 1 + λX ≥ 0 the wealth ∏(1 + λX_i) is a non-negative supermartingale, and so is a mixture over λ; it depends
on the table of counts alone (Ville's inequality, as in `e_value`).

The bets λ are the same for every parameter x of the claim's family. c rises in x, so that X falls, run by run, and with
it the wealth; a bet that is too large for an x counts as lost there. The evidence against x therefore falls in x, and
the parameters that it refutes at level α are an interval from 0 on: its end is the lower bound, without a grid.

e-values: how much evidence against a claim the counts of confirm runs are, at any stopping time.

A claim allows p ≤ s·q + t for the probabilities p and q of an event under D and D′ (`dpwitness.claims`). For paired
runs i let X_i = 1[M(D)_i ∈ S] − s·1[M(D′)_i ∈ S] − t. Under the claim E[X_i] ≤ 0 and
X_i ≥ −(s + t), so for a fixed λ in [0, 1/(s + t)) the wealth ∏(1+λX_i) is a non-negative supermartingale, and so is a
mixture over λ. It depends on the four counts alone. By Ville's inequality P(it ever reaches 1/α) ≤ α: one may look
after every batch and stop when one likes (Waudby-Smith & Ramdas 2024, JRSS-B 86(1); Shekhar & Ramdas 2023). E[X_i] does
not ask whether the two sides of a run are independent of each other: where they share their random draws X_i varies
less, and the evidence of a small difference is many times stronger.

Nor does it ask for independent runs: E[X_i | past] ≤ 0 is enough, the past being all that happened before run i. It
holds for a mechanism with a state, if each call keeps the claim in whatever state it finds, and the state moves by the
calls alone, whichever input they were given. Proof: let run i find the state u, and let v be the state after one more
call. Which side comes first is drawn by a fair coin that nothing else depends on (`runs.streams.order`). So
P[M(D)_i ∈ S | past] = (p_u + E p_v)/2 and P[M(D′)_i ∈ S | past] = (q_u + E q_v)/2: the same mixture of points (p, q)
each of which the claim allows, and p ≤ s·q + t is kept by mixtures. With sides in a fixed order D would find u and D′
v, and a state of period two would convict. A state that moves by the inputs, or calls that keep the claim only on
average over a state (a pool of noise, AR(1) noise), are not covered: `health.dependence` looks for them.

e-values of a portfolio: wealth spread over many events at once, chosen anew before every epoch.

Before an epoch each member k of the portfolio is an event with an estimate, from which its bet λ_k follows, and a share
w_k of the wealth, all of them fixed by earlier runs. With X_k = 1[M(D)∈S_k] − s·1[M(D′)∈S_k] − t (see `e_value`) the
epoch multiplies the wealth by Σ_k w_k ∏(1 + λ_k X_k), whose expectation given the earlier runs is at most 1 under the
claim, whatever the shares are. So the product over the epochs is a non-negative supermartingale: one may look at any
time. No run is thrown away: runs of an epoch are evidence first, and choose the next portfolio then.

Or the members make up one graded event, which gives each outcome a number in [0, 1]: every run then multiplies the
wealth by 1 + Σ_k φ_k λ̄_k X_k, where λ̄_k = 0.999/(s + t) is the largest bet on S_k and the fractions φ_k add up to 1
at most. Each factor is positive and has an expectation of at most 1 under the claim. Where likelihood ratios differ
from outcome to outcome this grows faster than any one event: by a quarter for Gaussian noise against a claim of pure ε.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.candidate import CellsEstimate, Estimate
from dpwitness.claims import Claim, HalfPlane
from dpwitness.claims.renyi import DivergenceClaim, Hyperplane, bounds_divergences
from dpwitness.evidence.counts import Counts, CountsTable, Floats, best_bet, payoffs

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


#: Bets as fractions of the largest admissible λ, log-spaced: half of the wealth is spread over them.


def log_e_value(counts: Counts, claim: Claim, estimate: Estimate | None = None) -> float:
    """Log of the e-value against the claim; the claim is refuted at level α when it reaches log(1/α).

    Half of the wealth is bet as is best for `estimate`, which must be fixed before these runs, half over a log-spaced
    grid. Valid at any stopping time. Of counts of cells, where claim and estimate are of them too: see `cells`.
    """
    on_cells = bet_on_cells(counts, claim, estimate)
    if on_cells is not None:
        return log_e_value_of_cells(counts, *on_cells)
    values, log_weights = bets_and_weights(claim, estimate)
    terms = np.array([counts.n10, counts.n11, counts.n01, counts.n00]) @ values + log_weights
    top = terms.max()
    return float(top + math.log(np.exp(terms - top).sum()))


@lru_cache(maxsize=256)
def bets_and_weights(claim: Claim, estimate: Estimate | None) -> tuple[Floats, Floats]:
    """Log payoffs of every bet for the four outcomes, shape (4, bets), and the log weights of the bets, (bets,)."""
    plane = half_plane_of(claim, estimate)
    bets = GRID / (plane.slope + plane.intercept)
    weights = np.full(len(GRID), 1 / len(GRID))
    if estimate is not None:
        bets = np.append(bets, best_bet(estimate.p, estimate.q, plane, estimate.both))
        weights = np.append(weights / 2, 1 / 2)
    return np.log1p(np.outer(payoffs(plane), bets)), np.log(weights)


def half_plane_of(claim: Claim, estimate: Estimate | None) -> HalfPlane:
    """The half-plane of a claim that an estimate chooses."""
    return claim.half_plane() if estimate is None else claim.half_plane(estimate.p, estimate.q)


def log_e_values(
    counts: Counts, planes: HalfPlane, estimate: Estimate | None, betting: HalfPlane | None = None
) -> Floats:
    """Log e-values against many half-planes at once, shape (n,).

    The bets are those of each half-plane, or all those of `betting`, which must be admissible for each.
    """
    at = planes if betting is None else betting
    bets = GRID[:, None] / np.atleast_1d(at.slope + at.intercept)
    spread = np.broadcast_to(_log_wealth(counts, bets, planes), (len(GRID), len(planes.slope)))  # no runs: a plain 0
    mixture = np.logaddexp.reduce(spread, axis=0) - math.log(len(GRID))
    if estimate is None:
        return np.asarray(mixture)
    favourite = _log_wealth(counts, best_bet(estimate.p, estimate.q, at, estimate.both), planes)
    return np.asarray(np.logaddexp(mixture, favourite) - math.log(2))


def _log_wealth(counts: Counts, bets: Floats, planes: HalfPlane) -> Floats:
    """Log ∏(1+λX_i) for each bet."""
    cells = (counts.n10, counts.n11, counts.n01, counts.n00)
    return np.asarray(sum(n * np.log1p(bets * x) for n, x in zip(cells, payoffs(planes), strict=True) if n))


def runs_needed(claim: Claim, alpha: float) -> int:
    """How many paired runs it takes to refute the claim even if M(D) always lies in the event and M(D′) never does."""
    estimate = Estimate(p=1.0, q=0.0)
    return bisect_left(
        range(1 << 60), math.log(1 / alpha), 1, key=lambda n: log_e_value(Counts(n10=n), claim, estimate)
    )


#: Parameters at which the lower bound is evaluated: 1 % apart, absolute 10⁻³ near zero.
PARAMETERS: Final = np.concatenate([np.arange(0.0, 0.1, 1e-3), 0.1 * 1.01 ** np.arange(890)])
#: Of these every so many, where all that are below a claim have to be tried: each may take a tenth of a second.
COARSER: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stakes:
    """What is bet on k events: estimates of their probabilities, and shares of the wealth; each of shape (k,).

    Attributes
    ----------
    p, q, both
        Under D, under D′, and under both in one run.
    log_shares
        Logarithms of the shares; their sum is at most 1.
    fractions
        Where all of it is bet on the graded event that the k events make up: what part of the largest bet on each;
        their sum is at most 1. None where each event has its share.
    """

    p: Floats
    q: Floats
    both: Floats
    log_shares: Floats
    fractions: Floats | None = None

    def __post_init__(self) -> None:
        if len(self.log_shares) and not np.logaddexp.reduce(self.log_shares) <= 1e-9:
            raise ValueError("the shares of a portfolio are more than its wealth")
        fractions = np.zeros(0) if self.fractions is None else self.fractions
        if not (fractions >= 0).all() or not fractions.sum() <= 1 + 1e-9:
            raise ValueError("a run might lose more than a graded event can bet")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flags:
    """In which of k events paired runs fell, on D and on D′; shape (m, k) each.

    `times`: how many runs each of the m rows stands for.
    """

    hits: NDArray[np.bool_]
    others: NDArray[np.bool_]
    times: Floats

    def payoffs(self, plane: HalfPlane) -> Floats:
        """X of every row and event, shape (m, k)."""
        paid: Floats = self.hits - plane.slope * self.others - plane.intercept
        return paid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Epoch:
    """Stakes, and what the runs made after they were fixed showed of each event; `flags` for a graded event alone."""

    stakes: Stakes
    counts: CountsTable
    flags: Flags | None = None

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.stakes.log_shares):
            raise ValueError(f"counts of {len(self.counts)} events for stakes on {len(self.stakes.log_shares)}")
        if (self.flags is None) != (self.stakes.fractions is None):
            raise ValueError("a graded event, and nothing else, needs to know which runs fell into which events")


def log_e_values_of(epochs: Sequence[Epoch], claim: Claim, betting: Claim | None = None) -> Floats:
    """The logarithm of what each epoch multiplies the wealth by, shape (epochs,); 0.0 where nothing was bet.

    With `betting` the bets are those against that claim, wherever its half-plane has no smaller slope and intercept:
    they are admissible there, and no run pays less.
    """
    found = np.array([_graded(epoch.stakes, epoch.flags, claim, betting) for epoch in epochs])
    staked = [k for k, epoch in enumerate(epochs) if len(epoch.counts) and epoch.flags is None]
    if not staked:
        return found
    epochs = [epochs[k] for k in staked]
    p, q, both, log_shares = (
        np.concatenate([getattr(epoch.stakes, name) for epoch in epochs]) for name in ("p", "q", "both", "log_shares")
    )
    cells = np.hstack([epoch.counts.cells for epoch in epochs])
    plane = claim.half_plane(p, q)
    bets = best_bet(p, q, plane if betting is None else _betting(plane, betting.half_plane(p, q)), both)
    grown = log_shares + sum(n * np.log1p(bets * x) for n, x in zip(cells, payoffs(plane), strict=True))
    starts = np.cumsum([0, *(len(epoch.counts) for epoch in epochs)])[:-1]
    # What is not staked stays as it is; rounding may leave a share of 10⁻¹⁶ too many.
    kept = np.maximum(1 - np.exp(np.logaddexp.reduceat(log_shares, starts)), 0.0)
    with np.errstate(divide="ignore"):
        found[staked] = np.logaddexp(np.logaddexp.reduceat(grown, starts), np.log(kept))
    return found


def largest_bet(plane: HalfPlane) -> Floats:
    """The bets at which one run loses nearly everything."""
    return np.asarray(0.999 / (plane.slope + plane.intercept))


def _graded(stakes: Stakes, flags: Flags | None, claim: Claim, betting: Claim | None) -> float:
    """The logarithm of what an epoch multiplies a wealth by that is bet on a graded event; 0.0 where none is."""
    if flags is None or stakes.fractions is None:
        return 0.0
    plane = claim.half_plane(stakes.p, stakes.q)
    most = largest_bet(plane if betting is None else _betting(plane, betting.half_plane(stakes.p, stakes.q)))
    return float(flags.times @ np.log1p(flags.payoffs(plane) @ (stakes.fractions * most)))


def _betting(plane: HalfPlane, other: HalfPlane) -> HalfPlane:
    """The other half-plane where all that it allows is more, else the first; arrays of any shape."""
    inside = (plane.slope <= other.slope) & (plane.intercept <= other.intercept)
    return HalfPlane(np.where(inside, other.slope, plane.slope), np.where(inside, other.intercept, plane.intercept))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wealth:
    """What became of the wealth of a check: an e-value at any time.

    Attributes
    ----------
    courses
        Epochs one after the other, of each course; every course began with the same share.
    unused
        How many more shares there are, on which nothing was bet.
    last, estimate
        Counts of one event that all of the wealth was bet on in the end, and the estimate that the bets followed from;
        None where it did not come to that.
    """

    courses: tuple[tuple[Epoch, ...], ...]
    unused: int = 0
    last: Counts | None = None
    estimate: Estimate | None = None

    def log_e_value(self, claim: Claim, betting: Claim | None = None) -> float:
        """The logarithm of the e-value against a claim: of the mean of the courses, times that of the last event.

        `betting`: as in `log_e_values_of`.
        """
        logs = [float(log_e_values_of(course, claim, betting).sum()) for course in self.courses] + [0.0] * self.unused
        mean = float(np.logaddexp.reduce(logs)) - math.log(len(logs))
        if self.last is None:
            return mean
        on_cells = bet_on_cells(self.last, claim, self.estimate)
        if on_cells is not None:
            return mean + log_e_value_of_cells(self.last, *on_cells)
        plane = half_plane_of(claim, self.estimate)
        bets = plane if betting is None else _betting(plane, half_plane_of(betting, self.estimate))
        plane, bets = (HalfPlane(np.atleast_1d(at.slope), np.atleast_1d(at.intercept)) for at in (plane, bets))
        return mean + float(log_e_values(self.last, plane, self.estimate, bets)[0])


def lower_bound_of(wealth: Wealth, claim: Claim, *, alpha: float) -> float:
    """Return the parameter of the claim's family that the mechanism exceeds with confidence 1 − alpha.

    The largest point of a fixed grid up to which every point is refuted, as in `lower_bound`; at least the claim's own
    parameter c where that is refuted. The bets against another parameter follow from the same estimates, and the
    shares are those of the claim: both are fixed before the runs. Points below c are bet against as c is, so that in
    families whose half-planes grow with the parameter whatever refutes c refutes them, too: c is one more point of the
    grid. In others the bound is above the true parameter with probability alpha at most where c is, and again where
    c is not refuted.
    """
    threshold, c = math.log(1 / alpha), claim.parameter
    above = wealth.log_e_value(claim) >= threshold
    last = c if above else 0.0

    def stands(x: float) -> bool:
        return wealth.log_e_value(claim.at(float(x)), None if above else claim) < threshold

    if above:
        points = PARAMETERS[c < PARAMETERS]
    elif claim.curved:
        points = PARAMETERS[c > PARAMETERS][::COARSER]
    else:  # the bets are the same for all points and each run pays less for a larger one: no need to try them all
        points = PARAMETERS[c > PARAMETERS]
        refuted = bisect_left(points, True, key=stands)
        return float(points[refuted - 1]) if refuted else last
    for x in points:
        if stands(x):
            return last
        last = float(x)
    return last
