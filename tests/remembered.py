"""Mechanisms that keep something between runs, in a file that a new process can load; numpy alone, to load it fast."""

import functools
import multiprocessing
import random
import time

import numpy as np

KEPT = {}
OFFSET = 100 * np.random.default_rng().laplace()

SEEDED_ALIKE = np.random.default_rng(1)


def seeded_alike(data, size):
    """Randomised response, 1-DP, whose generator has the same seed in every process."""
    return np.where((data[0] > 0) ^ (SEEDED_ALIKE.random(size) < 1 / (1 + np.e)), 1.0, 0.0)


def seeded_anew(data, size):
    """Randomised response, 1-DP, whose generator is seeded by the system in each call."""
    return np.where((data[0] > 0) ^ (np.random.default_rng().random(size) < 1 / (1 + np.e)), 1.0, 0.0)


def noiseless(data):
    """An answer without noise."""
    return float(data[0])


def kept(rng, data):
    """The first number with noise that is drawn once for every input."""
    return data[0] + KEPT.setdefault(float(data[0]), rng.laplace())


def kept_of_the_global_generator(data):
    return KEPT.setdefault(("global", float(data[0])), np.random.laplace())  # noqa: NPY002  # what this is about


@functools.lru_cache
def cached_noise(entry):
    return np.random.default_rng().laplace()


def cached(data):
    return data[0] + cached_noise(float(data[0]))


def offset(rng, data, size):
    """The first number with noise, a part of which is drawn when the file is imported."""
    return np.round(data[0] + OFFSET) + rng.integers(0, 2, size)


def compiled_offset(rng, data):
    """The mechanism `offset` for a compiler: the offset becomes a constant of the machine code."""
    return np.round(data[0] + OFFSET) + rng.integers(0, 2)


COIN = random.random() < 0.5
FLIP = float(COIN)


def varied(data):
    """A coin that is drawn when the file is imported, and turned in 5 % of the runs."""
    return (bool(data[0]) ^ COIN) ^ (random.random() < 0.05)


def compiled_coin(rng, data):
    return data[0] + (FLIP + rng.laplace())


CALLS = []


def first_is_unlike(data):
    CALLS.append(data)
    return 1.0 if len(CALLS) > 1 else -1.0


def fails_in_forks(data):
    if multiprocessing.parent_process():
        raise RuntimeError("not here")
    return data[0]


def hangs_in_forks(data):
    while multiprocessing.parent_process():
        time.sleep(0.1)
    return data[0]


SCALE = 0.2


def scale():
    return SCALE


def scaled(rng, data):
    return data[0] + rng.laplace(0, scale())


def listed(rng, data, memory=[0.0]):  # noqa: B006  # what this is about
    """The first number with noise that is kept in a parameter."""
    memory[0] = memory[0] or rng.laplace()
    return data[0] + memory[0]


def leaks_zero(data):
    """The first number, with noise unless it is 0."""
    if data[0] == 0:
        return 0.0
    return data[0] + np.random.laplace()  # noqa: NPY002  # what this is about


def often_released(rng, data, size):
    return np.where(rng.random(size) < 0.7, data, 0.0)


def fraction_released(rng, data, size):
    """The data with whole noise, which leaves the fraction as it is."""
    return data + rng.geometric(0.5, size) - rng.geometric(0.5, size)


def seeded(data):
    """The first number with noise that is the same in every run of every process."""
    return data[0] + np.random.default_rng(0).laplace()


def noisy(rng, data, size):
    """The first number with fresh Laplace noise of scale 1/5, too small for ε = 1."""
    return data[0] + rng.laplace(0, 0.2, size)


def talkative(data):
    """The first number; each run prints to stdout, where the answer of a new process goes."""
    print("one run")
    return float(data[0])


hidden = [lambda data: data[0]]


def rare(rng, data):
    return float(rng.random() < (0.9 if data[0] > 0.5 else 0.002))


POOL = np.random.default_rng().laplace(size=100)


def pooled(data):
    """The first number with noise from a pool that was drawn once, in a random order."""
    return float(data[0]) + POOL[np.random.default_rng().integers(len(POOL))]


def on_a_grid(rng, data):
    return float(np.clip(np.round(data[0] + rng.laplace(), 1), -1, 2))
