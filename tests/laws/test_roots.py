"""Halving: between two numbers of which one is below the root for certain and the other one above it."""

import numpy as np
import pytest

from dpwitness.roots import halved


@pytest.mark.parametrize("steps", [0, 1, 30, 60])
def test_the_root_stays_between_the_ends(steps):
    low, high = halved(lambda x: x * x >= 2, 1.0, 2.0, steps)
    assert type(low) is float
    assert low * low < 2 <= high * high
    assert high - low <= max(2.0**-steps, np.spacing(1.5))


def test_an_end_stays_where_the_condition_holds_everywhere_or_nowhere():
    assert halved(lambda _: False, 0.0, 1.0, 9)[1] == 1.0
    assert halved(lambda _: True, 0.0, 1.0, 9)[0] == 0.0
