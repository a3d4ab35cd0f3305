"""Refutations of twenty mechanisms whose violation is easily overlooked.

    python benchmarks/subtle_violations.py [--seeds 8] [--json FILE] [CASE …]

Each mechanism is checked at default settings on the pair of inputs that shows the violation.
"""

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import dpwitness as dpw
from results import Table, finish, parser_of


def zero_at_times(rng, data):
    """The number 0 in 1 % of the runs (D) or 0.1 % (D′), else a normal number."""
    if rng.random() < (0.01 if data[0] > 0.5 else 0.001):
        return 0.0
    return rng.normal(0.0, 5.0)


def half_as_often(rng, data):
    """The number 1.5 in 4 % of the runs (D) or 2 % (D′), else a normal number."""
    if rng.random() < (0.04 if data[0] > 0.5 else 0.02):
        return 1.5
    return rng.normal(1.0, 1.0)


def narrow_needle(rng, data):
    """A number from 5 to 5.01 in 0.2 % of the runs (D) or 0.02 % (D′), else a Laplace number."""
    if rng.random() < (0.002 if data[0] > 0.5 else 0.0002):
        return 5.0 + 0.01 * rng.random()
    return rng.laplace(0.0, 10.0)


def at_the_limit(rng, data):
    """The limit 10 in 0.3 % of the runs (D) or 0.03 % (D′), else a smaller Laplace number."""
    if rng.random() < (0.003 if data[0] > 0.5 else 0.0003):
        return 10.0
    return min(rng.laplace(0.0, 1.0), 9.999)


def nan_at_times(rng, data):
    """NaN in 0.1 % of the runs (D) or 0.01 % (D′), else a normal number."""
    if rng.random() < (0.001 if data[0] > 0.5 else 0.0001):
        return math.nan
    return rng.normal(0.0, 1.0)


def eighths_at_times(rng, data):
    """A normal number, rounded to a multiple of 1/8 in 20 % of the runs (D) or 2 % (D′)."""
    x = rng.normal(0.0, 3.0)
    return round(8.0 * x) / 8.0 if rng.random() < (0.2 if data[0] > 0.5 else 0.02) else x


def last_digit(rng, data):
    """A number of six digits, whose last digit is 7 in 30 % of the runs (D) or 5 % (D′)."""
    number = 10 * rng.integers(0, 100_000)
    if rng.random() < (0.3 if data[0] > 0.5 else 0.05):
        return float(number + 7)
    digit = rng.integers(0, 9)
    return float(number + (digit if digit < 7 else digit + 1))


def fraction_of_a_whole(rng, data):
    """A number whose fractional part is below 1/2 in 90 % of the runs (D) or 10 % (D′)."""
    low = rng.random() < (0.9 if data[0] > 0.5 else 0.1)
    return rng.integers(-1000, 1000) + 0.5 * rng.random() + (0.0 if low else 0.5)


def far_on_either_side(rng, data):
    """A number beyond ±50 in 0.1 % of the runs (D) or 0.01 % (D′), else a normal number."""
    if rng.random() < (0.001 if data[0] > 0.5 else 0.0001):
        return (50.0 + rng.exponential(10.0)) * (1.0 if rng.random() < 0.5 else -1.0)
    return rng.normal(0.0, 10.0)


def sign_of_product(rng, data):
    """Three normal numbers, whose product is positive in 90 % of the runs (D) or 10 % (D′)."""
    out = np.empty(3)
    for i in range(3):
        out[i] = rng.normal(0.0, 1.0)
    positive = rng.random() < (0.9 if data[0] > 0.5 else 0.1)
    if (out[0] * out[1] * out[2] > 0.0) != positive:
        out[1] = -out[1]
    return out


def same_signs(rng, data):
    """Nine normal numbers; the first and the last have one sign in 85 % of the runs (D) or 15 % (D′)."""
    out = np.empty(9)
    for i in range(9):
        out[i] = rng.normal(0.0, 1.0)
    same = rng.random() < (0.85 if data[0] > 0.5 else 0.15)
    if (out[0] * out[8] > 0.0) != same:
        out[8] = -out[8]
    return out


def place_of_the_largest(rng, data):
    """Twenty numbers; the largest is among the first ten in 80 % of the runs (D) or 20 % (D′)."""
    out = np.empty(20)
    for i in range(20):
        out[i] = rng.exponential(1.0)
    place = 0
    for i in range(20):
        if out[i] > out[place]:
            place = i
    first = rng.random() < (0.8 if data[0] > 0.5 else 0.2)
    if (place < 10) != first:
        other = (place + 10) % 20
        out[place], out[other] = out[other], out[place]
    return out


