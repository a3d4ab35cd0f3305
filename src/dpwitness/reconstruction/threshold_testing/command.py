"""Options of `dpwitness attack threshold_testing` that are out of range, or say nothing of what is attacked.

`dpwitness attack threshold_testing --oracle …`: counts out of the answers of the user's own system.

`dpwitness attack threshold_testing`: read a histogram's counts through private threshold testing.
"""

import argparse
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dpwitness.cli import options
from dpwitness.cli.console import NOT_REFUTED, live
from dpwitness.cli.output import check_places, hand_over
from dpwitness.cli.parser import command, number, whole
from dpwitness.errors import AttackStopped, InvalidData, InvalidParameter
from dpwitness.files import read_column
from dpwitness.neighbours import Data
from dpwitness.proposals import AttackFamily, Commands
from dpwitness.reconstruction.asking import Asking
from dpwitness.reconstruction.command import (
    MAX_TIME,
    attack_system,
    deadline_of,
    described,
    is_real,
    oracle_options,
    refuse_limits,
    seed_of,
)
from dpwitness.reconstruction.threshold_testing.attack import (
    Reconstruction,
    adaptive_attack,
    reconstruct,
    reconstruct_supported,
    score,
)
from dpwitness.reconstruction.threshold_testing.oracle import (
    FORM,
    Counts,
    Noise,
    Queries,
    Signs,
    ThresholdOracle,
    check_histogram,
)
from dpwitness.reconstruction.threshold_testing.report import SMALL, plot_counts, summary, system_text, text
from dpwitness.reconstruction.threshold_testing.theory import MOST_COPIES, attack_threshold, copies_for

SMALLEST_EPSILON: Final = 1e-12  # the noise of a smaller one does not fit into whole numbers of 64 bits
LARGEST_CELLS: Final = 10**7  # a question takes a byte a cell
#: Options of the simulated system alone, and of the user's own.
SIMULATED: Final = ("epsilon", "share", "beta", "repeat")
OWN: Final = ("cells", "epsilon1")
#: What --repeat and --delta are where they are not given.
REPEAT: Final = 10
DELTA: Final = 0.05


def check_simulated(arguments: argparse.Namespace) -> None:
    """Raise `InvalidParameter` for what an attack on a simulated system cannot take; then fill in the defaults."""
    if arguments.epsilon is None:
        raise InvalidParameter("--epsilon is needed: the budget of the simulated system (or give --oracle)")
    for name in OWN:
        if getattr(arguments, name) is not None:
            raise InvalidParameter(f"--{name} is of your own system: give --oracle, or --ask FILE, too")
    if not arguments.epsilon >= SMALLEST_EPSILON:
        raise InvalidParameter(f"--epsilon {arguments.epsilon:g} must be at least {SMALLEST_EPSILON:g}")
    if arguments.repeat is not None and not 1 <= arguments.repeat <= 1_000_000:
        raise InvalidParameter(f"--repeat {arguments.repeat} must be from 1 to 1000000")
    if arguments.share is not None and not 0 < arguments.share < 1:
        raise InvalidParameter(f"--share {arguments.share:g} must lie between 0 and 1")
    if arguments.share is not None and arguments.support is not None:
        raise InvalidParameter("--share has no meaning with --support, which buys no totals: leave it out")
    if arguments.adaptive and arguments.beta is not None:
        raise InvalidParameter("--beta is of Algorithms 3 and 4: the adaptive attack chooses its copies by ε₂")
    _check_both(arguments, adaptive=arguments.adaptive)
    arguments.repeat = REPEAT if arguments.repeat is None else arguments.repeat


def check_own(arguments: argparse.Namespace) -> None:
    """Raise `InvalidParameter` for what an attack on the user's system cannot take; then fill in the defaults."""
    for name in SIMULATED:
        if getattr(arguments, name) is not None:
            raise InvalidParameter(f"--{name} is of the simulated system: leave it out where you attack your own")
    if arguments.cells is not None and not 2 <= arguments.cells <= LARGEST_CELLS:
        raise InvalidParameter(f"--cells {arguments.cells} must be from 2 to {LARGEST_CELLS}")
    _check_both(arguments, adaptive=arguments.support is None)


def _check_both(arguments: argparse.Namespace, *, adaptive: bool) -> None:
    """What both have in common."""
    if not arguments.epsilon2 >= SMALLEST_EPSILON:
        raise InvalidParameter(
            f"--epsilon2 {arguments.epsilon2:g} must be at least {SMALLEST_EPSILON:g}, "
            "or inf for no noise on the queries"
        )
    if arguments.copies is not None and not 1 <= arguments.copies <= MOST_COPIES:
        raise InvalidParameter(f"--copies {arguments.copies} must be from 1 to 10^12")
    if adaptive and arguments.copies is not None and math.isinf(arguments.epsilon2):
        raise InvalidParameter("--copies says nothing where queries have no noise: give --epsilon2, or leave it out")
    if adaptive and arguments.delta is not None:
        raise InvalidParameter("--delta is of Algorithms 3 and 4, not of the adaptive attack: leave it out")
    arguments.delta = DELTA if arguments.delta is None else arguments.delta


