"""Functions of this process: what they are given, what they return, and what they may do meanwhile."""

import re

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.errors import InvalidOutcome, InvalidParameter
from dpwitness.events import widen
from dpwitness.events.encoding import NONE
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import as_finite_numbers
from running import stream

DATA = as_finite_numbers([1.0, 2.0])


def rows_of(function, n=3, width=8, data=DATA, **settings):
    mechanism = as_mechanism(function, data, **settings)
    rows = mechanism.outcomes(data, stream(0), n)
    return mechanism, widen(rows, width), rows.shape[1]


def nested(rng, data):
    return (1, data, [4.0, 5.0])


def test_outputs_become_rows_compiled_and_in_python_alike():
    mechanism, rows, length = rows_of(nested)
    assert isinstance(mechanism, CompiledMechanism)
    assert length == 7
    plain = PythonMechanism(Signature.of(nested, {}))
    plain.begin(None, by_position=True)
    assert np.array_equal(rows, plain.outcomes(DATA, stream(0), 3, least=8), equal_nan=True)


def statdp_style(prng, queries, epsilon, sensitivity=1):
    return epsilon * sensitivity


def own_order(data, scale, rng):
    return scale


def paper_order(eps, delta, data, prng):
    return data[0] * 100 + eps * 10 + delta


class Held:
    """A dataset that releases something of itself."""

    count = 3

    def release(self, rng):
        return self.count


@pytest.mark.parametrize(
    ("function", "given", "value"),
    [
        (statdp_style, {"epsilon": 0.7}, 0.7),
        (statdp_style, {"epsilon": 0.7, "parameters": {"sensitivity": 3}}, 2.1),
        (own_order, {"parameters": {"scale": 4.0}}, 4.0),
        (paper_order, {"epsilon": 0.5, "delta": 0.25}, 105.25),
        (Held.release, {"data": Held()}, 3),  # what has the method
    ],
)
def test_parameters_are_recognised_by_name(function, given, value):
    assert rows_of(function, **given)[1][0, 0] == pytest.approx(value)


@pytest.mark.parametrize(
    ("function", "given", "told"),
    [
        (statdp_style, {"epsilon": 0.7, "parameters": {"cutof": 1}}, "'cutof'; it takes: epsilon, sensitivity"),
        (lambda rng, epsilon: rng.laplace(0, 1 / epsilon), {"epsilon": 1.0}, "no data"),
        (lambda gen, xs, eps: 1.0, {"epsilon": 1.0}, "'xs'.*'gen'"),
    ],
)
def test_parameters_that_are_missing_or_unknown_are_named(function, given, told):
    with pytest.raises(InvalidParameter, match=told):
        rows_of(function, **given)


def repeated(rng, data, size=20):
    """`size` noisy copies of one answer, in one outcome or in so many runs: only its author knows."""
    return data[0] + rng.laplace(0, 1, size)


def test_a_size_with_a_default_of_its_own_is_asked_for():
    with pytest.raises(InvalidParameter, match="size=20"):
        Signature.of(repeated, {})
    signature = Signature.of(repeated, {"size": 3})
    assert signature.size is None
    assert np.shape(signature.call([0.0], np.random.default_rng(1))) == (3,)
    for default in (None, 1):

        def many(rng, data, size=default):
            return data[0] + rng.laplace(0, 1, size)

        assert Signature.of(many, {}).size == "size"


def many(make, **settings):
    """The rows of a function that makes many runs a call, as DP-Sniper's."""
    return rows_of(lambda a, n_samples: make(np.arange(n_samples) + a[0], n_samples), **settings)[1]


@pytest.mark.parametrize(
    ("make", "columns"),
    [
        (lambda x, n: x, [[1], [2], [3]]),
        (lambda x, n: np.ma.array(np.column_stack([x, x]), mask=np.tile([True, False], (n, 1))),
         [[NONE, 1], [NONE, 2], [NONE, 3]]),  # what lies under a mask is not released
    ],
)  # fmt: skip
def test_many_runs_a_call_are_read_by_their_places(make, columns):
    assert many(make)[:, : len(columns[0])].tolist() == columns


@pytest.mark.parametrize(
    "make",
    [
        lambda x, n: np.arange(n + 1),
        lambda x, n: dict(enumerate(x)),
        lambda x, n: set(x),
        lambda x, n: iter(x),
        lambda x, n: np.array(1.0),
    ],
)
def test_many_runs_a_call_are_one_outcome_each_in_an_order(make):
    with pytest.raises(InvalidOutcome, match=r"for \d runs? from"):
        many(make)


@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
def test_parameters_stay_what_the_caller_gave():
    weights, options = [3.0, 1.0], {"calls": [0]}

    def changing(rng, data, weights, options):
        weights.reverse()
        options["calls"].append(1)
        return data[0] + rng.random()

    given = {"parameters": {"weights": weights, "options": options}, "neighbours": dpw.pairs(([1.0], [2.0]))}
    verdict = dpw.check(changing, claim=1.0, runs=64, search_runs=64, seed=1, workers=1, **given)
    assert (weights, options) == ([3.0, 1.0], {"calls": [0]})
    assert verdict.witness.parameters == {"weights": weights, "options": options}


def silent(first=None, *more, **others):
    raise ValueError


@pytest.mark.parametrize(
    "given",
    [
        {"outcome": silent},
        {"make": silent, "mechanism": None},
        {"progress": silent},
        {"attack": silent},
        {"mechanism": lambda rng, data: silent()},
    ],
    ids=lambda given: next(iter(given)),
)
def test_an_exception_without_a_text_is_told_by_its_class_alone(given):
    checked = {"mechanism": lambda rng, data: data[0] + rng.normal(), "claim": 1.0, "outcome": float} | given
    with pytest.raises(dpw.DPWitnessError, match=r"raised ValueError") as caught:
        dpw.check(neighbours=[([0.0], [1.0])], runs=100, search_runs=64, **checked)
    assert not re.search(r"\(\)|: *$|: :", str(caught.value)), caught.value
