"""Counts (four integers per event), from which evidence is computed, and the bets of the fastest growth."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from dpwitness.arrays import Booleans, Floats, Integers
from dpwitness.candidate import PairedCounts
from dpwitness.claims import HalfPlane
from dpwitness.claims.claim import Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(PairedCounts):
    """The numbers of paired runs of evidence with (M(D)∈S, M(D′)∈S) = (1,0), (1,1), (0,1), (0,0).

    Only `confirm` and `epoch` of a `Runner` make them (and `witness` reads them back): the pair and the event were
    fixed before the first run was drawn. Estimates from search runs have another type, `evidence.Estimate`.
    Raises `ValueError` for negative counts, and for cells that do not add up to the runs.
    """

    def __post_init__(self) -> None:
        if self.cells and (sum(self.cells) != self.runs or min(self.cells) < 0):
            raise ValueError(f"the counts of {len(self.cells)} cells must add up to the {self.runs} runs")
        if math.isqrt(len(self.cells)) ** 2 != len(self.cells):
            raise ValueError(f"cells holds {len(self.cells)} counts, which must be a square number, k times k")
        for name in ("n10", "n11", "n01", "n00"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}={getattr(self, name)!r} must not be negative")


@dataclass(frozen=True, slots=True, eq=False)
class CountsTable:
    """Counts of k events in the same runs; `cells` has the shape (4, k): n10, n11, n01 and n00 of each event."""

    cells: Integers

    def __post_init__(self) -> None:
        if self.cells.ndim != 2 or len(self.cells) != 4 or (self.cells < 0).any():
            raise ValueError(f"cells of shape {self.cells.shape} must have the shape (4, k) and not be negative")

    def __len__(self) -> int:
        return int(self.cells.shape[1])

    def of(self, event: int) -> Counts:
        """The counts of one event, given by its number from 0."""
        n10, n11, n01, n00 = self.cells[:, event].tolist()
        return Counts(n10=n10, n11=n11, n01=n01, n00=n00)

    def directed(self, events: Integers, swapped: Booleans) -> "CountsTable":
        """The counts of m events, given by number, with D and D′ exchanged where `swapped`; arguments of shape (m,)."""
        chosen = self.cells[:, events]
        return CountsTable(np.where(swapped, chosen[[2, 1, 0, 3]], chosen))

    def plus(self, earlier: "CountsTable", places: Integers) -> "CountsTable":
        """The sum of these counts and the counts of earlier runs.

        `places`: each event's number in `earlier`, −1 for a new event.
        """
        zeros = np.zeros((4, 1), np.int64)
        return CountsTable(self.cells + np.hstack([earlier.cells, zeros])[:, places])


#: NO_COUNTS is the table without events.
NO_COUNTS: Final = CountsTable(np.zeros((4, 0), np.int64))


def cell_probabilities(p: Numbers, q: Numbers, both: Numbers | None = None) -> tuple[Any, Any, Any, Any]:
    """The probabilities of (1,0), (1,1), (0,1), (0,0), for independent sides if `both` is None. Arguments broadcast."""
    if both is None:
        return p * (1 - q), p * q, (1 - p) * q, (1 - p) * (1 - q)
    return np.maximum(p - both, 0.0), both, np.maximum(q - both, 0.0), np.maximum(1 - p - q + both, 0.0)


def payoffs(plane: HalfPlane) -> tuple[Any, Any, Any, Any]:
    """X = 1[M(D) ∈ S] − slope·1[M(D′) ∈ S] − intercept for (1,0), (1,1), (0,1), (0,0). Arguments broadcast."""
    s, t = plane.slope, plane.intercept
    return 1 - t, 1 - s - t, -s - t, -t


def best_bet(p: ArrayLike, q: ArrayLike, plane: HalfPlane, both: Numbers | None = None) -> Floats:
    """The λ of the largest growth rate E[log(1+λX)] for event probabilities p and q; 0 if every λ shrinks the wealth.

    `both`: the probability that both sides of a run are in the event; None for independent sides. Arguments broadcast.
    λ is at most 0.999 of the largest admissible value, so that rounding never brings the wealth to 0.
    """
    p, q, slope, intercept = np.broadcast_arrays(
        *(np.asarray(value, np.float64) for value in (p, q, plane.slope, plane.intercept))
    )
    cells, values = cell_probabilities(p, q, both), payoffs(HalfPlane(slope, intercept))
    drift = sum(c * x for c, x in zip(cells, values, strict=True))
    high = np.where(drift > 0, 0.999 / (slope + intercept), 0.0)
    bet = np.minimum(_best_without_intercept(cells, 1 / np.maximum(slope, 1.0)), high)
    if not np.any(intercept):
        return bet
    # Newton's method in a shrinking bracket finds the roots of the falling derivatives of thousands of events at once,
    # unlike scipy's bracketing solvers.
    low = np.where(sum(c * x / (1 + high * x) for c, x in zip(cells, values, strict=True)) > 0, high, 0.0)
    bet = np.maximum(bet, low)
    for _ in range(30):
        terms = [x / (1 + bet * x) for x in values]
        rise = sum(c * t for c, t in zip(cells, terms, strict=True))
        low, high = np.where(rise > 0, bet, low), np.where(rise > 0, high, bet)
        with np.errstate(over="ignore"):  # for slopes from e³⁵⁰ on, against which no bet grows
            fall = sum(c * t * t for c, t in zip(cells, terms, strict=True))
        step = bet + rise / np.maximum(fall, 1e-300)
        before, bet = bet, np.where((step >= low) & (step <= high), step, (low + high) / 2)
        if np.all(np.abs(bet - before) * (slope + intercept) <= 1e-13):
            break
    return bet


def _best_without_intercept(cells: tuple[Any, Any, Any, Any], r: Floats) -> Floats:
    """`best_bet` for an intercept of 0 and without an upper limit, the root of a quadratic equation; r is 1/slope.

    At the bet r·μ the derivative of the growth rate has the sign of C + Bμ + Aμ²; the best μ is the smaller root.
    """
    hit, shared, missed, _ = cells
    square = r * (1 - r) * (hit + shared + missed)  # A
    drift = r * hit - (1 - r) * shared - missed  # C
    # `turn` is B + 2A, which gives B² − 4AC without a difference of large numbers.
    turn = (1 - r * r) * shared + (1 - 2 * r * r) * missed - r * r * hit
    root = np.sqrt(np.maximum(turn * turn + 4 * r * (1 + r) * square * missed, 0.0))
    return np.asarray(r * np.maximum(2 * drift / np.maximum(2 * square - turn + root, 1e-300), 0.0))


def best_fractions(pays: Floats, weights: Floats, start: Floats, steps: int) -> Floats:
    """Fractions of the wealth on k assets that nearly maximise the growth Σ weights·log(pays @ fractions); shape (k,).

    `pays`: the factor of each asset in each of n cases, shape (n, k). `weights`: the cases' probabilities. `start`:
    initial fractions, which add up to 1, as the result does; a fraction of 0 stays 0. No step reduces the growth
    (Cover 1984, IEEE Transactions on Information Theory 30(2)).
    """
    fractions = start.copy()
    for _ in range(steps):
        fractions *= (weights / (pays @ fractions)) @ pays
    return fractions


def growth_rate(p: ArrayLike, q: ArrayLike, plane: HalfPlane, both: Numbers | None = None) -> Floats:
    """Nats of evidence per paired run, at the best bet, for event probabilities p under D and q under D′; at least 0.

    An oracle refutes p ≤ slope·q + intercept in about log(1/α)/rate runs. Arguments broadcast.
    """
    bet = best_bet(p, q, plane, both)
    cells = cell_probabilities(np.asarray(p, np.float64), np.asarray(q, np.float64), both)
    total = sum(c * np.log1p(bet * x) for c, x in zip(cells, payoffs(plane), strict=True))
    return np.asarray(np.maximum(total, 0.0))
