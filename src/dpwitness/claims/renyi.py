"""Rényi differential privacy (Mironov 2017, CSF) and zero-concentrated privacy (Bun & Steinke 2016, TCC).

Events. For p = P[M(D) ∈ S] and q = P[M(D′) ∈ S] the divergence of order α of the two Bernoulli laws is
D_α(p ‖ q) = log h(p, q)/(α − 1) with h(p, q) = p^α·q^(1−α) + (1 − p)^α·(1 − q)^(1−α) (van Erven & Harremoës 2014, IEEE
Trans. Inf. Theory 60(7)). By data processing it is at most D_α(M(D) ‖ M(D′)).

h is jointly convex, so its tangent plane at any point (p₀, q₀) lies below h. With r = p₀/q₀ > 1 > r̄ =
(1 − p₀)/(1 − q₀), h(p, q) ≤ e^((α−1)ε) implies
    α(r^(α−1) − r̄^(α−1))·p ≤ (α−1)(r^α − r̄^α)·q + e^((α−1)ε) − α·r̄^(α−1) + (α−1)·r̄^α,
whatever r and r̄ are: the accuracy of a contact decides power, never validity.

Cells. Let P and Q be the laws of M(D) and M(D′) over the k cells of a partition. Rényi divergences are jointly
quasi-convex and fall under data processing (van Erven & Harremoës 2014, Theorems 13 and 9), so a bound of
D_α(M(D) ‖ M(D′)) allows a convex region of pairs (P, Q). For an order α > 1
    Σ P_i^α·Q_i^(1−α) ≤ e^((α−1)·D_α),
and the tangent of the sum at likelihood ratios r_i lies below it: by the weighted inequality of arithmetic and
geometric means, for each cell and any r_i > 0,
    α·r_i^(α−1)·P_i − (α−1)·r_i^α·Q_i ≤ P_i^α·Q_i^(1−α).
So D_α ≤ ε implies
    Σ a_i·P_i − Σ b_i·Q_i ≤ c  with  a_i = α·r_i^(α−1),  b_i = (α−1)·r_i^α,  c = e^((α−1)·ε).
The accuracy of the ratios decides power, never validity. The order 1 is the limit, the Kullback-Leibler divergence:
a_i = 1 + log r_i, b_i = r_i, c = ε, by P_i·log(P_i/Q_i) ≥ (1 + log r_i)·P_i − r_i·Q_i.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Final, Protocol, TypeGuard

import numpy as np

from dpwitness.arrays import Booleans, Floats
from dpwitness.claims.claim import LARGEST_PARAMETER, Claim, HalfPlane, Numbers, in_range, shown
from dpwitness.claims.regions import BOUNDARY_POINTS, LEAST_LOG_ODDS, LEAST_PROBABILITY, Contacts, CurvedClaim
from dpwitness.roots import halved

#: HIGHEST_LOG_ODDS is the log-odds from which on a probability is 1 in double precision.
HIGHEST_LOG_ODDS: Final = 37.0


def divergence(order: Numbers, p: Numbers, q: Numbers) -> Floats:
    """D_α(p ‖ q) in nats of two Bernoulli laws; 0 where p ≤ q, infinite where p > q = 0. Arguments broadcast."""
    never = np.asarray(q, np.float64) <= 0
    q = np.clip(np.asarray(q, np.float64), LEAST_PROBABILITY, 1.0)
    p = np.clip(np.asarray(p, np.float64), q, 1.0)
    with np.errstate(divide="ignore"):
        found = _divergence(order, np.log(q), np.log1p(-q), np.log(p), np.log1p(-p))
    return np.where(never & (p > q), np.inf, found)


def _divergence(order: Numbers, log_q: Floats, log_not_q: Floats, log_p: Floats, log_not_p: Floats) -> Floats:
    """`divergence` from logarithms of the probabilities and of their complements, which may be −∞."""
    with np.errstate(all="ignore"):
        x = log_p - log_q
        y = np.where(np.isneginf(log_not_q), 0.0, log_not_p - log_not_q)
        near = np.log1p(np.exp(log_q) * np.expm1(order * x) + np.exp(log_not_q) * np.expm1(order * y))
        far = np.logaddexp(log_q + order * x, log_not_q + order * y)
        return np.maximum(np.where(order * x < 30, near, far), 0.0) / (order - 1)


def contacts_at(order: Numbers, epsilon: Numbers, q_log_odds: Floats) -> tuple[Floats, Floats, Floats]:
    """Contacts D_α(p ‖ q) = ε at each q: p, log log(p/q), log −log((1−p)/(1−q)); seven of eight are interpolated."""
    coarse = np.unique(np.append(np.arange(0, len(q_log_odds), 8), len(q_log_odds) - 1))
    at, order, epsilon = (np.broadcast_to(part, q_log_odds.shape)[coarse] for part in (q_log_odds, order, epsilon))
    log_q, log_not_q = -np.logaddexp(0, -at), -np.logaddexp(0, at)

    def beyond(at: Floats) -> Booleans:
        return _divergence(order, log_q, log_not_q, -np.logaddexp(0, -at), -np.logaddexp(0, at)) > epsilon

    # 24 halvings give log-odds to 10⁻⁶: the tangent at a contact that is 10⁻⁶ off lies only 10⁻¹² higher.
    _, high = halved(beyond, at, np.full_like(at, HIGHEST_LOG_ODDS), 24)
    log_p, log_not_p = -np.logaddexp(0, -high), -np.logaddexp(0, high)
    parts = (log_p - log_q, log_not_q - log_not_p)
    x, minus_y = (np.interp(q_log_odds, at, np.log(np.maximum(part, 1e-300))) for part in parts)
    return np.minimum(np.exp(np.exp(x) - np.logaddexp(0, -q_log_odds)), 1.0), x, minus_y


def log_odds_below(epsilon: float) -> Floats:
    """Rising log-odds of q < e^−ε, the values of q at which D_α can reach ε."""
    highest = -np.log(np.expm1(np.maximum(epsilon, 1e-12)))  # the log-odds of e^−ε
    top = min(float(highest), HIGHEST_LOG_ODDS - 2) - 1e-6
    return np.linspace(min(LEAST_LOG_ODDS, top - 30), top, BOUNDARY_POINTS)


def planes_of(order: Numbers, epsilon: Numbers, x: Floats, y: Floats) -> HalfPlane:
    """The half-planes for log r = x > 0 and log r̄ = y < 0, rounded outwards; p ≤ q if ε = 0. Arguments broadcast."""
    order, epsilon, x, y = np.broadcast_arrays(*(np.asarray(value, np.float64) for value in (order, epsilon, x, y)))
    less = order - 1
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        steps = -np.expm1(less * (y - x))  # 1 − (r̄/r)^(α−1)
        slope = less / order * np.exp(x) * -np.expm1(order * (y - x)) / steps
        # The intercept's terms e^((α−1)ε) − 1 and 1 − α·r̄^(α−1) + (α−1)·r̄^α ≥ 0, each over r^(α−1).
        allowance = np.where(
            less * epsilon < 30, np.expm1(less * epsilon) * np.exp(-less * x), np.exp(less * (epsilon - x))
        )
        offset = -order * np.expm1(less * y) + less * np.expm1(order * y)
        intercept = (allowance + np.maximum(offset, 0.0) * np.exp(-less * x)) / (order * steps)
        # The error of an exponential grows with its exponent; `lost` has the errors of the terms of `offset`.
        relative = 1e-15 * (8 + order * (x - y) + less * epsilon)
        lost = 1e-15 * order * less * np.minimum(-y, 1 / np.maximum(less, 1e-300)) * np.exp(-less * x) / (order * steps)
    intercept = intercept * (1 + relative) + lost
    slope = slope * (1 + relative)
    trivial = epsilon <= 0
    # Beyond the largest double the half-plane is p ≤ q + 1, which contains all pairs.
    everything = ~trivial & ~(np.isfinite(slope) & np.isfinite(intercept))
    return HalfPlane(
        np.where(trivial | everything, 1.0, slope), np.where(trivial, 0.0, np.where(everything, 1.0, intercept))
    )


#: LEAST_PAYOFF is a size above all doubles that lose digits, and is added to costs; smaller payoffs count as 0.
LEAST_PAYOFF: Final = 1e-290


class DivergenceClaim(Claim, Protocol):
    """A claim that bounds Rényi divergences, so that cells of the outcomes show more than an event does."""

    @property
    def orders(self) -> tuple[float, ...]:
        """The orders α ≥ 1 of the divergences to try against the claim."""

    def largest_divergence(self, order: float, parameter: float) -> float:
        """The largest D_order (nats) that `at(parameter)` allows, not falling in the parameter; may be infinite."""


def bounds_divergences(claim: Claim) -> TypeGuard[DivergenceClaim]:
    """Whether a claim bounds Rényi divergences: it has a method `largest_divergence`."""
    return callable(getattr(claim, "largest_divergence", None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperplane:
    """The tangent of a divergence at likelihood ratios of k cells.

    `order` is at least 1, `log_ratios` are logarithms of P_i/Q_i, shape (k,). Payoffs, costs and bounds are multiplied
    by e^(−(order − 1)·scale), with `scale` in nats, so that they do not overflow. Raises `ValueError`.
    """

    order: float
    log_ratios: tuple[float, ...]
    scale: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.order < math.inf or not 0 <= self.scale < math.inf:
            raise ValueError(f"order={self.order!r} must be at least 1 and finite, scale={self.scale!r} not negative")
        if len(self.log_ratios) < 2 or not all(math.isfinite(ratio) for ratio in self.log_ratios):
            raise ValueError("a hyperplane needs finite logarithms of ratios for at least two cells")

    def sides(self) -> tuple[Floats, Floats]:
        """Payoffs a_i by the cell of M(D), rounded down, and costs b_i by the cell of M(D′), rounded up; shape (k,)."""
        less, logs = self.order - 1, np.asarray(self.log_ratios, np.float64)
        if less == 0:
            error = 1e-15 * (8 + np.abs(logs))
            return 1 + logs - error, np.exp(np.minimum(logs, 700.0)) * (1 + error)
        # Any ratio is valid: large ratios are made smaller, so that no exponent overflows.
        logs = np.minimum(logs, (600 + less * self.scale) / self.order)
        error = 1e-15 * (8 + self.order * (np.abs(logs) + self.scale))
        pays = self.order * np.exp(less * (logs - self.scale))
        costs = less * np.exp(self.order * logs - less * self.scale)
        return np.where(pays > LEAST_PAYOFF, pays * (1 - error), 0.0), costs * (1 + error) + LEAST_PAYOFF

    def allowed(self, epsilon: Numbers) -> Numbers:
        """The largest mean c of payoff minus cost for a divergence of at most ε, rounded up. Arguments broadcast."""
        epsilon = np.asarray(epsilon, np.float64)
        error = 1e-15 * (8 + self.order * (epsilon + self.scale))
        if self.order == 1:
            return (epsilon * (1 + error))[()]
        with np.errstate(over="ignore"):
            return (np.exp((self.order - 1) * (epsilon - self.scale)) * (1 + error) + LEAST_PAYOFF)[()]


@dataclass(frozen=True, slots=True)
class RenyiDP(CurvedClaim):
    """(α, ε)-Rényi differential privacy: D_α(M(D) ‖ M(D′)) ≤ ε for all neighbours, in both directions (Mironov 2017).

    D_α(P ‖ Q) = log E_Q[(P/Q)^α]/(α − 1), ε in nats. The family's parameter is ε at a fixed α. By data processing, D_α
    of any partition of the outcomes is at most ε (van Erven & Harremoës 2014, Theorem 9). This is tested for an event S
    and its complement, by the Bernoulli laws of P[M(D) ∈ S] and P[M(D′) ∈ S], or for up to 24 cells, if they show more.
    No conversion to (ε′, δ) is made. Refuted means that the divergence of order α exceeds ε. The (ε′, δ) that follow
    from the claim, ε′ = ε + log(1/δ)/(α − 1) for every δ (Mironov 2017, Proposition 3), are weaker claims, which may
    hold if this claim does not. One event shows only a part of the divergence, 0.66 of D₂ and 0.80 of D₄ for two
    Gaussians one standard deviation apart, and its lower bound is too small by the same factor. Cells show 0.98 of D₂
    and 0.95 of D₃ in 2·10⁷ runs. Raises `InvalidClaim` unless 1 < α ≤ 10⁶ and 0 ≤ ε ≤ 700; `PureDP` is the limit α = ∞.
    """

    kind: ClassVar[str] = "renyi-dp"
    symbol: ClassVar[str] = "Rényi ε"

    alpha: float
    epsilon: float  # nats

    def __post_init__(self) -> None:
        in_range(self, "alpha", 1.0, 1e6, above=True)
        in_range(self, "epsilon", 0.0, LARGEST_PARAMETER)

    @property
    def parameter(self) -> float:
        """The claim's ε, in nats."""
        return self.epsilon

    def at(self, parameter: float) -> "RenyiDP":
        """The claim of another ε at the same α."""
        return replace(self, epsilon=parameter)

    def reached(self, p: Numbers, q: Numbers) -> Numbers:
        """The divergence D_α(p ‖ q), in nats."""
        return divergence(self.alpha, p, q)

    @property
    def orders(self) -> tuple[float, ...]:
        """α and smaller orders, as D_α does not fall in α (van Erven & Harremoës 2014, Theorem 3)."""
        smaller = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0)
        return (self.alpha, *(order for order in smaller if order < self.alpha))

    def largest_divergence(self, order: float, parameter: float) -> float:
        """The divergence ε (nats) that the claim allows for orders up to α; infinite for larger orders."""
        return parameter if order <= self.alpha else math.inf

    def contacts(self) -> Contacts:
        """Pairs (p, q) with D_α(p ‖ q) = ε; the hints are the logarithms of log(p/q) and −log((1−p)/(1−q))."""
        at = log_odds_below(self.epsilon)
        p, *hints = contacts_at(self.alpha, self.epsilon, at)
        return Contacts(np.exp(-np.logaddexp(0, -at)), p, np.array(hints))

    def planes(self, parameters: Numbers, hints: Floats) -> HalfPlane:
        """The half-planes of D_α ≤ ε; see `dpwitness.claims.renyi`."""
        x, minus_y = np.exp(hints)
        return planes_of(self.alpha, parameters, x, -minus_y)

    def __str__(self) -> str:
        return f"Rényi ε = {shown(self.epsilon)} at α = {shown(self.alpha)}"

    @property
    def short(self) -> str:
        """The claim as "(8, 0.4)-RDP"."""
        return f"({shown(self.alpha)}, {shown(self.epsilon)})-RDP"

    @property
    def condition(self) -> str:
        """The order that the family holds fixed."""
        return f" at α = {shown(self.alpha)}"

    def largest_order(self, probability: float) -> float | None:
        """The order from which on events rarer than `probability` are most of D_α; for Gaussian noise with D_α = ε.

        e^((α−1)·D_α) = E_D[(P/Q)^(α−1)], whose integrand is proportional to the density of N(α·μ, 1): half of it lies
        above α·μ, where D falls with probability Φ(−(α − 1)·μ). So for an order of at least 1 + Φ⁻¹(1 − p)/μ at least
        half of the integral lies in events rarer than p.
        """
        from statistics import NormalDist

        mu = math.sqrt(2 * self.epsilon / self.alpha)
        return 1 - NormalDist().inv_cdf(min(probability, 0.5)) / mu if mu and probability > 0 else math.inf

    def tail(self, probability: float) -> str:
        """A sentence on rarer events, with the order from which on they make up most of a Gaussian's divergence."""
        order = self.largest_order(probability)
        rare = Claim.tail(self, probability)
        if order is None or order >= self.alpha:
            return rare
        return f"{rare}; of Gaussian noise such events are most of the divergence from order {order:.3g} on"


