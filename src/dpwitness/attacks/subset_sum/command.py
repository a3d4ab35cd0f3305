"""`dpwitness attack subset-sum`: how much of secret bits their noisy subset sums give away."""

import argparse
import secrets
import time
from typing import Any

import numpy as np

from dpwitness.cli.console import NOT_REFUTED
from dpwitness.errors import InvalidParameter

LAWS = ("uniform", "adversarial", "rounding", "binomial")
ADVERSARIES = ("polynomial", "exponential")


def add(subparsers: Any) -> None:
    """Add the command to the parsers of `dpwitness attack`."""
    from dpwitness.cli.arguments import number, whole

    parser = subparsers.add_parser(
        "subset-sum",
        help="reconstruct secret bits from noisy subset sums (Dinur & Nissim 2003)",
        description="Draws secret bits, asks a bundled target about subsets of them, reconstructs the bits from the "
        "answers alone, and says how many are right.",
    )
    parser.add_argument("--size", type=whole, default=128, help="people, one secret bit each (default 128)")
    parser.add_argument("--error", type=number, default=4.0, help="E, no answer is wrong by more (default 4)")
    parser.add_argument(
        "--law",
        choices=LAWS,
        default="uniform",
        help="of the errors (default uniform); binomial takes R = E² fair bits, so its standard deviation is E/2",
    )
    parser.add_argument(
        "--adversary",
        choices=ADVERSARIES,
        default="polynomial",
        help="a linear program over random subsets (default), or all subsets and all candidates",
    )
    parser.add_argument("--queries", type=whole, help="of the polynomial adversary (default n·ln²n)")
    parser.add_argument("--seed", type=whole, help="repeat an earlier attack (default: a fresh seed)")
    parser.add_argument("--json", action="store_true", help="print the result alone, as JSON, on stdout")
    parser.add_argument("--plot", metavar="FILE", help="draw what was recovered as .svg, .png or .pdf")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """`dpwitness attack subset-sum`; the exit code is 0, or 2 for bad input, which raises."""
    from dpwitness.attacks.subset_sum import reconstruction as subset_sum
    from dpwitness.attacks.subset_sum.plot import plot_reconstruction
    from dpwitness.cli.results import check_places, hand_over

    size, error, law = arguments.size, arguments.error, arguments.law
    subset_sum.check_error(error)
    exponential = arguments.adversary == "exponential"
    if exponential:
        subset_sum.check_exponential(size)
        if law == "binomial":
            raise InvalidParameter("--adversary exponential needs a bound of the error: choose another --law")
        if arguments.queries is not None:
            raise InvalidParameter("--adversary exponential asks all subsets: leave out --queries")
        queries = 1 << size
    else:
        queries = subset_sum.query_count(size) if arguments.queries is None else arguments.queries
        subset_sum.check_queries(size, queries)
    if arguments.seed is not None and arguments.seed < 0:
        raise InvalidParameter(f"seed={arguments.seed} must be a whole number of at least 0")
    check_places(arguments)  # before the work, not after it
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, size)
    family = -1 if exponential else int(rng.integers(1 << 30))
    answers = subset_sum.ask(secret, error, queries, law, family, rng)
    started = time.perf_counter()
    residual: float | None = None
    if exponential:
        recovered = subset_sum.exponential_adversary(answers, error)
        fractions = recovered.astype(np.float64)
    else:
        found = subset_sum.polynomial_adversary(subset_sum.subset_family(size, queries, family), answers)
        recovered, fractions, residual = found.bits, found.fractions, found.largest_residual
    seconds = time.perf_counter() - started
    right = int(np.sum(recovered == secret))
    result = {
        "attack": "subset-sum",
        "adversary": arguments.adversary,
        "size": size,
        "error": error,
        "law": law,
        "error_over_root_size": error / size**0.5,
        "queries": queries,
        "right": right,
        "fraction_right": right / size,
        "guessing": max(int(secret.sum()), size - int(secret.sum())) / size,
        "largest_residual": residual,
        "seed": seed,
        "seconds": seconds,
    }
    if residual is None:
        result["largest_residual_reason"] = "the exponential adversary solves no program"
    title = f"{right} of {size} bits right; E = {error:g}, {law}"
    return hand_over(
        arguments,
        NOT_REFUTED,
        lambda: result,
        lambda: _text(result),
        plot=lambda path: plot_reconstruction(secret, fractions, path, title),
    )


def _text(result: dict[str, Any]) -> str:
    number = f"{result['queries']:,}"
    asked = f"all {number}" if result["adversary"] == "exponential" else f"{number} random"
    lines = [
        f"RECOVERED {result['right']} of {result['size']} bits ({result['fraction_right']:.1%})",
        f"  adversary    {result['adversary']}, {asked} subsets",
        f"  answers      wrong by at most {result['error']:g} ({result['law']}); "
        f"E/√n = {result['error_over_root_size']:.3g}",
        f"  for scale    always the commoner bit: {result['guessing']:.1%} right",
    ]
    if result["law"] == "binomial":
        lines[2] = (
            f"  answers      binomial errors of standard deviation {result['error'] / 2:g}; "
            f"E/√n = {result['error_over_root_size']:.3g}"
        )
    if result["largest_residual"] is not None:
        lines.append(f"  fit          misses no answer by more than {result['largest_residual']:.4g}")
    return "\n".join([*lines, f"  {result['seconds']:.1f} s; seed {result['seed']}"])
