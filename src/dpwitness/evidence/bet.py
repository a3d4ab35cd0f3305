"""Bets on an event or on cells, and the e-values that the counts of later runs give them.

A claim allows p ≤ s·q + t for the probabilities p and q of an event under D and D′ (`dpwitness.claims`). For paired
run i let X_i = 1[M(D)_i ∈ S] − s·1[M(D′)_i ∈ S] − t. Under the claim E[X_i] ≤ 0, and X_i ≥ −(s + t), so for a fixed λ
in [0, 1/(s + t)) the wealth ∏(1 + λX_i) is a non-negative supermartingale, and so is a mixture over λ. The wealth
depends on the four counts alone. By Ville's inequality it ever reaches 1/α with probability at most α, so a check may
look after every batch and stop at any time (Waudby-Smith & Ramdas 2024, JRSS-B 86(1); Shekhar & Ramdas 2023). The two
sides of a run may depend on each other: if they share random draws, X_i varies less, and the evidence of a small
difference is many times stronger.

The runs may depend on each other too: E[X_i | past] ≤ 0 suffices, where the past is everything before run i. A
mechanism with a state satisfies this if each call keeps the claim in every state, and if the state moves by the calls
alone, not by their inputs. Proof: let run i find the state u, and let v be the state after one more call. An
independent fair coin draws the side that comes first (`runs.streams.order`). So P[M(D)_i ∈ S | past] = (p_u + E p_v)/2
and P[M(D′)_i ∈ S | past] = (q_u + E q_v)/2: the same mixture of points (p, q) that the claim allows, and mixtures keep
p ≤ s·q + t. In a fixed order D would find u and D′ v, and a state of period two would refute a true claim. A state that
moves by the inputs, and calls that keep the claim only on average over states (a pool of noise, AR(1) noise), are not
covered: `health.dependence` tests for them.

Cells: a claim that bounds a Rényi divergence has supporting hyperplanes over the cells of a partition
(`claims.renyi.Hyperplane`). With the cells I of M(D) and J of M(D′) in a paired run, X = a_I − b_J − c has E[X] ≤ 0
under the claim, and X ≥ min a − max b − c. So for a fixed λ ≥ 0 with 1 + λX ≥ 0 the wealth is a supermartingale as
above; it depends on the k×k counts alone. The bets λ are the same for every parameter x of the claim's family. c rises
in x, so X and the wealth fall in x, run by run; a bet that is too large for x counts as lost at x.

`evidence.portfolio` bets on many events at once, chosen anew before every epoch.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Final, TypeAlias

import numpy as np

from dpwitness.arrays import Booleans, Floats, Integers
from dpwitness.candidate import CellsEstimate, Estimate
from dpwitness.claims import Claim, HalfPlane
from dpwitness.claims.renyi import DivergenceClaim, Hyperplane, bounds_divergences
from dpwitness.evidence.counts import Counts, best_bet, cell_probabilities, payoffs
from dpwitness.roots import halved

#: BET_GRID has the log-spaced bets that share half of the wealth, as fractions of the largest admissible λ.
BET_GRID: Final = 0.95 * np.exp2(-0.75 * np.arange(16))
#: LOG_SHARES has the logarithms of the bets' shares of the wealth: `BET_GRID`, then the best bet for an estimate.
LOG_SHARES: Final = np.log(np.append(np.full(len(BET_GRID), 0.5 / len(BET_GRID)), 0.5))
#: PARAMETERS has the parameters at which the lower bound is evaluated: 0.1 % apart, absolute 10⁻⁴ near zero.
PARAMETERS: Final = np.concatenate([np.arange(0.0, 0.1, 1e-4), 0.1 * 1.001 ** np.arange(8_850)])
#: EXACT_HITS is the expected number of hits under D′ up to which the power uses their binomial law, not a normal law.
EXACT_HITS: Final = 100


@dataclass(frozen=True, slots=True)
class OnEvent:
    """The share `weight` of the wealth, bet on one event: tables are (n10, n11, n01, n00), of shape (4,).

    `estimate`: the probabilities whose best bet gets half of the share; without it the grid has the whole share.
    """

    estimate: Estimate | None = None
    weight: float = 1.0

    def table(self, counts: Counts) -> Integers:
        """The numbers of runs with (1,0), (1,1), (0,1) and (0,0)."""
        return np.array(counts.four)

    def payoffs(self, claim: Claim) -> Floats:
        """The payoff X of a run with (1,0), (1,1), (0,1) or (0,0)."""
        estimate = self.estimate
        plane = claim.half_plane() if estimate is None else claim.half_plane(estimate.p, estimate.q)
        return np.array(payoffs(plane))

    def log_wealth(self, counts: Counts, claim: Claim) -> Floats:
        """The logarithm of each bet's wealth, its share times ∏(1 + λX) over the runs; the shares add up to 1."""
        values, log_shares = bets_and_weights(claim, self.estimate)
        return np.asarray(self.table(counts) @ values + log_shares)

    def log_wealths(self, counts: Counts, claim: Claim, parameters: Floats, against: Claim | None) -> Floats:
        """The logarithm of all bets' wealth together, against `claim.at(x)` for every x; see `Bet.log_e_values`."""
        p, q = (None, None) if self.estimate is None else (self.estimate.p, self.estimate.q)
        planes = claim.half_planes(parameters, p, q)
        staked = planes if against is None else against.half_plane(p, q)
        if not (np.all(planes.slope <= staked.slope) and np.all(planes.intercept <= staked.intercept)):
            staked = planes  # for all parameters alike, as their bets are computed at once
        bets, log_shares = _event_bets(staked, self.estimate)
        wealth = np.repeat(log_shares[:, None], len(parameters), axis=1)
        for n, paid in zip(counts.four, payoffs(planes), strict=True):
            if n:
                wealth += n * np.log1p(bets * paid)
        return np.asarray(np.logaddexp.reduce(wealth, axis=0))

    def excess(self, counts: Counts, claim: Claim, alpha: float, margin: float) -> Callable[[float], float] | None:
        """`Bet.excess` for a mechanism with the observed event probability p on D and the smallest allowed q on D′.

        If no event shows all of the claim, q is the smallest that the share `share_shown` of the parameter allows. The
        dependence of the two sides is the worst case: both sides are in the event with the smallest possible
        probability, P11 = max(0, p + q − 1). The log e-value is taken as normal, at the bets that were made; if few
        hits on D′ are expected (`EXACT_HITS`), each of which costs much, their binomial law is used.

        Why the smallest P11 is the worst: the payoffs are x10 = 1 − t, x11 = 1 − s − t, x01 = −s − t and x00 = −t, and
        p and q fix P10 = p − P11, P01 = q − P11 and P00 = 1 − p − q + P11. With f(x) = log(1 + λx) the derivative of
        the mean E[f(X)] by P11 is f(x11) + f(x00) − f(x10) − f(x01) ≥ 0, as f is concave, x11 + x00 = x10 + x01,
        x01 ≤ x11 and x00 ≤ x10. The derivative of E[f(X)²] is at most 0, as f² is convex where 1 + λx ≤ e, which
        λ ≤ 1/(s + t) ensures; so where the mean is positive, the variance falls in P11. A smaller q at the smallest P11
        moves runs from (0,1) to (0,0) or from (1,1) to (1,0), where f is larger.
        """
        n = counts.runs
        p = counts.hits / max(n, 1)
        if n == 0 or p <= claim.largest(0.0):
            return None
        values, log_shares = bets_and_weights(claim, self.estimate)
        threshold, share = math.log(1 / alpha), self.share_shown(counts, claim)

        power: Callable[[float], float] | None = None
        if n * claim.smallest(p, share * claim.parameter) <= EXACT_HITS:
            power = _binomial_power(counts, values, log_shares, threshold)

        def excess(parameter: float) -> float:
            q = claim.smallest(p, share * parameter)
            if power is not None and (p == 1 or p + q <= 1):
                return power(q) - NormalDist().cdf(margin)
            cells = np.array(cell_probabilities(p, q, max(p + q - 1, 0.0)))
            mean, square = cells @ values, cells @ values**2
            spread = np.sqrt(np.maximum(square - mean**2, 0.0) * n)
            return float(np.max(n * mean - margin * spread + log_shares)) - threshold

        return excess

    def share_shown(self, counts: Counts, claim: Claim) -> float:
        """The share of a parameter that the event shows, at most 1: the seen parameter over the claim's parameter.

        Gaussian noise that exactly meets (1, 10⁻⁶) shows a fifth of ε in an event of probability 1/2, and about the
        same share of a larger ε. Without the share, noise of the ε that a pass at (1, 10⁻⁶) would have detected was
        refuted in 0 of 60 replays; with it, in all 60 (p of 0.1, 0.5 and 0.9; 2·10⁴, 2·10⁵ and 4·10⁶ runs).
        """
        if claim.shown_by_one_event or not claim.parameter:
            return 1.0
        n = max(counts.runs, 1)
        reached = float(claim.reached(counts.hits / n, counts.neighbour_hits / n))
        return min(max(reached, 0.0) / claim.parameter, 1.0)

    def comparison(self, counts: Counts, claim: Claim | None) -> str:
        """The text of the rate that the claim allows on D; empty without a claim, or if it is just the rate on D′."""
        if claim is None:
            return ""
        seen = counts.neighbour_hits / max(counts.runs, 1)
        allowed = claim.largest(seen)
        if not counts.runs or (claim.parameter == 0 and allowed <= seen):
            return ""
        return f"allowed on D at the rate seen on D′: {allowed:.4g}"


