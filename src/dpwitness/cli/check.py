"""`dpwitness check`: look for a violation of a claim and prove it."""

import argparse
from typing import Any

from dpwitness.cli import options
from dpwitness.cli.parser import command, number

ALPHA = 1e-6
MAX_TIME = 60.0


def add(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = command(
        subparsers,
        "check",
        summary="look for a violation of a claim and prove it",
        run=run,
        examples=(
            "check isvt3 --epsilon 0.7",
            "check mine.py:noisy_sum --epsilon 1 --pair '[1, 1]' '[2, 1]'",
            "check mine.py:mean_age --epsilon 1 --records people.csv --domain age=0:120",
            "check mine.py:answers --epsilon 1 --attack threshold_testing",
            "check gaussian_mechanism --epsilon 1 --claim zcdp:0.1",
            "check histogram --epsilon 1 --claim 0.5 --data counts.csv --column count --save result.json",
        ),
        exits=(0, 1, 2),
    )
    options.target(parser)
    parser.add_argument("--epsilon", type=number, metavar="E", help="the mechanism's ε, and the claim unless --claim")
    options.claim(parser, "the claim, where it is not the mechanism's parameter")
    parser.add_argument(
        "--delta", type=number, metavar="D", help="the claimed δ, and a parameter of that name (default 0)"
    )
    options.alpha(parser, ALPHA, "probability of a false alarm (default 1e-6)")
    options.runs(parser, "paired confirm runs at most (default 4e6)")
    options.inputs(parser)
    parser.add_argument(
        "--attack",
        metavar="NAME",
        help="try what an attack proposes first: threshold_testing, table_builder, subset_sum, or FAMILY.GENERATOR",
    )
    options.common(parser, max_time=MAX_TIME)
    options.cluster(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check, print the verdict and the command that repeats it."""
    import dpwitness as dpw
    from dpwitness.cli.console import live
    from dpwitness.cli.inputs import given, loaded, stated_claim
    from dpwitness.cli.output import check_places, exit_code, hand_over

    claimed = stated_claim(arguments)
    check_places(arguments)
    function, shared = loaded(arguments)
    with live(arguments) as progress:
        verdict = dpw.check(
            function,
            **shared,
            epsilon=arguments.epsilon,
            claim=claimed,
            alpha=arguments.alpha,
            attack=arguments.attack,
            progress=progress,
            **given(arguments, "runs"),
        )

    def report() -> str:
        return verdict.report(reproduce=[*repeating(arguments), "--seed", str(verdict.seed)])

    return hand_over(arguments, exit_code(verdict), verdict.to_json, report)


def repeating(arguments: argparse.Namespace) -> list[str]:
    """The command line that repeats this check, without its seed."""
    from dpwitness.cli.inputs import given, repeated

    line = ["dpwitness", "check", arguments.target]
    names = ("epsilon", "claim", "delta", "alpha", "runs", "max_time")
    usual = {"alpha": ALPHA, "max_time": MAX_TIME}
    for name, value in given(
        arguments, *names, "queries", "may_move", "direction", "data", "column", "outcome", "errors", "python", "attack"
    ).items():
        if usual.get(name) != value:
            line += [f"--{name.replace('_', '-')}", str(value)]  # of a float all digits: it reads back the same
    for pair in arguments.pair or []:
        line += ["--pair", *pair]
    line += repeated(arguments)
    for item in arguments.set:
        line += ["--set", item]
    return line
