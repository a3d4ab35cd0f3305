"""`dpwitness attack threshold_testing --oracle …`: counts out of the answers of the user's own system."""

import argparse
import math
import time
from typing import Any, Final

import numpy as np

from dpwitness.attacks.oracles.asking import Asking
from dpwitness.attacks.oracles.command import attack_system, described
from dpwitness.attacks.threshold_testing.adaptive import adaptive_attack
from dpwitness.attacks.threshold_testing.checks import check_own
from dpwitness.attacks.threshold_testing.oracle import Noise, Queries, check_histogram
from dpwitness.attacks.threshold_testing.questions import FORM, Counts, Signs
from dpwitness.attacks.threshold_testing.reconstruction import Reconstruction, reconstruct_supported
from dpwitness.attacks.threshold_testing.report import plot_counts, system_text
from dpwitness.attacks.threshold_testing.theory import attack_threshold
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.cli.results import hand_over
from dpwitness.errors import AttackStopped, InvalidParameter
from dpwitness.files import read_column

__all__ = ["run_system"]

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
