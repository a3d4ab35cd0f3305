"""`dpwitness profile`: a lower band of the whole privacy profile δ(ε), and the claims outside it."""

import argparse
from typing import Any

from dpwitness.cli import options
from dpwitness.cli.parser import command, number


def add(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = command(
        subparsers,
        "profile",
        summary="a lower band of the privacy profile δ(ε), all ε at once",
        run=run,
        examples=(
            "profile gaussian_mechanism --epsilon 1 --plot profile.svg",
            "profile gaussian_mechanism --epsilon 4 --claim gdp:0.8 --save result.json",
            "profile mine.py:noisy_sum --epsilon 1 --queries 2",
        ),
        exits=(0, 1, 2),
    )
    options.target(parser)
    parser.add_argument("--epsilon", type=number, metavar="E", help="the mechanism's ε")
    options.claim(parser, "judge this claim by the band")
    parser.add_argument("--delta", type=number, metavar="D", help="a parameter of that name, and δ of --claim E")
    options.alpha(parser, 0.001, "probability that the band is too high anywhere (default 0.001)")
    options.runs(parser, "paired confirm runs (default 2e7)")
    options.plot(parser)
    options.inputs(parser)
    options.common(parser, max_time=600.0)
    options.cluster(parser)


def run(arguments: argparse.Namespace) -> int:
    """Find the band, print it and draw it."""
    import dpwitness as dpw
    from dpwitness.cli.console import live
    from dpwitness.cli.inputs import given, loaded, stated_claim
    from dpwitness.cli.output import check_places, exit_code, hand_over
    from dpwitness.report.plots import plot_profile

    claim = stated_claim(arguments)
    check_places(arguments)
    function, shared = loaded(arguments)
    with live(arguments) as progress:
        result = dpw.profile(
            function,
            **shared,
            epsilon=arguments.epsilon,
            claim=claim,
            alpha=arguments.alpha,
            progress=progress,
            **given(arguments, "runs"),
        )
    return hand_over(
        arguments, exit_code(result), result.to_json, lambda: str(result), plot=lambda path: plot_profile(result, path)
    )
