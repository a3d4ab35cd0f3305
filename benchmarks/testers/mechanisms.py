"""The mechanisms that every tester is given, in plain NumPy: each once for one run, and once for many at a time.

Testers that take samples in batches would wait for Python loops, so they get the second form; a test compares the two.
Claims are ε-DP for answers of which each may differ by 1 ("all"), for one that may ("one"), or for a bit ("bit").
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

#: The number in the places behind the last answer of a threshold mechanism, where a tester needs rows of one length.
ABSENT = -1.0


def laplace(rng, queries, epsilon):
    return queries[0] + rng.laplace(0.0, 1 / epsilon)


def many_laplace(rng, queries, epsilon, n):
    return queries[0] + rng.laplace(0.0, 1 / epsilon, n)


def laplace_half_scale(rng, queries, epsilon):
    return queries[0] + rng.laplace(0.0, 0.5 / epsilon)


def many_laplace_half_scale(rng, queries, epsilon, n):
    return queries[0] + rng.laplace(0.0, 0.5 / epsilon, n)


def histogram(rng, queries, epsilon):
    noisy = np.empty(len(queries))
    for i in range(len(queries)):
        noisy[i] = queries[i] + rng.laplace(0.0, 1 / epsilon)
    return noisy


def many_histogram(rng, queries, epsilon, n):
    return np.asarray(queries) + rng.laplace(0.0, 1 / epsilon, (n, len(queries)))


def histogram_wrong_scale(rng, queries, epsilon):
    noisy = np.empty(len(queries))
    for i in range(len(queries)):
        noisy[i] = queries[i] + rng.laplace(0.0, epsilon)
    return noisy


def many_histogram_wrong_scale(rng, queries, epsilon, n):
    return np.asarray(queries) + rng.laplace(0.0, epsilon, (n, len(queries)))


def noisy_max(rng, queries, epsilon):
    place, largest = 0, -np.inf
    for i in range(len(queries)):
        noisy = queries[i] + rng.laplace(0.0, 2 / epsilon)
        if noisy > largest:
            place, largest = i, noisy
    return place


def many_noisy_max(rng, queries, epsilon, n):
    return np.argmax(np.asarray(queries) + rng.laplace(0.0, 2 / epsilon, (n, len(queries))), axis=1)


def noisy_max_value(rng, queries, epsilon):
    largest = -np.inf
    for i in range(len(queries)):
        largest = max(largest, queries[i] + rng.laplace(0.0, 2 / epsilon))
    return largest


def many_noisy_max_value(rng, queries, epsilon, n):
    return np.max(np.asarray(queries) + rng.laplace(0.0, 2 / epsilon, (n, len(queries))), axis=1)


def svt(rng, queries, epsilon):
    answers = np.empty(len(queries))
    threshold = 0.5 + rng.laplace(0.0, 2 / epsilon)
    for i in range(len(queries)):
        answers[i] = queries[i] + rng.laplace(0.0, 4 / epsilon) >= threshold
        if answers[i]:
            return answers[: i + 1]
    return answers


def many_svt(rng, queries, epsilon, n):
    threshold = 0.5 + rng.laplace(0.0, 2 / epsilon, (n, 1))
    return _until_the_first(np.asarray(queries) + rng.laplace(0.0, 4 / epsilon, (n, len(queries))) >= threshold)


def isvt1(rng, queries, epsilon):
    answers = np.empty(len(queries))
    threshold = 1.0 + rng.laplace(0.0, 2 / epsilon)
    for i in range(len(queries)):
        answers[i] = queries[i] >= threshold
    return answers


def many_isvt1(rng, queries, epsilon, n):
    return (np.asarray(queries) >= 1.0 + rng.laplace(0.0, 2 / epsilon, (n, 1))).astype(float)


def isvt2(rng, queries, epsilon):
    answers = np.empty(len(queries))
    threshold = 1.0 + rng.laplace(0.0, 2 / epsilon)
    for i in range(len(queries)):
        answers[i] = queries[i] + rng.laplace(0.0, 2 / epsilon) >= threshold
    return answers


def many_isvt2(rng, queries, epsilon, n):
    threshold = 1.0 + rng.laplace(0.0, 2 / epsilon, (n, 1))
    return (np.asarray(queries) + rng.laplace(0.0, 2 / epsilon, (n, len(queries))) >= threshold).astype(float)


def isvt3(rng, queries, epsilon):
    answers = np.empty(len(queries))
    threshold = 1.0 + rng.laplace(0.0, 4 / epsilon)
    for i in range(len(queries)):
        answers[i] = queries[i] + rng.laplace(0.0, 4 / (3 * epsilon)) >= threshold
        if answers[i]:
            return answers[: i + 1]
    return answers


def many_isvt3(rng, queries, epsilon, n):
    threshold = 1.0 + rng.laplace(0.0, 4 / epsilon, (n, 1))
    noise = rng.laplace(0.0, 4 / (3 * epsilon), (n, len(queries)))
    return _until_the_first(np.asarray(queries) + noise >= threshold)


def isvt4(rng, queries, epsilon):
    answers = np.zeros(len(queries))
    threshold = 1.0 + rng.laplace(0.0, 2 / epsilon)
    for i in range(len(queries)):
        noisy = queries[i] + rng.laplace(0.0, 2 / epsilon)
        if noisy >= threshold:
            answers[i] = noisy
            return answers[: i + 1]
    return answers


def many_isvt4(rng, queries, epsilon, n):
    threshold = 1.0 + rng.laplace(0.0, 2 / epsilon, (n, 1))
    noisy = np.asarray(queries) + rng.laplace(0.0, 2 / epsilon, (n, len(queries)))
    flags = _until_the_first(noisy >= threshold)
    return np.where(flags == 1, noisy, flags)


def randomised_response(rng, queries, epsilon):
    keep = rng.random() < 1 / (1 + math.exp(-epsilon))
    return int(queries[0] if keep else 1 - queries[0])


def many_randomised_response(rng, queries, epsilon, n):
    keep = rng.random(n) < 1 / (1 + math.exp(-epsilon))
    return np.where(keep, queries[0], 1 - queries[0])


def laplace_flat_ends(rng, queries, epsilon):
    scale, edge = 2 / epsilon, 7 / epsilon
    noise = rng.laplace(0.0, scale)
    if abs(noise) > edge:
        noise = math.copysign(edge + scale * rng.random(), noise)
    return queries[0] + noise


def many_laplace_flat_ends(rng, queries, epsilon, n):
    scale, edge = 2 / epsilon, 7 / epsilon
    noise = rng.laplace(0.0, scale, n)
    level = np.copysign(edge + scale * rng.random(n), noise)
    return queries[0] + np.where(np.abs(noise) > edge, level, noise)


def svt_uniform_threshold(rng, queries, epsilon):
    answers = np.empty(len(queries))
    threshold = 1.0 - 1.8 * (1 + rng.random())
    for i in range(len(queries)):
        answers[i] = queries[i] + rng.laplace(0.0, 0.2 / epsilon) >= threshold
        if answers[i]:
            return answers[: i + 1]
    return answers


def many_svt_uniform_threshold(rng, queries, epsilon, n):
    threshold = 1.0 - 1.8 * (1 + rng.random((n, 1)))
    return _until_the_first(np.asarray(queries) + rng.laplace(0.0, 0.2 / epsilon, (n, len(queries))) >= threshold)


def _until_the_first(flags: np.ndarray) -> np.ndarray:
    """The flags as numbers, with `ABSENT` in the places behind the first 1 of a row."""
    behind = np.cumsum(flags, axis=1) - flags > 0
    return np.where(behind, ABSENT, flags.astype(float))


def first(outcome):
    """The first cell, which StatDP's own examples release of a histogram."""
    return float(outcome[0])


