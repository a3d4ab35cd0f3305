"""Mechanisms whose texts hardly ever repeat, on a module of its own: a new process loads it when a check asks it to."""

import json


def some_id(rng):
    return f"{int(rng.integers(10**9)):09d}"


LEAKS = {
    "a word before an id": lambda rng, value: f"{'ok' if value else 'no'}-{some_id(rng)}",
    "a word behind an id": lambda rng, value: f"{some_id(rng)}-{'ok' if value else 'no'}",
    "the length": lambda rng, value: some_id(rng) + "x" * (5 * value),
    "a space behind noise": lambda rng, value: f"{rng.laplace():.6f}{' ' if value else ''}",
    "a key of JSON": lambda rng, value: json.dumps({"n": rng.laplace()} | ({"flag": True} if value else {})),
    "the last digit": lambda rng, value: f"user{2 * int(rng.integers(10**9)) + value}",
    "a number among words": lambda rng, value: f"count: {value + rng.laplace(0, 0.05)}",
    "a number": lambda rng, value: str(value + rng.laplace(0, 0.05)),
    "within a dict": lambda rng, value: {"n": rng.laplace(), "log": ["run", f"{some_id(rng)}{'+' if value else '-'}"]},
    "within a tuple": lambda rng, value: (rng.laplace(), f"{value}{some_id(rng)}"),
    "now and then": lambda rng, value: f"{value}{some_id(rng)}" if rng.random() < 0.3 else None,
}


def leaking(rng, data, kind):
    """Tells the inputs apart in every run, or in three of ten, by one thing in a text."""
    return LEAKS[kind](rng, int(data[0]))


def many(rng, data, size):
    return [f"{'ok' if int(data[0]) else 'no'}-{some_id(rng)}" for _ in range(size)]


def count(rng, data):
    """Of ε = 1."""
    return f"count: {int(data[0]) + rng.laplace()}"


def response(rng, data):
    """Of ε = ln 3."""
    return f"{int(int(data[0]) == (rng.random() < 0.75))}-{some_id(rng)}"


def typed(rng, data):
    """Tells the inputs apart by the type of a number alone."""
    value = int(rng.integers(1000))
    return float(value) if int(data[0]) else value


def name(rng, data):
    return f"name {int(rng.integers(40))}"
