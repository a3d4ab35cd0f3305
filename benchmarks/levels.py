"""The levels of checks and lower bounds: false alarms against claims that hold with equality.

    python benchmarks/levels.py [--seeds 1000] [--workers 16] [--roads search bound epochs plain] [--only CASE …]

Each mechanism has exactly the claimed parameter on its worst pair of inputs, where a false alarm is most likely;
α = 0.05. Every seed is one check. "search" finds an event and confirms it on fresh runs; "bound" gives a lower bound at
confidence 0.95, and "epochs" bets from the first run on: these two take seconds a seed, and 200 seeds are enough.
"plain" checks six kinds of plain Python: records in dicts, lists and DataFrames, outcomes with keys and of text, and a
mechanism that writes into its input. The limit is the number of false alarms that a level of α exceeds in one series of
a thousand. "cells": the number of checks whose evidence was a table of cells.
"""

import math
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp, ndtr, ndtri

import dpwitness as dpw
from dpwitness.mechanisms.resolve import as_mechanism
from results import Table, finish, most_false_alarms, parser_of
from truth import gaussian_delta

ALPHA = 0.05
SEEDS_A_TASK = 25
#: The settings of a check.
ROADS: dict[str, dict[str, int]] = {
    "search": {"search_runs": 4_000, "runs": 20_000},
    "bound": {"search_runs": 8_000, "runs": 20_000},
    "epochs": {"search_runs": 0, "runs": 200},
    "plain": {"search_runs": 1_000, "runs": 1_000},
}
#: Randomised response of ε = 1: the probability of the truth.
TRUTH = math.e / (1 + math.e)
RESPONSES = np.array([TRUTH, 1 - TRUTH]), np.array([1 - TRUTH, TRUTH])


def gaussian(rng, data, size):
    """N(0, 1) against N(1, 1): exactly 1-GDP, ½-zCDP and (α, α/2)-RDP for every α."""
    return data[0] + rng.standard_normal(size)


def laplace(rng, data, size):
    """Laplace noise: exactly 1-DP."""
    return data[0] + rng.laplace(size=size)


def responded(rng, data, size):
    """Randomised response: exactly 1-DP, with the divergences of one event."""
    return (rng.random(size) < TRUTH) == (data[0] == 1)


def geometric(rng, data, size):
    """Two-sided geometric noise: exactly 1-DP."""
    p = 1 - math.exp(-1)
    return data[0] + rng.geometric(p, size) - rng.geometric(p, size)


def several(rng, data, size):
    """Four values of N(0, 1), two of which move by 1/√2: exactly 1-GDP."""
    noise = rng.standard_normal((size, 4))
    noise[:, :2] += data[0] / math.sqrt(2)
    return noise


#: Two laws of six outcomes, so far apart that cells show all of their divergences.
SIX = np.array([0.02, 0.08, 0.15, 0.2, 0.25, 0.3]), np.array([0.3, 0.25, 0.2, 0.15, 0.08, 0.02])


def six(rng, data, size):
    """One of six outcomes, by one of two laws."""
    return np.searchsorted(np.cumsum(SIX[int(data[0])])[:-1], rng.random(size)).astype(float)


def divergence(laws, order):
    """D_α of the second law from the first; both directions are equal, as the laws mirror each other."""
    p, q = laws[::-1]
    return float(logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1))


def largest_rho(laws):
    """The largest D_α/α of two laws that mirror each other, at the limit of α = 1 or on a fine grid of orders."""
    p, q = laws[::-1]
    return max(float(p @ np.log(p / q)), *(divergence(laws, a) / a for a in 1 + np.geomspace(1e-4, 200, 4_000)))


def trade_off(a):
    """The trade-off function of N(0, 1) against N(1, 1)."""
    return ndtr(-ndtri(a) - 1.0)


def profile():
    """The privacy profile of N(0, 1) against N(1, 1)."""
    return dpw.PrivacyProfile([(e, gaussian_delta(e, mu=1.0)) for e in np.linspace(0, 3, 13)])


