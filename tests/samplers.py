"""Samplers that use the generator in different ways on the two inputs; each has one law on both, so it is 0-DP."""

import numpy as np


def geometric_or_coins(rng, data):
    if data[0] == 0:
        return rng.geometric(0.5)
    k = 1
    while rng.integers(0, 2) == 0:
        k += 1
    return k


def coin_or_number(rng, data):
    if data[0] == 0:
        return rng.integers(0, 2)
    return 1 if rng.random() < 0.5 else 0


def half_words(rng, data):
    return rng.integers(0, 1 << 20) >> 19


def permuted(rng, data):
    if data[0] == 0:
        return rng.permutation(2)[0]
    return rng.integers(0, 2)


def shuffled(rng, data):
    values = np.arange(2)
    if data[0] == 0:
        rng.shuffle(values)
    elif rng.random() < 0.5:
        values[0] = 1
    return values[0]


def chosen(rng, data):
    if data[0] == 0:
        return rng.choice(2)
    return rng.choice(np.array([0, 1, 1, 0]))


def single_precision(rng, data):
    if data[0] == 0:
        return 1 if rng.random(dtype=np.float32) < 0.5 else 0
    return 1 if rng.random() < 0.5 else 0


def rejection(rng, data):
    if data[0] == 0:
        while True:
            k = rng.integers(0, 8)
            if k < 6:
                return k % 2
    return rng.integers(0, 2)


def thousands_on_one_input(rng, data):
    if data[0] == 1:
        for _ in range(1999):
            rng.integers(0, 2)
    return rng.integers(0, 2)


def sparse(rng, data):
    if rng.random() < 0.01:
        return rng.integers(0, 2)
    return rng.integers(0, 2) if data[0] == 0 else (1 if rng.random() < 0.5 else 0)


SAMPLERS = [
    geometric_or_coins,
    coin_or_number,
    half_words,
    permuted,
    shuffled,
    single_precision,
    rejection,
    thousands_on_one_input,
    sparse,
]
#: The samplers that run as plain Python, since numba has no Generator.choice.
PLAIN = [chosen]
