"""Rényi differential privacy (Mironov 2017, CSF) and zero-concentrated privacy (Bun & Steinke 2016, TCC).

Events. These half-planes contain all events whose divergence is at most ε. For p = P[M(D) ∈ S] and q = P[M(D′) ∈ S] the
divergence of order α of the two Bernoulli laws is D_α(p ‖ q) = log h(p, q)/(α − 1) with
h(p, q) = p^α·q^(1−α) + (1 − p)^α·(1 − q)^(1−α) (van Erven & Harremoës 2014, IEEE Trans. Inf. Theory 60(7)). By data
processing it is at most that of M(D) and M(D′).

h is jointly convex, so its tangent plane at any point lies below it. With r = p₀/q₀ > 1 > r̄ = (1 − p₀)/(1 − q₀) at that
point, h(p, q) ≤ e^((α−1)ε) implies
    α(r^(α−1) − r̄^(α−1))·p ≤ (α−1)(r^α − r̄^α)·q + e^((α−1)ε) − α·r̄^(α−1) + (α−1)·r̄^α,
whatever r and r̄ are: how well a contact is computed decides power, never validity.

Cells. These hyperplanes contain all pairs of distributions over k cells whose divergence is at most ε. Let P and Q be
the laws of the cell that M(D) and M(D′) fall into. Rényi divergences are jointly quasi-convex and fall under data
processing (van Erven & Harremoës 2014, Theorems 13 and 9), so the pairs of P and Q that a bound of D_α(M(D) ‖ M(D′))
allows are a convex region. For an order α > 1 they have
    Σ P_i^α·Q_i^(1−α) ≤ e^((α−1)·D_α),
and the tangent of that sum at likelihood ratios r_i lies below it: by the weighted means of arithmetic and geometry,
    α·r_i^(α−1)·P_i − (α−1)·r_i^α·Q_i ≤ P_i^α·Q_i^(1−α)
cell by cell, whatever r_i > 0 is. So where D_α is at most ε
    Σ a_i·P_i − Σ b_i·Q_i ≤ c  with  a_i = α·r_i^(α−1),  b_i = (α−1)·r_i^α,  c = e^((α−1)·ε).
How well the ratios are known decides power, never validity. The order 1 is the limit, the Kullback-Leibler divergence:
a_i = 1 + log r_i, b_i = r_i, c = ε, by P_i·log(P_i/Q_i) ≥ (1 + log r_i)·P_i − r_i·Q_i.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Final, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from dpwitness.claims.claim import LARGEST, Claim, Floats, HalfPlane, Numbers, in_range, shown
from dpwitness.claims.regions import LEAST_LOG_ODDS, POINTS, TINY, Contacts, CurvedClaim
from dpwitness.roots import halved

#: Halvings of the interval in which the log-odds of a contact's p lie: to some 10⁻⁶. A tangent that touches the
#: boundary so far from where it is sought lies some 10⁻¹² higher there.
STEPS: Final = 24
#: Log-odds beyond which a probability is 1 for a double.
HIGHEST: Final = 37.0


def divergence(order: Numbers, p: Numbers, q: Numbers) -> Floats:
    """D_α(p ‖ q) in nats of two events' probabilities; 0 where p ≤ q, infinite where p > q = 0. Broadcasts."""
    never = np.asarray(q, np.float64) <= 0
    q = np.clip(np.asarray(q, np.float64), TINY, 1.0)
    p = np.clip(np.asarray(p, np.float64), q, 1.0)
    with np.errstate(divide="ignore"):
        found = _divergence(order, np.log(q), np.log1p(-q), np.log(p), np.log1p(-p))
    return np.where(never & (p > q), np.inf, found)


def _divergence(order: Numbers, log_q: Floats, log_not_q: Floats, log_p: Floats, log_not_p: Floats) -> Floats:
    """D_α from logarithms of probabilities and of their complements; these may be −∞."""
    with np.errstate(all="ignore"):
        x = log_p - log_q
        y = np.where(np.isneginf(log_not_q), 0.0, log_not_p - log_not_q)
        near = np.log1p(np.exp(log_q) * np.expm1(order * x) + np.exp(log_not_q) * np.expm1(order * y))
        far = np.logaddexp(log_q + order * x, log_not_q + order * y)
        return np.maximum(np.where(order * x < 30, near, far), 0.0) / (order - 1)


