"""One preparation for check, bound, curve and the plugin: the claim, the parameters and the relation agree."""

import functools
import math

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.claims import ApproxDP
from dpwitness.errors import BudgetTooSmall, InvalidClaim, InvalidNeighbours, InvalidParameter
from dpwitness.mechanisms.catalog import load
from dpwitness.mechanisms.claims import stated_claim
from dpwitness.mechanisms.libraries.opendp import in_carrier
from dpwitness.mechanisms.resolve import MechanismFactory, as_mechanism
from dpwitness.neighbours import as_finite_numbers
from dpwitness.search.pairs import proposed
from running import prepare

ONE = dpw.queries(1)


def gaussian(rng, data, epsilon, size, delta=1e-5):
    return data[0] + rng.normal(0, np.sqrt(2 * np.log(1.25 / delta)) / epsilon, size)


def fixed(rng, data, size, epsilon=2.0):
    return data[0] + rng.laplace(0, 1 / epsilon, size)


def scaled(rng, data, size, epsilon=1.0, sensitivity=1.0):
    return data[0] + rng.laplace(0, sensitivity / epsilon, size)


class Carrier:
    """An (ε, δ) mechanism of a library."""

    epsilon, delta, sensitivity = 1.0, 0.01, 1.0

    def randomise(self, value):
        return value


@dpw.target(claim="budget", neighbours=ONE, source="here")
def renamed(rng, data, budget):
    return data[0] + rng.laplace(0, 1 / budget)


def compares(rng, data, epsilon, threshold):
    return bool(data[0] + rng.laplace(0, 1 / epsilon) > threshold)


def tolerant(rng, data, epsilon, eps):
    return data[0] + rng.laplace(0, 1 / epsilon)


def job(function, *, neighbours=ONE, parameters=None, **stated):
    return prepare(function, neighbours=neighbours, parameters=parameters, **stated)[0]


def values(*arguments, **settings):
    return job(*arguments, **settings).mechanism.signature.parameters


@pytest.mark.parametrize(
    ("given", "claim"),
    [
        ({}, ApproxDP(epsilon=1.0, delta=0.01)),
        ({"epsilon": 2.0}, ApproxDP(epsilon=2.0, delta=0.01)),
        ({"claim": 2.0}, ApproxDP(epsilon=2.0, delta=0.01)),
        ({"delta": 0.0}, ApproxDP(epsilon=1.0)),
        ({"epsilon": 2.0, "delta": 0.5}, ApproxDP(epsilon=2.0, delta=0.5)),
    ],
)
def test_the_delta_that_an_object_carries_is_dropped_only_for_a_given_one(given, claim):
    assert stated_claim(Carrier(), **given).claim == claim


def test_bound_and_curve_take_the_carried_delta():
    """At δ = 0.01 an event that has probability 0.01 on D and never happens on D′ shows nothing."""

    class Leak(Carrier):
        def __init__(self):
            self.own = np.random.default_rng(1)

        def randomise(self, value):
            return float(value) if self.own.random() < 0.01 else -1.0

    limits = {"max_time": 30.0, "search_runs": 2_000, "runs": 5_000, "seed": 1}
    found = dpw.bound(Leak(), epsilon=1.0, **limits)
    assert found.delta == 0.01
    assert dpw.curve(Leak(), epsilon=[1.0], claims=[0.5], **limits).delta == 0.01


