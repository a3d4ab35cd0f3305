"""`dpwitness bound`: the largest ε that a mechanism can be shown to exceed."""

import argparse
from typing import Any

from dpwitness.cli import options
from dpwitness.cli.parser import command, number


def add(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = command(
        subparsers,
        "bound",
        summary="the largest ε, ρ or μ that a mechanism can be shown to exceed",
        run=run,
        examples=(
            "bound svt --epsilon 0.7 --runs 2e7 --alpha 0.001",
            "bound mine.py:noisy_sum --epsilon 1 --queries 2",
            "bound gaussian_mechanism --epsilon 1 --claim gdp:1",
        ),
    )
    options.target(parser)
    parser.add_argument("--epsilon", type=number, metavar="E", help="the mechanism's ε")
    options.claim(parser, "bound this claim's parameter, such as ρ, in place of ε")
    parser.add_argument("--delta", type=number, metavar="D", help="δ, and a parameter of that name (default 0)")
    options.alpha(parser, 0.001, "probability that the bound is too large (default 0.001)")
    options.runs(parser, "paired confirm runs (default 2e7)")
    options.inputs(parser)
    options.common(parser, max_time=600.0)
    options.cluster(parser)


def run(arguments: argparse.Namespace) -> int:
    """Find the bound and print it."""
    import dpwitness as dpw
    from dpwitness.cli.console import live
    from dpwitness.cli.inputs import given, loaded, stated_claim
    from dpwitness.cli.output import check_places, exit_code, hand_over

    claim = stated_claim(arguments)
    check_places(arguments)
    function, shared = loaded(arguments)
    with live(arguments) as progress:
        result = dpw.bound(
            function,
            **shared,
            epsilon=arguments.epsilon,
            claim=claim,
            alpha=arguments.alpha,
            progress=progress,
            **given(arguments, "runs"),
        )
    return hand_over(arguments, exit_code(result), result.to_json, lambda: str(result))
