"""What one or two entries show beside their own values: differences, order, residues, the bits of a float."""

import numpy as np
from numpy.typing import NDArray

from dpwitness.events.encoding import FALSE, NESTED, TRUE

__all__ = [
    "difference",
    "low_bits",
    "numbers",
    "order",
    "power_of_two",
    "present",
    "ratio",
    "residue",
    "sum_of_two",
    "trailing_zeros",
]

Rows = NDArray[np.float64]
Column = NDArray[np.float64]

#: Residues are rounded to so many digits of their modulus: sums of decimal fractions miss multiples by a little.
RESIDUE_DIGITS = 9
#: The bits of a float behind the leading one.
MANTISSA = 52


def numbers(entries: Rows) -> Rows:
    """The entries for arithmetic, any shape: flags are 1 and 0; what is no number is absent, so NaN."""
    # ≤ NESTED are the codes of what is no number, −∞ apart; most columns hold neither these nor flags.
    codes = (entries <= NESTED) & (entries > -np.inf)
    if codes.any():
        entries = np.where(codes, np.nan, entries)
    flags = (entries == TRUE) | (np.abs(entries) == FALSE)
    if flags.any():
        entries = np.where(flags, np.round(entries), entries)
    return entries


def difference(entries: Rows, number: float) -> Column:
    """First entry − second entry."""
    return numbers(entries[:, 0]) - numbers(entries[:, 1])


def sum_of_two(entries: Rows, number: float) -> Column:
    """First entry + second entry."""
    return numbers(entries[:, 0]) + numbers(entries[:, 1])


def ratio(entries: Rows, number: float) -> Column:
    """First entry / second entry."""
    return numbers(entries[:, 0]) / numbers(entries[:, 1])


def order(entries: Rows, number: float) -> Column:
    """−1, 0, 1: the first entry is below, equal to, above the second; of what is no number, equality has a meaning."""
    first, second = entries.T
    absent = np.isnan(first) | np.isnan(second)
    return np.where(absent, np.nan, np.greater(first, second).astype(np.float64) - np.less(first, second))


def present(entries: Rows, number: float) -> Column:
    """1 where the entry is there, 0 where it is absent."""
    return (~np.isnan(entries[:, 0])).astype(np.float64)


def residue(entries: Rows, number: float) -> Column:
    """The entry modulo a number m, in [0, m)."""
    column = numbers(entries[:, 0])
    decimals = RESIDUE_DIGITS - int(np.ceil(np.log10(number)))
    rest = np.mod(column, number)
    if abs(decimals) <= 300:
        rest = np.round(rest, decimals)
    rest[rest >= number] = 0.0
    return rest


def _significand(column: Column) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Whole numbers s and e with |x| = s·2^e, s below 2^53, and which entries have them: finite and not 0."""
    usable = np.isfinite(column) & (column != 0)
    fraction, exponent = np.frexp(np.where(usable, column, 1.0))
    significand = np.ldexp(np.abs(fraction), MANTISSA + 1).astype(np.int64)
    return significand, exponent.astype(np.int64) - (MANTISSA + 1), usable


def _zeros(significand: NDArray[np.int64]) -> Column:
    """How many zero bits a positive whole number ends in."""
    return np.frexp((significand & -significand).astype(np.float64))[1].astype(np.float64) - 1


def power_of_two(entries: Rows, number: float) -> Column:
    """The largest e with the entry a multiple of 2^e; none for 0.

    Floating-point noise added to x ends on the grid of the last bits of x and of the sum (Mironov 2012, "On
    significance of the least significant bits for differential privacy").
    """
    significand, exponent, usable = _significand(numbers(entries[:, 0]))
    return np.where(usable, _zeros(significand) + exponent, np.nan)


def trailing_zeros(entries: Rows, number: float) -> Column:
    """How many of the 53 bits of the entry's significand are zeros at its end; none for 0."""
    significand, _, usable = _significand(numbers(entries[:, 0]))
    return np.where(usable, _zeros(significand), np.nan)


def low_bits(entries: Rows, number: float) -> Column:
    """The last so many bits of the entry's significand, as a whole number; none for 0."""
    significand, _, usable = _significand(numbers(entries[:, 0]))
    return np.where(usable, significand & ((1 << int(number)) - 1), np.nan)
