"""The sparse vector technique and the broken variants of it that Lyu, Su & Li (2017) collected.

All of them compare noisy answers with one noisy threshold, ⊤ (1) for "at least", ⊥ (0) for "below".
"""

import numpy as np
from numpy.typing import NDArray

from dpwitness.noise import laplace
from dpwitness.targets import queries, target

Answers = NDArray[np.float64]


def _check(cutoff: int) -> None:
    """Refuse a cutoff that leaves queries without noise."""
    if cutoff < 1:
        raise ValueError("cutoff must be at least 1")


@target(
    claim="epsilon",
    neighbours=queries(10, any_length=True),
    source="Ding et al. 2018, Alg. 11; Lyu, Su & Li 2017, Alg. 7",
    true_epsilon="ε",
    flags=True,
)
def svt(
    rng: np.random.Generator,
    queries: Answers,
    epsilon: float,
    threshold: float = 0.5,
    cutoff: int = 1,
    sensitivity: float = 1.0,
) -> Answers:
    """Sparse vector technique: ⊤ or ⊥ for each query until `cutoff` ⊤'s."""
    _check(cutoff)
    answers = np.empty(len(queries))
    noisy_threshold = threshold + laplace(rng, 2 * sensitivity / epsilon)
    count = 0
    for i in range(len(queries)):
        if queries[i] + laplace(rng, 4 * cutoff * sensitivity / epsilon) >= noisy_threshold:
            answers[i] = True
            count += 1
            if count >= cutoff:
                return answers[: i + 1]
        else:
            answers[i] = False
    return answers


@target(
    claim="epsilon",
    neighbours=queries(10, any_length=True),
    source="Ding et al. 2018, Alg. 12 (iSVT 1)",
    true_epsilon="∞",
    flags=True,
)
def isvt1(
    rng: np.random.Generator,
    queries: Answers,
    epsilon: float,
    threshold: float = 0.5,
    sensitivity: float = 1.0,
) -> Answers:
    """Sparse vector technique without noise on the queries, and without a bound on the number of ⊤'s."""
    answers = np.empty(len(queries))
    noisy_threshold = threshold + laplace(rng, 2 * sensitivity / epsilon)
    for i in range(len(queries)):
        answers[i] = queries[i] >= noisy_threshold  # the defect: the query has no noise
    return answers


@target(
    claim="epsilon",
    neighbours=queries(10, any_length=True),
    source="Ding et al. 2018, Alg. 14 (iSVT 2)",
    true_epsilon="∞ in the number of queries",
    flags=True,
)
def isvt2(
    rng: np.random.Generator,
    queries: Answers,
    epsilon: float,
    threshold: float = 0.5,
    sensitivity: float = 1.0,
) -> Answers:
    """Sparse vector technique without a bound on the number of ⊤'s."""
    answers = np.empty(len(queries))
    noisy_threshold = threshold + laplace(rng, 2 * sensitivity / epsilon)
    for i in range(len(queries)):  # the defect: it never stops
        answers[i] = queries[i] + laplace(rng, 2 * sensitivity / epsilon) >= noisy_threshold
    return answers


@target(
    claim="epsilon",
    neighbours=queries(10, any_length=True),
    source="Ding et al. 2018, Alg. 13 (iSVT 3)",
    true_epsilon="(1 + 6·cutoff)/4 · ε",
    flags=True,
)
def isvt3(
    rng: np.random.Generator,
    queries: Answers,
    epsilon: float,
    threshold: float = 0.5,
    cutoff: int = 1,
    sensitivity: float = 1.0,
) -> Answers:
    """Sparse vector technique whose noise does not grow with the bound on the number of ⊤'s."""
    _check(cutoff)
    answers = np.empty(len(queries))
    noisy_threshold = threshold + laplace(rng, 4 * sensitivity / epsilon)
    count = 0
    for i in range(len(queries)):
        # The defect: the scale should be 8·cutoff·Δ/(3ε).
        if queries[i] + laplace(rng, 4 * sensitivity / (3 * epsilon)) >= noisy_threshold:
            answers[i] = True
            count += 1
            if count >= cutoff:
                return answers[: i + 1]
        else:
            answers[i] = False
    return answers


@target(
    claim="epsilon",
    neighbours=queries(10, any_length=True),
    source="Ding et al. 2018, Alg. 15 (iSVT 4)",
    true_epsilon="∞ in the number of queries",
)
def isvt4(
    rng: np.random.Generator,
    queries: Answers,
    epsilon: float,
    threshold: float = 0.5,
    cutoff: int = 1,
    sensitivity: float = 1.0,
) -> Answers:
    """Sparse vector technique that releases the noisy answer instead of ⊤."""
    _check(cutoff)
    answers = np.empty(len(queries))
    noisy_threshold = threshold + laplace(rng, 2 * sensitivity / epsilon)
    count = 0
    for i in range(len(queries)):
        noisy_answer = queries[i] + laplace(rng, 2 * cutoff * sensitivity / epsilon)
        if noisy_answer >= noisy_threshold:
            answers[i] = noisy_answer  # the defect: the very number that was compared
            count += 1
            if count >= cutoff:
                return answers[: i + 1]
        else:
            answers[i] = False
    return answers


