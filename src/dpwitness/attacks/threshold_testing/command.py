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
from dpwitness.attacks.oracles.command import refuse_limits
from dpwitness.attacks.oracles.options import is_real, oracle_options
from dpwitness.attacks.threshold_testing.adaptive import adaptive_attack
from dpwitness.attacks.threshold_testing.checks import check_simulated
from dpwitness.attacks.threshold_testing.oracle import check_histogram
from dpwitness.attacks.threshold_testing.reconstruction import (
    Reconstruction,
    reconstruct,
    reconstruct_supported,
    score,
)
from dpwitness.attacks.threshold_testing.report import SMALL, plot_counts, summary, text
from dpwitness.attacks.threshold_testing.simulated import ThresholdOracle
from dpwitness.attacks.threshold_testing.system_command import run_system
from dpwitness.attacks.threshold_testing.theory import attack_threshold, copies_for
from dpwitness.cli import options
from dpwitness.cli.arguments import number, whole
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.cli.parser import command
from dpwitness.cli.progress import live
from dpwitness.cli.results import check_places, hand_over
from dpwitness.errors import InvalidData
from dpwitness.files import read_column
from dpwitness.neighbours import Data


def add_command(commands: Commands, family: AttackFamily) -> None:
    """Declare the command and its options."""
    examples = (
        "attack threshold_testing --epsilon 0.1 --adaptive",
        "attack threshold_testing --epsilon 1 --data FILE.csv",
        "attack threshold_testing --oracle mine.py:system --cells 100",
        "attack threshold_testing --cells 100 --ask questions.csv",
    )
    parser = command(commands, family.name, summary=family.summary, run=run, examples=examples)
    parser.description = (
        "Asks private threshold testing about a histogram, simulated or of your own, and guesses every count from the "
        "answers."
    )
    options.data(parser, "the histogram (default: visits to a doctor, `randhie`); with --oracle, to compare with")
    parser.add_argument("--epsilon", type=number, help="the whole budget ε of the simulated system")
    parser.add_argument(
        "--epsilon2", type=_positive, default=math.inf, help="ε₂ of the query noise (default inf: none)"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--adaptive",
        action="store_true",
        help="weigh cells by sums chosen from the answers so far (always with --oracle)",
    )
    how.add_argument(
        "--support", type=whole, metavar="K", help="every count from 0 to K occurs: Algorithm 3 alone, all of ε for it"
    )
    votes = parser.add_mutually_exclusive_group()
    votes.add_argument("--copies", type=whole, help="copies of each query, for finite ε₂ (default 1; adaptive: by ε₂)")
    votes.add_argument(
        "--beta", type=number, help="as many copies as make all majorities right with probability 1 − β (Theorem 3.5)"
    )
    parser.add_argument("--delta", type=number, help="θ = ⌈ln(1/δ)/ε₁⌉, not adaptive (default 0.05)")
    parser.add_argument("--share", type=number, help="of ε for the threshold, the rest for noisy totals (default 0.5)")
    parser.add_argument("--repeat", type=whole, help="how many attacks (default 10)")
    oracle_options(parser, "an int8 array, −1, 0 or +1 a cell,", "True where that sum of cells reaches the threshold")
    parser.add_argument(
        "--cells", type=whole, metavar="N", help="cells of your system's histogram (default: of --data)"
    )
    parser.add_argument("--epsilon1", type=number, help="ε₁ of your system's threshold noise, where you know it")
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
    refuse_limits(arguments)
    if arguments.column and not arguments.data:
        raise InvalidData("--column says which column of --data: give --data FILE.csv too")
    check_places(arguments)  # before the attacks, not after them
    if is_real(arguments):
        return run_system(arguments)
    check_simulated(arguments)
    counts = check_histogram(read_column(arguments.data, arguments.column) if arguments.data else visits())
    seed = seed_of(arguments)
    _set_copies(arguments, len(counts))
    started = time.monotonic()
    found = _attacks(arguments, counts, seed)
    repeat, last = len(found.scores), found.last
    assert last is not None
    epsilon, epsilon2 = arguments.epsilon, arguments.epsilon2
    result = {
        "attack": arguments.attack,
        "data": arguments.data or "randhie mdvis",
        "cells": len(counts),
        "small_cells": int((counts <= SMALL).sum()),
        "epsilon": epsilon,
        "epsilon1": _share(arguments) * epsilon,
        "epsilon2": epsilon2 if math.isfinite(epsilon2) else None,
        "epsilon2_infinite": not math.isfinite(epsilon2),
        "adaptive": arguments.adaptive,
        "support": arguments.support,
        "copies": arguments.copies,
        "repeat": repeat,
        "out_of_time": repeat < arguments.repeat,
        "methods": {method: found.methods.count(method) for method in sorted(set(found.methods))},
        "right": summary([of_all for of_all, _ in found.scores]),
        "right_small": summary([of_small for _, of_small in found.scores]),
        "claimed": float(np.mean(found.claimed)),
        "claimed_wrong": int(np.sum(found.wrong)),
        "confidence": last.confidence,
        "queries_per_cell": found.queries / repeat / len(counts),
        "seed": seed,
        "seconds": time.monotonic() - started,
    }
    return hand_over(
        arguments,
        NOT_REFUTED,
        lambda: result,
        lambda: text(result),
        plot=lambda path: plot_counts(counts, last.guess, path),
    )


def _share(arguments: argparse.Namespace) -> float:
    """The threshold's share of ε."""
    if arguments.support is not None:
        return 1.0
    return 0.5 if arguments.share is None else float(arguments.share)


def _set_copies(arguments: argparse.Namespace, cells: int) -> None:
    """Put the copies that --beta asks for into --copies. Raises `InvalidParameter` for a β out of range."""
    if arguments.beta is None:
        return
    arguments.copies = copies_for(arguments.beta, cells**2, epsilon2=arguments.epsilon2)


@dataclass(slots=True)
class _Found:
    """What all attacks so far recovered, and the last one."""

    last: Reconstruction | None = None
    scores: list[tuple[float, float]] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    claimed: list[float] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)
    queries: int = 0

    def add(self, counts: Data, one: Reconstruction) -> None:
        self.last = one
        self.scores.append(score(counts, one.guess, SMALL))
        self.methods.append(one.method)
        self.claimed.append(float(one.known.mean()))
        self.wrong.append(int(np.sum(one.known & (one.guess != counts))))
        self.queries += one.queries


def _attacks(arguments: argparse.Namespace, counts: Data, seed: int) -> _Found:
    """The attacks that fit into the time, at least one; attack k draws from stream [seed, k], on whatever thread."""
    share, epsilon, delta = _share(arguments), arguments.epsilon, arguments.delta
    theta = 0 if arguments.adaptive else attack_threshold(share * epsilon, delta)
    sold = (1 - share) * epsilon or None

    def attack(k: int) -> Reconstruction:
        rng, e2 = np.random.default_rng([seed, k]), arguments.epsilon2
        oracle = ThresholdOracle(
            counts, rng, epsilon1=share * epsilon, epsilon2=e2, threshold=theta, epsilon_totals=sold
        )  # fmt: skip
        if arguments.adaptive:
            return adaptive_attack(oracle, rng, copies=arguments.copies)
        if arguments.support is not None:
            return reconstruct_supported(oracle, arguments.support, delta=delta, copies=arguments.copies or 1)
        return reconstruct(oracle, copies=arguments.copies or 1)

    found, repeat, deadline = _Found(), arguments.repeat, deadline_of(arguments)
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