def divergence_of_laplace(order):
    """D_α of Lap(1) against Lap(1) + 1 (Mironov 2017, Table II)."""
    a = order
    return math.log(a / (2 * a - 1) * math.exp(a - 1) + (a - 1) / (2 * a - 1) * math.exp(-a)) / (a - 1)


MEMBERS = [{"age": age, "member": age != 3} for age in (5, 3, 8)]
PEOPLE = ([*MEMBERS, {"age": 1, "member": True}], MEMBERS)
FRAME = (pd.DataFrame({"age": [0.25, 0.5, 1.0]}), pd.DataFrame({"age": [0.25, 0.5]}))
NUMBERS = ([0.25, 0.5, 1.0], [0.25, 0.5])


def count_of_dicts(rng, people):
    """The number of members, with Laplace noise."""
    return sum(1 for person in people if person["member"]) + rng.laplace(0, 1)


def sum_of_list(rng, values):
    """The sum of numbers clipped to [0, 1], with Laplace noise."""
    return math.fsum(min(max(value, 0.0), 1.0) for value in values if value == value) + rng.laplace(0, 1)


def frame_column(rng, frame):
    """The sum of a column, with Laplace noise."""
    return float(frame["age"].sum()) + rng.laplace(0, 1)


def with_keys(rng, people):
    """The counts of members and of others, with two-sided geometric noise; each record is in one count."""
    p = 1 - math.exp(-1.0)
    found = {}
    for key in (False, True):
        count = sum(1 for person in people if person["member"] is key)
        found["members" if key else "others"] = int(count + rng.geometric(p) - rng.geometric(p))
    return found


def as_text(rng, people):
    """Randomised response on whether there are four people, in words."""
    truth = len(people) == 4
    return "yes" if truth == (rng.random() < 1 / (1 + math.exp(-1.0))) else "no"


