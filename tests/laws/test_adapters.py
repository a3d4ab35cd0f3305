"""Objects that randomise, estimators, and what mechanisms return: Laplace noise of scale 1/2, so ε = 2."""

import warnings

import numpy as np
import pytest

from dpwitness import NotRefuted, Violation, check, pairs, queries
from dpwitness.claims import ApproxDP
from dpwitness.errors import InvalidClaim, InvalidParameter
from dpwitness.mechanisms.libraries import library_of
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import as_finite_numbers
from running import soon

ONE = queries(1)
LIMITS = {"neighbours": ONE, "seed": 3, "search_runs": 2_000, "runs": 200_000, "alpha": 1e-6}
FEW = {**LIMITS, "runs": 20_000}
OWN = np.random.default_rng(2)


def many(rng, data, n_samples):
    return data[0] + rng.laplace(0, 0.5, size=n_samples)


def own_many(data, size):
    return data[0] + OWN.laplace(0, 0.5, size=size)


@pytest.mark.parametrize("mechanism", soon([many, own_many], 1))
def test_a_mechanism_is_refuted_below_its_epsilon_and_not_at_it(mechanism):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # neither is a function that numba should have compiled
        low, exact = check(mechanism, epsilon=1.2, **LIMITS), check(mechanism, epsilon=2.0, **FEW)
    assert isinstance(low, Violation)
    assert isinstance(exact, NotRefuted)
    assert low.reproducible is (mechanism is many)


class Randomiser:
    epsilon = 2.0
    delta = 0.0
    sensitivity = 1.0

    def randomise(self, value):
        assert isinstance(value, float)
        return value + OWN.laplace(0, 0.5)


class Sum:
    """As python-dp's algorithms: it begins anew with each list."""

    epsilon, delta = 2.0, 0.0

    def quick_result(self, values):
        assert type(values) is list
        return sum(values) + OWN.laplace(0, 0.5)


class Estimator:
    """As diffprivlib's models: Laplace noise of scale 1/2 on a mean of y, and the number of fits, which grows."""

    epsilon = 2.0

    def __init__(self):
        self.fits = []

    def get_params(self, deep=True):
        return {"epsilon": self.epsilon}

    def fit(self, X, y):
        self.fits.append(len(X))
        self.count_, self.mean_ = len(self.fits), sum(y) + OWN.laplace(0, 0.5)


X = np.zeros((2, 1))
OBJECTS = {
    "randomise, with its own relation": (Randomiser, {"neighbours": None}),
    "randomise, of queries": (Randomiser, {}),
    "randomise, of lists": (Randomiser, {"neighbours": pairs(([0.0], [1.0]))}),
    "lists": (Sum, {"neighbours": pairs(([1.0, 0.0], [1.0, 1.0]), ([1.0], [1.0, 1.0]))}),
    "estimator": (
        Estimator,
        {"neighbours": pairs(((X, np.array([0.0, 0.0])), (X, np.array([0.0, 1.0])))), "outcome": "mean_,count_"},
    ),
}


@pytest.mark.campaign
@pytest.mark.parametrize("kind", OBJECTS)
def test_an_object_is_refuted_below_the_claim_that_it_carries_and_not_at_it(kind):
    make, settings = OBJECTS[kind]
    low = check(make(), claim=1.2, **{**LIMITS, **settings})
    assert isinstance(low, Violation)
    assert low.mechanism == make.__name__
    assert not low.reproducible
    assert make is not Estimator or "attribute 'mean_'" in low.witness.description
    passed = check(make(), **{**FEW, **settings})
    assert isinstance(passed, NotRefuted)
    assert passed.claim == ApproxDP(epsilon=2.0)


def test_objects_that_randomise_carry_claim_and_neighbours():
    thing = Randomiser()
    assert library_of(thing).claim(thing) == ApproxDP(epsilon=2.0)
    (pair,) = library_of(thing).neighbours(thing).candidates()
    assert (pair.data.tolist(), pair.neighbour.tolist()) == (0.0, 1.0)
    thing.epsilon = -1.0
    with pytest.raises(InvalidClaim, match=r"epsilon=-1\.0"):
        library_of(thing).claim(thing)


@pytest.mark.parametrize("thing", [many, len, 3, object()])
def test_other_things_carry_no_claim(thing):
    assert library_of(thing).claim(thing) is None
    assert library_of(thing).neighbours(thing) is None


def test_a_check_without_a_claim_or_of_what_is_not_callable_is_refused():
    with pytest.raises(InvalidClaim):
        check(many, neighbours=ONE)
    with pytest.raises(InvalidParameter, match="3 is not callable"):
        as_mechanism(3, as_finite_numbers([0.0]))
