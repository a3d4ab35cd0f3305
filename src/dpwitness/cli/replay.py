"""`dpwitness replay`: count a saved witness's event on fresh runs."""

import argparse
from typing import Any

from dpwitness.cli import options
from dpwitness.cli.parser import command, number


def add(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = command(
        subparsers,
        "replay",
        summary="count a saved witness's event on fresh runs",
        run=run,
        examples=(
            "replay result.json",
            "replay result.json --mechanism mine.py:noisy_sum --claim 1 --alpha 1e-9",
        ),
        exits=(0, 1, 2),
    )
    parser.add_argument(
        "witness", metavar="WITNESS.json", help="a witness, or a result written by --save (-: standard input)"
    )
    parser.add_argument(
        "--mechanism",
        metavar="TARGET",
        help="the mechanism, where the witness names no bundled one: a file never decides which code runs",
    )
    options.claim(parser, "the claim (default the witness's)")
    parser.add_argument("--delta", type=number, metavar="D", help="the claimed δ (default the witness's)")
    options.python(parser)
    options.outcomes(parser)
    options.alpha(parser, None, "probability of a false alarm (default the witness's)")
    options.runs(parser, "paired runs at most (default ten times the witness's)")
    options.inputs(
        parser,
        "inputs: the relation of the claim, which must contain the witness's pair (default the witness's own)",
    )
    options.common(parser, max_time=60.0)
    options.cluster(parser)


def run(arguments: argparse.Namespace) -> int:
    """Replay, and print what the witness says above the verdict."""
    import dpwitness as dpw
    from dpwitness.cli.console import live
    from dpwitness.cli.inputs import claim_of, data_of, given, mechanism_of, outcome_of, places, relation
    from dpwitness.cli.output import check_places, exit_code, hand_over
    from dpwitness.results.verdict import replay_text

    check_places(arguments)
    witness = dpw.Witness.load(arguments.witness)
    function = mechanism_of(arguments, arguments.mechanism) if arguments.mechanism else None
    with live(arguments) as progress:
        verdict = dpw.replay(
            witness,
            function,
            neighbours=relation(arguments),
            data=data_of(arguments),
            claim=claim_of(arguments),
            delta=arguments.delta,
            alpha=arguments.alpha,
            outcome=outcome_of(arguments),
            **given(arguments, "errors"),
            runs=arguments.runs,
            max_time=arguments.max_time,
            seed=arguments.seed,
            **places(arguments),
            progress=progress,
        )
    return hand_over(arguments, exit_code(verdict), verdict.to_json, lambda: replay_text(witness, verdict))
