"""Values of the wrong type at the border of the Python interface: refused by our own errors, never by raw ones."""

import math

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.errors import DPWitnessError


def accepted(rng, data, size=1):
    return data[0] + rng.laplace(0, 1, size)


WRONG = {
    "None": None,
    "text": "one",
    "empty": "",
    "bytes": b"one",
    "list": [1],
    "dict": {"a": 1},
    "object": object(),
    "nan": math.nan,
    "inf": math.inf,
    "minus": -1,
    "half": 1.5,
    "huge": 10**400,
    "complex": 1j,
    "array": np.array([1.0, 2.0]),
    "type": int,
}
NUMBER = ("text", "empty", "bytes", "list", "dict", "object", "nan", "minus", "huge", "complex", "array", "type")
RUNS = ("text", "empty", "bytes", "list", "dict", "object", "nan", "inf", "minus", "half", "complex", "array", "type")
RELATION = ("text", "bytes", "list", "dict", "object", "nan", "minus", "half", "complex", "array", "type")
COMMON = {
    "delta": (
        "text",
        "empty",
        "bytes",
        "list",
        "dict",
        "object",
        "nan",
        "inf",
        "minus",
        "half",
        "huge",
        "complex",
        "array",
        "type",
    ),
    "neighbours": RELATION,
    "data": ("text", "empty", "bytes", "dict", "object", "nan", "inf", "huge", "complex", "type"),
    "parameters": ("text", "bytes", "list", "object", "nan", "minus", "half", "complex", "array", "type"),
    "outcome": ("text", "bytes", "list", "dict", "object", "nan", "minus", "half", "complex", "array"),
    "max_time": ("None", *NUMBER),
    "search_runs": RUNS,
    "seed": RUNS,
    "workers": RUNS,
}
#: Which wrong values each argument must refuse by an error of ours.
BORDER = {
    "check": {
        "mechanism": ("None", "text", "bytes", "list", "dict", "object", "nan", "half", "complex", "array"),
        "epsilon": ("inf", *NUMBER),
        "claim": ("inf", *NUMBER),
        "alpha": ("None", "inf", *NUMBER),
        "runs": ("None", *RUNS),
        "d_in": ("text", "list", "object", "half"),
        **COMMON,
    },
    "bound": {
        "mechanism": ("None", "text", "list", "object", "half"),
        "epsilon": ("inf", *NUMBER),
        "alpha": ("None", "inf", *NUMBER),
        "runs": ("None", *RUNS),
        **COMMON,
    },
    "profile": {
        "mechanism": ("None", "text", "list", "object", "half"),
        "epsilon": ("inf", *NUMBER),
        "claim": ("inf", *NUMBER),
        "alpha": ("None", "inf", *NUMBER),
        "runs": ("None", *RUNS),
        **COMMON,
    },
    "curve": {
        "mechanism": ("None", "text", "list", "object", "half"),
        "epsilon": ("None", "text", "empty", "bytes", "dict", "object", "nan", "minus", "complex", "type"),
        "claims": ("None", "text", "empty", "bytes", "dict", "object", "nan", "minus", "complex", "type"),
        "method": tuple(WRONG),
        "runs": RUNS,
        **COMMON,
    },
    "pairs": {"0": tuple(name for name in WRONG if name != "array")},  # two numbers are a pair
    "queries": {
        "length": tuple(name for name in WRONG if name != "huge"),
        "sensitivity": ("None", "inf", *NUMBER),
        "may_move": tuple(name for name in WRONG if name != "text"),  # "one" is right
        "direction": tuple(WRONG),
    },
    "histogram": {"length": tuple(name for name in WRONG if name != "huge")},
    "bits": {"length": tuple(name for name in WRONG if name != "huge")},
    "ApproxDP": {"epsilon": ("None", "inf", *NUMBER), "delta": ("None", "inf", "half", *NUMBER)},
}
LIMITS = {"neighbours": dpw.queries(1), "search_runs": 32, "max_time": 5.0, "seed": 1}
RIGHT = {
    "check": {"mechanism": accepted, "epsilon": 1.0, "runs": 100, **LIMITS},
    "bound": {"mechanism": accepted, "epsilon": 1.0, "runs": 100, **LIMITS},
    "profile": {"mechanism": accepted, "epsilon": 1.0, "runs": 100, **LIMITS},
    "curve": {"mechanism": accepted, "epsilon": [1.0], "claims": [1.0], "runs": 100, **LIMITS},
    "ApproxDP": {"epsilon": 1.0},
}


def call(function, argument, value):
    """Call a public function with one wrong argument."""
    given = {**RIGHT.get(function, {}), argument: value}
    if function == "pairs":
        return dpw.pairs(value)
    positional = [given.pop("mechanism")] if "mechanism" in given else []
    return getattr(dpw, function)(*positional, **given)


def unrefused(place, names):
    """Which wrong values of `function.argument` are accepted, or end in an error that is not ours."""
    found = []
    for name in names:
        try:
            call(*place.split("."), WRONG[name])
        except DPWitnessError as error:
            if not str(error) or "\n" in str(error):
                found.append(f"{name}: the message is {str(error)!r}")
        except Exception as error:
            found.append(f"{name}: {type(error).__name__}: {error}")
        else:
            found.append(f"{name}: accepted")
    return found


PLACES = {f"{function}.{argument}": names for function, given in BORDER.items() for argument, names in given.items()}


@pytest.mark.parametrize("place", PLACES)
def test_wrong_types_are_refused_by_our_own_errors(place):
    assert unrefused(place, PLACES[place]) == []


@pytest.mark.parametrize("function", RIGHT)
def test_right_types_are_accepted(function):
    argument, value = next(iter(RIGHT[function].items()))
    assert call(function, argument, value) is not None