def test_a_violation_says_that_the_mechanism_has_a_delta_and_the_claim_has_none():
    def leaks(rng, data, epsilon, delta=1e-5):
        return data[0] + 0.01 * rng.random()

    settings = {"neighbours": dpw.pairs(([0.0], [1.0])), "runs": 2_000, "search_runs": 500, "seed": 1, "bits": False}
    said = "the mechanism ran with delta=1e-05, the claim has δ = 0: state that δ too if it is claimed"
    assert said in dpw.check(leaks, epsilon=1.0, **settings).notes
    assert said not in dpw.check(leaks, epsilon=1.0, delta=1e-5, **settings).notes


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (gaussian, {"epsilon": 1.0, "parameters": {"epsilon": 3}}),
        (gaussian, {"epsilon": 1.0, "delta": 1e-3, "parameters": {"delta": 0.1}}),
        (gaussian, {"epsilon": 1.0, "claim": 3.0, "parameters": {"epsilon": 3.0}}),
        (renamed, {"epsilon": 1.0, "neighbours": None, "parameters": {"budget": 3}}),
        (functools.partial(gaussian, epsilon=3), {"epsilon": 1.0}),
        (functools.partial(gaussian, epsilon=1.0, delta=0.1), {"epsilon": 1.0, "delta": 1e-3}),
        (MechanismFactory(lambda: functools.partial(gaussian, epsilon=3)), {"epsilon": 1.0}),
    ],
)
def test_a_parameter_is_not_given_two_values(function, given):
    """A right mechanism would run at ε = 3, be judged at 1, and be refuted."""
    with pytest.raises(InvalidParameter, match=r"(epsilon|delta)=.* and parameters=.* give '\w+' two values"):
        job(function, **given)


@pytest.mark.parametrize(
    ("function", "given", "expected"),
    [
        (functools.partial(gaussian, epsilon=3.0), {"claim": 1.0}, {"epsilon": 3.0, "delta": 1e-5}),
        (functools.partial(gaussian, epsilon=1.0), {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-5}),
        (functools.partial(tolerant, eps=0.1), {"epsilon": 1.0}, {"epsilon": 1.0, "eps": 0.1}),
        (tolerant, {"epsilon": 1.0, "parameters": {"eps": 0.1}}, {"epsilon": 1.0, "eps": 0.1}),  # a tolerance
        (fixed, {"claim": 0.5}, {"epsilon": 2.0}),
        (fixed, {"claim": 0.5, "epsilon": 3.0}, {"epsilon": 3.0}),
        (fixed, {"claim": 0.5, "parameters": {"epsilon": 4.0}}, {"epsilon": 4.0}),
        (gaussian, {"epsilon": 1.0, "delta": 1e-3}, {"epsilon": 1.0, "delta": 1e-3}),
        (gaussian, {"epsilon": 1.0, "parameters": {"epsilon": 1, "delta": 0.1}}, {"epsilon": 1.0, "delta": 0.1}),
    ],
)
def test_a_mechanism_runs_with_what_was_given_to_it(function, given, expected):
    """A claim sets nothing: a check at ε = 1 alone would pass what runs at ε = 3 elsewhere."""
    assert values(function, **given) == expected


@pytest.mark.parametrize("own", [None, [0.5, 0.5], np.array([0.5, 0.5])])
def test_a_budget_that_is_split_stands_beside_the_whole(own):
    def split(rng, data, epsilon):
        return data[0] + rng.laplace(0, 1.0 if epsilon is None else 1 / sum(epsilon))

    assert values(split, epsilon=1.0, parameters={"epsilon": own}).keys() == {"epsilon"}


@pytest.mark.parametrize("threshold", [math.inf, math.nan, 1e12, -1e300])
def test_a_threshold_that_no_answers_lie_around_refuses_no_relation(threshold):
    """The mechanism's own parameter says where inputs are looked for, and no more."""
    given = {"epsilon": 1.0, "neighbours": dpw.queries(3), "parameters": {"threshold": threshold}}
    ready = job(compares, **given)
    assert len(list(ready.candidates())) > 10
    assert len(list(ready.unusual())) > 10
    there = [pair for pair in ready.candidates() if np.abs(pair.data - threshold).max() <= 1.0]
    assert bool(there) == (threshold == 1e12)


@pytest.mark.parametrize("claim", [dpw.PureDP(1e-17), dpw.ZCDP(1e-40), dpw.GaussianDP(1e-300), dpw.GaussianDP(1e-310)])
@pytest.mark.parametrize("relation", [dpw.histogram(2), dpw.queries(3)])
def test_inputs_are_proposed_for_the_smallest_claims(claim, relation):
    ready = job(compares, claim=claim, neighbours=relation, parameters={"epsilon": 1.0, "threshold": 0.0})
    assert len([*ready.candidates(), *ready.unusual()]) > 10


