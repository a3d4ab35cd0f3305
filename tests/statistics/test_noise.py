"""The samplers of `dpwitness.noise` draw from the laws that they name, tails included, and the same in Python."""

import math
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.np.random.generator_core import next_double, next_uint32, next_uint64
from scipy import stats

from dpwitness import noise
from dpwitness.mechanisms.compiled.reach import rebuilt
from dpwitness.mechanisms.draws import sfc64_state
from dpwitness.sfc64 import copied, drawing_from
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


@numba.njit
def draw(rng, out):
    """A row for each of `NAMES`."""
    for i in range(out.shape[1]):
        out[0, i] = noise.laplace(rng, SCALE)
        out[1, i] = noise.exponential(rng, SCALE)
        out[2, i] = noise.gumbel(rng, SCALE)
        out[3, i] = noise.gaussian(rng, SCALE)
        out[4, i] = noise.geometric(rng, SCALE)
        out[5, i] = noise.discrete_gaussian(rng, SCALE)


@numba.njit
def draw_beyond(rng, out):
    """What the ziggurat gives where a draw fell behind the beginning of the tail."""
    bits = rng.bit_generator
    for i in range(len(out)):
        out[i] = noise._at_edge(bits, noise.WIDTHS[0], next_uint64(bits) & 0)


def sfc64(seed):
    return np.random.Generator(np.random.SFC64(seed))


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


def check_laws(n, seed, part=500_000):
    rng, out = sfc64(seed), np.empty((len(NAMES), min(n, part)))
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


@pytest.mark.campaign
def test_samplers_draw_from_the_laws_that_they_name():
    check_laws(200_000, seed=1)


@pytest.mark.campaign
def test_samplers_draw_from_the_laws_that_they_name_over_very_many_draws():
    check_laws(scaled(100_000_000), seed=2)


