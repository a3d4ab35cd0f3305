"""`dpwitness attack subset_sum --allowed-queries δ`: how many queries leave one bit private.

`dpwitness attack subset_sum --oracle …`: secret bits out of the answers of the user's own system.

`dpwitness attack subset_sum`: how much of secret bits their noisy subset sums give away.
"""

import argparse
import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.cli import options
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.cli.output import check_places, hand_over
from dpwitness.cli.parser import command, number, whole
from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.files import read_column, shown
from dpwitness.proposals import AttackFamily, Commands
from dpwitness.reconstruction.asking import Asking
from dpwitness.reconstruction.command import (
    MAX_TIME,
    ONE_THREAD,
    attack_system,
    deadline_of,
    described,
    is_real,
    oracle_options,
    refuse_limits,
    require_time,
    seed_of,
)
from dpwitness.reconstruction.subset_sum import linear_decoding, oracle
from dpwitness.reconstruction.subset_sum.attack import FORM, Outcome, Plan, Subset, plan, reconstruct
from dpwitness.reconstruction.subset_sum.linear_decoding import NORMAL
from dpwitness.reconstruction.subset_sum.oracle import check_error
from dpwitness.reconstruction.subset_sum.report import (
    allowed_text,
    plot_fractions,
    plot_reconstruction,
    plot_walks,
    system_text,
    text,
)
from dpwitness.reconstruction.subset_sum.theory import (
    allowed_queries,
    simulate_confidence,
    simulate_normal_confidence,
    threshold,
)

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


def truth_of(arguments: argparse.Namespace) -> NDArray[np.int64] | None:
    """The bits of --data, whose number is then --size; None without. Raises `InvalidData` for what are no bits."""
    if arguments.data is None:
        if arguments.column is not None:
            raise InvalidData("--column says which column of --data: give --data FILE.csv too")
        return None
    bits = np.asarray(read_column(arguments.data, arguments.column))
    if not np.isin(bits, (0, 1)).all():
        wrong = bits[~np.isin(bits, (0, 1))][0]
        raise InvalidData(f"{shown(arguments.data)} must hold bits, 0 or 1, and not {wrong:g}")
    if arguments.size not in (None, len(bits)):
        raise InvalidParameter(f"--size {arguments.size} is not that of --data, which has {len(bits)} bits")
    arguments.size = len(bits)
    return bits.astype(np.int64)


def run_system(arguments: argparse.Namespace) -> int:
    """Attack the user's system; the exit code is 0, or 2 for bad input, which raises."""
    truth = truth_of(arguments)
    if arguments.size is None:
        raise InvalidParameter("--size is needed: how many people the subsets are made of")
    planned = _plan(arguments)
    asked: list[Asking[Subset]] = []

    def attack(asking: Asking[Subset], seed: int) -> tuple[Outcome, int]:
        asked.append(asking)
        return reconstruct(asking, seed, planned, deadline_of(arguments)), seed

    started = time.monotonic()
    kind = "all subsets" if planned.every else "random subsets"
    settings = {"size": planned.size, "questions": planned.used + planned.fresh, "kind": kind}
    ended = attack_system(arguments, FORM, settings, attack)
    if ended is None:
        return NOT_REFUTED
    found, seed = ended
    result = _result(arguments, found, truth, asked[0]) | {"seed": seed, "seconds": time.monotonic() - started}
    title = f"{found.expected_right:.1f} of {planned.size} bits right as far as the answers tell"
    return hand_over(
        arguments,
        NOT_REFUTED,
        lambda: result,
        lambda: system_text(result),
        plot=lambda path: (
            plot_fractions(found.found.fractions, path, title)
            if truth is None
            else plot_reconstruction(truth, found.found.fractions, path, title)
        ),
    )


def _plan(arguments: argparse.Namespace) -> Plan:
    """What is asked, from the options. Raises `InvalidParameter` for what does not fit."""
    size, error, law = arguments.size, arguments.error, arguments.law
    if error is not None:
        check_error(error)
    if arguments.adversary == "exponential":
        from dpwitness.reconstruction.subset_sum.oracle import check_exponential  # numba is slow to import

        check_exponential(size)
        if error is None:
            raise InvalidParameter("--adversary exponential needs --error, by which no answer is wrong by more")
        if arguments.queries is not None:
            raise InvalidParameter("--adversary exponential asks all subsets: leave out --queries")
        if arguments.budget is not None and arguments.budget < 1 << size:
            raise InvalidParameter(f"--budget {arguments.budget} is too small: all subsets are {1 << size} questions")
        return Plan(size=size, used=1 << size, fresh=0, every=True, adversary=arguments.adversary, error=error)
    if error is not None and law is None:
        raise InvalidParameter("--error says nothing of errors of an unknown law: give --law too, or leave it out")
    used, fresh = plan(size, arguments.queries, arguments.budget)
    variance = None
    if law is not None and error is not None:  # of uniform errors E²/3; of rounded ones about that, too
        variance = error**2 / (4 if law in ("binomial", "gaussian") else 3)
    return Plan(
        size=size,
        used=used,
        fresh=fresh,
        adversary=arguments.adversary or (law and _suited(law)),
        variance=None if law == "adversarial" else variance,
    )


def _suited(law: str) -> str:
    from dpwitness.reconstruction.subset_sum.linear_decoding import suited

    return suited(law)


def _result(
    arguments: argparse.Namespace, outcome: Outcome, truth: NDArray[np.int64] | None, asking: Asking[Subset]
) -> dict[str, Any]:
    """What the attack says, as JSON values."""
    size, fresh, found = arguments.size, outcome.fresh, outcome.found
    right = None if truth is None else int(np.sum(found.bits == truth))
    return {
        "attack": arguments.attack,
        **described(arguments, asking),
        "adversary": outcome.adversary,
        "size": size,
        "recovered": found.bits.tolist(),
        "fractions": found.fractions.tolist(),
        "confidence": {
            "expected_right": outcome.expected_right,
            "bits": outcome.claims.tolist(),
            "basis": outcome.basis,
            "fresh_questions": fresh and fresh.number,
            "fresh_error": fresh and fresh.error,
            "fresh_error_of_constant": fresh and fresh.constant,
            "halves_agree_on": fresh and fresh.halves,
            "scale": fresh and fresh.scale and fresh.scale.value,
            "scale_error": fresh and fresh.scale and fresh.scale.error,
        },
        "spread": found.spread,
        "offset": found.offset,
        "largest_residual": found.largest_residual,
        "right": right,
        "fraction_right": None if right is None else right / size,
        "stopped": outcome.stopped,
    }


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
        choices=linear_decoding.ADVERSARIES,
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
    arguments.adversary = arguments.adversary or linear_decoding.suited(arguments.law)
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
        from dpwitness.reconstruction.subset_sum.oracle import check_exponential  # numba is slow to import

        check_exponential(size)
        if arguments.law in linear_decoding.NORMAL:
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
        from dpwitness.reconstruction.subset_sum.oracle import exponential_adversary

        recovered = exponential_adversary(answers, arguments.error)
        fractions = recovered.astype(np.float64)
    else:
        subsets = oracle.subset_family(arguments.size, queries, family)
        require_time(arguments, deadline, "--queries or --size")
        least_squares = arguments.adversary == "least-squares"
        adversary = linear_decoding.least_squares_adversary if least_squares else linear_decoding.polynomial_adversary
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
