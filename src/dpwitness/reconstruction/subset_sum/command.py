"""`dpwitness attack subset_sum` attacks a simulated system or the user's own."""

from types import SimpleNamespace

import click
import numpy as np

from dpwitness.cli import options as shared
from dpwitness.cli.command import READ_FILE, CliOption
from dpwitness.cli.values import number, whole
from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.files import read_column, shown
from dpwitness.proposals import AttackFamily, Commands
from dpwitness.reconstruction.command import OWN_SYSTEM_OPTIONS, add_attack_command, oracle_options
from dpwitness.reconstruction.people import read_people
from dpwitness.reconstruction.report import AttackResult
from dpwitness.reconstruction.subset_sum import attack
from dpwitness.reconstruction.subset_sum.conditions import CONDITION_KINDS, Attributes
from dpwitness.reconstruction.subset_sum.linear_decoding import ADVERSARIES, PersonBits
from dpwitness.reconstruction.subset_sum.oracle import ERROR_LAWS


def add_command(commands: Commands, family: AttackFamily) -> None:
    """Add the command `dpwitness attack subset_sum` with its options."""
    examples = (
        "attack subset_sum --size 128 --error 4",
        "attack subset_sum --size 16 --adversary exponential",
        "attack subset_sum --oracle mine.py:system --size 64",
        "attack subset_sum --size 64 --ask questions.csv",
        "attack subset_sum --oracle mine.py:counts --conditions people.csv",
    )
    parameters = [
        *shared.data("the secret bits, instead of drawn ones; with --oracle, to compare with"),
        CliOption(
            "--size",
            type=whole,
            help=f"number of people, one secret bit each (default: of --data, else {attack.DEFAULT_SIZE})",
        ),
        CliOption("--error", type=number, help=f"E, the largest error of an answer (default {attack.DEFAULT_ERROR:g})"),
        CliOption(
            "--law",
            type=click.Choice(ERROR_LAWS),
            help=f"law of the simulated errors (default {attack.DEFAULT_LAW}); binomial uses R = E² fair bits, so its "
            "standard deviation is E/2, as for gaussian",
        ),
        CliOption(
            "--adversary",
            type=click.Choice(ADVERSARIES),
            help="polynomial: a linear program over random subsets; least-squares: a fit to them (default: one of "
            "these two, by --law; least-squares for your own system); least-absolute: a fit of least absolute errors, "
            "some of which may be large; exponential: all subsets and all candidates",
        ),
        CliOption("--queries", type=whole, help="number of random subsets (default n·ln²n)"),
        *oracle_options("a bool array, True for the people of a subset,", "the sum of their secret bits"),
        CliOption(
            "--conditions",
            type=READ_FILE,
            metavar="FILE.csv",
            help="for your own system, if it takes conditions and no subsets: the known attributes, one line per "
            "person; --column names a secret column of this file",
        ),
        CliOption(
            "--allow",
            multiple=True,
            type=click.Choice(CONDITION_KINDS),
            help="which conditions on an attribute the system takes: lists of values, ranges, remainders of a division "
            "(repeatable; default all)",
        ),
    ]
    add_attack_command(
        commands,
        family,
        attack.Options,
        run,
        parameters,
        simulated=("law",),
        own=(*OWN_SYSTEM_OPTIONS, "conditions", "allow"),
        examples=examples,
        description="Draws secret bits, asks a bundled target about subsets of them, reconstructs the bits from "
        "the answers alone, and says how many are right; or asks a system of your own.",
    )


def run(options: attack.Options, arguments: SimpleNamespace) -> AttackResult | None:
    """The result of the attack that the options name; None if the questions wait in a file. Raises `BadInput`."""
    attributes = attributes_of(arguments)
    # --column names the secret column of the --conditions file, if no --data has it.
    column = arguments.column if arguments.data is not None or attributes is None else None
    truth = read_truth(arguments.data, column, arguments.size)
    size = options.size if truth is None else len(truth)
    if size is None and options.own_system:
        if attributes is None:
            raise InvalidParameter("--size is needed: how many people the subsets are made of")
        size = attributes.people
    return attack.attack(options, attack.DEFAULT_SIZE if size is None else size, truth, attributes)


def attributes_of(arguments: SimpleNamespace) -> Attributes | None:
    """The attributes of people in the --conditions file; None without the option. Raises `BadInput` for a bad file."""
    path, secret = arguments.conditions, arguments.column
    if path is None:
        if arguments.allow:
            raise InvalidParameter("--allow says which conditions are taken: give --conditions FILE.csv too")
        return None
    if arguments.data == path and secret is None:
        raise InvalidParameter("--data and --conditions are one file: name its secret column by --column")
    columns = {name: column for name, column in read_people(path).items() if name != secret}
    if not columns:
        raise InvalidData(f"{shown(path)} has no column but {secret!r}: give what is known of the people")
    return Attributes(columns, arguments.allow or CONDITION_KINDS)


def read_truth(data: str | None, column: str | None, size: int | None) -> PersonBits | None:
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