@pytest.mark.parametrize("n", [200_000, pytest.param(100_000_000, marks=pytest.mark.campaign)])
def test_behind_the_beginning_of_the_tail_the_law_is_the_same_again(n):
    rng, out = sfc64(3), np.empty(min(n, 1_000_000))
    shares = 10.0 ** -np.arange(0.5, math.log10(n) - 1, 0.5)
    beyond = np.zeros(len(shares), np.int64)
    for _ in range(n // len(out)):
        draw_beyond(rng, out)
        assert out.min() >= noise.TAIL
        beyond += np.count_nonzero(out[:, None] > noise.TAIL - np.log(shares), axis=0)
    for share, seen in zip(shares, beyond, strict=True):
        low, high = stats.binom.ppf([LEVEL, 1 - LEVEL], n, share)
        assert low <= seen <= high


def test_layers_have_one_area_and_end_at_height_1():
    """The ziggurat's law is exact if and only if they do."""
    widths, heights = noise.WIDTHS, noise.HEIGHTS
    areas = widths[1:-1] * np.diff(heights[1:])
    tail = noise.TAIL * heights[1] + math.exp(-noise.TAIL)
    assert len(widths) == noise.LAYERS + 1
    assert widths[0] * heights[1] == pytest.approx(tail, rel=1e-14)
    assert areas == pytest.approx(np.full(noise.LAYERS - 1, tail), rel=1e-10)
    assert heights[-1] == 1.0


def test_python_draws_the_same_numbers_by_the_same_words():
    """What guards compiled mechanisms runs them in Python."""
    out = np.empty((len(NAMES), 3_000))
    rng, own = sfc64(4), sfc64(4)
    draw(rng, out)
    plain = [rebuilt(getattr(noise, name).py_func, lambda copy, _: copy, keep=frozenset()) for name in NAMES]
    again = np.array([[sampler(own, SCALE) for sampler in plain] for _ in range(out.shape[1])])
    assert np.array_equal(out[[0, 1, 4, 5]], again.T[[0, 1, 4, 5]])
    assert np.allclose(out, again.T, rtol=1e-12, atol=0)  # the logarithm may differ in the last place
    assert sfc64_state(rng).tolist() == sfc64_state(own).tolist()


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
@pytest.mark.parametrize("scale", [1e-300, 1.7, 1e300])
def test_plain_calls_draw_the_same_numbers_from_any_generator(kind, scale):
    """MT19937 makes a word of two halves."""
    rng, own = np.random.Generator(kind(7)), np.random.Generator(kind(7))
    out = np.empty((3, 300))
    draw_scaled(rng, scale, out)
    samplers = (noise.laplace, noise.exponential, noise.gumbel)
    again = np.array([[sampler(own, scale) for sampler in samplers] for _ in range(out.shape[1])]).T
    assert np.allclose(out, again, rtol=1e-12, atol=0)
    assert np.isfinite(out).all()
    assert rng.random() == own.random()


@numba.njit
def draw_scaled(rng, scale, out):
    for i in range(out.shape[1]):
        out[0, i] = noise.laplace(rng, scale)
        out[1, i] = noise.exponential(rng, scale)
        out[2, i] = noise.gumbel(rng, scale)


def test_plain_calls_need_no_numba():
    """Numba's calls of machine code take 9 µs with a generator, and its import half a second."""
    draws = "; ".join(f"noise.{name}(rng, 1.0)" for name in NAMES)
    code = f"import sys, numpy; from dpwitness import noise; rng = numpy.random.default_rng(1); {draws}"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'numba' not in sys.modules"], check=True)


@numba.njit
def words(rng, own_state, kinds, out):
    state = copied(own_state)
    bits = drawing_from(rng, state).bit_generator
    for i, kind in enumerate(kinds):
        if kind == 0:
            out[i] = next_uint64(bits) >> np.uint64(11)
        elif kind == 1:
            out[i] = next_uint32(bits)
        else:
            out[i] = next_double(bits)
    own_state[:] = state


def test_compiled_runs_draw_numpys_words():
    rng, own, kinds = sfc64(5), sfc64(5), np.random.default_rng(6).integers(0, 3, 2_000)
    out = np.empty(len(kinds))
    words(rng, sfc64_state(rng), kinds, out)
    bits = own.bit_generator.ctypes
    draws = (lambda state: bits.next_uint64(state) >> 11, bits.next_uint32, bits.next_double)
    assert out.tolist() == [draws[kind](bits.state) for kind in kinds]
    assert sfc64_state(rng).tolist() == sfc64_state(own).tolist()


@numba.njit
def apart(rng, out):
    """Not inlined: it is given the address of the copy."""
    for i in range(len(out)):
        out[i] = noise.laplace(rng, SCALE)


@numba.njit
def by_copy(rng, own_state, out):
    """As in compiled runs: rows by `draw`, which is not inlined either, one by draws that are, and one by `apart`."""
    state = copied(own_state)
    generator = drawing_from(rng, state)
    draw(generator, out[:6])
    for i in range(out.shape[1]):
        out[6, i] = noise.laplace(generator, SCALE)
    apart(generator, out[7])
    own_state[:] = state


def test_draws_from_a_copy_of_the_state_are_the_same_wherever_they_are_made():
    """Of 1,024 draws six leave the fast road, for a function that is not inlined: the copy goes with them."""
    rng, own = sfc64(8), sfc64(8)
    out, again = np.empty((2, 8, 3_000))
    by_copy(rng, sfc64_state(rng), out)
    draw(own, again[:6])
    apart(own, again[6])
    apart(own, again[7])
    assert np.array_equal(out, again)
    assert sfc64_state(rng).tolist() == sfc64_state(own).tolist()


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_a_generator_without_a_copy_is_handed_out_as_it_is(kind):
    """The state of PCG64 is shorter than that of SFC64: no word of it must be copied, not even to its own place."""
    rng, own = np.random.Generator(kind(9)), np.random.Generator(kind(9))
    out = np.empty(3_000)
    apart(rng, out)
    assert out.tolist() == [noise.laplace(own, SCALE) for _ in out]
    assert rng.random() == own.random()
