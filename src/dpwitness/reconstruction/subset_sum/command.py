"""`dpwitness attack subset_sum` attacks a simulated system or the user's own, or computes the queries to allow."""

import functools
import time
from types import SimpleNamespace
from typing import Final

import click
import numpy as np

from dpwitness.cli import options as shared
from dpwitness.cli.command import READ_FILE, Option
from dpwitness.cli.values import number, refuse, whole
from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.files import read_column, shown
from dpwitness.proposals import AttackFamily, Commands
from dpwitness.reconstruction.command import AttackOptions, add_attack_command, finish, oracle_options, settings_of
from dpwitness.reconstruction.report import EndedAttack, Result
from dpwitness.reconstruction.subset_sum import attack, theory
from dpwitness.reconstruction.subset_sum.conditions import KINDS, Attributes, read_attributes
from dpwitness.reconstruction.subset_sum.linear_decoding import ADVERSARIES, NORMAL_LAWS, Bits
from dpwitness.reconstruction.subset_sum.oracle import LAWS
from dpwitness.reconstruction.subset_sum.report import draw_walks, standard_deviation

#: Names of the options that describe an attack, and that --allowed-queries therefore refuses.
ATTACK_OPTIONS: Final = (
    "oracle", "ask", "answers", "budget", "rate", "retries", "data", "column", "size", "adversary", "queries",
    "conditions", "allow",
)  # fmt: skip
#: Largest number of steps of all simulated walks together: 2²⁴ numbers take 128 MB.
MAX_STEPS: Final = 1 << 24


def add_command(commands: Commands, family: AttackFamily) -> None:
    """Add the command `dpwitness attack subset_sum` with its options."""
    examples = (
        "attack subset_sum --size 128 --error 4",
        "attack subset_sum --size 16 --adversary exponential",
        "attack subset_sum --oracle mine.py:system --size 64",
        "attack subset_sum --size 64 --ask questions.csv",
        "attack subset_sum --oracle mine.py:counts --conditions people.csv",
        "attack subset_sum --allowed-queries 0.25 --law gaussian --error 64",
    )
    allowed = functools.partial(Option, title="how many queries may be answered (Theorem 5), instead of an attack")
    parameters = [
        *shared.data("the secret bits, instead of drawn ones; with --oracle, to compare with"),
        Option(
            "--size",
            type=whole,
            help=f"number of people, one secret bit each (default: of --data, else {attack.DEFAULT_SIZE})",
        ),
        Option("--error", type=number, help=f"E, the largest error of an answer (default {attack.DEFAULT_ERROR:g})"),
        Option(
            "--law",
            type=click.Choice(LAWS),
            help=f"law of the errors (default {attack.DEFAULT_LAW}); binomial uses R = E² fair bits, so its standard "
            "deviation is E/2, as for gaussian. With --oracle: the law, if you know it (default: unknown)",
        ),
        Option(
            "--adversary",
            type=click.Choice(ADVERSARIES),
            help="polynomial: a linear program over random subsets; least-squares: a fit to them (default: one of "
            "these two, by the law; least-squares if it is unknown); least-absolute: a fit of least absolute errors, "
            "some of which may be large; exponential: all subsets and all candidates",
        ),
        Option("--queries", type=whole, help="number of random subsets (default n·ln²n)"),
        *oracle_options("a bool array, True for the people of a subset,", "the sum of their secret bits"),
        Option(
            "--conditions",
            type=READ_FILE,
            metavar="FILE.csv",
            help="for your own system, if it takes conditions and no subsets: the known attributes, one line per "
            "person; --column names a secret column of this file",
        ),
        Option(
            "--allow",
            multiple=True,
            type=click.Choice(KINDS),
            help="which conditions on an attribute the system takes: lists of values, ranges, remainders of a division "
            "(repeatable; default all)",
        ),
        allowed(
            "--allowed-queries",
            type=number,
            metavar="DELTA",
            help="number of queries until a bit can be told with probability 1/2 + DELTA, with --error and --law "
            "binomial (default) or gaussian; --plot draws the adversary's random walk",
        ),
        allowed("--failure", type=number, help="probability that the bit can be told earlier (default 0.05)"),
    ]
    add_attack_command(
        commands,
        family,
        run,
        parameters,
        examples=examples,
        description="Draws secret bits, asks a bundled target about subsets of them, reconstructs the bits from "
        "the answers alone, and says how many are right; or asks a system of your own.",
    )