def how_many_below(outcome):
    """The number of ⊥'s, which StatDP's own examples release of SVT."""
    return int(np.count_nonzero(outcome == 0))


def distance_from_half(outcome):
    """The Hamming distance from ⊤⊤⊤⊤⊤⊥⊥⊥⊥⊥, which StatDP's own examples release of iSVT 1 to 3.

    An answer that is missing counts as different.
    """
    half = np.arange(10) < 5
    return int(np.count_nonzero(half[: len(outcome)] != (outcome == 1))) + 10 - len(outcome)


def below_and_last(outcome):
    """The number of ⊥'s and the last answer, which StatDP's own examples release of iSVT 4."""
    return int(np.count_nonzero(outcome == 0)), float(outcome[-1])


@dataclass(frozen=True)
class Case:
    """A mechanism, the shape of its inputs and outcomes, and its true ε."""

    one: Callable[..., Any]  # (rng, queries, epsilon) → outcome
    many: Callable[..., Any]  # (rng, queries, epsilon, n) → array, axis 0 = runs
    inputs: int  # the number of answers, or 1 for a bit
    differ: str  # "one", "all" or "bit"
    true_epsilon: str
    right: bool  # whether the mechanism keeps its claim
    width: int = 1  # the number of numbers in an outcome of `many`
    kinds: int = 0  # the number of outcomes 0, 1, … of a mechanism with few outcomes, else 0
    absent: bool = False  # whether ABSENT occurs in an outcome of `many`
    summary: Callable[..., Any] | None = None  # a function for StatDP, which searches events of one or two numbers


CASES = {
    "laplace": Case(laplace, many_laplace, 1, "one", "ε", True),
    "laplace_half_scale": Case(laplace_half_scale, many_laplace_half_scale, 1, "one", "2ε", False),
    "histogram": Case(histogram, many_histogram, 5, "one", "ε", True, 5, summary=first),
    "histogram_wrong_scale": Case(
        histogram_wrong_scale, many_histogram_wrong_scale, 5, "one", "1/ε", False, 5, summary=first
    ),
    "noisy_max": Case(noisy_max, many_noisy_max, 5, "all", "at most ε", True, kinds=5),
    "noisy_max_value": Case(noisy_max_value, many_noisy_max_value, 5, "all", "5ε/2", False),
    "svt": Case(svt, many_svt, 10, "all", "at most ε", True, 10, absent=True, summary=how_many_below),
    "isvt1": Case(isvt1, many_isvt1, 10, "all", "∞", False, 10, summary=distance_from_half),
    "isvt2": Case(isvt2, many_isvt2, 10, "all", "above 4ε", False, 10, summary=distance_from_half),
    "isvt3": Case(isvt3, many_isvt3, 10, "all", "at most 7ε/4", False, 10, absent=True, summary=distance_from_half),
    "isvt4": Case(isvt4, many_isvt4, 10, "all", "above 2ε", False, 10, absent=True, summary=below_and_last),
    "randomised_response": Case(
        randomised_response, many_randomised_response, 1, "bit", "ε", True, kinds=2
    ),
    "laplace_flat_ends": Case(laplace_flat_ends, many_laplace_flat_ends, 1, "one", "∞", False),
    "svt_uniform_threshold": Case(
        svt_uniform_threshold, many_svt_uniform_threshold, 10, "all", "50ε", False, 10, absent=True,
        summary=how_many_below,
    ),
}  # fmt: skip