def _binomial_power(counts: Counts, values: Floats, log_shares: Floats, threshold: float) -> Callable[[float], float]:
    """The probability that the runs refute, as a function of the rate q on D′, for few hits on D′.

    As in `OnEvent.excess`, the hits on D′ are in runs without a hit on D if p + q ≤ 1; if p = 1 all runs hit on D.
    """
    from scipy.special import bdtr, bdtrc  # only a pass needs it

    n = counts.runs
    p = counts.hits / n
    others = np.arange(min(2 * EXACT_HITS, n) + 1)  # hits on D′
    both = others if p == 1 else np.zeros_like(others)
    most = n - others  # the most hits on D in the other runs

    def refuted(hits: Integers) -> Booleans:
        table = np.stack([hits, both, others - both, most - hits], axis=1)
        return np.asarray(np.logaddexp.reduce(table @ values + log_shares, axis=1) >= threshold)

    # `needed` is the smallest number of hits that refutes, as each hit raises the wealth; `most` + 1 if no number does.
    low, needed = np.full_like(others, -1), np.where(refuted(most), most, most + 1)
    while np.any(needed - low > 1):
        middle = (low + needed) // 2
        refuting = refuted(middle)
        low, needed = np.where(refuting, low, middle), np.where(refuting, middle, needed)

    def power(q: float) -> float:
        hits = np.diff(bdtr(others, n, q), prepend=0.0)
        return float(hits @ bdtrc(needed - 1, most, p / max(1 - q, p)))

    return power