def contacts_at(order: Numbers, epsilon: Numbers, q_log_odds: Floats) -> tuple[Floats, Floats, Floats]:
    """Contacts of the boundary D_α(p ‖ q) = ε: p, log log(p/q) and log −log((1−p)/(1−q)), each of the shape of the q.

    Every eighth and the last are computed, those between them interpolated.
    """
    coarse = np.unique(np.append(np.arange(0, len(q_log_odds), 8), len(q_log_odds) - 1))
    at, order, epsilon = (np.broadcast_to(part, q_log_odds.shape)[coarse] for part in (q_log_odds, order, epsilon))
    log_q, log_not_q = -np.logaddexp(0, -at), -np.logaddexp(0, at)

    def beyond(at: Floats) -> NDArray[np.bool_]:
        return _divergence(order, log_q, log_not_q, -np.logaddexp(0, -at), -np.logaddexp(0, at)) > epsilon

    _, high = halved(beyond, at, np.full_like(at, HIGHEST), STEPS)
    log_p, log_not_p = -np.logaddexp(0, -high), -np.logaddexp(0, high)
    parts = (log_p - log_q, log_not_q - log_not_p)
    x, minus_y = (np.interp(q_log_odds, at, np.log(np.maximum(part, 1e-300))) for part in parts)
    return np.minimum(np.exp(np.exp(x) - np.logaddexp(0, -q_log_odds)), 1.0), x, minus_y


def log_odds_below(epsilon: float) -> Floats:
    """Log-odds of q at which D_α can reach ε at all, that is q < e^−ε; ascending."""
    highest = -np.log(np.expm1(np.maximum(epsilon, 1e-12)))  # of e^−ε
    top = min(float(highest), HIGHEST - 2) - 1e-6
    return np.linspace(min(LEAST_LOG_ODDS, top - 30), top, POINTS)


def planes_of(order: Numbers, epsilon: Numbers, x: Floats, y: Floats) -> HalfPlane:
    """The half-planes of log r = x > 0 and log r̄ = y < 0, rounded outwards; p ≤ q where ε = 0. Broadcasts."""
    order, epsilon, x, y = np.broadcast_arrays(*(np.asarray(value, np.float64) for value in (order, epsilon, x, y)))
    less = order - 1
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        steps = -np.expm1(less * (y - x))  # 1 − (r̄/r)^(α−1)
        slope = less / order * np.exp(x) * -np.expm1(order * (y - x)) / steps
        # e^((α−1)ε) − 1, and 1 − α·r̄^(α−1) + (α−1)·r̄^α, which is not negative, each over r^(α−1).
        risen = np.where(
            less * epsilon < 30, np.expm1(less * epsilon) * np.exp(-less * x), np.exp(less * (epsilon - x))
        )
        bent = -order * np.expm1(less * y) + less * np.expm1(order * y)
        intercept = (risen + np.maximum(bent, 0.0) * np.exp(-less * x)) / (order * steps)
        # Exponents of this size have lost so many digits; the difference `bent` loses those of its terms.
        size = 1e-15 * (8 + order * (x - y) + less * epsilon)
        lost = 1e-15 * order * less * np.minimum(-y, 1 / np.maximum(less, 1e-300)) * np.exp(-less * x) / (order * steps)
    intercept = intercept * (1 + size) + lost
    slope = slope * (1 + size)
    trivial = epsilon <= 0
    # Beyond the largest double nothing can be told: the half-plane of everything.
    everything = ~trivial & ~(np.isfinite(slope) & np.isfinite(intercept))
    return HalfPlane(
        np.where(trivial | everything, 1.0, slope), np.where(trivial, 0.0, np.where(everything, 1.0, intercept))
    )


#: Numbers below lose digits as doubles; nothing here is as small where it matters.
TINY_WEIGHT: Final = 1e-290


class DivergenceClaim(Claim, Protocol):
    """A claim that bounds Rényi divergences, so that cells of the outcomes show more than an event does."""

    @property
    def orders(self) -> tuple[float, ...]:
        """Orders α ≥ 1 of divergences to try against it."""

    def largest_divergence(self, order: float, parameter: float) -> float:
        """The largest D_order(M(D) ‖ M(D′)) that `at(parameter)` allows, in nats; infinite where it says nothing.

        It does not fall in the parameter.
        """


