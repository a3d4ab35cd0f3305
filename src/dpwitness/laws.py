"""Laws of noise that scipy.stats lacks, as frozen laws of scipy.stats."""

import math
from typing import Any, Final

import numpy as np

from dpwitness.errors import InvalidParameter

#: LARGEST_SCALE is the largest scale of a discrete Gaussian, whose table of probabilities then takes 64 MB.
LARGEST_SCALE: Final = 1e5


def discrete_gaussian(scale: float) -> Any:
    """The discrete Gaussian P(k) ∝ exp(−k²/(2·scale²)) on the integers, as a frozen law of scipy.stats.

    `scale` is the σ of Canonne, Kamath & Steinke (2020), Definition 1. Probabilities are in double precision; integers
    beyond 40 scales have probability 0. Raises `InvalidParameter` unless 0.03 ≤ scale ≤ 100,000.
    """
    from scipy.stats import rv_discrete

    if not 0.03 <= scale <= LARGEST_SCALE:
        raise InvalidParameter(f"scale={scale!r} must be from 0.03 to {LARGEST_SCALE:,.0f}")
    far = math.ceil(40 * scale)
    weights = np.exp(-((np.arange(far + 1) / scale) ** 2) / 2)
    beyond = np.append(np.cumsum(weights[::-1])[::-1], 0.0)  # entry k: the sum of all weights from k on
    total = beyond[0] + beyond[1]
    tail = beyond / total
    cdf = np.concatenate([tail[far:0:-1], 1 - tail[1:]])  # from k = −far on

    class DiscreteGaussian(rv_discrete):
        def _pmf(self, k: Any) -> Any:
            return np.exp(-((k / scale) ** 2) / 2) / total

        def _cdf(self, x: Any, *_: Any) -> Any:
            return cdf[np.clip(x + far, 0, 2 * far).astype(np.int64)]

        def _sf(self, x: Any, *_: Any) -> Any:
            return self._cdf(-x - 1)  # the law is symmetric

        def _ppf(self, x: Any, *_: Any) -> Any:
            return np.searchsorted(cdf, x) - float(far)

    return DiscreteGaussian(a=-np.inf, name=f"discrete_gaussian(scale={scale:g})")()
