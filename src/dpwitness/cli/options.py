"""Options that several commands share: one word for one thing, with one meaning everywhere.

--records and what goes with it: real data from a CSV file, and which datasets the claim calls neighbours.

From options to what `dpwitness.check` and its sisters take: the mechanism, its inputs, its parameters.
"""

import argparse
from typing import Final

from dpwitness.cli.parser import number, seconds, threads, whole

#: What every command that runs something takes.
COMMON: Final = ("--seed", "--workers", "--max-time", "--save", "--json", "--quiet")
#: Of --adjacency: a claim that leaves it open is about either.
ADJACENCIES: Final = {"add-remove": "add-remove", "replace-one": "replace-one", "either": None}
#: What a mechanism may get of --records.
FORMS: Final = ("dataframe", "array", "list", "columns", "xy")
WORKERS: Final = "threads, or processes for plain Python (default: all cores)"


def common(
    parser: argparse.ArgumentParser, *, max_time: float | None, time_for: str = "everything", workers: str = WORKERS
) -> None:
    """Options of every command that runs something.

    Parameters
    ----------
    max_time
        The default of --max-time in seconds; None: no limit.
    time_for
        What it limits.
    workers
        The help of --workers.
    """
    limit = "no limit" if max_time is None else f"{max_time:g}s"
    parser.add_argument("--seed", type=whole, help="repeat an earlier run (default: a fresh seed)")
    parser.add_argument("--workers", type=threads, metavar="N", help=workers)
    parser.add_argument(
        "--max-time",
        type=seconds,
        default=max_time,
        metavar="TIME",
        help=f"time for {time_for}, such as 60s or 2m (default: {limit})",
    )
    parser.add_argument("--save", metavar="FILE", help="write the result as JSON")
    parser.add_argument("--json", action="store_true", help="print the result alone, as JSON, on stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def cluster(parser: argparse.ArgumentParser) -> None:
    """--cluster: where the runs of a mechanism are made instead of here."""
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run on a Dask cluster: the address of its scheduler, or local for workers of this machine (--workers of "
        "them)",
    )


def runs(parser: argparse.ArgumentParser, help: str) -> None:
    """--runs: paired confirm runs."""
    parser.add_argument("--runs", type=whole, metavar="N", help=help)


def alpha(parser: argparse.ArgumentParser, default: float | None, help: str) -> None:
    """--alpha, the probability of a false alarm."""
    parser.add_argument("--alpha", type=number, default=default, metavar="A", help=help)


def claim(parser: argparse.ArgumentParser, help: str) -> None:
    """--claim: any claim, as a text that `dpwitness.mechanisms.claims` reads once it is needed."""
    parser.add_argument(
        "--claim", metavar="CLAIM", help=f"{help}: 1, 1,1e-5, zcdp:0.5, gdp:1, rdp:8,0.4, profile:FILE, tradeoff:FILE"
    )


def target(parser: argparse.ArgumentParser) -> None:
    """TARGET, and what the mechanism takes and gives."""
    parser.add_argument(
        "target", metavar="TARGET", help="a bundled name, path/file.py:function or package.module:object"
    )
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="a parameter of the mechanism (repeatable)"
    )
    python(parser)
    outcomes(parser)


def python(parser: argparse.ArgumentParser) -> None:
    """--python: which interpreter runs the mechanism."""
    parser.add_argument(
        "--python", metavar="PATH", help="another environment's interpreter that runs it, as old/bin/python"
    )


def outcomes(parser: argparse.ArgumentParser) -> None:
    """--outcome and --errors: what of a run is its outcome."""
    parser.add_argument(
        "--outcome",
        metavar="WHAT",
        help="what of an output is released: FILE.py:FUNCTION, or attributes as coef_,intercept_",
    )
    parser.add_argument("--errors", choices=("raise", "outcome"), help="what an exception is (default raise: the end)")


def inputs(parser: argparse.ArgumentParser, title: str = "inputs (default: the target's own relation)") -> None:
    """Which inputs are neighbours, and D."""
    group = parser.add_argument_group(title)
    group.add_argument(
        "--pair", nargs=2, action="append", metavar=("D", "D′"), help="two neighbouring inputs as JSON (repeatable)"
    )
    group.add_argument("--queries", type=whole, metavar="N", help="answers to N queries of sensitivity 1")
    group.add_argument("--may-move", choices=("all", "one"), help="which answers move on a neighbour (default all)")
    group.add_argument("--direction", choices=("any", "up"), help="whether answers may move against each other")
    add_records(group)
    data(group, "take D from a file; the relation makes the neighbours")


def add_records(group: argparse._ArgumentGroup) -> None:
    """--records, and what goes with it."""
    group.add_argument(
        "--records", metavar="FILE.csv", help="records to start from; neighbours differ in one (-: stdin)"
    )
    names = ", ".join(ADJACENCIES)
    group.add_argument("--adjacency", choices=tuple(ADJACENCIES), metavar="HOW", help=f"{names} (default add-remove)")
    group.add_argument(
        "--form",
        choices=FORMS,
        metavar="FORM",
        help=f"what the mechanism gets: {', '.join(FORMS)} (default dataframe; xy: the last column is y)",
    )
    group.add_argument("--size", type=whole, metavar="N", help="only datasets of N records (default any number)")
    group.add_argument(
        "--domain",
        metavar="COL=VALUES",
        action="append",
        default=[],
        help="LOW:HIGH or A,B,C for a column of --records (default as in the file; repeatable)",
    )


def data(parser: argparse._ActionsContainer, help: str) -> None:
    """--data and --column: numbers from a CSV file, or from standard input."""
    parser.add_argument("--data", metavar="FILE.csv", help=f"{help} (-: standard input)")
    parser.add_argument("--column", metavar="NAME", help="the column of --data (default: count, else the last)")


def plot(parser: argparse.ArgumentParser) -> None:
    """--plot; the format follows from the name."""
    parser.add_argument("--plot", metavar="FILE", help="draw it as .svg, .png or .pdf")
