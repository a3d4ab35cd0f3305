"""Outcomes that differ in one thing alone, on a module of its own: a new process loads it when a check asks it to."""

import math

LEAKS = {
    "a NaN behind a number": lambda r, leak: [r, math.nan] if leak else [r],
    "a None behind a number": lambda r, leak: [r, None] if leak else [r],
    "nothing and a NaN": lambda r, leak: [math.nan] if leak else [],
    "None and NaN": lambda r, leak: [r, None] if leak else [r, math.nan],
    "a nested list": lambda r, leak: [r, [1], 2] if leak else [r, 1, 1, 2],
    "where a nested list ends": lambda r, leak: [[r, 1], [2]] if leak else [[r], [1, 2]],
    "the sign of zero": lambda r, leak: [r, -0.0] if leak else [r, 0.0],
    "the sign of zero alone": lambda r, leak: -0.0 if leak else 0.0,
    "True and 1": lambda r, leak: True if leak else 1,
    "True and 1 behind a number": lambda r, leak: [r, True] if leak else [r, 1],
    "False and 0": lambda r, leak: False if leak else 0,
    "whole numbers beyond 2^53": lambda r, leak: 2**53 + 1 if leak else 2**53,
    "the largest whole numbers": lambda r, leak: [r, 2**64 - 1] if leak else [r, 2**64 - 2],
    "whole numbers beyond 64 bits": lambda r, leak: [r, 10**40 + 1] if leak else [r, 10**40],
    "infinity": lambda r, leak: math.inf if leak else r,
    "minus infinity": lambda r, leak: -math.inf if leak else r,
    "the sign of infinity": lambda r, leak: math.inf if leak else -math.inf,
    "NaN and a number": lambda r, leak: math.nan if leak else r,
}


def leaking(rng, data, kind):
    """Tells the inputs apart by that one thing."""
    return LEAKS[kind](rng.random(), data[0] == 1)


def responding(rng, data, kind):
    """Randomised response over the two outcomes: ln(0.6 / 0.4) = 0.405."""
    return LEAKS[kind](rng.random(), (rng.random() < 0.6) == (data[0] == 1))
