"""`dpwitness curve`: p-value against test ε, as in the figures of Ding et al. 2018."""

import argparse
from typing import Any

from dpwitness.cli import options
from dpwitness.cli.parser import command, number, span


def add(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = command(
        subparsers,
        "curve",
        summary="p-value against test ε, as in the figures of Ding et al. 2018",
        run=run,
        examples=(
            "curve svt --epsilon 0.7 --claims 0.1,0.5,1",
            "curve histogram --epsilon 0.2 0.7 1.5 --claims 0.1:2.0:0.1 --plot curve.svg",
            "curve gaussian_mechanism --epsilon 4 --claim gdp:1 --claims 0.2:1.2:0.1",
        ),
    )
    options.target(parser)
    parser.add_argument(
        "--epsilon", type=number, nargs="+", metavar="E", required=True, help="the mechanism's ε: one line each"
    )
    parser.add_argument("--claims", type=span, required=True, metavar="FROM:TO:STEP", help="test ε, both ends included")
    options.claim(parser, "test this claim's parameter, such as μ, in place of ε")
    parser.add_argument(
        "--delta", type=number, metavar="D", help="the tested δ, and a parameter of that name (default 0)"
    )
    parser.add_argument("--method", choices=("exact", "score"), default="exact", help="the test (default exact)")
    options.runs(parser, "paired confirm runs a line (default: as many as the smallest test ε needs)")
    options.plot(parser)
    options.inputs(parser)
    options.common(parser, max_time=600.0, time_for="each line")
    options.cluster(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compute the p-values, print them as a table, and draw them."""
    import dpwitness as dpw
    from dpwitness.cli.console import live
    from dpwitness.cli.inputs import claim_of, given, loaded
    from dpwitness.cli.output import check_places, exit_code, hand_over
    from dpwitness.report.plots import plot_curve

    check_places(arguments)
    function, shared = loaded(arguments)
    with live(arguments) as progress:
        result = dpw.curve(
            function,
            **shared,
            epsilon=arguments.epsilon,
            claims=arguments.claims,
            claim=claim_of(arguments),
            method=arguments.method,
            progress=progress,
            **given(arguments, "runs"),
        )
    return hand_over(
        arguments, exit_code(result), result.to_json, lambda: str(result), plot=lambda path: plot_curve(result, path)
    )