def run(arguments: SimpleNamespace) -> int:
    """Run the command; return its exit code. Bad input raises."""
    options = settings_of(attack.Options, arguments)
    if arguments.allowed_queries is not None:
        reason = "is of an attack, and --allowed-queries asks nothing: leave one of them out"
        refuse(arguments, ATTACK_OPTIONS, reason)
        failure = 0.05 if arguments.failure is None else arguments.failure
        return finish(arguments, simulate_allowed_queries(options, arguments.allowed_queries, failure))
    if arguments.failure is not None:
        raise InvalidParameter("--failure says how --allowed-queries is meant: give --allowed-queries DELTA too")
    options.require_own_system()
    attributes = attributes_of(arguments, options)
    # --column names the secret column of the --conditions file, if no --data has it.
    column = arguments.column if arguments.data is not None or attributes is None else None
    truth = read_truth(arguments.data, column, arguments.size)
    size = arguments.size if truth is None else len(truth)
    if size is None and options.own_system:
        if attributes is None:
            raise InvalidParameter("--size is needed: how many people the subsets are made of")
        size = attributes.people
    return finish(arguments, attack.attack(options, attack.DEFAULT_SIZE if size is None else size, truth, attributes))


def attributes_of(arguments: SimpleNamespace, common: AttackOptions) -> Attributes | None:
    """The attributes of people in the --conditions file; None without the option. Raises `BadInput` for a bad file."""
    path, secret = arguments.conditions, arguments.column
    if path is None:
        if arguments.allow:
            raise InvalidParameter("--allow says which conditions are taken: give --conditions FILE.csv too")
        return None
    if not common.own_system:
        raise InvalidParameter("--conditions is of an attack on your own system: give --oracle, or --ask FILE, too")
    if arguments.data == path and secret is None:
        raise InvalidParameter("--data and --conditions are one file: name its secret column by --column")
    return read_attributes(path, secret, arguments.allow or KINDS)


def read_truth(data: str | None, column: str | None, size: int | None) -> Bits | None:
    """The bits of the --data file; None without the option. Raises `BadInput` for other values, or another `size`."""
    if data is None:
        if column is not None:
            raise InvalidData("--column says which column of --data: give --data FILE.csv too")
        return None
    bits = np.asarray(read_column(data, column))
    if not np.isin(bits, (0, 1)).all():
        wrong = bits[~np.isin(bits, (0, 1))][0]
        raise InvalidData(f"{shown(data)} must hold bits, 0 or 1, and not {wrong:g}")
    if size not in (None, len(bits)):
        raise InvalidParameter(f"--size {size} is not that of --data, which has {len(bits)} bits")
    return bits.astype(np.int64)


def simulate_allowed_queries(options: attack.Options, delta: float, failure: float) -> Result:
    """The number of queries by `theory.allowed_queries`, and the share of simulated walks that tell the bit."""
    law, error = options.law or "binomial", 64.0 if options.error is None else options.error
    if law not in NORMAL_LAWS:
        raise InvalidParameter(f"--law {law}: bounded errors protect no number of queries; give binomial or gaussian")
    started, seed = time.monotonic(), options.seed_or_fresh()
    limit = theory.threshold(delta)
    number = theory.allowed_queries(law, error, delta, failure)
    # Walks of four times the allowed number of queries show how far the proved bound is from the walk's own limit.
    length = min(max(4 * number, 8), MAX_STEPS // 64)
    walks = min(2000, MAX_STEPS // length)  # a share of 0.05 has a standard error of 0.005 then
    rng = np.random.default_rng(seed)
    if law == "binomial":
        confidences = theory.simulate_confidence(rng, round(error**2), length, walks)
    else:
        confidences = theory.simulate_normal_confidence(rng, error / 2, length, walks)
    told = (np.maximum.accumulate(np.abs(confidences), axis=1) >= limit).mean(axis=0)
    later = np.flatnonzero(told > failure)
    share, told_at = float(told[min(number, length) - 1]) if number else 0.0, min(number, length)
    allows = int(later[0]) if len(later) else None
    deviation, told_with = standard_deviation(law, error), f"{0.5 + delta:g}"
    title = f"{law} errors, standard deviation {deviation:g}"
    ended = EndedAttack(attack=options.attack, found=told, asked=None, seed=seed, seconds=time.monotonic() - started)
    return Result(
        ended=ended,
        values={
            "law": law,
            "error": error,
            "standard_deviation": deviation,
            "delta": delta,
            "limit": limit,
            "failure": failure,
            "allowed_queries": number,
            "walks": walks,
            "told": share,
            "told_at": told_at,
            "walk_allows": allows,
            "walk_length": length,
        },
        heading=f"ALLOWED {number:,} queries that hold one bit",
        rows=[
            ("errors", f"{law}, standard deviation {deviation:g}"),
            (
                "until then",
                f"an adversary who knows all other bits tells it with a probability below {told_with}, "
                f"except in {failure:g} of all runs (Theorem 5)",
            ),
            (
                "simulated",
                f"{walks:,} walks: {share:.4f} of them reach it "
                f"{'by then' if told_at == number else f'within {told_at:,} queries'}; "
                f"{f'more than {length:,}' if allows is None else f'{allows:,}'} queries keep it below {failure:g}",
            ),
        ],
        draw=lambda axes: draw_walks(
            axes, confidences, limit=limit, told=f"told with {told_with}", allowed=number, title=title
        ),
    )
