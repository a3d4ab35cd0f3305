"""Laws of noise for systems like TableBuilder: bounded, whole, of mean 0 (Asghar & Kaafar 2020, section 6)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpwitness.arrays import Floats, Integers
from dpwitness.errors import InvalidParameter

#: Largest bound r of noise, in people: larger noise would hide every count.
LARGEST_BOUND: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseLaw:
    """A distribution with mean 0 on `support`, increasing whole numbers of people."""

    support: tuple[int, ...]
    probabilities: tuple[float, ...]

    @property
    def bound(self) -> int:
        """The largest absolute value of the noise, the perturbation parameter r, in people."""
        return max(abs(self.support[0]), abs(self.support[-1]))

    @property
    def variance(self) -> float:
        """The variance of the noise, in people²."""
        return float(np.asarray(self.probabilities) @ np.square(np.asarray(self.support, np.float64)))

    def at(self, quantiles: Floats) -> Integers:
        """The noise at each quantile in [0, 1), by inversion of the distribution function; same shape."""
        cumulative = np.cumsum(self.probabilities)[:-1]
        return np.asarray(self.support, np.int64)[np.searchsorted(cumulative, quantiles, side="right")]

    def sample(self, rng: np.random.Generator, n: int) -> Integers:
        """Draw `n` independent noises, in people."""
        return self.at(rng.random(n))


def as_law(noise: NoiseLaw | int) -> NoiseLaw:
    """The given law, or the uniform law on −r…r for a number r."""
    return uniform(noise) if isinstance(noise, int | np.integer) else noise


def _check_bound(r: int) -> int:
    """The bound r as an int. Raises `InvalidParameter` unless it is a whole number from 1 to `LARGEST_BOUND`."""
    if isinstance(r, bool) or not isinstance(r, int | np.integer) or not r >= 1:
        raise InvalidParameter(f"perturbation r={r!r} must be a whole number of at least 1")
    if r > LARGEST_BOUND:
        raise InvalidParameter(f"perturbation r={r!r} must be at most {LARGEST_BOUND}: more would hide every count")
    return int(r)


def uniform(r: int) -> NoiseLaw:
    """The uniform law on −r…r, the noise of Algorithm 1."""
    r = _check_bound(r)
    return NoiseLaw(support=tuple(range(-r, r + 1)), probabilities=(1 / (2 * r + 1),) * (2 * r + 1))


def maximum_entropy(support: int | Sequence[int], variance: float) -> NoiseLaw:
    """The law of largest entropy on `support` (r means −r…r) with mean 0 and at most the given variance (people²).

    By Lagrange multipliers p(e) ∝ exp(a·e − λ·e²), where λ > 0 only if the variance bound binds, and a is 0 on a
    symmetric support. Root search finds a and λ. Raises `InvalidParameter` where no law satisfies the bounds. Asghar &
    Kaafar (2020), section 6, after Marley & Leaver (2011).
    """
    from scipy.optimize import brentq

    given = support if isinstance(support, Sequence) else range(-_check_bound(support), support + 1)
    values = np.array(sorted(set(given)), np.float64)
    if not (len(values) > 1 and values[0] < 0 < values[-1]):
        raise InvalidParameter(f"support {list(given)!r} must hold whole numbers below and above 0")
    if not 0 < variance < math.inf:
        raise InvalidParameter(f"variance={variance!r} must be positive and finite")

    def tilted(a: float, decay: float) -> Floats:
        exponents = a * values - decay * values**2
        weights = np.exp(exponents - exponents.max())
        return np.asarray(weights / weights.sum())

    def centred(decay: float) -> Floats:
        if np.array_equal(values, -values[::-1]):
            return tilted(0.0, decay)
        reach = 1.0
        while tilted(reach, decay) @ values < 0 or tilted(-reach, decay) @ values > 0:
            reach *= 2
        return tilted(brentq(lambda a: float(tilted(a, decay) @ values), -reach, reach, xtol=1e-14), decay)

    def excess(decay: float) -> float:
        return float(centred(decay) @ values**2) - variance

    p = centred(0.0)
    if float(p @ values**2) > variance:
        high = 1.0
        while excess(high) > 0:
            high *= 2
            if high > 1e4:
                raise InvalidParameter(f"variance={variance!r} is too small for noise on {values.astype(int).tolist()}")
        p = centred(brentq(excess, 0.0, high, xtol=1e-14))
    return NoiseLaw(support=tuple(int(v) for v in values), probabilities=tuple(float(q) for q in p))


def truncated_normal(r: int, scale: float) -> NoiseLaw:
    """The law of normal noise, N(0, scale²), truncated to [−r, r] and rounded: e has the mass of e ± 1/2."""
    from scipy.stats import norm

    if not 0 < scale < math.inf:
        raise InvalidParameter(f"scale={scale!r} must be positive and finite")
    r = _check_bound(r)
    edges = np.clip(np.arange(-r, r + 2) - 0.5, -r, r)
    mass = np.diff(norm.cdf(edges, scale=scale))
    mass = (mass + mass[::-1]) / 2  # symmetric to the last bit, so that the mean is exactly 0
    return NoiseLaw(support=tuple(range(-r, r + 1)), probabilities=tuple(float(q) for q in mass / mass.sum()))
