"""Zero-concentrated differential privacy (Bun & Steinke 2016, TCC)."""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Final

import numpy as np

from dpwitness.claims.boundary import LEAST_LOG_ODDS, POINTS, Contacts, CurvedClaim
from dpwitness.claims.claim import Floats, HalfPlane
from dpwitness.claims.divergence import HIGHEST, contacts_at, divergence, log_odds_below, planes_of
from dpwitness.claims.fields import from_fields, in_range

__all__ = ["ZCDP"]

LARGEST: Final = 700.0
#: Orders α − 1 that are tried: the largest of D_α/α lies near 1 for clear violations, far out for small ones.
ORDERS: Final = np.geomspace(1e-4, 1e7, 56)
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
    event, or a partition into cells, is tested as in `RenyiDP`, at the order α that binds it, the limit of α = 1
    included. Refuted means that D_α exceeds ρ·α for some α. That is more than to refute the (ε, δ) that people convert
    it to, ε = ρ + 2√(ρ·log(1/δ)) for every δ (Proposition 1.3): a mechanism may satisfy all of these and still not be
    ρ-zCDP, so that this claim is refuted where a test of any of its conversions has to pass. One event shows a part of
    the divergences alone, 0.78 of the ρ of a Gaussian; cells show 0.98 in 10⁶ runs. Raises `InvalidClaim` unless 0 ≤ ρ
    ≤ 700.
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

    def reached(self, p: Any, q: Any) -> Any:
        """The largest D_α(p ‖ q)/α, of many pairs to a few per cent."""
        p, q = np.broadcast_arrays(np.asarray(p, np.float64), np.asarray(q, np.float64))
        if p.size > FEW:
            return _roughly(p.ravel(), q.ravel()).reshape(p.shape)
        found = np.empty(p.size)
        for start in range(0, p.size, PIECE):
            part = slice(start, start + PIECE)
            found[part] = _steepest(p.ravel()[part], q.ravel()[part])[1]
        return found.reshape(p.shape)[()]

    @property
    def orders(self) -> tuple[float, ...]:
        """Some of all; 1 is the limit, D₁ ≤ ρ."""
        return CELL_ORDERS

    def largest_divergence(self, order: float, parameter: float) -> float:
        """ρ·α. As in `claims.hyperplane.DivergenceClaim`."""
        return math.nextafter(parameter * order, math.inf)

    def contacts(self) -> Contacts:
        """Points of the boundary; the hints are logarithms of α − 1, log(p/q) and −log((1−p)/(1−q))."""
        at = log_odds_below(self.rho, POINTS)
        logs = np.log(_ratios())
        # In each row of q the gap at which D_α/α is ρ, and there the order that binds.
        rho = np.log(max(self.rho, 1e-12))
        orders = [np.interp(rho, row, order) for row, order in zip(logs, _orders(), strict=True)]
        order = 1 + np.exp(np.interp(at, Q_NODES, orders))
        p, *hints = contacts_at(order, self.rho * order, at)
        return Contacts(np.exp(-np.logaddexp(0, -at)), p, np.array([np.log(order - 1), *hints]))

    def planes(self, parameters: Any, hints: Floats) -> HalfPlane:
        """Those of D_α at ε = ρ·α, of whatever α; see `dpwitness.claims.divergence`."""
        less, x, minus_y = np.exp(hints)
        order = 1 + less
        return planes_of(order, np.asarray(parameters, np.float64) * order, x, -minus_y)

    def __str__(self) -> str:
        """The claim in the signs of the field."""
        return f"ρ = {self.rho:g}"

    @property
    def short(self) -> str:
        """Such as "0.5-zCDP"."""
        return f"{self.rho:g}-zCDP"

    def to_json(self) -> dict[str, Any]:
        """The kind and ρ."""
        return {"kind": self.kind, "rho": self.rho}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "ZCDP":
        """Read what `to_json` wrote, its kind left out. Raises `InvalidClaim`."""
        return cls(*from_fields(value, "rho"))


def _steepest(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """The order at which D_α(p ‖ q)/α is largest, as log(α − 1), and that value; of shape (k,) each."""
    logs = np.log(ORDERS)
    values = divergence(1 + ORDERS[:, None], p, q) / (1 + ORDERS[:, None])
    best = values.argmax(axis=0)
    found, largest = logs[best], np.take_along_axis(values, best[None], 0)[0]
    step = logs[1] - logs[0]
    for _ in range(3):  # once more between the neighbours, each time nine times as fine
        tried = found + step * np.linspace(-0.9, 0.9, 19)[:, None]
        values = divergence(1 + np.exp(tried), p, q) / (1 + np.exp(tried))
        best = values.argmax(axis=0)[None]
        found, largest = np.take_along_axis(tried, best, 0)[0], np.take_along_axis(values, best, 0)[0]
        step /= 9
    return found, largest


def _roughly(p: Floats, q: Floats) -> Floats:
    """The largest D_α(p ‖ q)/α over every third order, of shape (k,)."""
    found = np.zeros(len(p))
    for order in 1 + ORDERS[::3]:
        np.maximum(found, divergence(order, p, q) / order, out=found)
    return found


@cache
def _surface() -> tuple[Floats, Floats]:
    """Binding orders, as log(α − 1), and their D_α/α, at every q and gap; of shape (q, gaps) each."""
    odds = Q_NODES[:, None] + GAPS
    p, q = 1 / (1 + np.exp(-np.minimum(odds, HIGHEST))), 1 / (1 + np.exp(-Q_NODES))[:, None]
    flat = [part.ravel() for part in np.broadcast_arrays(p, q)]
    pieces = [
        _steepest(flat[0][start : start + PIECE], flat[1][start : start + PIECE])
        for start in range(0, len(flat[0]), PIECE)
    ]
    orders, ratios = (np.concatenate(part).reshape(p.shape) for part in zip(*pieces, strict=True))
    return orders, ratios


def _orders() -> Floats:
    return _surface()[0]


def _ratios() -> Floats:
    """D_α/α, rising in the gap; rounding may leave steps down."""
    return np.maximum.accumulate(np.maximum(_surface()[1], 1e-300), axis=1)