@lru_cache(maxsize=256)
def bets_and_weights(claim: Claim, estimate: Estimate | None) -> tuple[Floats, Floats]:
    """log(1 + λX) of every bet on an event, shape (4, bets), and the logarithms of the bets' weights, shape (bets,)."""
    plane = claim.half_plane() if estimate is None else claim.half_plane(estimate.p, estimate.q)
    bets, log_weights = _event_bets(plane, estimate)
    return np.log1p(np.outer(payoffs(plane), bets)), log_weights


def _event_bets(plane: HalfPlane, estimate: Estimate | None) -> tuple[Floats, Floats]:
    """The bets against k half-planes, shape (bets, k), and the logarithms of their shares, shape (bets,)."""
    bets = BET_GRID[:, None] / np.atleast_1d(plane.slope + plane.intercept)
    if estimate is None:
        return bets, LOG_SHARES[:-1] + math.log(2)
    return np.vstack([bets, best_bet(estimate.p, estimate.q, plane, estimate.both)]), LOG_SHARES


@dataclass(frozen=True, slots=True)
class OnCells:
    """The share `weight` of the wealth, bet on the k cells of a partition against a bound of a Rényi divergence.

    Tables have the shape (k²,): entry i·k + j is for cell i of M(D) and cell j of M(D′).
    """

    family: DivergenceClaim
    estimate: CellsEstimate
    weight: float = 1.0

    def table(self, counts: Counts) -> Integers:
        """The number of runs for each pair of cells."""
        return np.array(counts.cells)

    def payoffs(self, claim: Claim) -> Floats:
        """The payoff X of a run that falls into each pair of cells."""
        plane, values, _ = _cell_bets(self.family, self.estimate)
        return values - self._allowed(plane, claim)

    def log_wealth(self, counts: Counts, claim: Claim) -> Floats:
        """The log wealth of each bet admissible against this claim, as in `OnEvent.log_wealth`, without other bets."""
        table = self.table(counts)
        seen = np.flatnonzero(table)
        gains, log_shares = self.gains(claim, seen)
        return np.asarray(table[seen] @ gains + log_shares)

    def gains(self, claim: Claim, pairs: Integers) -> tuple[Floats, Floats]:
        """log(1 + λX) by pair of cells and admissible bet, and the logarithms of the bets' shares."""
        plane, values, bets = _cell_bets(self.family, self.estimate)
        allowed = self._allowed(plane, claim)
        kept = 1 + bets * (values.min() - allowed) > 0
        return np.log1p(np.outer(values[pairs] - allowed, bets[kept])), LOG_SHARES[kept]

    def log_wealths(self, counts: Counts, claim: Claim, parameters: Floats, against: Claim | None) -> Floats:
        """The logarithm of this part's wealth against `claim.at(x)` for every x; the bets do not depend on x."""
        grown = (self.log_wealth(counts, claim.at(float(x))) for x in parameters)
        return np.array([np.logaddexp.reduce(logs, initial=-math.inf) for logs in grown])

    def excess(self, counts: Counts, claim: Claim, alpha: float, margin: float) -> Callable[[float], float] | None:
        """`Bet.excess` for a mechanism with the observed cells, whose likelihood ratios are raised to a power.

        Less noise raises the likelihood ratios of a Gaussian to a power, too. The variance of X is the observed one,
        scaled with the variance of the payoffs. The parameter at which the hyperplane touches the claim would be too
        small: no partition shows all of a mechanism's divergence. The answer is also None if no power up to 16 is
        refuted: a hyperplane for likelihood ratios near 1 is far from the bound of a weak claim.
        """
        order, n, k = self.estimate.order, counts.runs, len(self.estimate.log_ratios)
        plane, values, bets = _cell_bets(self.family, self.estimate)
        bets, log_shares = bets[bets > 0], LOG_SHARES[bets > 0]
        logs = np.clip(np.asarray(self.estimate.log_ratios), -40.0, 40.0)  # so that no power of them overflows
        table = self.table(counts) / max(n, 1)
        p, q = (table.reshape(k, k).sum(axis=axis) for axis in (1, 0))
        pays, costs = plane.sides()
        with np.errstate(over="ignore", invalid="ignore"):
            spread = math.sqrt(max(float(table @ (values - table @ values) ** 2), 1e-300))
        if not n or not math.isfinite(spread):
            return None

        allowed = self._allowed(plane, claim)
        cost_variance = float(q @ (costs - q @ costs) ** 2)
        seen_variance = cost_variance + float(p @ (pays - p @ pays) ** 2)

        def caught(power: float) -> bool:
            # The log e-value is taken as normal around n·(λ·m − λ²·s²/2), with a standard deviation of λ·s·√n.
            law = p * np.exp((power - 1) * (logs - logs.max()))
            law /= law.sum()
            mean = law @ pays
            s = spread * math.sqrt((cost_variance + law @ (pays - mean) ** 2) / max(seen_variance, 1e-300))
            needed = (math.log(1 / alpha) - log_shares + n * bets**2 * s**2 / 2) / (n * bets) + margin * s / n**0.5
            return bool(mean - q @ costs >= allowed + np.min(needed))

        most_power = 16.0
        if not caught(most_power):
            return None
        power = 1.0 if caught(1.0) else halved(caught, 1.0, most_power, 20)[1]
        most = self.family.largest_divergence(order, claim.parameter)
        # The divergence of a Gaussian grows as the square of the power, and the part that cells show grows no faster.
        reached = max(self.divergence_seen(counts), most) * power**2
        # The difference is clipped: root finding fails on the allowed divergence, which grows up to infinity.
        return lambda parameter: min(max(self.family.largest_divergence(order, parameter) - reached, -1.0), 1.0)

    def share_shown(self, counts: Counts, claim: Claim) -> float:
        """1.0, as `excess` itself allows for the share of the divergence that the cells show."""
        return 1.0

    def comparison(self, counts: Counts, claim: Claim | None) -> str:
        """The text of the divergence seen and the divergence allowed, in nats."""
        order, cells, allowed = self.estimate.order, len(self.estimate.log_ratios), ""
        if claim is not None:
            allowed = f", {self.family.largest_divergence(order, claim.parameter):.4g} allowed"
        return f"divergence of order {order:g} over {cells} cells: {self.divergence_seen(counts):.4g} seen{allowed}"

    def divergence_seen(self, counts: Counts) -> float:
        """The divergence (nats, at least 0) at which the mean of X over the runs is 0; it is no evidence by itself."""
        order, k = self.estimate.order, len(self.estimate.log_ratios)
        pays, costs = Hyperplane(order=order, log_ratios=self.estimate.log_ratios).sides()
        table = self.table(counts).reshape(k, k)
        mean = float(table.sum(axis=1) @ pays - table.sum(axis=0) @ costs) / counts.runs
        return max(mean, 0.0) if order == 1 else math.log(max(mean, 1.0)) / (order - 1)

    def _allowed(self, plane: Hyperplane, claim: Claim) -> float:
        return float(plane.allowed(self.family.largest_divergence(self.estimate.order, claim.parameter)))


