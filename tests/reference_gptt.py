"""Slow, obvious versions of the attacks on private threshold testing, with which the fast versions must agree."""

from itertools import pairwise

from dpwitness.reconstruction.threshold_testing.oracle import ThresholdOracle
from dpwitness.reconstruction.threshold_testing.theory import attack_threshold


def paper_oracle(counts, rng, *, epsilon, share=0.5, threshold=None):
    """The system of Algorithm 4: a share of ε for the threshold, the rest for totals; θ as in Lemma 5.10 by default."""
    theta = attack_threshold(share * epsilon, 0.05) if threshold is None else threshold
    return ThresholdOracle(
        counts, rng, epsilon1=share * epsilon, threshold=theta, epsilon_totals=(1 - share) * epsilon
    )  # fmt: skip


def partition_by_comparing(counts, noisy_threshold):
    """Algorithm 3 as printed: all difference queries, the sets larger(v), and the parts in their order."""
    cells = range(len(counts))
    larger = [frozenset(u for u in cells if counts[u] - counts[v] >= noisy_threshold) for v in cells]
    different = sorted(set(larger), key=len, reverse=True)
    for before, after in pairwise(different):
        assert after < before  # each set is a proper subset of the set before
    return [different.index(larger[v]) for v in cells]


def reconstruct_by_comparing(counts, rng, *, epsilon, theta):
    """Algorithm 4 as printed, with halves of ε: one draw for the threshold, then one for each part in order."""
    part = partition_by_comparing(counts, theta + rng.laplace(0.0, 2 / epsilon))
    guess = [0] * len(counts)
    for number in range(max(part) + 1):
        members = [v for v, p in enumerate(part) if p == number]
        average = (sum(counts[v] for v in members) + rng.laplace(0.0, 2 / epsilon)) / len(members)
        for v in members:
            guess[v] = round(average)
    return guess


def threshold_answers(counts, noisy_threshold, signs):
    """Whether a signed sum of cells reaches the noisy threshold."""
    return sum(s * x for s, x in zip(signs, counts, strict=True)) >= noisy_threshold
