"""The samplers of `dpwitness.noise` draw from the laws that they name, tails included, and the same in Python."""

import math

import numpy as np
import pytest
from scipy import stats

from dpwitness import noise
from dpwitness.mechanisms.compiled.driver import compiled
from running import scaled

SCALE = 1.7
LEVEL = 1e-9
WHOLE = np.arange(-200, 201)
CONTINUOUS = {
    "laplace": stats.laplace(scale=SCALE),
    "exponential": stats.expon(scale=SCALE),
    "gumbel": stats.gumbel_r(scale=SCALE),
    "gaussian": stats.norm(scale=SCALE),
}
#: Proportional to the probabilities of `WHOLE`.
DISCRETE = {"geometric": np.exp(-abs(WHOLE) / SCALE), "discrete_gaussian": np.exp(-(WHOLE**2) / (2 * SCALE**2))}
NAMES = (*CONTINUOUS, *DISCRETE)


def draw_in_python(rng, out):
    """A row for each of `NAMES`."""
    for i in range(out.shape[1]):
        out[0, i] = noise.laplace(rng, SCALE)
        out[1, i] = noise.exponential(rng, SCALE)
        out[2, i] = noise.gumbel(rng, SCALE)
        out[3, i] = noise.gaussian(rng, SCALE)
        out[4, i] = noise.geometric(rng, SCALE)
        out[5, i] = noise.discrete_gaussian(rng, SCALE)


#: With the samplers that it calls.
draw = compiled(draw_in_python)


def cells(name, n):
    """Edges and probabilities of 1,000 cells and of tails of which 10 or more draws are expected."""
    tails = 10.0 ** np.arange(-math.floor(math.log10(n / 10)), -3)
    if name in CONTINUOUS:
        law = CONTINUOUS[name]
        edges = np.concatenate([law.ppf(tails), law.ppf(np.arange(1, 1000) / 1000), law.isf(tails[::-1])])
        above = np.concatenate([[1.0], law.sf(edges), [0.0]])
    else:
        law = DISCRETE[name] / DISCRETE[name].sum()
        above = law[::-1].cumsum()[::-1]
        inside = np.flatnonzero((law * n >= 10) & (above < 1))
        edges = WHOLE[inside] - 0.5
        above = np.concatenate([[1.0], above[inside], [0.0]])
    return edges, -np.diff(above), above[1:-1]


@pytest.mark.campaign
@pytest.mark.parametrize(("n", "seed"), [(200_000, 1), (scaled(100_000_000), 2)])
def test_samplers_draw_from_the_laws_that_they_name(n, seed):
    rng, out = np.random.Generator(np.random.SFC64(seed)), np.empty((len(NAMES), min(n, 500_000)))
    prepared = {name: cells(name, n) for name in NAMES}
    counts = {name: np.zeros(len(shares), np.int64) for name, (_, shares, _) in prepared.items()}
    for _ in range(n // out.shape[1]):
        draw(rng, out)
        for row, name in zip(out, NAMES, strict=True):
            found = np.searchsorted(prepared[name][0], row, side="right")
            counts[name] += np.bincount(found, minlength=len(counts[name]))
    for name, (_, shares, above) in prepared.items():
        expected = n * shares
        kept = expected >= 10
        excess = (counts[name][kept] - expected[kept]) ** 2 / expected[kept]
        assert excess.sum() < stats.chi2.isf(LEVEL, kept.sum() - 1), name
        # Each tail by itself, of both sides: a sum over a thousand cells hides what is wrong with the last one.
        beyond = n - counts[name].cumsum()[:-1]
        for share, seen in zip(above, beyond, strict=True):
            low, high = stats.binom.ppf([LEVEL, 1 - LEVEL], n, share)
            assert low <= seen <= high, (name, share)


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_python_draws_the_same_numbers(kind):
    """What guards compiled mechanisms runs them in Python. MT19937 makes a word of two halves."""
    rng, own = np.random.Generator(kind(7)), np.random.Generator(kind(7))
    out, again = np.empty((2, len(NAMES), 3_000))
    draw(rng, out)
    draw_in_python(own, again)
    assert np.allclose(out, again, rtol=1e-12, atol=0)  # the logarithm may differ in the last place
    assert rng.random() == own.random()