@lru_cache(maxsize=64)
def _cell_bets(family: DivergenceClaim, estimate: CellsEstimate) -> tuple[Hyperplane, Floats, Floats]:
    """The hyperplane, X + c for every pair of cells, shape (k²,), and the bets λ, shape (bets,)."""
    most_allowed = family.largest_divergence(estimate.order, estimate.against)
    plane = Hyperplane(order=estimate.order, log_ratios=estimate.log_ratios, scale=most_allowed)
    pays, costs = plane.sides()
    values = (pays[:, None] - costs).ravel()
    allowed = float(plane.allowed(most_allowed))
    most = largest_cell_bet(pays, costs, allowed)
    joint = np.asarray(estimate.joint, np.float64)
    best = best_cell_bet(joint / joint.sum(), values - allowed, 0.999 * most)
    return plane, values, np.append(BET_GRID * most, best)


def largest_cell_bet(pays: Floats, costs: Floats, allowed: float) -> float:
    """The smallest λ at which one run can lose all wealth: 1/(max b + c − min a)."""
    return float(1 / max(np.max(costs) + allowed - np.min(pays), 1e-300))


def best_cell_bet(joint: Floats, values: Floats, most: float) -> float:
    """The λ in [0, most] of the largest growth rate Σ joint·log(1 + λ·values); 0 if every λ shrinks the wealth."""
    if joint @ values <= 0:
        return 0.0

    def past_the_best(bet: float) -> bool:  # false everywhere if the growth rises up to `most`
        return not joint @ (values / (1 + bet * values)) > 0

    return halved(past_the_best, 0.0, most, 60)[0]  # to the last bit


