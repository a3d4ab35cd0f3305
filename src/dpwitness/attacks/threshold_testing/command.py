"""`dpwitness attack threshold_testing`: read a histogram's counts through private threshold testing."""

import argparse
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from dpwitness.attacks.family import AttackFamily, Commands
from dpwitness.attacks.options import MAX_TIME, deadline_of, seed_of
from dpwitness.attacks.threshold_testing.adaptive import adaptive_attack
from dpwitness.attacks.threshold_testing.oracle import check_histogram
from dpwitness.attacks.threshold_testing.reconstruction import Reconstruction, reconstruct, score
from dpwitness.attacks.threshold_testing.report import SMALL, plot_counts, summary, text
from dpwitness.cli import options
from dpwitness.cli.arguments import number, whole
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.cli.parser import command
from dpwitness.cli.progress import live
from dpwitness.cli.results import check_places, hand_over
from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.files import read_column
from dpwitness.neighbours import Data

SMALLEST_EPSILON = 1e-12  # the noise of a smaller one does not fit into whole numbers of 64 bits


def add_command(commands: Commands, family: AttackFamily) -> None:
    """Declare the command and its options."""
    examples = (
        "attack threshold_testing --epsilon 0.1 --adaptive",
        "attack threshold_testing --epsilon 1 --data FILE.csv",
    )
    parser = command(commands, family.name, summary=family.summary, run=run, examples=examples)
    parser.description = "Asks private threshold testing about a histogram and guesses every count from the answers."
    options.data(parser, "the histogram (default: visits to a doctor, `randhie`)")
    parser.add_argument("--epsilon", type=number, required=True, help="the whole budget ε")
    parser.add_argument(
        "--epsilon2", type=_positive, default=math.inf, help="ε₂ of the query noise (default inf: none)"
    )
    parser.add_argument(
        "--adaptive", action="store_true", help="weigh cells by sums chosen from the answers so far, all of ε for them"
    )
    parser.add_argument("--copies", type=whole, help="copies of each query, for finite ε₂ (default 1; adaptive: by ε₂)")
    parser.add_argument("--delta", type=number, default=0.05, help="θ = ⌈ln(1/δ)/ε₁⌉, not adaptive (default 0.05)")
    parser.add_argument("--repeat", type=whole, default=10, help="how many attacks (default 10)")
    options.plot(parser)
    options.common(parser, max_time=MAX_TIME, workers="threads, an attack on each (default: all cores)")


def _positive(text: str) -> float:
    if text in ("inf", "∞"):
        return math.inf
    return number(text)


def visits() -> Data:
    """How many people-years of the RAND health insurance experiment had 0, 1, 2, … visits to a doctor; shape (78,)."""
    from statsmodels.datasets import randhie  # type: ignore[import-untyped]  # no stubs; 0.6 s

    return np.bincount(np.asarray(randhie.load_pandas().data["mdvis"], np.int64))


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit code is 0, or 2 for bad input, which raises."""
    _check(arguments)
    check_places(arguments)  # before the attacks, not after them
    counts = check_histogram(read_column(arguments.data, arguments.column) if arguments.data else visits())
    seed = seed_of(arguments)
    started = time.monotonic()
    found = _attacks(arguments, counts, seed)
    repeat = len(found.scores)
    epsilon, epsilon2 = arguments.epsilon, arguments.epsilon2
    result = {
        "attack": arguments.attack,
        "data": arguments.data or "randhie mdvis",
        "cells": len(counts),
        "small_cells": int((counts <= SMALL).sum()),
        "epsilon": epsilon,
        "epsilon1": epsilon if arguments.adaptive else epsilon / 2,
        "epsilon2": epsilon2 if math.isfinite(epsilon2) else None,
        "epsilon2_infinite": not math.isfinite(epsilon2),
        "adaptive": arguments.adaptive,
        "repeat": repeat,
        "out_of_time": repeat < arguments.repeat,
        "right": summary([of_all for of_all, _ in found.scores]),
        "right_small": summary([of_small for _, of_small in found.scores]),
        "queries_per_cell": found.queries / repeat / len(counts),
        "seed": seed,
        "seconds": time.monotonic() - started,
    }
    return hand_over(
        arguments,
        NOT_REFUTED,
        lambda: result,
        lambda: text(result),
        plot=lambda path: plot_counts(counts, found.guess, path),
    )


def _check(arguments: argparse.Namespace) -> None:
    """Raise for options out of range."""
    if not arguments.epsilon >= SMALLEST_EPSILON:
        raise InvalidParameter(f"--epsilon {arguments.epsilon:g} must be at least {SMALLEST_EPSILON:g}")
    if not arguments.epsilon2 >= SMALLEST_EPSILON:
        raise InvalidParameter(
            f"--epsilon2 {arguments.epsilon2:g} must be at least {SMALLEST_EPSILON:g}, "
            "or inf for no noise on the queries"
        )
    if not 1 <= arguments.repeat <= 1_000_000:
        raise InvalidParameter(f"--repeat {arguments.repeat} must be from 1 to 1000000")
    if arguments.copies is not None and not 1 <= arguments.copies <= 10**12:
        raise InvalidParameter(f"--copies {arguments.copies} must be from 1 to 10^12")
    if arguments.column and not arguments.data:
        raise InvalidData("--column says which column of --data: give --data FILE.csv too")


@dataclass(slots=True)
class _Found:
    """What all attacks so far recovered, and the last one's guess."""

    guess: Data
    scores: list[tuple[float, float]] = field(default_factory=list)
    queries: int = 0

    def add(self, counts: Data, one: Reconstruction) -> None:
        self.scores.append(score(counts, one.guess, SMALL))
        self.queries += one.queries
        self.guess = one.guess


def _attacks(arguments: argparse.Namespace, counts: Data, seed: int) -> _Found:
    """The attacks that fit into the time, at least one; attack k draws from stream [seed, k], on whatever thread."""

    def attack(k: int) -> Reconstruction:
        rng = np.random.default_rng([seed, k])
        e2, copies = arguments.epsilon2, arguments.copies
        if arguments.adaptive:
            return adaptive_attack(counts, rng, epsilon1=arguments.epsilon, epsilon2=e2, copies=copies)
        e, delta = arguments.epsilon, arguments.delta
        return reconstruct(counts, rng, epsilon=e, epsilon2=e2, delta=delta, copies=copies or 1)

    found, repeat, deadline = _Found(counts), arguments.repeat, deadline_of(arguments)
    workers = arguments.workers or os.cpu_count() or 1
    with live(arguments) as progress, ThreadPoolExecutor(workers) as threads:
        # One attack a thread at a time: an interruption waits for no more than these.
        for first in range(0, repeat, workers):
            if first and not deadline.left:
                break
            for one in threads.map(attack, range(first, min(first + workers, repeat))):
                found.add(counts, one)
            if progress is not None:
                progress("attack", len(found.scores), repeat, f"{found.scores[-1][0]:.4f} right")
    return found