def test_an_attack_proposes_inputs_only_where_the_relation_is_its_targets():
    """Under another relation its inputs may be no neighbours."""
    target = load("gptt")
    for neighbours, proposes in ((None, True), (dpw.queries(3), False)):
        ready = job(target, epsilon=1.0, neighbours=neighbours)
        assert bool(proposed(ready, 1_000_000)) is proposes


def test_sensitivities_of_mechanism_and_relation_may_not_differ():
    with pytest.raises(InvalidParameter, match=r"scaled runs with sensitivity=0\.5, .* have sensitivity=1\.0: give"):
        job(scaled, epsilon=1.0, parameters={"sensitivity": 0.5})
    with pytest.raises(InvalidParameter, match=r"scaled runs with sensitivity=1\.0, .* have sensitivity=2: give"):
        job(scaled, epsilon=1.0, neighbours=dpw.queries(1, sensitivity=2))
    half = job(scaled, epsilon=1.0, neighbours=dpw.queries(1, sensitivity=0.5), parameters={"sensitivity": 0.5})
    assert half.relation.sensitivity == 0.5


def test_a_targets_own_relation_takes_the_users_sensitivity():
    ready = job(load("laplace_mechanism"), epsilon=1.0, neighbours=None, parameters={"sensitivity": 0.5})
    assert ready.relation.sensitivity == 0.5
    for pair in ready.relation.candidates():
        assert np.abs(pair.data - pair.neighbour).max() == 0.5


def measurement(carrier, measure="MaxDivergence", loss=1.0):
    """What an OpenDP measurement looks like from outside; it returns its argument."""

    class Measurement:
        input_carrier_type = carrier
        output_measure = measure

        def map(self, d_in):
            if d_in < 0:
                raise RuntimeError("d_in must be non-negative\nmore")
            return loss

        def __call__(self, argument):
            return repr(argument)

    Measurement.__module__ = "opendp.mod"
    return Measurement()


@pytest.mark.parametrize(
    ("carrier", "given", "argument"),
    [
        ("HashMap<String, i32>", {"a": 1.0}, {"a": 1}),
        ("Vec<Vec<f64>>", [[1], [2, 3]], [[1.0], [2.0, 3.0]]),
        ("BitVector", as_finite_numbers([1, 0, 1, 0, 0, 0, 0, 0, 1]), b"\x05\x01"),
        ("Option<f64>", None, None),
        ("ExtrinsicObject", {"any": [1]}, {"any": [1]}),
        ("bool", 1, True),
        ("Vec<bool>", as_finite_numbers([0, 1]), [False, True]),
        ("f64", 1, 1.0),
        ("usize", 2, 2),
        ("Vec<f64>", [None, 1.0], [pytest.approx(math.nan, nan_ok=True), 1.0]),  # what is missing among floats
    ],
)
def test_measurements_get_what_their_carrier_holds(carrier, given, argument):
    found = in_carrier(given, carrier)
    assert found == argument
    assert type(found) is type(argument)


def legacy(data, *, epsilon, random_state=None):
    if random_state is not None and not isinstance(random_state, np.random.RandomState):  # as scikit-learn has it
        raise ValueError(f"{random_state!r} cannot be used to seed a numpy.random.RandomState instance")
    return data[0] + random_state.laplace(0, 1 / epsilon)


def test_a_random_state_may_be_a_generator():
    def draws(data, random_state):
        return data[0] + random_state.integers(0, 3)

    assert dpw.check(draws, epsilon=0.1, neighbours=dpw.pairs(([0.0], [1.0])), seed=1, workers=1).refuted