#: ORDERS_MINUS_ONE has the values of α − 1 at which D_α/α is computed; D_α/α is largest near α = 1 for clear
#: violations, at large α for small violations.
ORDERS_MINUS_ONE: Final = np.geomspace(1e-4, 1e7, 56)
#: Q_NODES has the log-odds of q at which the binding orders for all ρ are computed.
Q_NODES: Final = np.concatenate([np.linspace(LEAST_LOG_ODDS - 12, -8, 40)[:-1], np.linspace(-8, 28, 121)])


@dataclass(frozen=True, slots=True)
class ZCDP(CurvedClaim):
    """ρ-zero-concentrated differential privacy: D_α(M(D) ‖ M(D′)) ≤ ρ·α for every α > 1 and all neighbours.

    Bun & Steinke 2016, Definition 1.1. N(f(D), σ²) with a sensitivity Δ of f is exactly Δ²/(2σ²)-zCDP. ρ is in nats. An
    event, or a partition into cells, is tested as in `RenyiDP`, at the order α that is tightest for it, including the
    limit α = 1. Refuted means that D_α exceeds ρ·α for some α. The usual conversion to (ε, δ), ε = ρ + 2√(ρ·log(1/δ))
    for every δ (Proposition 1.3), is weaker: a mechanism may satisfy every conversion without being ρ-zCDP. So this
    claim may be refuted although a test of each conversion must pass. One event shows only a part of the divergences,
    0.78 of the ρ of a Gaussian; cells show 0.98 in 10⁶ runs. Raises `InvalidClaim` unless 0 ≤ ρ ≤ 700.
    """

    kind: ClassVar[str] = "zcdp"
    symbol: ClassVar[str] = "ρ"

    rho: float  # nats

    def __post_init__(self) -> None:
        in_range(self, "rho", 0.0, LARGEST_PARAMETER)

    @property
    def parameter(self) -> float:
        """The claim's ρ, in nats."""
        return self.rho

    def at(self, parameter: float) -> "ZCDP":
        """The claim of another ρ."""
        return replace(self, rho=parameter)

    def reached(self, p: Numbers, q: Numbers) -> Numbers:
        """The largest D_α(p ‖ q)/α over α; for more than 256 pairs, as in a search, exact to a few per cent."""
        p, q = np.broadcast_arrays(np.asarray(p, np.float64), np.asarray(q, np.float64))
        if p.size > 256:
            return _rough_ratios(p.ravel(), q.ravel()).reshape(p.shape)
        return _binding_orders(p.ravel(), q.ravel())[1].reshape(p.shape)[()]

    @property
    def orders(self) -> tuple[float, ...]:
        """Eleven orders from 1, the limit with D₁ ≤ ρ, to 32."""
        return (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0)

    def largest_divergence(self, order: float, parameter: float) -> float:
        """The divergence ρ·α (nats) that ρ allows at an order α, rounded upwards."""
        return math.nextafter(parameter * order, math.inf)

    def contacts(self) -> Contacts:
        """Points of the boundary; the hints are logarithms of α − 1, log(p/q) and −log((1−p)/(1−q))."""
        at = log_odds_below(self.rho)
        # The entries of `orders` are the binding orders for each q of `Q_NODES`, at the gap where D_α/α is ρ.
        rho = np.log(max(self.rho, 1e-12))
        orders = [np.interp(rho, row, order) for order, row in zip(*_surface(), strict=True)]
        order = 1 + np.exp(np.interp(at, Q_NODES, orders))
        p, *hints = contacts_at(order, self.rho * order, at)
        return Contacts(np.exp(-np.logaddexp(0, -at)), p, np.array([np.log(order - 1), *hints]))

    def planes(self, parameters: Numbers, hints: Floats) -> HalfPlane:
        """The half-planes of D_α ≤ ρ·α, for the α of the hints; see `dpwitness.claims.renyi`."""
        less, x, minus_y = np.exp(hints)
        order = 1 + less
        return planes_of(order, np.asarray(parameters, np.float64) * order, x, -minus_y)

    def __str__(self) -> str:
        return f"ρ = {self.rho:g}"

    @property
    def short(self) -> str:
        """The claim as "0.5-zCDP"."""
        return f"{self.rho:g}-zCDP"


