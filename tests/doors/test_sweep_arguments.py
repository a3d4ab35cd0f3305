"""Texts that a sweep finds in the source of a function; noise without data; public records."""

from enum import Enum
from typing import Literal

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.sweeps.describers import describer_of, signatures
from dpwitness.sweeps.worker import try_attempt, whole_output

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


def by_way(data, epsilon, way):
    if way == "count":
        return len(data) + RNG.laplace(scale=1 / epsilon)
    raise ValueError(f"unknown way {way}")


def by_one_of_ways(data, epsilon, way: str):
    if way not in ("none", "count", "number"):
        raise ValueError(f"unknown way {way}")
    return len(data) + RNG.laplace(scale=1 / epsilon)


@pytest.mark.parametrize("thing", [by_way, by_one_of_ways])
def test_a_text_is_taken_from_the_comparisons_of_the_source(thing):
    assert first_running(thing)


def with_or_without(data, epsilon, noise_law):
    if noise_law == "exact":
        return len(data)
    assert noise_law == "laplace", noise_law
    return len(data) + RNG.laplace(scale=1 / epsilon)


def without(data, epsilon, mode):
    return len(data) if mode in ("raw", "gaussian") else 1 / 0


class Law(Enum):
    GAUSSIAN = 1
    DISCRETE = 2
    LAPLACE = 3


def test_a_text_that_may_mean_no_noise_is_not_taken():
    assert signatures.value_of("law", Literal["none", "gaussian", "staircase"]) == "staircase"
    assert signatures.value_of("law", Law) is Law.LAPLACE
    assert signatures.text_compared(with_or_without, "noise_law", str) == "laplace"
    assert refusal_of(without) == "no value is known for its parameter 'mode'"


def laplace_noise(epsilon, sensitivity):
    return RNG.laplace(scale=sensitivity / epsilon)


def small_laplace_noise(epsilon):
    return RNG.laplace(scale=1 / epsilon / 4)


def laplace_noise_of(epsilon, size):
    return RNG.laplace(scale=1 / epsilon, size=size)


@pytest.mark.parametrize(
    ("thing", "refuted"), [(laplace_noise, False), (laplace_noise_of, False), (small_laplace_noise, True)]
)
def test_noise_is_added_to_a_number(thing, refuted):
    attempt = first_running(thing)
    assert "the noise is added" in attempt.adjacency
    verdict = dpw.check(
        attempt.mechanism, claim=attempt.claim, neighbours=attempt.relations[0], alpha=1e-9, seed=1, runs=10_000,
        search_runs=10_000, workers=1, bits=False, outcome=whole_output,
    )  # fmt: skip
    assert verdict.refuted == refuted


def exponential_noise(epsilon):
    return RNG.exponential(1 / epsilon)


def gaussian_noise(epsilon):
    return RNG.normal(scale=1 / epsilon)


def laplace_noise_scale(epsilon):
    return 1 / epsilon


def of_reports(reports, epsilon, other):
    return len(reports)


def test_functions_without_data_have_that_reason():
    for thing in (exponential_noise, gaussian_noise, of_reports):
        assert refusal_of(thing) == signatures.NO_DATA
    with pytest.raises(StopIteration):
        first_running(laplace_noise_scale)


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