@target(
    claim="epsilon",
    neighbours=queries(10, any_length=True),
    source="Chen & Machanavajjhala 2015, Alg. 1, as printed",
    true_epsilon="ε if all queries move the same way; 1.5·ε otherwise",
    flags=True,
)
def svt_single_noise(
    rng: np.random.Generator,
    queries: Answers,
    epsilon: float,
    threshold: float = 0.5,
    cutoff: int = 1,
    sensitivity: float = 1.0,
) -> Answers:
    """Sparse vector technique with query noise of half the scale that queries of either direction need."""
    _check(cutoff)
    answers = np.empty(len(queries))
    noisy_threshold = threshold + laplace(rng, 2 * sensitivity / epsilon)
    count = 0
    for i in range(len(queries)):
        # The defect: 4·cutoff·Δ/ε, unless adding a person can only raise answers (Lyu, Su & Li 2017).
        if queries[i] + laplace(rng, 2 * cutoff * sensitivity / epsilon) >= noisy_threshold:
            answers[i] = True
            count += 1
            if count >= cutoff:
                return answers[: i + 1]
        else:
            answers[i] = False
    return answers


@target(
    claim="epsilon",
    neighbours=queries(10, any_length=True),
    source="Lyu, Su & Li 2017, Alg. 2; Dwork & Roth 2014, Alg. 2",
    true_epsilon="at most ε",
    flags=True,
)
def svt_resampled(
    rng: np.random.Generator,
    queries: Answers,
    epsilon: float,
    threshold: float = 1.0,
    cutoff: int = 1,
    sensitivity: float = 1.0,
) -> Answers:
    """Sparse vector technique with new threshold noise after each ⊤, `cutoff` times as much as is needed."""
    _check(cutoff)
    answers = np.empty(len(queries))
    noisy_threshold = threshold + laplace(rng, 2 * cutoff * sensitivity / epsilon)
    count = 0
    for i in range(len(queries)):
        if queries[i] + laplace(rng, 4 * cutoff * sensitivity / epsilon) >= noisy_threshold:
            answers[i] = True
            noisy_threshold = threshold + laplace(rng, 2 * cutoff * sensitivity / epsilon)
            count += 1
            if count >= cutoff:
                return answers[: i + 1]
        else:
            answers[i] = False
    return answers


@target(
    claim="epsilon",
    neighbours=queries(10, any_length=True),
    source="Bichsel et al. 2021 (SVT34Parallel): Lyu, Su & Li 2017, Alg. 3 and 4",
    true_epsilon="∞ in the number of queries",
)
def svt_numeric_and_flags(
    rng: np.random.Generator,
    queries: Answers,
    epsilon: float,
    threshold: float = 1.0,
    cutoff: int = 2,
    sensitivity: float = 1.0,
) -> Answers:
    """The outputs of `isvt4` and `isvt3` side by side; the entries of each after `cutoff` ⊤'s are NaN."""
    _check(cutoff)
    n = len(queries)
    answers = np.full(2 * n, np.nan)
    noisy_threshold = threshold + laplace(rng, 2 * sensitivity / epsilon)
    count = 0
    for i in range(n):
        noisy_answer = queries[i] + laplace(rng, 2 * cutoff * sensitivity / epsilon)
        answers[i] = noisy_answer if noisy_answer >= noisy_threshold else 0.0  # the defect of isvt4
        count += noisy_answer >= noisy_threshold
        if count >= cutoff:
            break
    noisy_threshold = threshold + laplace(rng, 4 * sensitivity / epsilon)
    count = 0
    for i in range(n):  # the defect of isvt3: the noise does not grow with the cutoff
        answers[n + i] = queries[i] + laplace(rng, 4 * sensitivity / (3 * epsilon)) >= noisy_threshold
        count += answers[n + i] == 1
        if count >= cutoff:
            break
    return answers


@target(
    claim="epsilon",
    neighbours=queries(10, any_length=True),
    source="Wang, Ding, Wang, Kifer & Zhang 2019 (NumericalSVT)",
    true_epsilon="at most ε",
)
def numerical_svt(
    rng: np.random.Generator,
    queries: Answers,
    epsilon: float,
    threshold: float = 1.0,
    cutoff: int = 2,
    sensitivity: float = 1.0,
) -> Answers:
    """Sparse vector technique that releases the answer with fresh noise instead of ⊤, and 0 instead of ⊥."""
    _check(cutoff)
    answers = np.empty(len(queries))
    noisy_threshold = threshold + laplace(rng, 3 * sensitivity / epsilon)
    count = 0
    for i in range(len(queries)):
        if queries[i] + laplace(rng, 6 * cutoff * sensitivity / epsilon) >= noisy_threshold:
            answers[i] = queries[i] + laplace(rng, 3 * cutoff * sensitivity / epsilon)
            count += 1
            if count >= cutoff:
                return answers[: i + 1]
        else:
            answers[i] = 0.0
    return answers
