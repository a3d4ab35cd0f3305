"""Noise for mechanism authors: compiled samplers, each taking the generator first.

They run inside compiled mechanisms and in plain Python alike. All randomness comes from the
`numpy.random.Generator` that the mechanism was given. Units are those of the scale.
"""

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.jit import NumbaFunction, inlined, outlined

#: A word, and its upper 53 bits as a number below 1, from a bit generator.
next_uint64: Final[Any] = NumbaFunction(
    "numba.np.random.generator_core", "next_uint64", lambda bits: bits.ctypes.next_uint64(bits.ctypes.state)
)
next_double: Final[Any] = NumbaFunction(
    "numba.np.random.generator_core", "next_double", lambda bits: bits.ctypes.next_double(bits.ctypes.state)
)

#: Before a call that is not inlined `handed_out` writes the state to NumPy's memory; `taken_back` reads it from there.
handed_out: Final[Any] = NumbaFunction("dpwitness.sfc64", "handed_out", lambda bits: bits)
taken_back: Final[Any] = NumbaFunction("dpwitness.sfc64", "taken_back", lambda bits: None)

LAYERS: Final = 1024
#: Where the tail begins: the one value with which the uppermost layer ends at height 1.
TAIL: Final = 9.256164544265543687


def _widths() -> NDArray[np.float64]:
    """The widths of layers of one area under exp(−x), from below; the lowest holds the tail too, the last is 0."""
    height = math.exp(-TAIL)
    area = (TAIL + 1) * height
    widths = [area / height, TAIL]
    while len(widths) < LAYERS:
        height += area / widths[-1]
        widths.append(-math.log(height))
    return np.array([*widths, 0.0])


WIDTHS: Final = _widths()
HEIGHTS: Final = np.exp(-WIDTHS)
#: The upper 53 bits of a word, and what they count of a layer's width.
UPPER: Final = 2**53 - 1
STEPS: Final = WIDTHS * 2.0**-53


@inlined
def _standard(bits: np.random.BitGenerator) -> float:
    """One draw from Lap(1), by the ziggurat of exp(−x): one word holds the layer, the place in it, and the sign.

    Marsaglia & Tsang 2000, J. Stat. Softw. 5(8). With 1,024 layers instead of their 256, 0.6 % of draws leave the fast
    road instead of 2.2 %: a tenth of the time.
    """
    word = next_uint64(bits)
    layer = word & (LAYERS - 1)
    # Odd numbers from −UPPER to UPPER: as many of either sign, and none is 0.
    x: float = (2 * (word >> 11 & UPPER) - UPPER) * float(STEPS[layer])
    if abs(x) < WIDTHS[layer + 1]:
        return x
    size = _at_edge(handed_out(bits), abs(x), layer)
    taken_back(bits)
    return math.copysign(size, x)


@outlined
def _at_edge(bits: np.random.BitGenerator, size: float, layer: int) -> float:
    """An exponential number that fell into a layer where that reaches beyond the density.

    It calls itself, not a loop, since LLVM does not inline what does: inlined, it costs every draw a fifth.
    """
    bottom, top = HEIGHTS[layer], HEIGHTS[layer + 1]
    if layer > 0 and bottom + next_double(bits) * (top - bottom) < math.exp(-size):
        return size
    word = next_uint64(bits)
    other = word & (LAYERS - 1)
    again: float = (word >> 11 & UPPER | 1) * float(STEPS[other])
    if again >= WIDTHS[other + 1]:
        again = _at_edge(bits, again, other)
    # What lies behind the beginning of the tail is the same again: so there is no largest number.
    return again if layer > 0 else TAIL + again


@inlined
def laplace(rng: np.random.Generator, scale: float) -> float:
    """One draw from Lap(scale): density exp(−|x|/scale)/(2·scale)."""
    # A quarter of the time of Generator.laplace, which takes a logarithm.
    return scale * _standard(rng.bit_generator)


@inlined
def exponential(rng: np.random.Generator, scale: float) -> float:
    """One draw from the exponential distribution of mean `scale`."""
    return scale * abs(_standard(rng.bit_generator))


@inlined
def gumbel(rng: np.random.Generator, scale: float) -> float:
    """One draw from the Gumbel distribution, P(X ≤ x) = exp(−exp(−x/scale)).

    The largest of scores + such noise is what the exponential mechanism draws.
    """
    return -scale * math.log(abs(_standard(rng.bit_generator)))


@inlined
def gaussian(rng: np.random.Generator, scale: float) -> float:
    """One draw from N(0, scale²), by NumPy's own ziggurat."""
    return scale * rng.standard_normal()


@inlined
def geometric(rng: np.random.Generator, scale: float) -> int:
    """One draw from the two-sided geometric distribution, P(k) ∝ exp(−|k|/scale); Ghosh et al. 2012.

    It is also called discrete Laplace.
    """
    # Floors of exponentials are geometric; the difference of two geometrics is two-sided geometric. One draw would do,
    # with zeros of one sign rejected or with a shift: both are slower, by a branch that no processor foresees and by a
    # logarithm.
    bits = rng.bit_generator
    return int(np.floor(scale * abs(_standard(bits))) - np.floor(scale * abs(_standard(bits))))


@inlined
def discrete_gaussian(rng: np.random.Generator, scale: float) -> int:
    """One draw from the discrete Gaussian distribution, P(k) ∝ exp(−k²/(2·scale²)).

    Canonne, Kamath & Steinke 2020, Alg. 3.
    """
    width = math.floor(scale) + 1.0
    while True:
        k = geometric(rng, width)
        off = abs(k) - scale**2 / width
        # Taken with probability exp(−off²/(2·scale²)): an exponential number reaches so far.
        if off**2 <= 2 * scale**2 * abs(_standard(rng.bit_generator)):
            return k
