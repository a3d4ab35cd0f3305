"""Lower confidence bounds of means of what the cells of paired runs pay, by betting, at any stopping time.

A paired run falls into one of four cells (1,0), (1,1), (0,1), (0,0) of an event and pays x of that cell. For a mean m
and a bet λ fixed before the runs, with λ < 1/(largest x − smallest x), the wealth W(m) = ∏(1 + λ(X_i − m)) is a
non-negative martingale where E[X] = m, and so is a mixture over bets; by Ville's inequality it ever reaches 1/α with
probability at most α. W falls in m, so the smallest m with W(m) < 1/α is a lower bound of the mean with confidence
1 − α, valid at any stopping time. Waudby-Smith & Ramdas (2024), JRSS-B 86(1), Theorem 3. For a number of runs known
beforehand the best bet gives about mean − √(2·log(1/α)·Var/n).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_bets", "lower_means"]

Floats = NDArray[np.float64]

#: The largest bet, as a share of the largest admissible one.
LARGEST: Final = 0.9
#: Bets as shares of the largest: half an e-fold apart where the best one is looked for, and those of the fallback.
TRIED: Final = LARGEST * np.exp(-0.1 * np.arange(120))
FALLBACK: Final = LARGEST * np.exp2(-1.0 * np.arange(12))
#: The share of the wealth on the best bet; the fallback's bets divide the rest.
FAVOURED: Final = 0.9
#: Steps of bisection: each halves the range of the payoffs.
STEPS: Final = 48


def best_bets(expected: Floats, values: Floats, log_thresholds: Floats) -> Floats:
    """The bets that make the lower bounds largest where the cells come as often as expected; shape (k,).

    `expected` are expected counts of the four cells and `values` what these pay, of shape (k, 4); `log_thresholds` are
    log(1/α), of shape (k,).
    """
    bets = TRIED / _ranges(values)[:, None]
    tried = len(TRIED)
    found = _bisected(
        np.repeat(expected, tried, axis=0), np.repeat(values, tried, axis=0), bets.reshape(-1, 1), np.zeros(1),
        np.repeat(log_thresholds, tried),
    )  # fmt: skip
    return np.asarray(bets[np.arange(len(bets)), found.reshape(bets.shape).argmax(axis=1)])


def lower_means(cells: Floats, values: Floats, bets: Floats, log_thresholds: Floats) -> Floats:
    """Lower bounds of k means with confidence 1 − α each, at any stopping time; shape (k,).

    Parameters
    ----------
    cells
        How many runs fell into each cell; shape (k, 4).
    values
        What the cells pay; shape (k, 4).
    bets
        The favoured bet of each, fixed before the runs; nine tenths of the wealth are on it. Shape (k,).
    log_thresholds
        log(1/α) of each; shape (k,).
    """
    ranges = _ranges(values)
    fallback = FALLBACK / ranges[:, None]
    favoured = np.minimum(bets, LARGEST / ranges)  # an inadmissible bet would be no martingale
    weights = np.log([FAVOURED, *[(1 - FAVOURED) / len(FALLBACK)] * len(FALLBACK)])
    return _bisected(cells, values, np.column_stack([favoured, fallback]), weights, log_thresholds)


def _ranges(values: Floats) -> Floats:
    return np.asarray(np.ptp(values, axis=1))


def _bisected(cells: Floats, values: Floats, bets: Floats, log_weights: Floats, log_thresholds: Floats) -> Floats:
    """The largest m found with wealth of at least the threshold: it is below all m with less."""
    low, high = values.min(axis=1), values.max(axis=1)
    for _ in range(STEPS):
        middle = (low + high) / 2
        gains = np.log1p(bets[:, None, :] * (values - middle[:, None])[:, :, None])
        wealth = np.logaddexp.reduce(np.einsum("kc,kcb->kb", cells, gains) + log_weights, axis=1)
        refuted = wealth >= log_thresholds
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return np.asarray(low)
