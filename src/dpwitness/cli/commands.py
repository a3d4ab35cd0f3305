"""The commands: each takes parsed arguments, prints, and returns an exit code."""

import argparse
from collections.abc import Callable
from typing import Any

from dpwitness import curves, pipeline, rerun
from dpwitness.cli.arguments import relation, settings
from dpwitness.cli.console import INTERRUPTED, NOT_REFUTED, VIOLATED, say, show
from dpwitness.cli.progress import live
from dpwitness.cli.results import as_json, check_places, hand_over
from dpwitness.errors import BadInput, InvalidData, UnknownTarget
from dpwitness.files import read_column
from dpwitness.mechanisms.catalog import load, load_code, load_registered, registered
from dpwitness.neighbours import histogram, queries
from dpwitness.report.plots import plot_curve
from dpwitness.results.bound import Bound
from dpwitness.results.verdict import Verdict, Violation, replay_text
from dpwitness.results.witness import Witness
from dpwitness.targets import target_of


def list_targets(arguments: argparse.Namespace) -> int:
    """`dpwitness list`."""
    rows = []
    for name in registered():
        try:
            target = target_of(load_registered(name))
        except (UnknownTarget, SystemExit) as error:  # one broken package must not hide all others
            say(
                f"warning: {error}" if isinstance(error, UnknownTarget) else f"warning: target {name!r} exits on import"
            )
            continue
        if target is not None:
            rows.append(
                {"name": name, "claim": target.claim, "true_epsilon": target.true_epsilon, "source": target.source}
            )
    if arguments.json:
        show(as_json(rows))
        return NOT_REFUTED
    titles = {"name": "TARGET", "claim": "CLAIM", "true_epsilon": "TRUE ε", "source": "SOURCE"}
    widths = {key: max(len(row[key]) for row in (titles, *rows)) for key in titles}
    show("\n".join("  ".join(row[key].ljust(widths[key]) for key in titles).rstrip() for row in (titles, *rows)))
    return NOT_REFUTED


def check_target(arguments: argparse.Namespace) -> int:
    """`dpwitness check`."""
    if arguments.epsilon is None and arguments.claim is None:
        raise BadInput("check needs --epsilon, or --claim for a mechanism without a parameter of that name")
    check_places(arguments)
    function, shared = _shared(arguments)
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
    return hand_over(arguments, _code(verdict), verdict.to_json, lambda: verdict.report(reproduce=command))


def bound_target(arguments: argparse.Namespace) -> int:
    """`dpwitness bound`."""
    check_places(arguments)
    function, shared = _shared(arguments)
    with live(arguments) as progress:
        result = pipeline.bound(
            function,
            **shared,
            epsilon=arguments.epsilon,
            confidence=arguments.confidence,
            progress=progress,
            **_given(arguments, "runs"),
        )
    return hand_over(arguments, _code(result), result.to_json, lambda: str(result))


def curve_target(arguments: argparse.Namespace) -> int:
    """`dpwitness curve`."""
    check_places(arguments)
    function, shared = _shared(arguments)
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
    return hand_over(
        arguments,
        NOT_REFUTED,
        result.to_json,
        lambda: str(result),
        plot=lambda path: plot_curve(result, path),
    )


def replay_witness(arguments: argparse.Namespace) -> int:
    """`dpwitness replay`."""
    check_places(arguments)
    witness = Witness.load(arguments.witness)
    function = load(arguments.mechanism) if arguments.mechanism else None
    if arguments.column and not arguments.data:
        raise InvalidData("--column says which column of --data: give --data FILE.csv too")
    with live(arguments) as progress:
        verdict = rerun.replay(
            witness,
            function,
            neighbours=relation(arguments),
            data=read_column(arguments.data, arguments.column) if arguments.data else None,
            claim=arguments.claim,
            delta=arguments.delta,
            alpha=arguments.alpha,
            max_runs=arguments.max_runs,
            max_time=arguments.max_time,
            seed=arguments.seed,
            workers=arguments.workers,
            progress=progress,
        )
    return hand_over(arguments, _code(verdict), verdict.to_json, lambda: replay_text(witness, verdict))


def _code(result: Verdict | Bound) -> int:
    """The exit code of a result: interrupted, violated, or neither."""
    if result.ended == "interrupted":
        return INTERRUPTED
    return VIOLATED if isinstance(result, Violation) else NOT_REFUTED


def _shared(arguments: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """The function, and the settings that check, bound and curve take alike."""
    function, outcome = load(arguments.target), _outcome(arguments)
    neighbours, data = relation(arguments), None
    if arguments.data:
        data = read_column(arguments.data, arguments.column)
        if neighbours is None and target_of(function) is None:
            # A user's own function and a file: counts are a histogram, anything else answers to queries.
            counts = data.dtype.kind == "i" and (data >= 0).all()
            neighbours = histogram(len(data)) if counts else queries(len(data))
            kind = "a histogram, one person more or less in a cell" if counts else "queries, each moving by at most 1"
            say(f"taking {arguments.data} as {kind}")
    elif arguments.column:
        raise InvalidData("--column says which column of --data: give --data FILE.csv too")
    shared = {
        "neighbours": neighbours,
        "data": data,
        "parameters": settings(arguments.set),
        "max_time": arguments.max_time,
        "seed": arguments.seed,
        "workers": arguments.workers,
        "reference": arguments.target,
        "outcome": outcome,
        **_given(arguments, "delta"),
    }
    return function, shared


def _outcome(arguments: argparse.Namespace) -> Callable[[Any], Any] | None:
    """The function of --outcome; None where it was not given."""
    return None if arguments.outcome is None else load_code(arguments.outcome)


def _given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Those options that were given; the pipeline knows the defaults of the others."""
    return {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}


def _again(arguments: argparse.Namespace) -> list[str]:
    """The command line that repeats this check, without its seed."""
    command = ["dpwitness", "check", arguments.target]
    names = ("epsilon", "claim", "delta", "alpha", "max_runs", "max_time")
    for name in (*names, "queries", "may_move", "direction", "data", "column", "outcome"):
        value = getattr(arguments, name)
        if value is not None and (name, value) not in (("alpha", 1e-6), ("max_time", 60.0)):
            command += [
                f"--{name.replace('_', '-')}",
                str(value),
            ]  # of a float all digits, so that it reads back the same
    for pair in arguments.pair or []:
        command += ["--pair", *pair]
    for item in arguments.set:
        command += ["--set", item]
    return command