#: Part is a share of the wealth that is bet on one payoff X; the weights of a bet's parts add up to 1.
Part: TypeAlias = OnEvent | OnCells


@dataclass(frozen=True, slots=True)
class Bet:
    """Counts of runs, and the parts that were bet before these runs; the parts' weighted mean e-value is an e-value.

    The `claim` of each method must belong to the family that was bet against. A pass reports on the first part.
    """

    counts: Counts
    parts: tuple[Part, ...]

    def log_e_value(self, claim: Claim, against: Claim | None = None) -> float:
        """The logarithm of the e-value against the claim, at any stopping time; `against` as in `log_e_values`."""
        if against is not None:
            return next(self.log_e_values(claim, np.array([claim.parameter]), against))
        with np.errstate(under="ignore"):
            logs = [part.log_wealth(self.counts, claim) + math.log(part.weight) for part in self.parts]
            return float(np.logaddexp.reduce(np.concatenate(logs), initial=-math.inf))

    def log_e_values(self, claim: Claim, parameters: Floats, against: Claim | None = None) -> Iterator[float]:
        """The logarithms of the e-values against `claim.at(x)` for every x of an array, one after the other.

        If the half-plane of `against` has at least the slope and the intercept of every x, the bets are made against
        `against`: they are admissible against x, and no run pays less against x than it does against `against`.
        """
        # The e-values come in 20 pieces: a lower bound reads the e-values up to the first failure only.
        for piece in np.array_split(parameters, min(20, len(parameters)) or 1):
            logs = [part.log_wealths(self.counts, claim, piece, against) + math.log(part.weight) for part in self.parts]
            yield from np.logaddexp.reduce(logs, axis=0).tolist()

    def parameters(self, claim: Claim, *, above: bool) -> Floats:
        """The rising grid of the lower bound, above the claim's own parameter or below it."""
        return PARAMETERS[claim.parameter < PARAMETERS] if above else PARAMETERS[claim.parameter > PARAMETERS]

    @property
    def alone(self) -> "list[tuple[Bet, float]]":
        """Each part as a bet of all wealth on the part, and the part's share of the wealth."""
        return [(Bet(self.counts, (replace(part, weight=1.0),)), part.weight) for part in self.parts]

    def excess(self, claim: Claim, *, alpha: float, margin: float) -> Callable[[float], float] | None:
        """A function of x, positive if runs of a mechanism with the parameter x would refute; None if no runs would.

        The runs refute if the mean log e-value, less `margin` standard deviations, exceeds log(1/alpha). Of several
        parts the part that detects more decides, at the level alpha times its share.
        """
        found = [part.excess(self.counts, claim, alpha * part.weight, margin) for part in self.parts]
        usable = [excess for excess in found if excess is not None]
        return (lambda parameter: max(excess(parameter) for excess in usable)) if usable else None

    def standard_errors(self, claim: Claim) -> float:
        """The mean of X over the runs, in standard errors; the claim allows at most 0."""
        times, values, n = self.parts[0].table(self.counts), self.parts[0].payoffs(claim), self.counts.runs
        mean = float(times @ values) / n
        return mean * math.sqrt(n / max(float(times @ (values - mean) ** 2) / n, 1e-300))


