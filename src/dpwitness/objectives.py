"""What the search looks for: how much an event promises, from rough probabilities. Never evidence."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpwitness.evidence import growth_rate

Floats = NDArray[np.float64]


class Objective(Protocol):
    """How much an event of probabilities p under D and q under D′ promises; any real number, larger is better."""

    def __call__(self, p: Floats, q: Floats, runs: int, caution: float = 1.0, both: Floats | None = None) -> Floats:
        """Broadcasts; `runs` is how many search runs p and q were estimated from.

        `caution`: by how many standard errors of these estimates to doubt them; the largest of many noisy values is
        mostly noise, the larger of two is not. `both`: the share of runs with both sides in the event; None: p·q.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthAt:
    """Nats of evidence a run against (ε, δ); where there are none, how much ε is missing (negative)."""

    epsilon: float
    delta: float = 0.0

    def __call__(self, p: Floats, q: Floats, runs: int, caution: float = 1.0, both: Floats | None = None) -> Floats:
        """As in `Objective`."""
        ratio = np.exp(self.epsilon)
        joint = p * q if both is None else both
        # One imagined run more in each cell that decides: what was not seen in a few runs is not impossible.
        spread = p - joint + ratio**2 * (q - joint) + (ratio - 1) ** 2 * joint + (1 + ratio**2) / runs
        doubt = np.sqrt(spread / runs)
        p = np.maximum(p - caution * doubt, 0.0)
        q = np.minimum(q + 1 / runs, 1.0)  # one imagined hit under D′: one that it merely missed promises nothing
        allowed = ratio * q + self.delta
        grows = p > allowed
        values = np.log(np.maximum(p, 1e-30) / allowed)
        joint = np.minimum(joint, p)
        values[grows] = growth_rate(p[grows], q[grows], self.epsilon, self.delta, joint[grows])
        return np.asarray(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAt:
    """The lower bound of ε to expect from `planned` runs at level α (normal approximation; may be negative)."""

    planned: int
    log_bar: float  # log(1/α)
    delta: float = 0.0
    doubt: float = 1.0  # a factor for every caution

    def __call__(self, p: Floats, q: Floats, runs: int, caution: float = 1.0, both: Floats | None = None) -> Floats:
        """As in `Objective`."""
        joint = p * q if both is None else both
        bar = self.log_bar + np.log(2)
        hits = np.maximum(p - self.delta, 1e-300)
        others = q + 1 / runs + bar / 2 / self.planned
        variance = np.maximum(1 / hits + 1 / others - 2 * joint / (hits * others), 1e-12)
        spread = np.sqrt(variance) * (np.sqrt(2 * bar / self.planned) + self.doubt * caution / np.sqrt(runs))
        return np.asarray(np.log(hits) - np.log(others) - spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerAt:
    """Standard errors between what the thinned D side and D′ show, for a test of (ε, δ) with a fixed number of runs."""

    epsilon: float
    delta: float = 0.0

    def __call__(self, p: Floats, q: Floats, runs: int, caution: float = 1.0, both: Floats | None = None) -> Floats:
        """As in `Objective`."""
        thinned = (p - self.delta) * np.exp(-self.epsilon)
        return np.asarray((thinned - q - 1 / runs) / np.sqrt(np.maximum(thinned, 0.0) + q + 1 / runs))
