"""`dpwitness attack subset_sum --allowed-queries δ`: how many queries leave one bit private."""

import argparse
import time
from typing import Any, Final

import numpy as np

from dpwitness.attacks.options import seed_of
from dpwitness.attacks.subset_sum.adversaries import NORMAL
from dpwitness.attacks.subset_sum.report import allowed_text, plot_walks
from dpwitness.attacks.subset_sum.theory import (
    allowed_queries,
    simulate_confidence,
    simulate_normal_confidence,
    threshold,
)
from dpwitness.cli.arguments import number
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.cli.results import hand_over
from dpwitness.errors import InvalidParameter

__all__ = ["add_allowed", "run_allowed"]

#: Options that say nothing of how many queries are allowed.
OF_AN_ATTACK: Final = (
    "oracle", "ask", "answers", "budget", "rate", "retries", "data", "column", "size", "adversary", "queries"
)  # fmt: skip
#: Of the simulated walks: how many, how far beyond the allowed number of queries, and steps in all that are drawn.
WALKS: Final = 2000
BEYOND: Final = 4
MOST_STEPS: Final = 1 << 24


def add_allowed(parser: argparse.ArgumentParser) -> None:
    """Declare --allowed-queries and --failure."""
    group = parser.add_argument_group("how many queries may be answered (Theorem 5), instead of an attack")
    group.add_argument(
        "--allowed-queries",
        type=number,
        metavar="DELTA",
        help="how many until one bit can be told with a probability of 1/2 + DELTA, behind --error and --law binomial "
        "(default) or gaussian; --plot draws the adversary's random walk",
    )
    group.add_argument("--failure", type=number, help="with which probability it may be told earlier (default 0.05)")


def run_allowed(arguments: argparse.Namespace) -> int:
    """Say how many queries are allowed, and what a simulated adversary makes of them."""
    for name in OF_AN_ATTACK:
        if getattr(arguments, name) is not None:
            raise InvalidParameter(
                f"--{name} is of an attack, and --allowed-queries asks nothing: leave one of them out"
            )
    law, error = arguments.law or "binomial", 64.0 if arguments.error is None else arguments.error
    failure = 0.05 if arguments.failure is None else arguments.failure
    if law not in NORMAL:
        raise InvalidParameter(f"--law {law}: bounded errors protect no number of queries; give binomial or gaussian")
    started, delta, seed = time.monotonic(), arguments.allowed_queries, seed_of(arguments)
    limit = threshold(delta)
    allowed = allowed_queries(law, error, delta, failure)
    length = min(max(BEYOND * allowed, 8), MOST_STEPS // 64)
    number_of_walks = min(WALKS, MOST_STEPS // length)
    rng = np.random.default_rng(seed)
    if law == "binomial":
        walks = simulate_confidence(rng, round(error**2), length, number_of_walks)
    else:
        walks = simulate_normal_confidence(rng, error / 2, length, number_of_walks)
    reached = np.maximum.accumulate(np.abs(walks), axis=1) >= limit
    told = reached.mean(axis=0)
    later = np.flatnonzero(told > failure)
    result: dict[str, Any] = {
        "attack": arguments.attack,
        "law": law,
        "error": error,
        "standard_deviation": (round(error**2) ** 0.5 if law == "binomial" else error) / 2,
        "delta": delta,
        "limit": limit,
        "failure": failure,
        "allowed_queries": allowed,
        "walks": number_of_walks,
        "told": float(told[min(allowed, length) - 1]) if allowed else 0.0,
        "told_at": min(allowed, length),
        "walk_allows": int(later[0]) if len(later) else None,
        "walk_length": length,
        "seed": seed,
        "seconds": time.monotonic() - started,
    }
    return hand_over(
        arguments,
        NOT_REFUTED,
        lambda: result,
        lambda: allowed_text(result),
        plot=lambda path: plot_walks(walks, result, path),
    )
