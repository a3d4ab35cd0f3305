"""Values that a sweep never chooses; functions without data; public records."""

from enum import Enum
from typing import Literal

import numpy as np

from dpwitness.sweeps.describers import describer_of, signatures
from dpwitness.sweeps.worker import try_attempt

RNG = np.random.default_rng()


def first_running(thing):
    """The first attempt at a thing that runs."""
    _, describer = describer_of(thing, "some.module:thing")
    recipe = describer.recipes(thing, "some.module:thing")[0]
    assert not recipe.refused, recipe.refused
    return next(attempt for attempt in describer.attempts(thing, recipe) if not try_attempt(attempt))


def refusal_of(thing):
    """The reason why the first recipe of a thing is refused."""
    return signatures.DESCRIBER.recipes(thing, "some.module:thing")[0].refused


class Law(Enum):
    GAUSSIAN = 1
    DISCRETE = 2
    LAPLACE = 3


def test_a_text_that_may_mean_no_noise_is_not_taken():
    assert signatures.value_of("law", Literal["none", "gaussian", "staircase"]) == "staircase"
    assert signatures.value_of("law", Law) is Law.LAPLACE
    assert signatures.value_of("mode", Literal["zero", "deterministic", "renyi"]) is None


def laplace_noise(epsilon):
    return RNG.laplace(scale=1 / epsilon)


def of_reports(reports, epsilon, other):
    return len(reports)


def test_functions_without_data_have_that_reason():
    for thing in (laplace_noise, of_reports):
        assert refusal_of(thing) == signatures.NO_DATA


def of_three_categories(values, epsilon):
    categories = np.unique(values)
    if len(categories) < 3:
        raise ValueError("three categories are required")
    return [RNG.choice(categories) if RNG.random() < 3 / (np.e + 2) else value for value in values]


def test_public_records_have_all_categories():
    attempt = first_running(of_three_categories)
    assert attempt.adjacency == "any two values of one record, beside public records"
    for pair in attempt.relations[0].candidates():
        assert all(set(side) == {"a", "b", "c"} for side in pair.sides)
