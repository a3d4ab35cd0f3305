"""How often a check of plain Python refutes a claim that holds with equality: `python benchmarks/plain_levels.py`.

Six kinds of mechanism, each at just its ε on its worst pair of neighbours: a count of dicts, a sum over a list, a
column of a DataFrame, an outcome with keys, one of text, and one that writes into its input. Batches, inputs handed
out without copies, and outcomes read many at a time are all in use. At level α at most a share α may be refuted.
Options: --seeds N, --alpha A, --runs N, --workers N, --only KIND.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
from scipy.stats import binom

import dpwitness as dpw

EPSILON = 1.0
MEMBERS = [{"age": age, "member": age != 3} for age in (5, 3, 8)]
PEOPLE = ([*MEMBERS, {"age": 1, "member": True}], MEMBERS)
FRAME = (pd.DataFrame({"age": [0.25, 0.5, 1.0]}), pd.DataFrame({"age": [0.25, 0.5]}))
NUMBERS = ([0.25, 0.5, 1.0], [0.25, 0.5])


def count_of_dicts(rng, people):
    """How many are members, with Laplace noise."""
    return sum(1 for person in people if person["member"]) + rng.laplace(0, 1 / EPSILON)


def sum_of_list(rng, values):
    """Of numbers up to 1, with Laplace noise."""
    return math.fsum(min(max(value, 0.0), 1.0) for value in values if value == value) + rng.laplace(0, 1 / EPSILON)


def frame_column(rng, frame):
    """The sum of a column, with Laplace noise."""
    return float(frame["age"].sum()) + rng.laplace(0, 1 / EPSILON)


def with_keys(rng, people):
    """Members and others, a count each, two-sided geometric noise; one record is in one of them."""
    p = 1 - math.exp(-EPSILON)
    found = {}
    for key in (False, True):
        count = sum(1 for person in people if person["member"] is key)
        found["members" if key else "others"] = int(count + rng.geometric(p) - rng.geometric(p))
    return found


def as_text(rng, people):
    """Randomised response on whether there are four people, in words."""
    truth = len(people) == 4
    return "yes" if truth == (rng.random() < 1 / (1 + math.exp(-EPSILON))) else "no"


def in_place(rng, values):
    """It sorts its input and adds to it, then a sum with noise."""
    total = math.fsum(min(max(value, 0.0), 1.0) for value in values if value == value)
    values.sort(key=repr)
    values.append(total)
    return total + rng.laplace(0, 1 / EPSILON)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A mechanism and its neighbours."""

    mechanism: Callable[..., Any]
    neighbours: tuple[Any, Any]


KINDS = {
    "count of dicts": Kind(mechanism=count_of_dicts, neighbours=PEOPLE),
    "sum of a list": Kind(mechanism=sum_of_list, neighbours=NUMBERS),
    "column of a frame": Kind(mechanism=frame_column, neighbours=FRAME),
    "outcome with keys": Kind(mechanism=with_keys, neighbours=PEOPLE),
    "text": Kind(mechanism=as_text, neighbours=PEOPLE),
    "writes into its input": Kind(mechanism=in_place, neighbours=NUMBERS),
}


def refuted(name: str, alpha: float, runs: int, seed: int) -> bool:
    """Whether one check refutes the claim that holds."""
    kind = KINDS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = dpw.check(
            kind.mechanism, claim=dpw.PureDP(EPSILON), neighbours=[kind.neighbours], seed=seed, alpha=alpha, runs=runs,
            search_runs=runs, workers=1, bits=False,
        )  # fmt: skip
    return verdict.refuted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", choices=KINDS)
    given = parser.parse_args()
    limit = int(binom.ppf(0.999, given.seeds, given.alpha))
    with ProcessPoolExecutor(given.workers) as processes:
        for name in [given.only] if given.only else KINDS:
            began = time.monotonic()
            one = partial(refuted, name, given.alpha, given.runs)
            found = sum(processes.map(one, range(given.seeds), chunksize=10))
            print(
                f"{name:24s} refuted {found:4d} of {given.seeds} at α = {given.alpha:g} "
                f"(limit {limit})  [{time.monotonic() - began:.0f} s]",
                flush=True,
            )


if __name__ == "__main__":
    main()
