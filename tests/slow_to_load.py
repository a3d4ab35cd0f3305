"""Mechanisms of a file that a new process imports for an hour; this process imports it at once."""

import os
import time

import numpy as np

from dpwitness.health.new_process import INSIDE_VARIABLE

if os.environ.get(INSIDE_VARIABLE):
    time.sleep(3600)

KEPT = {}


def kept(data):
    """What is kept is the input: whether it is noise is told apart by new processes alone."""
    return KEPT.setdefault(float(data[0]), float(data[0]))


def noisy(rng, data, size):
    """Laplace noise of a fifth of the scale that it should have."""
    return np.asarray(data)[0] + rng.laplace(0, 0.2, size)
