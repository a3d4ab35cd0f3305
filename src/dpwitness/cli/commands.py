"""The commands: each takes parsed arguments, prints, and returns an exit code."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from dpwitness import curves, pipeline
from dpwitness.catalog import load, registered
from dpwitness.cli.arguments import relation, settings
from dpwitness.cli.progress import live
from dpwitness.errors import BadInput, InvalidData
from dpwitness.files import read_column, write_atomically
from dpwitness.neighbours import histogram, queries
from dpwitness.report import text
from dpwitness.report.plots import plot_curve, plot_format
from dpwitness.target import target_of
from dpwitness.verdict import Violation
from dpwitness.witness import Witness


def list_targets(arguments: argparse.Namespace) -> int:
    """`dpwitness list`."""
    rows = []
    for name, point in registered().items():
        target = target_of(point.load())
        if target is not None:
            rows.append(
                {"name": name, "claim": target.claim, "true_epsilon": target.true_epsilon, "source": target.source}
            )
    if arguments.json:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
        return 0
    titles = {"name": "TARGET", "claim": "CLAIM", "true_epsilon": "TRUE ε", "source": "SOURCE"}
    widths = {key: max(len(row[key]) for row in (titles, *rows)) for key in titles}
    for row in (titles, *rows):
        print("  ".join(row[key].ljust(widths[key]) for key in titles).rstrip())
    return 0


def check_target(arguments: argparse.Namespace) -> int:
    """`dpwitness check`."""
    if arguments.epsilon is None and arguments.claim is None:
        raise BadInput("check needs --epsilon, or --claim for a mechanism without a parameter of that name")
    function, shared = _shared(arguments)
    _writable(arguments.save)
    with live(arguments) as progress:
        verdict = pipeline.check(
            function,
            **shared,
            epsilon=arguments.epsilon,
            claim=arguments.claim,
            alpha=arguments.alpha,
            progress=progress,
            **_given(arguments, "max_runs"),
        )
    command = [*_again(arguments), "--seed", str(verdict.seed)]
    _finish(arguments, verdict.to_json(), text.verdict_text(verdict, reproduce=command))
    return 1 if isinstance(verdict, Violation) else 0


def bound_target(arguments: argparse.Namespace) -> int:
    """`dpwitness bound`."""
    function, shared = _shared(arguments)
    _writable(arguments.save)
    with live(arguments) as progress:
        result = pipeline.bound(
            function,
            **shared,
            epsilon=arguments.epsilon,
            confidence=arguments.confidence,
            progress=progress,
            **_given(arguments, "runs"),
        )
    _finish(arguments, result.to_json(), text.bound_text(result))
    return 0


def curve_target(arguments: argparse.Namespace) -> int:
    """`dpwitness curve`."""
    function, shared = _shared(arguments)
    _writable(arguments.save)
    if arguments.plot:
        plot_format(arguments.plot)  # before the runs, not after them
        _writable(arguments.plot)
    with live(arguments) as progress:
        result = curves.curve(
            function,
            **shared,
            epsilons=arguments.epsilon,
            claims=arguments.claims,
            method=arguments.method,
            progress=progress,
            **_given(arguments, "runs"),
        )
    if arguments.plot:
        plot_curve(result, arguments.plot)
    _finish(arguments, result.to_json(), text.curve_text(result))
    return 0


def replay_witness(arguments: argparse.Namespace) -> int:
    """`dpwitness replay`."""
    witness = Witness.load(arguments.witness)
    function = load(arguments.mechanism) if arguments.mechanism else None
    _writable(arguments.save)
    with live(arguments) as progress:
        verdict = pipeline.replay(
            witness,
            function,
            max_runs=arguments.max_runs,
            max_time=arguments.max_time,
            seed=arguments.seed,
            workers=arguments.workers,
            progress=progress,
        )
    _finish(arguments, verdict.to_json(), text.verdict_text(verdict))
    return 1 if isinstance(verdict, Violation) else 0


def _shared(arguments: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """The function, and the settings that check, bound and curve take alike."""
    function = load(arguments.target)
    neighbours, data = relation(arguments), None
    if arguments.data:
        data = read_column(arguments.data, arguments.column)
        if neighbours is None and target_of(function) is None:
            # A user's own function and a file: counts are a histogram, anything else answers to queries.
            counts = data.dtype.kind == "i" and (data >= 0).all()
            neighbours = histogram(len(data)) if counts else queries(len(data))
            kind = "a histogram, one person more or less in a cell" if counts else "queries, each moving by at most 1"
            print(f"dpwitness: taking {arguments.data} as {kind}", file=sys.stderr)
    elif arguments.column:
        raise InvalidData("--column says which column of --data: give --data FILE.csv too")
    shared = {
        "delta": arguments.delta,
        "neighbours": neighbours,
        "data": data,
        "parameters": settings(arguments.set),
        "max_time": arguments.max_time,
        "seed": arguments.seed,
        "workers": arguments.workers,
        "reference": arguments.target,
    }
    return function, shared


def _given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Those options that were given; the pipeline knows the defaults of the others."""
    return {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}


def _writable(path: str | None) -> None:
    """Raise `InvalidData` now, not after the runs, for a file that cannot be written."""
    if path is not None and not Path(path).resolve().parent.is_dir():
        raise InvalidData(f"cannot write {path}: there is no folder {Path(path).parent}")


def _finish(arguments: argparse.Namespace, value: dict[str, Any], report: str) -> None:
    content = json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)
    if arguments.save:
        write_atomically(arguments.save, content + "\n")
    print(content if arguments.json else report)


def _again(arguments: argparse.Namespace) -> list[str]:
    """The command line that repeats this check, without its seed."""
    command = ["dpwitness", "check", arguments.target]
    for name in (
        "epsilon",
        "claim",
        "delta",
        "alpha",
        "max_runs",
        "queries",
        "may_move",
        "direction",
        "data",
        "column",
    ):
        value = getattr(arguments, name)
        if value is not None and (name, value) != ("alpha", 1e-6):
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            command += [f"--{name.replace('_', '-')}", shown]
    for pair in arguments.pair or []:
        command += ["--pair", *pair]
    for item in arguments.set:
        command += ["--set", item]
    return command
