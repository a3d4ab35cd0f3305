"""Functions with one fault each, at the lines marked `# the defect`: explanations name these lines or none."""

import math
from dataclasses import dataclass

import numpy as np

from dpwitness.noise import laplace

GENERATOR = np.random.default_rng()


def scale_from_data(rng, data, epsilon):
    """The sensitivity is the largest record."""
    total = float(np.sum(data))
    spread = float(np.max(np.abs(data)))
    return total + rng.laplace(0.0, spread / epsilon)  # the defect


def sensitivity_forgotten(rng, data, epsilon):
    """Records up to 10, noise for records up to 1."""
    total = 0.0
    for value in data:
        total += min(max(value, 0.0), 10.0)
    return total + rng.laplace(0.0, 1 / epsilon)  # the defect


def inverse_of_uniform(rng, data, epsilon):
    """A sampler written by hand, with ε where 1/ε should be."""
    u = rng.random() - 0.5  # the defect
    return sum(data) - 0.1 * math.copysign(1, u) * math.log(1 - 2 * abs(u))


def draw_skipped(rng, data, epsilon):
    """Small sums get no noise."""
    total = 0.0
    for value in data:
        total += value
    if total > 5:  # the defect
        total += rng.laplace(0.0, 10 / epsilon)
    return total


def early_return(rng, data, epsilon):
    """Without records there is no noise."""
    if len(data) == 0:  # the defect
        return 0.0
    total = float(np.sum(data))
    return total + laplace(rng, 10 / epsilon)


def noise_reused(rng, data, epsilon):
    """Two entries, one noise."""
    noise = rng.laplace(0.0, 4 / epsilon)  # the defect
    return [data[0] + noise, data[1] + noise]


def draw_for_each_record(rng, data, epsilon):
    """Each record has noise of its own, so that the list's length is exact."""
    return [value + rng.laplace(0.0, 10 / epsilon) for value in data]  # the defect


def exact_entry(rng, data, epsilon):
    """The noisy sum, and the exact mean."""
    noisy = sum(data) + laplace(rng, 10 / epsilon)
    mean = sum(data) / (len(data) + 0.1)
    return noisy, mean  # the defect


def threshold_of_raw(rng, data, epsilon):
    """The exact sum decides whether the noisy one is shown."""
    noisy = sum(data) + rng.laplace(0, 10 / epsilon)
    if sum(data) < 5:  # the defect
        return -1.5
    return noisy


def clipped_afterwards(rng, data, epsilon):
    """The noisy sum is clipped, and not the records."""
    noisy = np.sum(data) + rng.laplace(0, 1 / epsilon)  # the defect
    return min(max(noisy, 0.0), 4.0)


def global_generator(data, epsilon):
    """A generator of the module, and noise for a twentieth of the difference."""
    return float(np.sum(data)) + GENERATOR.normal(0, 0.05)  # the defect


def exponential_mechanism(rng, data, epsilon):
    """Scores that change by 3, probabilities as if by 1."""
    scores = np.array([sum(data), 10 - sum(data)])
    weights = np.exp(epsilon * scores / 2)
    return int(rng.choice(2, p=weights / weights.sum()))  # the defect


def response(rng, data, epsilon):
    """Randomised response that tells the truth too often."""
    truth = data[0] > 0
    if rng.random() < 0.99:  # the defect
        return truth
    return not truth


def report_noisy_max(rng, data, epsilon):
    """The noise of each score is too small."""
    best, winner = -math.inf, 0
    for i, score in enumerate(data):
        noisy = score + rng.laplace(0, 0.1)  # the defect
        if noisy > best:
            best, winner = noisy, i
    return winner


@dataclass
class Release:
    """A noisy sum and an exact count."""

    total: float
    count: int


def exact_count(rng, data, epsilon):
    """The number of records has no noise."""
    total = sum(data) + rng.laplace(0, 10)
    return Release(total, len(data))  # the defect


def helper(rng, scale):
    """Gaussian noise, drawn for callers."""
    return rng.normal(0, scale)  # the defect


def scale_from_data_in_a_helper(rng, data, epsilon):
    """The line in which noise is drawn is in a helper."""
    return float(np.median(data)) + helper(rng, float(np.std(data)) + 0.1)


class Holder:
    """A mechanism that holds its generator."""

    def __init__(self):
        self.rng = np.random.default_rng(3)

    def __call__(self, data, epsilon):
        """The scale of the noise is the largest record."""
        return sum(data) + self.rng.laplace(0, max(data))  # the defect


#: The functions with a fault, each with D and D′.
BROKEN = [
    (scale_from_data, [1.0, 1.0], [1.0, 2.0]),
    (sensitivity_forgotten, [1.0, 2.0], [1.0, 9.0]),
    (inverse_of_uniform, [1.0, 2.0], [1.0, 3.0]),
    (draw_skipped, [2.0, 2.0, 2.0], [2.0, 2.0]),
    (early_return, [1.0], []),
    (noise_reused, [1.0, 2.0], [1.0, 3.0]),
    (draw_for_each_record, [1.0, 2.0, 3.0], [1.0, 2.0]),
    (exact_entry, [1.0, 2.0, 3.0], [1.0, 2.0, 4.0]),
    (threshold_of_raw, [2.0, 2.0, 2.0], [2.0, 2.0]),
    (clipped_afterwards, [1.0, 2.0], [1.0, 9.0]),
    (global_generator, [1.0, 2.0], [1.0, 3.0]),
    (exponential_mechanism, [1.0, 2.0], [1.0, 5.0]),
    (response, [0], [1]),
    (report_noisy_max, [1.0, 2.0, 3.0], [2.0, 1.0, 2.0]),
    (exact_count, [1.0, 1.0], [1.0, 1.0, 1.0]),
    (scale_from_data_in_a_helper, [1.0, 1.0, 2.0], [1.0, 5.0, 2.0]),
    (Holder(), [1.0, 1.0], [1.0, 2.0]),
]