def bounds_divergences(claim: Claim) -> TypeGuard[DivergenceClaim]:
    """Whether a claim bounds Rényi divergences, and says so."""
    return callable(getattr(claim, "largest_divergence", None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperplane:
    """The tangent of a divergence at likelihood ratios of k cells.

    `order` is at least 1, `log_ratios` are logarithms of P_i/Q_i, shape (k,). All that it gives is multiplied by
    e^(−(order − 1)·scale), with `scale` in nats, so that nothing overflows. Raises `ValueError` for other numbers.
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
        """What a run pays by the cell of M(D), and what it costs by that of M(D′); shape (k,) each.

        Rounded to the safe side: a_i downwards, b_i upwards.
        """
        less, logs = self.order - 1, np.asarray(self.log_ratios, np.float64)
        if less == 0:
            lost = 1e-15 * (8 + np.abs(logs))
            return 1 + logs - lost, np.exp(np.minimum(logs, 700.0)) * (1 + lost)
        # A smaller ratio is as valid as the one given: so that no exponent overflows.
        logs = np.minimum(logs, (600 + less * self.scale) / self.order)
        lost = 1e-15 * (8 + self.order * (np.abs(logs) + self.scale))
        pays = self.order * np.exp(less * (logs - self.scale))
        costs = less * np.exp(self.order * logs - less * self.scale)
        return np.where(pays > TINY_WEIGHT, pays * (1 - lost), 0.0), costs * (1 + lost) + TINY_WEIGHT

    def allowed(self, epsilon: Numbers) -> Numbers:
        """What a divergence of at most ε allows of the mean of `sides`, rounded upwards. Broadcasts."""
        epsilon = np.asarray(epsilon, np.float64)
        lost = 1e-15 * (8 + self.order * (epsilon + self.scale))
        if self.order == 1:
            return (epsilon * (1 + lost))[()]
        with np.errstate(over="ignore"):
            return (np.exp((self.order - 1) * (epsilon - self.scale)) * (1 + lost) + TINY_WEIGHT)[()]


#: Orders of divergences that are tried on cells.
ORDERS: Final = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0)
LARGEST_ORDER: Final = 1e6


@dataclass(frozen=True, slots=True)
class RenyiDP(CurvedClaim):
    """(α, ε)-Rényi differential privacy: D_α(M(D) ‖ M(D′)) ≤ ε for all neighbours, in both directions (Mironov 2017).

    D_α(P ‖ Q) = log E_Q[(P/Q)^α]/(α − 1), ε in nats. The family's parameter is ε at a fixed α. By data processing, D_α
    of any partition of the outcomes is at most ε (van Erven & Harremoës 2014, Theorem 9). This is tested for an event S
    and its complement, by the Bernoulli laws of P[M(D) ∈ S] and P[M(D′) ∈ S], or for up to 24 cells, if they show more.
    No conversion to (ε′, δ) is made. Refuted means that the divergence of order α exceeds ε. The (ε′, δ) that follow
    from the claim, ε′ = ε + log(1/δ)/(α − 1) for every δ (Mironov 2017, Proposition 3), are weaker claims: they may
    hold if this one does not. One event shows only a part of the divergence: 0.66 of D₂ and 0.80 of D₄ for two
    Gaussians one standard deviation apart, and its lower bound falls short by as much. Cells show 0.98 of D₂ and 0.95
    of D₃ in 2·10⁷ runs. Raises `InvalidClaim` unless 1 < α ≤ 10⁶ and 0 ≤ ε ≤ 700; the limit α = ∞ is `PureDP`.
    """

    kind: ClassVar[str] = "renyi-dp"
    symbol: ClassVar[str] = "Rényi ε"

    alpha: float
    epsilon: float  # nats

    def __post_init__(self) -> None:
        in_range(self, "alpha", 1.0, LARGEST_ORDER, above=True)
        in_range(self, "epsilon", 0.0, LARGEST)

    @property
    def parameter(self) -> float:
        """ε in nats."""
        return self.epsilon

    def at(self, parameter: float) -> "RenyiDP":
        """The claim of another ε at the same α."""
        return replace(self, epsilon=parameter)

    def reached(self, p: Numbers, q: Numbers) -> Numbers:
        """D_α(p ‖ q)."""
        return divergence(self.alpha, p, q)

    @property
    def orders(self) -> tuple[float, ...]:
        """α, and smaller ones: D_α does not fall in α (van Erven & Harremoës 2014, Theorem 3)."""
        return (self.alpha, *(order for order in ORDERS if order < self.alpha))

    def largest_divergence(self, order: float, parameter: float) -> float:
        """ε up to the order α; nothing is said of larger ones."""
        return parameter if order <= self.alpha else math.inf

    def contacts(self) -> Contacts:
        """Points of D_α(p ‖ q) = ε; the hints are logarithms of log(p/q) and −log((1−p)/(1−q))."""
        at = log_odds_below(self.epsilon)
        p, *hints = contacts_at(self.alpha, self.epsilon, at)
        return Contacts(np.exp(-np.logaddexp(0, -at)), p, np.array(hints))

    def planes(self, parameters: Numbers, hints: Floats) -> HalfPlane:
        """See `dpwitness.claims.renyi`."""
        x, minus_y = np.exp(hints)
        return planes_of(self.alpha, parameters, x, -minus_y)

    def __str__(self) -> str:
        return f"Rényi ε = {shown(self.epsilon)} at α = {shown(self.alpha)}"

    @property
    def short(self) -> str:
        """Such as "(8, 0.4)-RDP"."""
        return f"({shown(self.alpha)}, {shown(self.epsilon)})-RDP"

    @property
    def condition(self) -> str:
        """What the family holds fixed."""
        return f" at α = {shown(self.alpha)}"

    def largest_order(self, probability: float) -> float | None:
        """Of Gaussian noise that just keeps the claim: N(0, 1) against N(μ, 1), of which D_α = α·μ²/2 = ε.

        e^((α−1)·D_α) = E_D[(P/Q)^(α−1)], with a density proportional to p(x)·e^((α−1)·μ·x) that is N(α·μ, 1): half of
        it lies above α·μ, where D falls with probability Φ(−(α − 1)·μ). So of an order at least 1 + Φ⁻¹(1 − p)/μ at
        least half lies in events rarer than p.
        """
        from statistics import NormalDist

        mu = math.sqrt(2 * self.epsilon / self.alpha)
        return 1 - NormalDist().inv_cdf(min(probability, 0.5)) / mu if mu and probability > 0 else math.inf

    def tail(self, probability: float) -> str:
        """That events so rare are most of the divergence, where they are of Gaussian noise."""
        order = self.largest_order(probability)
        rare = Claim.tail(self, probability)
        if order is None or order >= self.alpha:
            return rare
        return f"{rare}; of Gaussian noise such events are most of the divergence from order {order:.3g} on"


#: Orders α − 1 that are tried: the largest of D_α/α lies near 1 for clear violations, far out for small ones.
ORDERS_MINUS_ONE: Final = np.geomspace(1e-4, 1e7, 56)
#: Orders of divergences that are tried on cells.
CELL_ORDERS: Final = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0)
#: log-odds of q, and differences of log-odds of p and q, at which the binding order is computed once for all ρ.
Q_NODES: Final = np.concatenate([np.linspace(LEAST_LOG_ODDS - 12, -8, 40)[:-1], np.linspace(-8, 28, 121)])
GAPS: Final = np.geomspace(1e-4, 70, 100)
#: Pairs from which on the largest D_α/α is computed roughly: in a search.
FEW: Final = 256
#: Entries of arrays at once.
PIECE: Final = 4096


@dataclass(frozen=True, slots=True)
class ZCDP(CurvedClaim):
    """ρ-zero-concentrated differential privacy: D_α(M(D) ‖ M(D′)) ≤ ρ·α for every α > 1 and all neighbours.

    Bun & Steinke 2016, Definition 1.1. N(f(D), σ²) with a sensitivity Δ of f is exactly Δ²/(2σ²)-zCDP. ρ is in nats. An
    event, or a partition into cells, is tested as in `RenyiDP`, at the order α that is tightest for it, including the
    limit α = 1. Refuted means that D_α exceeds ρ·α for some α. The usual conversion to (ε, δ), ε = ρ + 2√(ρ·log(1/δ))
    for every δ (Proposition 1.3), is weaker: a mechanism may satisfy all of these and still not be ρ-zCDP. So this
    claim may be refuted although a test of each conversion must pass. One event shows only a part of the divergences,
    0.78 of the ρ of a Gaussian; cells show 0.98 in 10⁶ runs. Raises `InvalidClaim` unless 0 ≤ ρ ≤ 700.
    """

    kind: ClassVar[str] = "zcdp"
    symbol: ClassVar[str] = "ρ"

    rho: float  # nats

    def __post_init__(self) -> None:
        in_range(self, "rho", 0.0, LARGEST)

    @property
    def parameter(self) -> float:
        """ρ in nats."""
        return self.rho

    def at(self, parameter: float) -> "ZCDP":
        """The claim of another ρ."""
        return replace(self, rho=parameter)

    def reached(self, p: Numbers, q: Numbers) -> Numbers:
        """The largest D_α(p ‖ q)/α, of many pairs to a few per cent."""
        p, q = np.broadcast_arrays(np.asarray(p, np.float64), np.asarray(q, np.float64))
        if p.size > FEW:
            return _roughly(p.ravel(), q.ravel()).reshape(p.shape)
        ratios = np.empty(p.size)
        for start in range(0, p.size, PIECE):
            part = slice(start, start + PIECE)
            ratios[part] = _steepest(p.ravel()[part], q.ravel()[part])[1]
        return ratios.reshape(p.shape)[()]

    @property
    def orders(self) -> tuple[float, ...]:
        """Some of all; 1 is the limit, D₁ ≤ ρ."""
        return CELL_ORDERS

    def largest_divergence(self, order: float, parameter: float) -> float:
        """ρ·α."""
        return math.nextafter(parameter * order, math.inf)

    def contacts(self) -> Contacts:
        """Points of the boundary; the hints are logarithms of α − 1, log(p/q) and −log((1−p)/(1−q))."""
        at = log_odds_below(self.rho)
        # In each row of q the gap at which D_α/α is ρ, and there the order that binds.
        rho = np.log(max(self.rho, 1e-12))
        orders = [np.interp(rho, row, order) for order, row in zip(*_surface(), strict=True)]
        order = 1 + np.exp(np.interp(at, Q_NODES, orders))
        p, *hints = contacts_at(order, self.rho * order, at)
        return Contacts(np.exp(-np.logaddexp(0, -at)), p, np.array([np.log(order - 1), *hints]))

    def planes(self, parameters: Numbers, hints: Floats) -> HalfPlane:
        """Those of D_α at ε = ρ·α, of whatever α; see `dpwitness.claims.renyi`."""
        less, x, minus_y = np.exp(hints)
        order = 1 + less
        return planes_of(order, np.asarray(parameters, np.float64) * order, x, -minus_y)

    def __str__(self) -> str:
        return f"ρ = {self.rho:g}"

    @property
    def short(self) -> str:
        """Such as "0.5-zCDP"."""
        return f"{self.rho:g}-zCDP"


def _steepest(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """The order at which D_α(p ‖ q)/α is largest, as log(α − 1), and that value; of shape (k,) each."""
    logs = np.log(ORDERS_MINUS_ONE)
    values = divergence(1 + ORDERS_MINUS_ONE[:, None], p, q) / (1 + ORDERS_MINUS_ONE[:, None])
    best = values.argmax(axis=0)
    steepest, largest = logs[best], np.take_along_axis(values, best[None], 0)[0]
    step = logs[1] - logs[0]
    for _ in range(3):  # once more between the neighbours, each time nine times as fine
        orders = steepest + step * np.linspace(-0.9, 0.9, 19)[:, None]
        values = divergence(1 + np.exp(orders), p, q) / (1 + np.exp(orders))
        best = values.argmax(axis=0)[None]
        steepest, largest = np.take_along_axis(orders, best, 0)[0], np.take_along_axis(values, best, 0)[0]
        step /= 9
    return steepest, largest


def _roughly(p: Floats, q: Floats) -> Floats:
    """The largest D_α(p ‖ q)/α over every third order, of shape (k,)."""
    ratios = np.zeros(len(p))
    for order in 1 + ORDERS_MINUS_ONE[::3]:
        np.maximum(ratios, divergence(order, p, q) / order, out=ratios)
    return ratios


@cache
def _surface() -> tuple[Floats, Floats]:
    """Binding orders, as log(α − 1), and log(D_α/α), rising in the gap, at every q and gap; of shape (q, gaps) each."""
    odds = Q_NODES[:, None] + GAPS
    p, q = 1 / (1 + np.exp(-np.minimum(odds, HIGHEST))), 1 / (1 + np.exp(-Q_NODES))[:, None]
    flat = [part.ravel() for part in np.broadcast_arrays(p, q)]
    pieces = [
        _steepest(flat[0][start : start + PIECE], flat[1][start : start + PIECE])
        for start in range(0, len(flat[0]), PIECE)
    ]
    orders, ratios = (np.concatenate(part).reshape(p.shape) for part in zip(*pieces, strict=True))
    # Rounding may leave steps down.
    return orders, np.log(np.maximum.accumulate(np.maximum(ratios, 1e-300), axis=1))
