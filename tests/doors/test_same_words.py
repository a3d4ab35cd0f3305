"""One name for one thing, and what the command line reads Python reads: names, texts, files and values."""

import functools
import inspect
import json
import re
import typing

import numpy as np
import pytest

import dpwitness as dpw
from conftest import without_processes
from dpwitness import checks
from dpwitness.options import options_of

FEW = {"seed": 1, "runs": 5_000, "search_runs": 2_000, "workers": 1}
ONE = [([0.0], [1.0])]


def noisy(rng, data, size, scale=1.0):
    return data[0] + rng.laplace(0, scale, size)


@pytest.fixture(scope="module")
def violation():
    return dpw.check("isvt1", epsilon=0.7, **{**FEW, "runs": 100_000})


def test_a_verdict_and_a_profile_of_a_claim_have_no_truth_value():
    with without_processes():
        violation = dpw.check("isvt1", epsilon=0.7, **FEW)
        passed = dpw.check(noisy, claim=2.0, neighbours=ONE, **FEW)
        profile = dpw.profile(noisy, claim="1", neighbours=ONE, **FEW)
    assert [found.refuted for found in (violation, passed, profile)] == [True, False, False]
    for found in (violation, passed, profile):
        with pytest.raises(TypeError, match=r"ask (verdict|profile)\.refuted"):
            bool(found)
    assert violation.witness.mechanism == "isvt1"  # so that a file of it can be replayed by that name


@pytest.mark.campaign
def test_a_witness_may_be_given_in_any_form(violation, tmp_path):
    place = tmp_path / "w.json"
    violation.witness.save(place)
    fresh = {"runs": 100_000, "seed": 9, "workers": 1}
    expected = dpw.replay(violation.witness, **fresh).counts
    for given in (violation, str(place), place, json.loads(place.read_text()), violation.to_json()):
        assert dpw.replay(given, **fresh).counts == expected
    sides = violation.witness.pair.sides
    for neighbours in ([sides], [violation.witness.pair], dpw.pairs(sides)):
        assert dpw.replay(violation, "isvt1", neighbours=neighbours, **fresh).counts == expected
    with pytest.raises(dpw.InvalidNeighbours, match="is not one that pairs"):
        dpw.replay(violation, "isvt1", neighbours=[([0.0], [1.0])])
    passed = {**violation.to_json(), "witness": None}
    with pytest.raises(dpw.InvalidWitness, match="nothing was refuted"):
        dpw.replay(passed)
    with pytest.raises(dpw.InvalidWitness, match="must be a witness, a verdict, a file"):
        dpw.replay(3)


def test_claims_and_times_are_texts_in_python_too():
    for text, found in (("90", 90.0), ("90s", 90.0), ("500ms", 0.5), ("2m", 120.0), ("1h", 3600.0)):
        assert checks.seconds("max_time", text) == found
    for given, error, said in (
        ({"claim": 1, "max_time": "1 minute"}, dpw.InvalidParameter, "max_time='1 minute' must be"),
        ({"claim": "zcpd:0.5"}, dpw.InvalidClaim, r"claim='zcpd:0\.5' must be .*did you mean 'zcdp'"),
        ({"claim": 1, "mechanism": "mina.py:noisy"}, dpw.UnknownTarget, r"there is no file mina\.py"),
        ({"claim": 1, "parameters": {}, "mechanism": needs}, dpw.InvalidParameter, r"\(command line: --set scale=…\)"),
    ):
        with pytest.raises(error, match=said):
            dpw.check(given.pop("mechanism", noisy), neighbours=ONE, **given)


def needs(rng, data, scale):
    return 0.0


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("check", {"max_runs": 3}, "check has no parameter 'max_runs'; did you mean 'runs'"),
        ("replay", {"max_runs": 3}, "replay has no parameter 'max_runs'; did you mean 'runs'?"),
        ("bound", {"confidence": 0.9}, "bound has no parameter 'confidence'; it takes mechanism, epsilon,"),
        ("curve", {"epsilons": [1]}, "curve has no parameter 'epsilons'; did you mean 'epsilon'?"),
    ],
)
def test_an_unknown_parameter_is_refused_by_what_is_meant(name, given, said):
    for unknown, meant in ((given, said), ({"scale": 2.0}, "noisy has: give parameters={'scale': 2.0}")):
        with pytest.raises(dpw.InvalidParameter, match=re.escape(meant)):
            getattr(dpw, name)(noisy, **unknown)


#: Of each command the function, and the options that have other names there or are none of its.
COMMANDS = {"check": dpw.check, "bound": dpw.bound, "profile": dpw.profile, "curve": dpw.curve, "replay": dpw.replay}


@pytest.mark.parametrize("name", [*COMMANDS, "shrink"])
def test_a_parameter_is_said_once_and_known_everywhere(name):
    """In the signature with its default and its type, and in the reference."""
    function, options = getattr(dpw, name), options_of(name)
    signature, reference = inspect.signature(function), inspect.getdoc(function)
    for one, option in options.items():
        assert signature.parameters[one].default == option.default
        assert f"\n{one}\n    {option.reference[:40]}" in reference
    hints = typing.get_type_hints(function)
    assert list(hints) == [*signature.parameters, "return"]
    assert not any(isinstance(kind, str | typing.ForwardRef) for kind in hints.values())


#: What wrappers of a mechanism do with what they are given.
WRAPPERS = {
    "hands it on": lambda function: lambda *given, **named: function(*given, **named),
    "by position": lambda function: lambda *given: function(*given),
    "looks at the input": lambda function: lambda *given, **named: function(given[0], given[1], **named),
    "draws itself": lambda function: lambda data: function(np.random.default_rng(), data),
}


@pytest.mark.campaign
@pytest.mark.parametrize("how", WRAPPERS)
def test_a_wrapped_function_is_called_through_its_wrapper(how):
    def mechanism(rng, data, scale=0.2):
        return data[0] + rng.laplace(0, scale)

    wrapped = functools.wraps(mechanism)(WRAPPERS[how](mechanism))
    verdict = dpw.check(wrapped, claim=1, neighbours=ONE, outcome=float, **{**FEW, "runs": 2_000})
    assert verdict.refuted
    assert verdict.reproducible == (how != "draws itself")
    assert verdict.parameters == ({} if how == "draws itself" else {"scale": 0.2})


def test_only_a_check_goes_without_search_runs():
    for function, more in ((dpw.bound, {}), (dpw.profile, {}), (dpw.curve, {"claims": [1.0]})):
        with pytest.raises(dpw.BudgetTooSmall, match="search_runs=0 is for check alone"):
            function(noisy, epsilon=1.0, neighbours=ONE, search_runs=0, **more)
