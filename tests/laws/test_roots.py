"""Halving: between two numbers of which one is below the root for certain and the other one above it."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from dpwitness.roots import halved


@pytest.mark.parametrize("steps", [0, 1, 30, 60])
def test_the_root_stays_between_the_ends(steps):
    low, high = halved(lambda x: x * x >= 2, 1.0, 2.0, steps)
    assert type(low) is float
    assert low * low < 2 <= high * high
    assert high - low <= max(2.0**-steps, np.spacing(1.5))


def test_intervals_are_halved_each_for_itself():
    squares = np.arange(2.0, 9.0)
    low, high = halved(lambda x: x * x >= squares, np.zeros(7), squares, 60)
    assert np.all((low * low < squares) & (squares <= high * high))
    each = [halved(lambda x, square=square: x * x >= square, 0.0, square, 60) for square in squares]
    assert np.array_equal(np.column_stack([low, high]), np.array(each))
    assert high == pytest.approx([brentq(lambda x, s=s: x * x - s, 0, s, xtol=1e-15) for s in squares], rel=1e-14)


def test_what_overflows_or_jumps_is_followed():
    with np.errstate(over="ignore"):
        low, high = halved(lambda x: bool(np.exp(np.float64(x)) == math.inf), 0.0, 1e6, 100)
    assert (low, high) == (math.log(np.finfo(float).max), math.nextafter(math.log(np.finfo(float).max), math.inf))
    assert halved(lambda x: math.floor(x) >= 3, 0.0, 8.0, 60)[1] == 3.0


def test_an_end_stays_where_the_condition_holds_everywhere_or_nowhere():
    assert halved(lambda _: False, 0.0, 1.0, 9)[1] == 1.0
    assert halved(lambda _: True, 0.0, 1.0, 9)[0] == 0.0
