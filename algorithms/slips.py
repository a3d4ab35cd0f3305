"""Correct mechanisms, each before a twin with one common slip.

DPrivBench (Wang et al. 2026) asks about such pairs: sensitivity, budget, reuse of noise, and use of raw data.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpwitness.noise import exponential, laplace
from dpwitness.targets import histogram, numbers, queries, records, target

Answers = NDArray[np.float64]

SOURCE = "after DPrivBench (Wang et al. 2026)"
#: Values from −1 to 1, one of which may be replaced.
SIGNED = records(numbers(-1.0, 1.0), adjacency="replace-one", size=(1, 1000))
#: Values from 0 to 1, one of which may be added or removed.
SHARES = records(numbers(0.0, 1.0))
#: Any values, one of which may be added or removed; the mechanism clips them to [0, 1].
ANY = records(numbers(0.0, 1.0, clipped=True))


@target(claim="epsilon", neighbours=SIGNED, source="Dwork, McSherry, Nissim & Smith 2006", true_epsilon="ε")
def sum_of_signed(rng: np.random.Generator, values: Answers, epsilon: float) -> float:
    """A sum of values from −1 to 1, one of which may be replaced, + Lap(2/ε)."""
    return float(values.sum()) + laplace(rng, 2 / epsilon)


@target(claim="epsilon", neighbours=SIGNED, source=SOURCE, true_epsilon="2·ε")
def sum_of_signed_half_sensitivity(rng: np.random.Generator, values: Answers, epsilon: float) -> float:
    """`sum_of_signed` with the sensitivity of adding or removing a value."""
    return float(values.sum()) + laplace(rng, 1 / epsilon)  # the defect: a replaced value moves the sum by 2


@target(claim="epsilon", neighbours=SHARES, source="Dwork & Roth 2014, Theorem 3.14", true_epsilon="ε")
def count_and_sum(rng: np.random.Generator, values: Answers, epsilon: float) -> Answers:
    """The number of values from 0 to 1 and their sum, each with half of ε."""
    return np.array([len(values) + laplace(rng, 2 / epsilon), values.sum() + laplace(rng, 2 / epsilon)])


@target(claim="epsilon", neighbours=SHARES, source=SOURCE, true_epsilon="2·ε")
def count_and_sum_full_budget_each(rng: np.random.Generator, values: Answers, epsilon: float) -> Answers:
    """`count_and_sum` with all of ε for each answer."""
    # The defect: the scale should be 2 / epsilon.
    return np.array([len(values) + laplace(rng, 1 / epsilon), values.sum() + laplace(rng, 1 / epsilon)])


@target(claim="epsilon", neighbours=queries(4), source="Dwork & Roth 2014, Theorem 3.14", true_epsilon="ε")
def answers_composed(rng: np.random.Generator, queries: Answers, epsilon: float) -> Answers:
    """Each of k answers + Lap(k/ε)."""
    noisy = np.empty(len(queries))
    for i in range(len(queries)):
        noisy[i] = queries[i] + laplace(rng, len(queries) / epsilon)
    return noisy


@target(claim="epsilon", neighbours=queries(4), source=SOURCE, true_epsilon="√k·ε: 2·ε for 4 answers")
def answers_root_composed(rng: np.random.Generator, queries: Answers, epsilon: float) -> Answers:
    """Each of k answers + Lap(√k/ε), as if advanced composition had no δ."""
    noisy = np.empty(len(queries))
    for i in range(len(queries)):
        noisy[i] = queries[i] + laplace(rng, math.sqrt(len(queries)) / epsilon)  # the defect: k, not √k
    return noisy


@target(claim="epsilon", neighbours=queries(2), source="Dwork & Roth 2014, Theorem 3.14", true_epsilon="ε")
def two_answers(rng: np.random.Generator, queries: Answers, epsilon: float) -> Answers:
    """Two answers, each with its own noise Lap(2/ε)."""
    return np.array([queries[0] + laplace(rng, 2 / epsilon), queries[1] + laplace(rng, 2 / epsilon)])


@target(claim="epsilon", neighbours=queries(2), source=SOURCE, true_epsilon="∞")
def two_answers_same_noise(rng: np.random.Generator, queries: Answers, epsilon: float) -> Answers:
    """Two answers + the same Lap(2/ε)."""
    noise = laplace(rng, 2 / epsilon)
    return np.array([queries[0] + noise, queries[1] + noise])  # the defect: their difference has no noise


@target(claim="epsilon", neighbours=histogram(5), source="Dwork & Roth 2014, Proposition 2.1", true_epsilon="ε")
def counts_above_zero(rng: np.random.Generator, counts: NDArray[np.int64], epsilon: float) -> Answers:
    """Every cell + Lap(1/ε), negative results set to 0."""
    noisy = np.empty(len(counts))
    for i in range(len(counts)):
        noisy[i] = max(counts[i] + laplace(rng, 1 / epsilon), 0.0)
    return noisy


@target(claim="epsilon", neighbours=histogram(5), source=SOURCE, true_epsilon="∞")
def counts_above_zero_of_raw(rng: np.random.Generator, counts: NDArray[np.int64], epsilon: float) -> Answers:
    """Every cell + Lap(1/ε), but cells that are empty stay 0."""
    noisy = np.empty(len(counts))
    for i in range(len(counts)):
        # The defect: the raw count decides, not the noisy one.
        noisy[i] = max(counts[i] + laplace(rng, 1 / epsilon), 1e-9) if counts[i] > 0 else 0.0
    return noisy


@target(claim="epsilon", neighbours=queries(1), source="Dwork & Roth 2014, Proposition 2.1", true_epsilon="ε")
def answer_if_large(rng: np.random.Generator, queries: Answers, epsilon: float, threshold: float = 10.0) -> float:
    """One answer + Lap(1/ε) where this sum is at least the threshold, else −1."""
    noisy = queries[0] + laplace(rng, 1 / epsilon)
    return float(noisy) if noisy >= threshold else -1.0


@target(claim="epsilon", neighbours=queries(1), source=SOURCE, true_epsilon="∞")
def answer_if_raw_large(rng: np.random.Generator, queries: Answers, epsilon: float, threshold: float = 10.0) -> float:
    """One answer + Lap(1/ε) where the answer itself is at least the threshold, else −1."""
    noisy = queries[0] + laplace(rng, 1 / epsilon)
    return float(noisy) if queries[0] >= threshold else -1.0  # the defect: noisy >= threshold


@target(claim="epsilon", neighbours=SHARES, source="Balle, Barthe & Gaboardi 2018, Theorem 8", true_epsilon="ε")
def sampled_sum(rng: np.random.Generator, values: Answers, epsilon: float, rate: float = 0.5) -> float:
    """The sum of independently sampled values, with the smaller noise that sampling allows."""
    total = 0.0
    for i in range(len(values)):
        total += values[i] if rng.random() < rate else 0.0
    return total + laplace(rng, 1 / math.log1p(math.expm1(epsilon) / rate))


@target(claim="epsilon", neighbours=SHARES, source=SOURCE, true_epsilon="ln(1 + (e^ε − 1)/rate)")
def unsampled_sum(rng: np.random.Generator, values: Answers, epsilon: float, rate: float = 0.5) -> float:
    """The sum of every second value, with the noise that is enough for a random sample."""
    total = 0.0
    for i in range(0, len(values), math.ceil(1 / rate)):  # the defect: the sample is not secret
        total += values[i]
    return total + laplace(rng, 1 / math.log1p(math.expm1(epsilon) / rate))


@target(claim="epsilon", neighbours=ANY, source="Dwork & Roth 2014, section 3.3", true_epsilon="ε")
def clipped_sum(rng: np.random.Generator, values: Answers, epsilon: float) -> float:
    """A sum of values clipped to [0, 1], + Lap(1/ε)."""
    total = 0.0
    for i in range(len(values)):
        total += min(max(values[i], 0.0), 1.0)
    return total + laplace(rng, 1 / epsilon)


@target(claim="epsilon", neighbours=ANY, source=SOURCE, true_epsilon="∞")
def clipped_sum_above_only(rng: np.random.Generator, values: Answers, epsilon: float) -> float:
    """A sum of values clipped to at most 1, + Lap(1/ε)."""
    total = 0.0
    for i in range(len(values)):
        total += min(values[i], 1.0)  # the defect: nothing is clipped at 0
    return total + laplace(rng, 1 / epsilon)


@target(claim="epsilon", neighbours=queries(1), source=SOURCE, true_epsilon="∞")
def one_sided_noise(rng: np.random.Generator, queries: Answers, epsilon: float) -> float:
    """One answer + an exponential number of mean 1/ε; its correct twin is `laplace_mechanism`."""
    return float(queries[0]) + exponential(rng, 1 / epsilon)  # the defect: no answer is below the true one
