"""Slow and obvious re-implementations, with which tests compare the fast ones."""

import math

import numpy as np

from dpwitness.reconstruction.subset_sum.linear_decoding import Subsets


def packed(matrix):
    """Subsets from ones and zeros, shape (subsets, people)."""
    return Subsets(np.packbits(matrix, axis=1, bitorder="little"), matrix.shape[1])


def log_wealth(xs, lam):
    """The logarithm of ∏(1 + λX), run by run."""
    return sum(math.log(1 + lam * x) for x in xs)


def payoffs(counts, claim):
    """The payoff X of every run."""
    ratio = math.exp(claim.epsilon)
    one = [(1, 0)] * counts.n10 + [(1, 1)] * counts.n11 + [(0, 1)] * counts.n01 + [(0, 0)] * counts.n00
    return [a - ratio * b - claim.delta for a, b in one]


def in_set(row, members):
    """Whether a row equals one of the members, entry by entry."""

    def trimmed(values):
        values = list(values)
        while values and math.isnan(values[-1]):
            values.pop()
        return values

    row = trimmed(row)
    return any(
        len(row) == len(m) and all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(row, m, strict=True))
        for m in map(trimmed, members)
    )


def best_growth(p, q, epsilon, delta=0.0):
    """The largest growth rate (nats a run) over a fine grid of bets, for independent sides."""
    ratio = math.exp(epsilon)
    bets = np.linspace(0, 0.999 / (ratio + delta), 20_001)
    cells = (p * (1 - q), p * q, (1 - p) * q, (1 - p) * (1 - q))
    xs = (1 - delta, 1 - ratio - delta, -ratio - delta, -delta)
    return max(sum(c * np.log1p(bets * x) for c, x in zip(cells, xs, strict=True)))
