"""What numba refuses is told in one line, in numba's own words of today."""

import numba
import numpy as np
import pytest

from dpwitness.errors import MechanismRaised, SlowMechanism
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature

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


def test_what_numba_says_of_a_call_within_a_run_is_told_without_its_pipeline():
    @numba.njit
    def least(value):
        return min(value, 2) < value

    def calls(rng, data, base):
        return least(base)

    mechanism = PythonMechanism(Signature.of(calls, {"base": "x"}))
    with pytest.raises(MechanismRaised, match=r"TypingError \(No implementation of function .*unicode_type") as told:
        mechanism.outcomes(np.ones(1), np.random.default_rng(0), 1)
    assert "pipeline" not in str(told.value)
