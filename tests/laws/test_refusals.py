"""What numba refuses is told with what to do about it, in numba's own words of today."""

import numba
import numpy as np
import pytest

from dpwitness.errors import MechanismRaised
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.compiled.refusals import Refused, refusal
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
    ("function", "mend"),
    [
        (with_any_parameters, "as **parameters; to make it fast: name each parameter that it takes"),
        (with_import, "to make it fast: move the import to the top of the file"),
        (with_random, "to make it fast: draw from a parameter rng, or with dpwitness.noise, in place of random"),
        (with_missing_distribution, "to make it fast: numba has no rng.multivariate_normal"),
    ],
)
def test_what_numba_says_today_is_understood(function, mend):
    with pytest.raises(Refused) as raised:
        CompiledMechanism(Signature.of(function, {})).compile_for(Pair(np.ones(2), np.ones(2)))
    told = refusal(str(raised.value), function)
    assert mend in told
    assert "\n" not in told


def test_nobody_is_told_to_change_an_installed_package():
    message = "Untyped global name 'nanmean': Cannot determine Numba type of <class 'function'>"
    library = {"__name__": "library"}
    exec(compile("def nanmean(x): return x", "/lib/site-packages/library.py", "exec"), library)
    own = {"nanmean": library["nanmean"]}
    exec(compile("def mine(x): return nanmean(x)", "/home/me/mine.py", "exec"), own)
    for function in (library["nanmean"], own["mine"]):
        assert "nanmean" in refusal(message, function)
        assert "decorate" not in refusal(message, function)
    assert "decorate nanmean with @numba.njit" in refusal(message)


@pytest.mark.parametrize(
    ("message", "mend"),
    [
        ("Untyped global name 'NOISE': Cannot determine Numba type of <class 'mine.Laplace'>", "NOISE is a mine.Lap"),
        ("Untyped global name 'TABLE': Cannot determine Numba type of <class 'dict'>", "TABLE is a dict: give"),
        ("Use of unsupported opcode (STORE_GLOBAL) found", "in place of setting a global variable"),
        ("The use of yield in a closure is unsupported.", "write the generator expression as a loop"),
        ("Unsupported context manager in use", "leave out the with statement"),
        ("Unknown attribute 'laplace' of type Module(<module 'scipy.stats' from 'x'>)", "not know scipy.stats.laplace"),
        ("No implementation of function Function(<function array_mean at 0x7>) found", "numba has no mean with such"),
        ("Failed in nopython mode\nCannot unify float64 and unicode_type for 'x'", "keep each variable of one type"),
        ("something that nobody has seen", "use loops, numbers, NumPy arrays and dpwitness.noise"),
        ("", "no reason given"),
    ],
)
def test_each_reason_has_its_mend(message, mend):
    assert mend in refusal(message)


def test_long_reasons_are_cut():
    assert len(refusal("x" * 5000)) < 300


def test_colours_in_numba_s_message_hide_nothing():
    """Where colorama is installed numba writes in colours."""
    plain = (
        "Failed in nopython mode\n\nUntyped global name 'doubled': Cannot determine Numba type of <class 'function'>"
    )
    coloured = "\x1b[1m\x1b[1mFailed in nopython mode\x1b[0m\n\n\x1b[1mUntyped global name 'doubled':\x1b[0m " + (
        "\x1b[1m\x1b[1mCannot determine Numba type of <class 'function'>\x1b[0m\x1b[0m"
    )
    assert refusal(coloured) == refusal(plain)


def test_what_numba_says_of_a_call_within_a_run_is_told_without_its_pipeline():
    @numba.njit
    def least(value):
        return min(value, 2) < value

    def calls(rng, data, base):
        return least(base)

    mechanism = PythonMechanism(Signature.of(calls, {"base": "x"}))
    with pytest.raises(
        MechanismRaised, match=r"raised TypingError \(No implementation of function .*unicode_type"
    ) as told:
        mechanism.fill(np.ones(1), np.random.default_rng(0), np.empty((1, 1)), 0)
    assert "pipeline" not in str(told.value)
