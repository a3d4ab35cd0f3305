"""`dpwitness attack subset_sum`: how much of secret bits their noisy subset sums give away."""

import argparse
import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.family import AttackFamily, Commands
from dpwitness.attacks.options import MAX_TIME, ONE_THREAD, deadline_of, require_time, seed_of
from dpwitness.attacks.oracles.command import refuse_limits
from dpwitness.attacks.oracles.options import is_real, oracle_options
from dpwitness.attacks.subset_sum import adversaries, oracle
from dpwitness.attacks.subset_sum.allowed_command import add_allowed, run_allowed
from dpwitness.attacks.subset_sum.report import plot_reconstruction, text
from dpwitness.attacks.subset_sum.system_command import run_system, truth_of
from dpwitness.cli import options
from dpwitness.cli.arguments import number, whole
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.cli.parser import command
from dpwitness.cli.results import check_places, hand_over
from dpwitness.errors import InvalidParameter

#: Of the simulated system, where the options say nothing.
SIZE: Final = 128
ERROR: Final = 4.0
LAW: Final = "uniform"


def add_command(commands: Commands, family: AttackFamily) -> None:
    """Declare the command and its options."""
    examples = (
        "attack subset_sum --size 128 --error 4",
        "attack subset_sum --size 16 --adversary exponential",
        "attack subset_sum --oracle mine.py:system --size 64",
        "attack subset_sum --size 64 --ask questions.csv",
        "attack subset_sum --allowed-queries 0.25 --law gaussian --error 64",
    )
    parser = command(commands, family.name, summary=family.summary, run=run, examples=examples)
    parser.description = (
        "Draws secret bits, asks a bundled target about subsets of them, reconstructs the bits from the answers alone, "
        "and says how many are right; or asks a system of your own."
    )
    options.data(parser, "the secret bits, instead of drawn ones; with --oracle, to compare with")
    parser.add_argument("--size", type=whole, help=f"people, one secret bit each (default: of --data, else {SIZE})")
    parser.add_argument("--error", type=number, help=f"E, no answer is wrong by more (default {ERROR:g})")
    parser.add_argument(
        "--law",
        choices=oracle.LAWS,
        help=f"of the errors (default {LAW}); binomial takes R = E² fair bits, so its standard deviation is E/2, as "
        "that of gaussian. With --oracle: what you know of them (default nothing)",
    )
    parser.add_argument(
        "--adversary",
        choices=adversaries.ADVERSARIES,
        help="a linear program over random subsets, a least-squares fit to them (default: as suits the law; with "
        "--oracle whichever agrees better with itself), or all subsets and all candidates",
    )
    parser.add_argument("--queries", type=whole, help="how many random subsets (default n·ln²n)")
    oracle_options(parser, "a bool array, True for the people of a subset,", "the sum of their secret bits")
    add_allowed(parser)
    options.plot(parser)
    options.common(parser, max_time=MAX_TIME, workers=ONE_THREAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attack:
    """A secret and what was made of answers about it; `expected_right` as the adversary has it, None if it has not."""

    secret: NDArray[np.int64]
    recovered: NDArray[np.int64]
    fractions: NDArray[np.float64]
    largest_residual: float | None
    expected_right: float | None
    seconds: float


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit code is 0, or 2 for bad input, which raises."""
    check_places(arguments)  # before the work, not after it
    if arguments.allowed_queries is not None:
        return run_allowed(arguments)
    if arguments.failure is not None:
        raise InvalidParameter("--failure says how --allowed-queries is meant: give --allowed-queries DELTA too")
    refuse_limits(arguments)
    if is_real(arguments):
        return run_system(arguments)
    truth = truth_of(arguments)
    arguments.size = SIZE if arguments.size is None else arguments.size
    arguments.error = ERROR if arguments.error is None else arguments.error
    arguments.law = arguments.law or LAW
    arguments.adversary = arguments.adversary or adversaries.suited(arguments.law)
    size, error, law = arguments.size, arguments.error, arguments.law
    queries = _queries(arguments)
    seed = seed_of(arguments)
    found = _attack(arguments, queries, truth, np.random.default_rng(seed))
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
        "expected_right": found.expected_right,
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
    oracle.check_error(arguments.error)
    size, queries = arguments.size, arguments.queries
    if arguments.adversary == "exponential":
        from dpwitness.attacks.subset_sum.exponential import check_exponential  # numba is slow to import

        check_exponential(size)
        if arguments.law in adversaries.NORMAL:
            raise InvalidParameter("--adversary exponential needs a bound of the error: choose another --law")
        if queries is not None:
            raise InvalidParameter("--adversary exponential asks all subsets: leave out --queries")
        return 1 << int(size)
    queries = oracle.query_count(size) if queries is None else queries
    oracle.check_queries(size, queries)
    return int(queries)


def _attack(
    arguments: argparse.Namespace, queries: int, truth: NDArray[np.int64] | None, rng: np.random.Generator
) -> _Attack:
    """Draw a secret unless it is given, ask, and reconstruct from the answers alone."""
    deadline = deadline_of(arguments)
    drawn = rng.integers(0, 2, arguments.size)
    secret = drawn if truth is None else truth
    exponential = arguments.adversary == "exponential"
    family = -1 if exponential else int(rng.integers(1 << 30))
    answers = oracle.ask(secret, arguments.error, queries, arguments.law, family, rng)
    started = time.perf_counter()
    residual = expected = None
    if exponential:
        from dpwitness.attacks.subset_sum.exponential import exponential_adversary

        recovered = exponential_adversary(answers, arguments.error)
        fractions = recovered.astype(np.float64)
    else:
        subsets = oracle.subset_family(arguments.size, queries, family)
        require_time(arguments, deadline, "--queries or --size")
        least_squares = arguments.adversary == "least-squares"
        adversary = adversaries.least_squares_adversary if least_squares else adversaries.polynomial_adversary
        found = adversary(subsets, answers, deadline=deadline)
        recovered, fractions, residual = found.bits, found.fractions, found.largest_residual
        expected = found.expected_right
    return _Attack(
        secret=secret,
        recovered=recovered,
        fractions=fractions,
        largest_residual=residual,
        expected_right=expected,
        seconds=time.perf_counter() - started,
    )
