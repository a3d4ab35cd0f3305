"""What numba refuses is told in one line, in numba's own words of today."""

import numba
import numpy as np
import pytest

from dpwitness.errors import MechanismRaised
from dpwitness.mechanisms.compiled.driver import Refused, reason
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair


def with_import(rng, data):
    from numpy.linalg import norm

    return norm(data) + rng.normal()


def with_random(rng, data):
    import random

    return data[0] + random.gauss(0, 1)


def with_missing_distribution(rng, data):
    return data[0] + rng.multivariate_normal(data, data)[0]


def with_any_parameters(rng, data, **parameters):
    return data[0] + rng.normal()


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (with_any_parameters, "it takes parameters of any name, as **parameters"),
        (with_import, "IMPORT_NAME"),
        (with_random, "IMPORT_NAME"),
        (with_missing_distribution, "Unknown attribute 'multivariate_normal' of type NumPyRandomGeneratorType"),
    ],
)
def test_what_numba_says_today_is_understood(function, why):
    with pytest.raises(Refused) as raised:
        CompiledMechanism(Signature.of(function, {})).compile_for(Pair(np.ones(2), np.ones(2)))
    told = reason(str(raised.value))
    assert why in told
    assert "\n" not in told


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
