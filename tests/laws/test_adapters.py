"""Callables of every kind, and what they return: Laplace noise of scale 1/2, so ε = 2, unless said otherwise."""

import dataclasses
import functools
import time
import warnings

import numba
import numpy as np
import pytest

from dpwitness import NotRefuted, Violation, check, pairs, queries
from dpwitness.claims import ApproxDP
from dpwitness.errors import InvalidClaim, InvalidOutcome, InvalidParameter, SlowMechanism
from dpwitness.mechanisms import mechanism as cost
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.libraries import library_of
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import as_finite_numbers
from running import soon

ONE = queries(1)
LIMITS = {"neighbours": ONE, "seed": 3, "search_runs": 2_000, "runs": 200_000, "alpha": 1e-6}


class Noise:
    """Draws its own randomness."""

    def __init__(self, scale=0.5):
        self.own = np.random.default_rng(12)
        self.scale = scale

    def method(self, data):
        return data[0] + self.own.laplace(0, self.scale)

    def many(self, data, size):
        return data[0] + self.own.laplace(0, self.scale, size=size)

    def __call__(self, data):
        return self.method(data)


def vectorised(rng, data, n_samples):
    return data[0] + rng.laplace(0, 0.5, size=n_samples)


@numba.njit
def jitted(rng, data):
    return data[0] + 0.5 * (rng.standard_exponential() - rng.standard_exponential())


def with_scale(rng, data, scale, size):
    return data[0] + rng.laplace(0, scale, size=size)


def own_closure():
    own = np.random.default_rng(5)

    def noisy(data, size):
        return data[0] + own.laplace(0, 0.5, size=size)

    return noisy


def text(rng, data, size):
    heads = rng.random(size) < (0.9 if data[0] > 0.5 else 0.1)
    return ["heads" if head else "tails" for head in heads]


KINDS = {
    "vectorised": vectorised,
    "jitted": jitted,
    "partial": functools.partial(with_scale, scale=0.5),
    "bound method": Noise().method,
    "vectorised bound method": Noise().many,
    "callable object": Noise(),
    "closure": own_closure(),
}


@pytest.mark.parametrize("kind", soon(KINDS, 1))
def test_every_kind_is_refuted_below_its_epsilon_and_not_at_it(kind):
    mechanism = KINDS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none of these is a function that numba should have compiled
        low = check(mechanism, epsilon=1.2, **LIMITS)
        exact = check(mechanism, epsilon=2.0, **{**LIMITS, "runs": 20_000})
    assert isinstance(low, Violation)
    assert isinstance(exact, NotRefuted)
    assert low.reproducible is (kind in ("vectorised", "jitted", "partial"))


@pytest.mark.campaign
def test_a_closure_over_a_generator_runs_as_python():
    own = np.random.default_rng(5)

    def noisy(data):
        return data[0] + own.laplace(0, 0.5)

    with pytest.warns(SlowMechanism):
        verdict = check(noisy, epsilon=1.2, **LIMITS)
    assert isinstance(verdict, Violation)
    assert not verdict.reproducible


class Randomiser:
    epsilon = 2.0
    delta = 0.0
    sensitivity = 1.0

    def __init__(self):
        self.own = np.random.default_rng(1)

    def randomise(self, value):
        assert isinstance(value, float)
        return value + self.own.laplace(0, 0.5)


@pytest.mark.campaign
def test_objects_that_randomise_carry_claim_and_neighbours():
    thing = Randomiser()
    assert library_of(thing).claim(thing) == ApproxDP(epsilon=2.0)
    relation = library_of(thing).neighbours(thing)
    (pair,) = relation.candidates()
    assert (pair.data.tolist(), pair.neighbour.tolist()) == (0.0, 1.0)
    for neighbours in (relation, ONE, pairs(([0.0], [1.0]))):
        verdict = check(thing, epsilon=1.2, **{**LIMITS, "neighbours": neighbours})
        assert isinstance(verdict, Violation)
        assert verdict.mechanism == "Randomiser"
        assert not verdict.reproducible