def _binding_orders(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """The orders at which D_α(p ‖ q)/α is largest, as log(α − 1), and the ratios there; shape (k,) each."""
    logs = np.log(ORDERS_MINUS_ONE)
    values = divergence(1 + ORDERS_MINUS_ONE[:, None], p, q) / (1 + ORDERS_MINUS_ONE[:, None])
    best = values.argmax(axis=0)
    binding, largest = logs[best], np.take_along_axis(values, best[None], 0)[0]
    step = logs[1] - logs[0]
    for _ in range(3):  # each time between the neighbours of the best order, on a nine times finer grid
        orders = binding + step * np.linspace(-0.9, 0.9, 19)[:, None]
        values = divergence(1 + np.exp(orders), p, q) / (1 + np.exp(orders))
        best = values.argmax(axis=0)[None]
        binding, largest = np.take_along_axis(orders, best, 0)[0], np.take_along_axis(values, best, 0)[0]
        step /= 9
    return binding, largest


def _rough_ratios(p: Floats, q: Floats) -> Floats:
    """The largest D_α(p ‖ q)/α over every third order; shape (k,)."""
    ratios = np.zeros(len(p))
    for order in 1 + ORDERS_MINUS_ONE[::3]:
        np.maximum(ratios, divergence(order, p, q) / order, out=ratios)
    return ratios


@cache
def _surface() -> tuple[Floats, Floats]:
    """Binding orders, as log(α − 1), and log(D_α/α) at them, for every q of `Q_NODES` and gap; shape (q, gaps) each.

    A gap is the difference of the log-odds of p and q; D_α/α rises in it.
    """
    odds = Q_NODES[:, None] + np.geomspace(1e-4, 70, 100)
    p, q = 1 / (1 + np.exp(-np.minimum(odds, HIGHEST_LOG_ODDS))), 1 / (1 + np.exp(-Q_NODES))[:, None]
    flat = [part.ravel() for part in np.broadcast_arrays(p, q)]
    orders, ratios = (part.reshape(p.shape) for part in _binding_orders(*flat))
    # Rounding may leave steps down, which the interpolation of rising values does not allow.
    return orders, np.log(np.maximum.accumulate(np.maximum(ratios, 1e-300), axis=1))
