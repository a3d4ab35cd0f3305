"""`dpwitness attack subset_sum`: how much of secret bits their noisy subset sums give away."""

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.family import AttackFamily, Commands
from dpwitness.attacks.options import MAX_TIME, ONE_THREAD, deadline_of, require_time, seed_of
from dpwitness.attacks.subset_sum import oracle
from dpwitness.attacks.subset_sum.report import plot_reconstruction, text
from dpwitness.cli import options
from dpwitness.cli.arguments import number, whole
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.cli.parser import command
from dpwitness.cli.results import check_places, hand_over
from dpwitness.errors import InvalidParameter

ADVERSARIES = ("polynomial", "exponential")


def add_command(commands: Commands, family: AttackFamily) -> None:
    """Declare the command and its options."""
    examples = ("attack subset_sum --size 128 --error 4", "attack subset_sum --size 16 --adversary exponential")
    parser = command(commands, family.name, summary=family.summary, run=run, examples=examples)
    parser.description = (
        "Draws secret bits, asks a bundled target about subsets of them, reconstructs the bits from the answers alone, "
        "and says how many are right."
    )
    parser.add_argument("--size", type=whole, default=128, help="people, one secret bit each (default 128)")
    parser.add_argument("--error", type=number, default=4.0, help="E, no answer is wrong by more (default 4)")
    parser.add_argument(
        "--law",
        choices=oracle.LAWS,
        default="uniform",
        help="of the errors (default uniform); binomial takes R = E² fair bits, so its standard deviation is E/2",
    )
    parser.add_argument(
        "--adversary",
        choices=ADVERSARIES,
        default="polynomial",
        help="a linear program over random subsets (default), or all subsets and all candidates",
    )
    parser.add_argument("--queries", type=whole, help="of the polynomial adversary (default n·ln²n)")
    options.plot(parser)
    options.common(parser, max_time=MAX_TIME, workers=ONE_THREAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attack:
    """A secret and what was made of answers about it, both of shape (n,); the fractions before rounding."""

    secret: NDArray[np.int64]
    recovered: NDArray[np.int64]
    fractions: NDArray[np.float64]
    largest_residual: float | None
    seconds: float


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit code is 0, or 2 for bad input, which raises."""
    size, error, law = arguments.size, arguments.error, arguments.law
    queries = _queries(arguments)
    seed = seed_of(arguments)
    check_places(arguments)  # before the work, not after it
    found = _attack(arguments, queries, np.random.default_rng(seed))
    right, ones = int(np.sum(found.recovered == found.secret)), int(found.secret.sum())
    result: dict[str, Any] = {
        "attack": arguments.attack,
        "adversary": arguments.adversary,
        "size": size,
        "error": error,
        "law": law,
        "error_over_root_size": error / size**0.5,
        "queries": queries,
        "right": right,
        "fraction_right": right / size,
        "guessing": max(ones, size - ones) / size,
        "largest_residual": found.largest_residual,
        "seed": seed,
        "seconds": found.seconds,
    }
    if found.largest_residual is None:
        result["largest_residual_reason"] = "the exponential adversary solves no program"
    title = f"{right} of {size} bits right; E = {error:g}, {law}"
    return hand_over(
        arguments,
        NOT_REFUTED,
        lambda: result,
        lambda: text(result),
        plot=lambda path: plot_reconstruction(found.secret, found.fractions, path, title),
    )


def _queries(arguments: argparse.Namespace) -> int:
    """How many queries are asked. Raises `InvalidParameter` for what does not fit the adversary."""
    from dpwitness.attacks.subset_sum.adversaries import check_exponential

    oracle.check_error(arguments.error)
    size, queries = arguments.size, arguments.queries
    if arguments.adversary == "exponential":
        check_exponential(size)
        if arguments.law == "binomial":
            raise InvalidParameter("--adversary exponential needs a bound of the error: choose another --law")
        if queries is not None:
            raise InvalidParameter("--adversary exponential asks all subsets: leave out --queries")
        return 1 << int(size)
    queries = oracle.query_count(size) if queries is None else queries
    oracle.check_queries(size, queries)
    return int(queries)


def _attack(arguments: argparse.Namespace, queries: int, rng: np.random.Generator) -> _Attack:
    """Draw a secret, ask, and reconstruct from the answers alone."""
    from dpwitness.attacks.subset_sum import adversaries  # numba is slow to import

    deadline = deadline_of(arguments)
    secret = rng.integers(0, 2, arguments.size)
    exponential = arguments.adversary == "exponential"
    family = -1 if exponential else int(rng.integers(1 << 30))
    answers = oracle.ask(secret, arguments.error, queries, arguments.law, family, rng)
    started = time.perf_counter()
    residual: float | None = None
    if exponential:
        recovered = adversaries.exponential_adversary(answers, arguments.error)
        fractions = recovered.astype(np.float64)
    else:
        subsets = oracle.subset_family(arguments.size, queries, family)
        require_time(arguments, deadline, "--queries or --size")
        found = adversaries.polynomial_adversary(subsets, answers, seconds=deadline.left)
        recovered, fractions, residual = found.bits, found.fractions, found.largest_residual
    seconds = time.perf_counter() - started
    return _Attack(secret=secret, recovered=recovered, fractions=fractions, largest_residual=residual, seconds=seconds)