class Sum:
    """As python-dp's algorithms: it begins anew with each list."""

    epsilon, delta = 2.0, 0.0

    def __init__(self):
        self.own = np.random.default_rng(1)

    def quick_result(self, values):
        assert type(values) is list
        return sum(values) + self.own.laplace(0, 0.5)


@pytest.mark.campaign
def test_objects_with_quick_result_take_lists():
    settings = {**LIMITS, "neighbours": pairs(([1.0, 0.0], [1.0, 1.0]), ([1.0], [1.0, 1.0]))}
    assert isinstance(check(Sum(), claim=1.2, **settings), Violation)
    passed = check(Sum(), **{**settings, "runs": 2_000})
    assert passed.claim == ApproxDP(epsilon=2.0)
    assert isinstance(passed, NotRefuted)


class Estimator:
    """As diffprivlib's models: Laplace noise of scale 1/2 on a mean of y, and the number of fits, which grows."""

    epsilon = 2.0

    def __init__(self):
        self.fits, self.own = [], np.random.default_rng(2)

    def get_params(self, deep=True):
        return {"epsilon": self.epsilon}

    def fit(self, X, y):
        self.fits.append(len(X))
        self.count_, self.mean_ = len(self.fits), sum(y) + OWN.laplace(0, 0.5)


OWN = np.random.default_rng(2)


@pytest.mark.campaign
def test_estimators_are_fitted_anew_and_their_attributes_named():
    data = (np.zeros((2, 1)), np.array([0.0, 0.0])), (np.zeros((2, 1)), np.array([0.0, 1.0]))
    settings = {**LIMITS, "neighbours": pairs(data), "outcome": "mean_,count_"}
    verdict = check(Estimator(), claim=1.2, **settings)
    assert isinstance(verdict, Violation)
    assert "attribute 'mean_'" in verdict.witness.description
    passed = check(Estimator(), **{**settings, "runs": 2_000})
    assert passed.claim == ApproxDP(epsilon=2.0)
    assert isinstance(passed, NotRefuted)


@pytest.mark.campaign
def test_a_check_reads_claim_and_neighbours_from_the_object():
    verdict = check(Randomiser(), claim=1.2, alpha=1e-6, seed=1, runs=200_000, search_runs=2_000)
    assert isinstance(verdict, Violation)
    passed = check(Randomiser(), alpha=1e-6, seed=1, runs=20_000, search_runs=2_000)
    assert passed.claim == ApproxDP(epsilon=2.0)
    assert not isinstance(passed, Violation)


def test_a_check_without_any_claim_is_refused():
    with pytest.raises(InvalidClaim, match="no claim to test"):
        check(vectorised, neighbours=ONE)


@pytest.mark.parametrize("thing", [vectorised, Noise(), 3, object()])
def test_other_things_carry_no_claim(thing):
    assert library_of(thing).claim(thing) is None
    assert library_of(thing).neighbours(thing) is None


def test_a_carried_claim_must_make_sense():
    thing = Randomiser()
    thing.epsilon = -1.0
    with pytest.raises(InvalidClaim, match=r"epsilon=-1\.0"):
        library_of(thing).claim(thing)


def test_what_is_not_callable_is_refused():
    with pytest.raises(InvalidParameter, match="3 is not callable: give a function, an object with"):
        as_mechanism(3, as_finite_numbers([0.0]))


@dataclasses.dataclass
class Released:
    total: float
    label: str


OUTPUTS = {
    "dict": (lambda v: {"total": v, "n": 3}, lambda out: out["total"]),
    "nested dict": (lambda v: {"a": {"b": [v, 1.0]}}, lambda out: out["a"]["b"]),
    "dataclass": (lambda v: Released(v, "x"), dataclasses.astuple),
    "matrix": (lambda v: np.array([[v, 0.0], [1.0, 2.0]]), lambda out: out),
    "string": (lambda v: "high" if v > 0.5 else "low", lambda out: out),
    "sign of a string": (lambda v: f"{v:+.3f}", lambda out: out.startswith("-")),
}


