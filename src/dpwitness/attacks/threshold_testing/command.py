"""`dpwitness attack gptt`: read a histogram's counts through private threshold testing."""

import argparse
import math
import secrets
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpwitness.cli.arguments import number, whole
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.cli.progress import live
from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.neighbours import Data

SMALL = 5
SMALLEST_EPSILON = 1e-12  # the noise of a smaller one does not fit into whole numbers of 64 bits


def add(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = subparsers.add_parser(
        "gptt", help="counts of a histogram through generalised private threshold testing (Chen & Machanavajjhala 2015)"
    )
    parser.add_argument("--data", metavar="FILE.csv", help="the histogram (default: visits to a doctor, `randhie`)")
    parser.add_argument("--column", metavar="NAME", help="the column of --data (default: count, else the last)")
    parser.add_argument("--epsilon", type=number, required=True, help="the whole budget ε")
    parser.add_argument(
        "--epsilon2", type=_positive, default=math.inf, help="ε₂ of the query noise (default inf: none)"
    )
    parser.add_argument(
        "--adaptive", action="store_true", help="weigh cells by sums chosen from the answers so far, all of ε for them"
    )
    parser.add_argument("--copies", type=whole, help="copies of each query, for finite ε₂ (default 1; adaptive: by ε₂)")
    parser.add_argument("--delta", type=number, default=0.05, help="θ = ⌈ln(1/δ)/ε₁⌉, not adaptive (default 0.05)")
    parser.add_argument("--repeat", type=whole, default=10, help="how many attacks (default 10)")
    parser.add_argument("--seed", type=whole, help="repeat an earlier run (default: a fresh seed)")
    parser.add_argument("--plot", metavar="FILE", help="draw true against guessed counts as .svg, .png or .pdf")
    parser.add_argument("--json", action="store_true", help="print the result alone, as JSON, on stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.set_defaults(run=run)


def _positive(text: str) -> float:
    if text in ("inf", "∞"):
        return math.inf
    return number(text)


def visits() -> Data:
    """How many people-years of the RAND health insurance experiment had 0, 1, 2, … visits to a doctor."""
    from statsmodels.datasets import randhie  # type: ignore[import-untyped]  # no stubs; 0.6 s

    return np.bincount(np.asarray(randhie.load_pandas().data["mdvis"], np.int64))


def run(arguments: argparse.Namespace) -> int:
    """`dpwitness attack gptt`."""
    from dpwitness.attacks.threshold_testing.adaptive import adaptive_attack
    from dpwitness.attacks.threshold_testing.oracle import check_histogram
    from dpwitness.attacks.threshold_testing.reconstruction import reconstruct, score
    from dpwitness.cli.results import check_places, hand_over
    from dpwitness.files import read_column

    epsilon, epsilon2, repeat = arguments.epsilon, arguments.epsilon2, arguments.repeat
    if not epsilon >= SMALLEST_EPSILON:
        raise InvalidParameter(f"--epsilon {epsilon:g} must be at least {SMALLEST_EPSILON:g}")
    if not epsilon2 >= SMALLEST_EPSILON:
        raise InvalidParameter(
            f"--epsilon2 {epsilon2:g} must be at least {SMALLEST_EPSILON:g}, or inf for no noise on the queries"
        )
    if not 1 <= repeat <= 1_000_000:
        raise InvalidParameter(f"--repeat {repeat} must be from 1 to 1000000")
    if arguments.copies is not None and not 1 <= arguments.copies <= 10**12:
        raise InvalidParameter(f"--copies {arguments.copies} must be from 1 to 10^12")
    if arguments.column and not arguments.data:
        raise InvalidData("--column says which column of --data: give --data FILE.csv too")
    if arguments.seed is not None and arguments.seed < 0:
        raise InvalidParameter(f"--seed {arguments.seed} must be at least 0")
    check_places(arguments)  # before the attacks, not after them
    counts = check_histogram(read_column(arguments.data, arguments.column) if arguments.data else visits())
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    started = time.monotonic()
    scores, queries = [], []
    guess = counts
    with live(arguments) as progress:
        for k in range(repeat):
            rng = np.random.default_rng([seed, k])
            if arguments.adaptive:
                found = adaptive_attack(counts, rng, epsilon1=epsilon, epsilon2=epsilon2, copies=arguments.copies)
            else:
                found = reconstruct(
                    counts,
                    rng,
                    epsilon=epsilon,
                    epsilon2=epsilon2,
                    delta=arguments.delta,
                    copies=arguments.copies or 1,
                )
            guess = found.guess
            scores.append(score(counts, guess, SMALL))
            queries.append(found.queries)
            if progress is not None:
                progress("attack", k + 1, repeat, f"{scores[-1][0]:.4f} right")
    result = {
        "attack": "gptt",
        "data": arguments.data or "randhie mdvis",
        "cells": len(counts),
        "small_cells": int((counts <= SMALL).sum()),
        "epsilon": epsilon,
        "epsilon1": epsilon if arguments.adaptive else epsilon / 2,
        "epsilon2": epsilon2 if math.isfinite(epsilon2) else None,
        "epsilon2_infinite": not math.isfinite(epsilon2),
        "adaptive": arguments.adaptive,
        "repeat": repeat,
        "right": _summary([s[0] for s in scores]),
        "right_small": _summary([s[1] for s in scores]),
        "queries_per_cell": float(np.mean(queries)) / len(counts),
        "seed": seed,
        "seconds": time.monotonic() - started,
    }
    return hand_over(
        arguments, NOT_REFUTED, lambda: result, lambda: _text(result), plot=lambda path: _plot(counts, guess, path)
    )


def _summary(values: Sequence[float]) -> dict[str, float | None]:
    """Mean, standard error and smallest; null where there is nothing to average."""
    if math.isnan(values[0]):
        return {"mean": None, "standard_error": None, "least": None}
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "standard_error": error, "least": float(np.min(values))}


def _text(result: dict[str, Any]) -> str:
    how = "adaptive weighing" if result["adaptive"] else "ordered partition (Algorithms 3 and 4)"
    shown = "∞" if result["epsilon2_infinite"] else f"{result['epsilon2']:g}"
    lines = [
        f"counts of {result['data']} through private threshold testing: {how}",
        f"  ε = {result['epsilon']:g}, of which ε₁ = {result['epsilon1']:g} for the threshold; ε₂ = {shown}",
    ]
    for key, name, cells in (
        ("right", "all cells", result["cells"]),
        ("right_small", f"cells ≤ {SMALL}", result["small_cells"]),
    ):
        part = result[key]
        if part["mean"] is None:
            lines.append(f"  {name:<10} none")
            continue
        error = "" if part["standard_error"] is None else f" ± {part['standard_error']:.4f}"
        lines.append(f"  {name:<10} {part['mean']:.4f}{error} of {cells} exactly right (least {part['least']:.4f})")
    lines.append(f"  {result['queries_per_cell']:,.1f} threshold queries a cell")
    lines.append(f"  {result['repeat']} attacks; {result['seconds']:.1f} s; seed {result['seed']}")
    return "\n".join(lines)


def _plot(counts: Data, guess: Data, path: str) -> None:
    """True against guessed counts of the last attack, on axes that show 0 and large counts alike."""
    import io

    from matplotlib.figure import Figure  # 0.3 s

    from dpwitness.files import write_atomically
    from dpwitness.report.plots import plot_format

    figure = Figure(figsize=(5.2, 5.2), layout="constrained")
    axes = figure.add_subplot()
    right = counts == guess
    top = max(int(counts.max()), int(guess.max()), 1)
    axes.plot([0, top], [0, top], color="black", lw=0.6)
    axes.scatter(counts[right], guess[right], s=8, alpha=0.5, label=f"right ({int(right.sum())})")
    if not right.all():
        axes.scatter(counts[~right], guess[~right], s=8, alpha=0.5, label=f"wrong ({int((~right).sum())})")
    axes.set_xscale("symlog")
    axes.set_yscale("symlog")
    axes.set(xlabel="true count", ylabel="guessed count")
    axes.legend()
    buffer = io.BytesIO()
    figure.savefig(buffer, format=plot_format(path), dpi=150)
    write_atomically(path, buffer.getvalue())