#: Questions at once where somebody carries them: a round more is dearer than a question more.
ROUND: Final = 64


def run_system(arguments: argparse.Namespace) -> int:
    """Attack the user's system; the exit code is 0, or 2 for bad input, which raises."""
    check_own(arguments)
    truth = _truth(arguments)
    noise = Noise(epsilon1=arguments.epsilon1, epsilon2=arguments.epsilon2, threshold=_theta(arguments))
    asked: list[Asking[Signs]] = []

    def attack(asking: Asking[Signs], seed: int) -> tuple[Reconstruction | None, str | None, int]:
        asked.append(asking)
        oracle = Queries(asking.ask, arguments.cells, noise)
        if arguments.ask is not None or arguments.answers is not None:  # the same questions with --oracle and without
            oracle.together = ROUND
        try:
            if arguments.support is not None:
                copies = arguments.copies or 1
                found = reconstruct_supported(oracle, arguments.support, delta=arguments.delta, copies=copies)
            else:
                found = adaptive_attack(oracle, np.random.default_rng(seed), copies=arguments.copies)
        except AttackStopped as stopped:
            return None, str(stopped), seed
        return found, None, seed

    started = time.monotonic()
    settings = {
        "cells": arguments.cells,
        "epsilon2": arguments.epsilon2 if math.isfinite(arguments.epsilon2) else None,
        "support": arguments.support,
        "copies": arguments.copies,
    }
    ended = attack_system(arguments, FORM, settings, attack)
    if ended is None:
        return NOT_REFUTED
    found, stopped, seed = ended
    result = _result(arguments, found, truth)
    result |= described(arguments, asked[0])
    result |= {"stopped": stopped, "seed": seed, "seconds": time.monotonic() - started}
    plot = None
    if found is not None and truth is not None:
        guess, counts = found.guess, truth

        def plot(path: str) -> None:
            plot_counts(counts, guess, path)

    elif arguments.plot is not None:
        raise InvalidParameter("--plot draws true against guessed counts: give the true ones by --data")
    return hand_over(arguments, NOT_REFUTED, lambda: result, lambda: system_text(result), plot=plot)


def _truth(arguments: argparse.Namespace) -> Counts | None:
    """The counts of --data, whose number is then --cells; None without. Raises for what does not fit."""
    if arguments.plot is not None and not arguments.data:
        raise InvalidParameter("--plot draws true against guessed counts: give the true ones by --data")
    if not arguments.data:
        if arguments.cells is None:
            raise InvalidParameter("--cells is needed: how many cells the histogram has")
        return None
    counts = check_histogram(read_column(arguments.data, arguments.column))
    if arguments.cells not in (None, len(counts)):
        raise InvalidParameter(f"--cells {arguments.cells} is not that of --data, which has {len(counts)} cells")
    arguments.cells = len(counts)
    return counts


def _theta(arguments: argparse.Namespace) -> float:
    """θ of the user's system, which Algorithm 3 alone needs: that of Lemma 5.10."""
    if arguments.support is None or arguments.epsilon1 is None:
        return 0.0
    return float(attack_threshold(arguments.epsilon1, arguments.delta))


def _result(arguments: argparse.Namespace, found: Reconstruction | None, truth: Counts | None) -> dict[str, Any]:
    """What the attack says, as JSON values; of the truth it knows nothing."""
    result: dict[str, Any] = {
        "attack": arguments.attack,
        "cells": arguments.cells,
        "support": arguments.support,
        "claimed": 0,
        "recovered": None,
        "known": None,
        "method": None,
        "factor": None,
        "factor_at_most": None,
        "confidence": None,
        "right": None,
        "right_up_to_factor": None,
    }
    if found is None:
        return result
    result |= {
        "claimed": int(found.known.sum()),
        "recovered": found.guess.tolist(),
        "known": found.known.tolist(),
        "method": found.method,
        "factor": found.factor,
        "factor_at_most": found.factor_at_most,
        "confidence": found.confidence,
    }
    if truth is not None:
        result["right"] = int(np.sum(found.guess == truth))
        if found.factor is None:
            result["right_up_to_factor"] = _up_to_factor(found, truth)
    return result


def _up_to_factor(found: Reconstruction, truth: Counts) -> int:
    """How many claimed counts are right with one factor as claimed: whole, within its limit; that of most of them."""
    some = found.known & (found.guess > 0)
    factors, number = np.unique(truth[some] / found.guess[some], return_counts=True)
    claimed = (factors == np.rint(factors)) & (factors >= 1)
    if found.factor_at_most is not None:
        claimed &= factors <= found.factor_at_most
    factor = int(factors[np.argmax(np.where(claimed, number, 0))]) if claimed.any() else 1
    return int(np.sum(found.known & (found.guess * factor == truth)))


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