def in_place(rng, values):
    """The sum of clipped numbers with noise, by a mechanism that sorts and extends its input."""
    total = math.fsum(min(max(value, 0.0), 1.0) for value in values if value == value)
    values.sort(key=repr)
    values.append(total)
    return total + rng.laplace(0, 1)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A mechanism, a claim that holds with equality, the pair of inputs, and whether it is plain Python."""

    mechanism: Callable[..., Any]
    claim: Callable[[], Any]
    pair: tuple[Any, Any] = ([0], [1])
    plain: bool = False


def plain(mechanism: Callable[..., Any], pair: tuple[Any, Any]) -> Case:
    """A mechanism of plain Python, exactly 1-DP."""
    return Case(mechanism=mechanism, claim=lambda: dpw.PureDP(1.0), pair=pair, plain=True)


CASES = {
    "PureDP, randomised response": Case(mechanism=responded, claim=lambda: dpw.PureDP(1.0)),
    "PureDP, Laplace": Case(mechanism=laplace, claim=lambda: dpw.PureDP(1.0)),
    "PureDP, geometric": Case(mechanism=geometric, claim=lambda: dpw.PureDP(1.0)),
    "ApproxDP, Gaussian": Case(mechanism=gaussian, claim=lambda: dpw.ApproxDP(1.0, gaussian_delta(1.0, mu=1.0))),
    "GaussianDP, Gaussian": Case(mechanism=gaussian, claim=lambda: dpw.GaussianDP(1.0)),
    "GaussianDP, four values": Case(mechanism=several, claim=lambda: dpw.GaussianDP(1.0)),
    "ZCDP, Gaussian": Case(mechanism=gaussian, claim=lambda: dpw.ZCDP(0.5)),
    "ZCDP, randomised response": Case(mechanism=responded, claim=lambda: dpw.ZCDP(largest_rho(RESPONSES))),
    "RenyiDP 2, Gaussian": Case(mechanism=gaussian, claim=lambda: dpw.RenyiDP(2.0, 1.0)),
    "RenyiDP 2, Laplace": Case(mechanism=laplace, claim=lambda: dpw.RenyiDP(2.0, divergence_of_laplace(2.0))),
    "RenyiDP 4, randomised response": Case(
        mechanism=responded, claim=lambda: dpw.RenyiDP(4.0, divergence(RESPONSES, 4.0))
    ),
    "ZCDP, six outcomes": Case(mechanism=six, claim=lambda: dpw.ZCDP(largest_rho(SIX))),
    "RenyiDP 2, six outcomes": Case(mechanism=six, claim=lambda: dpw.RenyiDP(2.0, divergence(SIX, 2.0))),
    "PrivacyProfile, Gaussian": Case(mechanism=gaussian, claim=profile),
    "TradeOff, Gaussian": Case(mechanism=gaussian, claim=lambda: dpw.TradeOff(trade_off)),
    "plain, count of dicts": plain(count_of_dicts, PEOPLE),
    "plain, sum of a list": plain(sum_of_list, NUMBERS),
    "plain, column of a frame": plain(frame_column, FRAME),
    "plain, outcome with keys": plain(with_keys, PEOPLE),
    "plain, text": plain(as_text, PEOPLE),
    "plain, writes into its input": plain(in_place, NUMBERS),
}


def outcomes(name: str, road: str, first: int, last: int) -> tuple[int, int, int, float]:
    """The false alarms, lower bounds above the truth, checks with cells, and seconds, of some seeds."""
    case, began = CASES[name], time.perf_counter()
    claim, alarms, above, cells = case.claim(), 0, 0, 0
    warnings.simplefilter("ignore")
    test: Callable[..., Any] = dpw.bound if road == "bound" else dpw.check
    mechanism, more = case.mechanism, {"bits": False}
    if not case.plain:  # read once for all seeds
        first_side, second_side = map(np.array, case.pair)
        mechanism, more = as_mechanism(case.mechanism, first_side, neighbour=second_side), {}
    for seed in range(first, last):
        verdict = test(
            mechanism, alpha=ALPHA, claim=claim, neighbours=[case.pair], seed=seed, workers=1, **more, **ROADS[road]
        )
        alarms += isinstance(verdict, dpw.Violation)
        above += verdict.lower_bound > claim.parameter * (1 + 1e-9)
        cells += bool(getattr(verdict.counts, "cells", ()))
    return alarms, above, cells, time.perf_counter() - began


def main() -> None:
    parser = parser_of(__doc__, seeds=1_000, workers=1)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    parser.add_argument("--roads", nargs="+", choices=ROADS, default=["search", "plain"])
    given = parser.parse_args()
    limit, rows = most_false_alarms(given.seeds, ALPHA), []
    table = Table("case", "road", "refuted", "bound above the truth", "with cells", "ms a check", "within the limit")
    with ProcessPoolExecutor(given.workers) as pool:
        for name, case in CASES.items():
            for road in given.roads:
                if name not in given.only or case.plain != (road == "plain"):
                    continue
                tasks = [
                    pool.submit(outcomes, name, road, first, min(first + SEEDS_A_TASK, given.seeds))
                    for first in range(0, given.seeds, SEEDS_A_TASK)
                ]
                columns = zip(*(task.result() for task in tasks), strict=True)
                alarms, above, cells, seconds = (sum(column) for column in columns)
                rows.append({
                    "case": name, "road": road, "seeds": given.seeds, "alpha": ALPHA, "refuted": alarms,
                    "bound_above_truth": above, "limit": limit, "cells": cells, "seconds": seconds,
                })  # fmt: skip
                within = "yes" if max(alarms, above) <= limit else "NO"
                table.add(name, road, alarms, above, cells, f"{1e3 * seconds / given.seeds:.1f}", within)
    text = (
        f"Of {given.seeds} seeds at α = {ALPHA}, at most {limit} may refute the claim or give a bound above the truth."
    )
    finish(given, "Levels", text, table, rows)


if __name__ == "__main__":
    main()
