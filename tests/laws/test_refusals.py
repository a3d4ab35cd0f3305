"""What numba refuses is told in one line, in numba's own words of today."""

import numpy as np
import pytest

from dpwitness.errors import SlowMechanism
from dpwitness.mechanisms.resolve import as_mechanism

REFUSED = [
    (lambda rng, data, **parameters: data[0] + rng.normal(), r"it takes parameters of any name, as \*\*parameters"),
    (lambda rng, data: data[0] + rng.multivariate_normal(data, np.eye(2))[0],
     "Unknown attribute 'multivariate_normal' of type NumPyRandomGeneratorType"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "why"), REFUSED)
def test_what_numba_says_today_is_understood(function, why):
    with pytest.warns(SlowMechanism, match=why) as told:
        as_mechanism(function, np.ones(2))
    assert all("\n" not in str(one.message) for one in told)
