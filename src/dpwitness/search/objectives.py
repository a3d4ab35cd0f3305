"""What the search looks for: how much an event promises, from rough probabilities. Never evidence."""

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpwitness.evidence import growth_rate

Floats = NDArray[np.float64]


class Objective(Protocol):
    """How much an event of probabilities p under D and q under D′ promises; any real number, larger is better."""

    def __call__(
        self, p: Floats, q: Floats, runs: int, standard_errors: float = 1.0, both: Floats | None = None
    ) -> Floats:
        """Broadcasts; `runs` is how many search runs p and q were estimated from.

        `standard_errors`: by how many standard errors of these estimates the value is lowered: the largest of many
        noisy values is mostly noise. `both`: the share of runs with both sides in the event; None: p·q.
        """

    def for_repeating_outcomes(self) -> "Objective":
        """The objective to use where outcomes repeat, so that few events compete to be the luckiest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthAt:
    """Nats of evidence a run against (ε, δ); where there are none, the ε shown less the ε detectable (negative).

    Detectable with `planned` runs at level α, see `evidence.detectable_epsilon`. An event that is always there would
    detect the smallest excess over ε, but shows 0; a rare one may seem to show ε, but detects little: neither is
    preferred to one that shows nearly ε and would detect little more.
    """

    epsilon: float
    delta: float = 0.0
    planned: int = 4_000_000
    log_bar: float = math.log(1e6)  # log(1/α)

    def __call__(
        self, p: Floats, q: Floats, runs: int, standard_errors: float = 1.0, both: Floats | None = None
    ) -> Floats:
        """As in `Objective`."""
        ratio = np.exp(self.epsilon)
        joint = p * q if both is None else both
        # One imagined run more in each cell that decides: what was not seen in a few runs is not impossible.
        spread = p - joint + ratio**2 * (q - joint) + (ratio - 1) ** 2 * joint + (1 + ratio**2) / runs
        lower = np.maximum(p - standard_errors * np.sqrt(spread / runs), 0.0)
        q = np.minimum(q + 1 / runs, 1.0)  # one imagined hit under D′: one that it merely missed promises nothing
        allowed = ratio * q + self.delta
        grows = lower > allowed
        values = np.log(np.maximum(lower, 1e-30) / allowed) - self._undetected(p)
        joint = np.minimum(joint, lower)
        values[grows] = growth_rate(lower[grows], q[grows], self.epsilon, self.delta, joint[grows])
        return np.asarray(values)

    def for_repeating_outcomes(self) -> "GrowthAt":
        """As in `Objective`: the same."""
        return self

    def _undetected(self, p: Floats) -> Floats:
        """By how much the detectable ε exceeds the claim, for an event of probability p under D; at most 50.

        With s² = n·E[X²] the log wealth of a small bet λ has mean nλμ − λ²s²/2 and standard deviation λs: at the best λ
        it exceeds b = log(1/α) with 95 % power where the drift μ is at least (1.645 + √(2b))·s/n. For q = (p − δ)e^−ε′
        the drift is (p − δ)(1 − e^(ε−ε′)).
        """
        ratio = np.exp(self.epsilon)
        hits = p - self.delta
        q = np.maximum(hits, 0.0) / ratio
        joint = np.maximum(p + q - 1, 0.0)  # the worst coupling of the sides
        square = (
            (1 - self.delta) ** 2 * (p - joint)
            + (1 - ratio - self.delta) ** 2 * joint
            + (ratio + self.delta) ** 2 * (q - joint)
            + self.delta**2 * (1 - p - q + joint)
        )
        needed = (1.645 + np.sqrt(2 * (self.log_bar + np.log(32)))) * np.sqrt(square / self.planned)  # 32: of the grid
        share = np.where(hits > 0, needed / np.maximum(hits, 1e-30), 50.0)
        # Beyond 0.99 there is no such ε′; the share still tells the rare from the very rare.
        return np.asarray(np.minimum(-np.log1p(-np.minimum(share, 0.99)) + np.maximum(share - 0.99, 0.0), 50.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAt:
    """The lower bound of ε to expect from `planned` runs at level α (normal approximation; may be negative)."""

    planned: int
    log_bar: float  # log(1/α)
    delta: float = 0.0
    error_factor: float = 1.0  # multiplies every `standard_errors`

    def __call__(
        self, p: Floats, q: Floats, runs: int, standard_errors: float = 1.0, both: Floats | None = None
    ) -> Floats:
        """As in `Objective`."""
        joint = p * q if both is None else both
        bar = self.log_bar + np.log(2)
        hits = np.maximum(p - self.delta, 1e-300)
        others = q + 1 / runs + bar / 2 / self.planned
        variance = np.maximum(1 / hits + 1 / others - 2 * joint / (hits * others), 1e-12)
        spread = np.sqrt(variance) * (
            np.sqrt(2 * bar / self.planned) + self.error_factor * standard_errors / np.sqrt(runs)
        )
        return np.asarray(np.log(hits) - np.log(others) - spread)

    def for_repeating_outcomes(self) -> "BoundAt":
        """As in `Objective`: errors count a quarter; what is rare but clear would lose to what is frequent else."""
        return replace(self, error_factor=0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerAt:
    """Standard errors between what the thinned D side and D′ show, for a test of (ε, δ) with a fixed number of runs."""

    epsilon: float
    delta: float = 0.0

    def __call__(
        self, p: Floats, q: Floats, runs: int, standard_errors: float = 1.0, both: Floats | None = None
    ) -> Floats:
        """As in `Objective`."""
        thinned = (p - self.delta) * np.exp(-self.epsilon)
        return np.asarray((thinned - q - 1 / runs) / np.sqrt(np.maximum(thinned, 0.0) + q + 1 / runs))

    def for_repeating_outcomes(self) -> "PowerAt":
        """As in `Objective`: the same."""
        return self