@pytest.mark.parametrize("kind", soon(OUTPUTS, 1))
def test_outcome_turns_any_output_into_numbers(kind):
    wrap, outcome = OUTPUTS[kind]

    def released(rng, data):
        return wrap(data[0] + rng.laplace(0, 0.5))  # ε = 2; of the strings, which say less, at least 1.49

    verdict = check(released, epsilon=1.2, outcome=outcome, **LIMITS)
    assert isinstance(verdict, Violation)
    assert verdict.reproducible


@pytest.mark.campaign
def test_data_frames():
    pandas = pytest.importorskip("pandas", reason="pandas is in the extra [libraries]")

    def released(rng, data):
        return pandas.DataFrame({"cell": [1, 2], "count": data + rng.laplace(0, 0.2, size=2)})

    settings = {**LIMITS, "neighbours": queries(2), "runs": 4_000, "search_runs": 500}
    verdict = check(released, epsilon=1.2, outcome=lambda frame: frame["count"].to_numpy(), **settings)
    assert isinstance(verdict, Violation)


@pytest.mark.campaign
def test_strings_are_outcomes_and_are_counted_exactly():
    verdict = check(text, epsilon=1.0, **{**LIMITS, "neighbours": pairs(([0.0], [1.0])), "search_runs": 20_000})
    assert isinstance(verdict, Violation)
    assert verdict.witness.description in ("output heads", "output tails")
    counts = verdict.counts
    # 0.9 and 0.1, to six standard errors: no string is mistaken for another.
    limit = 6 * np.sqrt(0.09 / counts.runs)
    assert sorted((counts.hits / counts.runs, counts.neighbour_hits / counts.runs)) == pytest.approx(
        [0.1, 0.9], abs=limit
    )


def test_without_outcome_an_object_of_no_known_type_is_refused_with_advice():
    with pytest.raises(InvalidOutcome, match="or pass outcome= to turn outputs into numbers"):
        check(lambda rng, data: object(), epsilon=1.0, **LIMITS)


CALLS = []


def slow_and_exact(data):
    """Without noise; at the top level of a file, so that a new process can tell that it remembers none."""
    CALLS.append(1)
    time.sleep(0.001)
    return data[0]


@pytest.mark.campaign
def test_a_slow_mechanism_stops_as_soon_as_it_is_refuted():
    CALLS.clear()
    verdict = check(slow_and_exact, epsilon=1.0, outcome=float, max_time=60, **{**LIMITS, "search_runs": 64})
    assert isinstance(verdict, Violation)
    # Nothing is so clear as a mechanism without noise: one or two shards of 32 runs, not 200 000.
    assert verdict.counts.runs <= 64
    assert len(CALLS) < 3_000


def test_very_slow_mechanisms_are_looked_at_after_every_second_run():
    def slow(data):
        time.sleep(0.025)
        return data[0]

    mechanism = as_mechanism(slow, as_finite_numbers([0.0]), outcome=float)
    assert mechanism.shard == 2
    assert as_mechanism(lambda data: data[0], as_finite_numbers([0.0]), outcome=float).shard > 2


def loops(rng, data):
    total = 0.0
    for _ in range(100):
        total += rng.random()
    return data[0] + total


@pytest.mark.parametrize(("seconds", "shards"), [(1e-9, 2), (1e3, 16_384)])
def test_slow_compiled_code_makes_few_runs_between_two_looks_at_the_clock(seconds, shards, monkeypatch):
    """With shards of 16,384 runs, a search of 1 ms a run ended without any verdict."""
    monkeypatch.setattr(cost, "SHARD_SECONDS", seconds)
    mechanism = as_mechanism(loops, np.array([0.0]))
    assert (type(mechanism), mechanism.shard) == (CompiledMechanism, shards)


def test_an_array_without_axes_is_a_number():
    mechanism = as_mechanism(lambda rng, data: np.array(data[0] + 1), np.array([0.5]), outcome=lambda value: value)
    rows = np.empty((2, 2))
    assert mechanism.fill(np.array([0.5]), np.random.default_rng(0), rows, 0) == 1
    assert rows[:, 0].tolist() == [1.5, 1.5]
