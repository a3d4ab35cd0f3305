"""`dpwitness attack published_tables`: what tables that are already published tell of single people."""

import argparse
from typing import Final

from dpwitness.cli import options
from dpwitness.cli.console import INTERRUPTED, NOT_REFUTED
from dpwitness.cli.output import check_places
from dpwitness.cli.parser import READ, command, whole
from dpwitness.errors import InvalidParameter
from dpwitness.files import shown
from dpwitness.proposals import AttackFamily, Commands
from dpwitness.reconstruction.command import finish, settings_of
from dpwitness.reconstruction.published_tables.attack import MOST, RESTARTS, Options, attack
from dpwitness.reconstruction.published_tables.statements import Publication, published_marginals, read_publication
from dpwitness.reconstruction.table_builder.tables import read_table

#: The default of --max-time, in seconds.
MAX_TIME: Final = 120.0
#: What --publish takes, and by how many attributes the counts then are.
PUBLISHED: Final = {"1-way": 1, "2-way": 2, "3-way": 3}


def add_command(commands: Commands, family: AttackFamily) -> None:
    """Declare the command and its options."""
    examples = (
        "attack published_tables --tables report.jsonl",
        "attack published_tables --tables report.jsonl age_sex.csv --data people.csv",
        "attack published_tables --data people.csv --publish 2-way --seed 1",
    )
    parser = command(commands, family.name, summary=family.summary, run=run, examples=examples)
    parser.description = (
        "Takes counts, means and medians that are published of a table, and says how many tables agree with them, "
        "which rows are in all of these, and which other rows are probably in the table."
    )
    parser.add_argument(
        "--tables",
        type=READ,
        nargs="+",
        metavar="FILE",
        help="the publication: JSON lines, or .csv with attributes and a column count (-: standard input)",
    )
    parser.add_argument(
        "--data",
        type=READ,
        metavar="FILE.csv",
        help="the true table, one row per person: to say which rows are right, or for --publish",
    )
    parser.add_argument(
        "--publish",
        choices=tuple(PUBLISHED),
        help="attack all counts of --data by 1, 2 or 3 attributes, instead of --tables",
    )
    parser.add_argument(
        "--most", type=whole, metavar="N", help=f"maximum number of agreeing tables to look for (default {MOST})"
    )
    parser.add_argument(
        "--restarts",
        type=whole,
        metavar="N",
        help=f"number of random tables by which rows are ranked, if many tables agree (default {RESTARTS})",
    )
    options.plot(parser)
    options.common(parser, max_time=MAX_TIME, workers="maximum number of threads; this attack uses one")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit code is 0, 130 where it was interrupted, or 2 for bad input, which raises."""
    check_places(arguments)  # before the work, not after it
    settings = settings_of(Options, arguments)
    truth = None if arguments.data is None else read_table(arguments.data)
    published: Publication
    if arguments.publish is not None:
        if arguments.tables is not None:
            raise InvalidParameter("--publish publishes --data, and --tables is published: leave one of them out")
        if truth is None:
            raise InvalidParameter("--publish needs a table to publish: give --data FILE.csv")
        published = published_marginals(truth, PUBLISHED[arguments.publish])
        source = f"{arguments.publish} counts of {shown(arguments.data)}"
    elif arguments.tables is None:
        raise InvalidParameter("nothing is published: give --tables FILE, or --data FILE.csv and --publish 2-way")
    else:
        published = read_publication(arguments.tables)
        source = ", ".join(map(shown, arguments.tables))
    result = attack(published, source, truth, settings)
    return finish(arguments, result, INTERRUPTED if result.stopped == "interrupted" else NOT_REFUTED)
