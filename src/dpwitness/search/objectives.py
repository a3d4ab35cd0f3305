"""Objectives of the search: the value of an event by estimated probabilities, which is never evidence.

`GrowthAt` values evidence against a claim, `BoundAt` and `ParameterAt` a lower bound of a parameter, and `DeltaAt`
lower bounds of δ at several ε, for a privacy profile.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Floats
from dpwitness.candidate import Estimate
from dpwitness.claims import Claim, HalfPlane
from dpwitness.evidence import growth_rate


class Objective(Protocol):
    """The value of an event of probabilities p under D and q under D′; any real number, larger is better."""

    @property
    def stop_value(self) -> float:
        """The value that ends a search at once; infinite for a thorough search."""
        return math.inf

    @abstractmethod
    def __call__(
        self, p: Floats, q: Floats, runs: int, standard_errors: float | Floats = 1.0, both: Floats | None = None
    ) -> Floats:
        """The values of events, for arrays p and q. `runs`: the search runs from which p and q were estimated.

        `standard_errors`: the number of standard errors of p and q by which values are lowered, since the largest of
        many noisy values is mostly noise. `both`: the share of runs with both sides in the event; None: p·q.
        """

    def for_repeating_outcomes(self) -> "Objective":
        """The objective for repeating outcomes: few events are compared, so chance hardly raises the best value."""
        return self

    def priced(self, cost: float, affordable: float) -> "Objective":
        """The objective for a pair whose run costs `cost` runs of the first pair; `affordable` of these fit in time.

        The values of several pairs, each by its own objective, are comparable per second.
        """
        return self


def value_of(estimate: Estimate, objective: Objective, runs: int, standard_errors: float = 1.0) -> float:
    """The value of one event; `runs` and `standard_errors` as in `Objective`."""
    p, q = np.array([estimate.p]), np.array([estimate.q])
    both = None if estimate.both is None else np.array([estimate.both])
    return float(objective(p, q, runs, standard_errors, both)[0])


#: The divisor of the search runs: an event of the stop value is proved in a twentieth of these runs.
PROOF_DIVISOR: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthAt(Objective):
    """The growth of evidence against a claim, in nats a run; of an event without growth its shortfall (negative).

    The shortfall is the excess log(p / G(q)) of the privacy loss, less the smallest excess that `planned` runs detect
    at level α (`evidence.detectable_parameter`); against a curved claim of a positive parameter, the lower bound to
    expect (`ParameterAt`) less the parameter. An event that always happens would detect the smallest excess but shows a
    loss of 0; a rare event may seem to show ε but detects only a large excess. Both rank below an event that shows
    nearly ε and would detect a small excess. Where the claim allows any rate under D, an event cannot show a violation,
    and its value is lower by log G(q), with G continued above 1.

    `cost`: the cost of a run, by which the nats are divided.
    """

    claim: Claim
    planned: int = 4_000_000
    log_threshold: float = math.log(1e6)  # log(1/α)
    stop_value: float = np.inf
    cost: float = 1.0

    @override
    def priced(self, cost: float, affordable: float) -> "GrowthAt":
        return replace(self, cost=cost, planned=_planned(self.planned, cost, affordable))

    @override
    def __call__(
        self, p: Floats, q: Floats, runs: int, standard_errors: float | Floats = 1.0, both: Floats | None = None
    ) -> Floats:
        plane = self.claim.half_plane(p, q)
        s, t = np.asarray(plane.slope, np.float64), np.asarray(plane.intercept, np.float64)  # a number, or k numbers
        joint = p * q if both is None else both
        lower = np.maximum(p - standard_errors * np.sqrt(_square(p, q, joint, s, runs) / runs), 0.0)
        q = np.minimum(q + 1 / runs, 1.0)  # one imagined hit under D′, since a hit may be missing by chance
        allowed = s * q + t
        grows = lower > allowed
        if not self.claim.curved:
            values = np.log(np.maximum(lower, 1e-30) / allowed) - np.log(np.maximum(allowed, 1.0))
            values -= self._detectable_excess(p, HalfPlane(s, t))
        elif self.claim.parameter > 0:
            shown = ParameterAt(claim=self.claim, planned=self.planned, log_threshold=self.log_threshold)
            values = np.minimum(shown(p, q, runs, standard_errors) - self.claim.parameter, 0.0)
        else:
            # At parameter 0 the value is the shortfall of detection, relative to the allowed difference G(q) − q.
            values = (lower - allowed - self._detectable_drift(p, HalfPlane(s, t))) / np.maximum(allowed - q, 1e-12)
            values = np.minimum(values, 0.0)
        if grows.any():
            joint = np.minimum(joint, lower)
            s, t = (part[grows] if np.ndim(part) else part for part in (s, t))
            values[grows] = growth_rate(lower[grows], q[grows], HalfPlane(s, t), joint[grows]) / self.cost
        return np.asarray(values)

    def _detectable_excess(self, p: Floats, plane: HalfPlane) -> Floats:
        """The smallest detectable excess x (nats) of the privacy loss, for probability p under D; at most 50.

        For q = (p − t)e^−x/s the drift is (p − t)(1 − e^−x).
        """
        hits = p - plane.intercept
        share = np.where(hits > 0, self._detectable_drift(p, plane) / np.maximum(hits, 1e-30), 50.0)
        # A share of 1 and more has no x, but it still ranks rare events.
        return np.asarray(np.minimum(-np.log1p(-np.minimum(share, 0.99)) + np.maximum(share - 0.99, 0.0), 50.0))

    def _detectable_drift(self, p: Floats, plane: HalfPlane) -> Floats:
        """The smallest detectable drift μ = E[X], a difference of probabilities, for probability p under D.

        With S² = n·E[X²] the log wealth of a small bet λ has mean nλμ − λ²S²/2 and standard deviation λS: at the best λ
        it exceeds b = log(1/α) with 95 % power where the drift μ is at least (1.645 + √(2b))·S/n.
        """
        s, t = plane.slope, plane.intercept
        hits = p - t
        q = np.minimum(np.maximum(hits, 0.0) / s, 1.0)
        joint = np.maximum(p + q - 1, 0.0)  # the worst coupling of the sides
        square = (1 - t) ** 2 * (p - joint) + (1 - s - t) ** 2 * joint + (s + t) ** 2 * (q - joint)
        if np.any(t):
            square = square + t**2 * (1 - p - q + joint)
        # log(32): each bet of the grid has a sixteenth of half of the wealth.
        return np.asarray((1.645 + np.sqrt(2 * (self.log_threshold + np.log(32)))) * np.sqrt(square / self.planned))


def _square(p: Floats, q: Floats, joint: Floats, slope: float | Floats, runs: int) -> Floats:
    """E[X²] of X = 1[M(D) ∈ S] − slope·1[M(D′) ∈ S], by the rates in `runs` runs.

    One imagined run is added to each of the cells (1, 0) and (0, 1), which few runs may miss by chance.
    """
    return np.asarray(p - joint + slope**2 * (q - joint) + (slope - 1) ** 2 * joint + (1 + slope**2) / runs)


def _planned(planned: int, cost: float, affordable: float) -> int:
    """The planned number of runs, or the smaller number that fits in the time at the cost of a run; at least 1."""
    return int(max(min(planned, affordable / cost), 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _LowerBound(Objective):
    """The lower bound of a parameter to expect from `planned` runs at level α, with `log_threshold` = log(1/α)."""

    planned: int
    log_threshold: float
    error_factor: float = 1.0  # the factor on every `standard_errors`

    @override
    def for_repeating_outcomes(self) -> Objective:
        """The objective with a quarter of each error: else a rare clear event would lose to a frequent event."""
        return replace(self, error_factor=0.25)

    @override
    def priced(self, cost: float, affordable: float) -> Objective:
        return replace(self, planned=_planned(self.planned, cost, affordable))

    def _errors(self, threshold: float, runs: int, standard_errors: float | Floats) -> float | Floats:
        """The number of standard deviations of one run by which a mean is lowered."""
        planned = math.sqrt(2 * threshold / self.planned)
        return planned + self.error_factor * standard_errors / math.sqrt(runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAt(_LowerBound):
    """The lower bound of ε at δ to expect from `planned` runs at level α (normal approximation; may be negative)."""

    delta: float = 0.0

    @override
    def __call__(
        self, p: Floats, q: Floats, runs: int, standard_errors: float | Floats = 1.0, both: Floats | None = None
    ) -> Floats:
        joint = p * q if both is None else both
        threshold = self.log_threshold + np.log(2)
        hits = np.maximum(p - self.delta, 1e-300)
        others = q + 1 / runs + threshold / 2 / self.planned
        variance = np.maximum(1 / hits + 1 / others - 2 * joint / (hits * others), 1e-12)
        spread = np.sqrt(variance) * self._errors(threshold, runs, standard_errors)
        return np.asarray(np.log(hits) - np.log(others) - spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterAt(_LowerBound):
    """The lower bound of the parameter of a claim's family to expect from `planned` runs at level α.

    It is the least parameter that allows (p, q) once both have been moved towards each other by their errors.
    """

    claim: Claim

    @override
    def __call__(
        self, p: Floats, q: Floats, runs: int, standard_errors: float | Floats = 1.0, both: Floats | None = None
    ) -> Floats:
        """The parameter; where the moved rates cross, their difference (negative)."""
        threshold = self.log_threshold + np.log(2)
        factor = self._errors(threshold, runs, standard_errors)
        # Each error is divided by √2, as the difference of two rates of equal error has √2 times that error.
        least = 1 / runs + threshold / 2 / self.planned
        lower = p - factor * np.sqrt((p * (1 - p) + least) / 2)
        upper = np.minimum(q + least + factor * np.sqrt((q * (1 - q) + least) / 2), 1.0)
        shown = np.asarray(self.claim.reached(np.clip(lower, 0.0, 1.0), upper), np.float64)
        return np.where(shown > 0, shown, np.minimum(lower - upper, 0.0))


#: Test values of ε (nats) at which a profile compares pairs and learns events.
TEST_EPSILONS: Final = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaAt(_LowerBound):
    """The lower bounds of δ to expect at each ε (nats) from `planned` runs at level α (normal approximation).

    The value is the sum of the positive bounds, each times e^(ε/2), as δ falls in ε; else the largest bound.
    """

    epsilons: tuple[float, ...]

    @override
    def __call__(
        self, p: Floats, q: Floats, runs: int, standard_errors: float | Floats = 1.0, both: Floats | None = None
    ) -> Floats:
        joint = p * q if both is None else both
        factor = self._errors(self.log_threshold, runs, standard_errors)
        total, largest = np.zeros(np.shape(p)), np.full(np.shape(p), -np.inf)
        for epsilon in self.epsilons:
            s = math.exp(epsilon)
            value = p - s * q - factor * np.sqrt(_square(p, q, joint, s, runs))
            total, largest = total + math.exp(epsilon / 2) * np.maximum(value, 0.0), np.maximum(largest, value)
        return np.asarray(np.where(largest > 0, total, largest))