def test_a_random_state_is_that_of_numpys_legacy():
    mechanism = as_mechanism(legacy, as_finite_numbers([1.0]), epsilon=1.0)
    once, again = (
        mechanism.outcomes(as_finite_numbers([1.0]), np.random.Generator(np.random.SFC64(5)), 50) for _ in range(2)
    )
    assert np.array_equal(once, again)
    assert len(np.unique(once)) == 50
    assert mechanism.reproducible


def test_a_measurement_that_is_not_pure_is_not_tested_at_delta_0_unasked():
    approximate = measurement("f64", "Approximate(MaxDivergence)", (1.0, 1e-3))
    assert stated_claim(approximate, epsilon=2.0, d_in=1).claim == ApproxDP(epsilon=2.0, delta=1e-3)
    assert stated_claim(approximate, epsilon=2.0, delta=0.0).claim == ApproxDP(epsilon=2.0)
    with pytest.raises(InvalidClaim, match=r"not ε alone: give delta=…, or d_in=…"):
        stated_claim(approximate, epsilon=2.0)
    assert stated_claim(measurement("f64"), epsilon=2.0).claim == ApproxDP(epsilon=2.0)
    with pytest.raises(InvalidClaim, match=r"RenyiDivergence .* give claim=…, such as RenyiDP"):
        stated_claim(measurement("f64", "RenyiDivergence"), d_in=1)
    with pytest.raises(InvalidClaim, match=r"^d_in=-1: .* \(d_in must be non-negative\)$"):
        stated_claim(measurement("f64"), d_in=-1)


WRONG = [
    ("epsilon", 0.0), ("delta", 1.0), ("d_in", 1), ("neighbours", [([0.0],)]), ("neighbours", "pairs"),
    ("data", [[1], [2, 3]]), ("parameters", {1: 2}), ("outcome", "1a"), ("alpha", 0.0), ("alpha", 1.0), ("runs", 0),
    ("search_runs", -1), ("max_time", 0), ("seed", -1), ("workers", 0), ("detectable_ratio", 0.9), ("reference", 5),
    ("detectable_ratio", 2.5), ("progress", 5),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_wrong_values_are_refused_by_name_in_one_line(name, value):
    settings = {"epsilon": 1.0, "neighbours": None if name == "data" else ONE, "runs": 100, "seed": 1}
    function = load("laplace_mechanism") if name == "data" else fixed
    with pytest.raises((InvalidClaim, InvalidNeighbours, InvalidParameter)) as caught:
        dpw.check(function, **{**settings, name: value})
    assert "\n" not in str(caught.value)
    assert name in ("data", "neighbours") or name in str(caught.value)


REFUSED = [
    (lambda: job(gaussian, claim=0.5), "gaussian needs a value for 'epsilon': give epsilon="),
    (lambda: stated_claim(functools.partial(gaussian, epsilon=1.0)), "no claim to test: give epsilon=…, gaussian"),
    (lambda: as_mechanism(legacy, as_finite_numbers([1.0]), epsilon=1.0, parameters={"random_state": None}),
     "legacy gets the generator of each run as 'random_state': leave it out"),
    (lambda: in_carrier(0, "Vec<String>"), r"takes a list \(Vec<String>\), not 0: give lists"),
    (lambda: in_carrier("a", "Vec<String>"), r"takes a list \(Vec<String>\), not 'a': give lists"),
    (lambda: dpw.curve(fixed, epsilon=[1.0], claims=[1.0], neighbours=ONE, method="fisher"), "method='fisher'"),
    (lambda: dpw.bound(fixed, epsilon=1.0, neighbours=ONE, alpha=5e-324), "alpha=5e-324 is too small"),
    (lambda: dpw.check(fixed, claim=dpw.ZCDP(100.0), neighbours=ONE), r"claim=ρ = 100: .* more than 10\^18 runs$"),
]  # fmt: skip


@pytest.mark.parametrize(("refused", "said"), REFUSED)
def test_what_cannot_be_prepared_is_refused_with_what_to_give(refused, said):
    with pytest.raises((BudgetTooSmall, InvalidClaim, InvalidParameter), match=said):
        refused()
