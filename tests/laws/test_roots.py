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
