"""Mechanisms of a file that a new process imports for an hour; this process imports it at once."""

import os
import time

import numpy as np

from dpwitness.health.new_process import INSIDE_VARIABLE

if os.environ.get(INSIDE_VARIABLE):
    time.sleep(3600)

KEPT = {}
POOL = list(np.random.default_rng(1).laplace(0, 1, 5))


def kept(data):
    """The input, kept from the first run on: only new processes show that it is not noise."""
    return KEPT.setdefault(float(data[0]), float(data[0]))


def noisy(rng, data, size):
    """The first number with Laplace noise of a fifth of the scale that ε = 1 needs."""
    return np.asarray(data)[0] + rng.laplace(0, 0.2, size)


def pooled(rng, data):
    """The first number with Laplace noise of the right scale from a pool: repeated values are not a violation."""
    return np.asarray(data)[0] + POOL[rng.integers(len(POOL))]
