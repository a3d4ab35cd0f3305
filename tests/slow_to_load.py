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
    """What is kept is the input: whether it is noise is told apart by new processes alone."""
    return KEPT.setdefault(float(data[0]), float(data[0]))


def noisy(rng, data, size):
    """Laplace noise of a fifth of the scale that it should have."""
    return np.asarray(data)[0] + rng.laplace(0, 0.2, size)


def pooled(rng, data):
    """Laplace noise of the right scale, drawn once: an event that a value of the pool shows is no violation."""
    return np.asarray(data)[0] + POOL[rng.integers(len(POOL))]
