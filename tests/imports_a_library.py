"""Mechanisms of a file that imports a library, which a new process can load; noise is drawn at import."""

import sys

import numpy as np

INHERITED = "scipy.stats" in sys.modules

import scipy.stats  # noqa: E402  # the import that tests are about

NOISE_OF_SCIPY, NOISE_OF_NUMPY = scipy.stats.norm.rvs(), np.random.laplace()  # noqa: NPY002  # what this is about


def inherited(data):
    """1 if the process had the library before it loaded this file."""
    return float(INHERITED)


def noise_of_scipy(data):
    return data[0] + NOISE_OF_SCIPY


def noise_of_numpy(data):
    return data[0] + NOISE_OF_NUMPY