def near_each_other(rng, data):
    """Two normal numbers, made less than 0.1 apart in 50 % of the runs (D) or 5 % (D′)."""
    first = rng.normal(0.0, 1.0)
    if rng.random() < (0.5 if data[0] > 0.5 else 0.05):
        return np.array([first, first + 0.1 * (2.0 * rng.random() - 1.0)])
    return np.array([first, rng.normal(0.0, 1.0)])


def sorted_at_times(rng, data):
    """Four numbers, sorted in 50 % of the runs (D) or 5 % (D′)."""
    out = np.empty(4)
    for i in range(4):
        out[i] = rng.normal(0.0, 1.0)
    return np.sort(out) if rng.random() < (0.5 if data[0] > 0.5 else 0.05) else out


def on_a_ring(rng, data):
    """A point 1 to 1.1 from the origin in 90 % of the runs (D) or 10 % (D′), else 2 to 2.1 from the origin."""
    near = rng.random() < (0.9 if data[0] > 0.5 else 0.1)
    radius, angle = (1.0 if near else 2.0) + 0.1 * rng.random(), 2.0 * math.pi * rng.random()
    return np.array([radius * math.cos(angle), radius * math.sin(angle)])


def two_of_sixty_four(rng, data):
    """64 random bits; the 6th and the 38th are equal in 90 % of the runs (D) or 10 % (D′)."""
    out = np.empty(64)
    for i in range(64):
        out[i] = float(rng.integers(0, 2))
    out[37] = out[5] if rng.random() < (0.9 if data[0] > 0.5 else 0.1) else 1.0 - out[5]
    return out


def even_length(rng, data):
    """A list of random length, which is even in 90 % of the runs (D) or 10 % (D′)."""
    even = rng.random() < (0.9 if data[0] > 0.5 else 0.1)
    return [float(x) for x in rng.normal(size=2 * int(rng.integers(5, 30)) + (0 if even else 1))]


def space_at_the_end(rng, data):
    """A text, with a space at its end in 2 % of the runs (D) or 0.2 % (D′)."""
    text = ("low", "middle", "high")[int(rng.integers(0, 3))]
    return text + " " if rng.random() < (0.02 if data[0] > 0.5 else 0.002) else text


def rare_key(rng, data):
    """Counts by key; one of the keys is present in 2 % of the runs (D) or 0.2 % (D′)."""
    counts = {"a": float(rng.laplace(0, 5)), "b": float(rng.laplace(0, 5))}
    if rng.random() < (0.02 if data[0] > 0.5 else 0.002):
        counts["c"] = float(rng.laplace(0, 5))
    return counts


def raises_at_times(rng, data):
    """An error in 2 % of the runs (D) or 0.2 % (D′), else a normal number."""
    if rng.random() < (0.02 if data[0] > 0.5 else 0.002):
        raise ValueError("no convergence")
    return float(rng.normal())


#: The claimed ε, and further options of the check, by mechanism; D = [1.0] and D′ = [0.0].
CASES: dict[Callable[..., Any], dict[str, Any]] = {
    mechanism: {"epsilon": 1.0}
    for mechanism in (
        *(zero_at_times, narrow_needle, at_the_limit, nan_at_times, eighths_at_times, last_digit, fraction_of_a_whole),
        *(far_on_either_side, sign_of_product, same_signs, place_of_the_largest, near_each_other, sorted_at_times),
        *(on_a_ring, two_of_sixty_four, even_length, space_at_the_end, rare_key),
    )
}
CASES |= {half_as_often: {"epsilon": 0.5}, raises_at_times: {"epsilon": 1.0, "errors": "outcome"}}
#: The relation whose one pair is D = [1.0] and D′ = [0.0].
PAIR = dpw.pairs(([1.0], [0.0]))


def main() -> None:
    parser = parser_of(__doc__, seeds=8)
    parser.add_argument("cases", nargs="*", metavar="CASE", choices=[[], *(case.__name__ for case in CASES)])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    table = Table("mechanism", "claim", "refuted", "longest check, s", "event of seed 0")
    for mechanism, options in CASES.items():
        if given.cases and mechanism.__name__ not in given.cases:
            continue
        verdicts, seconds = [], []
        for seed in range(given.seeds):
            started = time.perf_counter()
            verdicts.append(dpw.check(mechanism, neighbours=PAIR, seed=seed, **options))
            seconds.append(time.perf_counter() - started)
        refuted = f"{sum(verdict.refuted for verdict in verdicts)} of {given.seeds}"
        event = verdicts[0].witness.description
        table.add(mechanism.__name__, options["epsilon"], refuted, f"{max(seconds):.1f}", event)
    text = f"Mechanisms whose violation is easily overlooked; {given.seeds} seeds each."
    finish(given, "Violations that are easily overlooked", text, table)


if __name__ == "__main__":
    main()