def bet_on(counts: Counts, claim: Claim, estimate: Estimate | None = None) -> Bet:
    """The bet that an estimate gives, with the counts of later runs.

    The bet is on cells if the claim bounds a Rényi divergence and both the estimate and the counts have cells, with
    the estimate's `event_share` on the event that the cells make up. Otherwise the bet is on the event.
    """
    cells = None if estimate is None else estimate.cells
    if (
        cells is None
        or not bounds_divergences(claim)
        or len(counts.cells) != len(cells.joint)
        or math.isinf(claim.largest_divergence(cells.order, claim.parameter))
    ):
        return event_bet(counts, estimate)
    on_cells = OnCells(family=claim, estimate=cells, weight=1 - cells.event_share)
    on_event = OnEvent(estimate=estimate, weight=cells.event_share)
    return Bet(counts, (on_cells, on_event) if cells.event_share else (on_cells,))


def event_bet(counts: Counts, estimate: Estimate | None = None) -> Bet:
    """The bet of all wealth on the event."""
    return Bet(counts, (OnEvent(estimate=estimate),))


def log_e_value(counts: Counts, claim: Claim, estimate: Estimate | None = None) -> float:
    """The logarithm of the e-value against the claim; the claim is refuted at level α when it reaches log(1/α).

    The best bet for `estimate`, which must be fixed before these runs, has half of the wealth, `BET_GRID` the other
    half. Valid at any stopping time.
    """
    return bet_on(counts, claim, estimate).log_e_value(claim)


def runs_needed(claim: Claim, alpha: float) -> int:
    """The number of paired runs that refutes the claim if M(D) always lies in the event and M(D′) never does."""
    estimate = Estimate(p=1.0, q=0.0)
    return bisect_left(
        range(1 << 60), math.log(1 / alpha), 1, key=lambda n: log_e_value(Counts(n10=n), claim, estimate)
    )
