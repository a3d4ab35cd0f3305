"""What attacks on private threshold testing recovered: scores, text and plot."""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.files import write_atomically
from dpwitness.report.plots import plot_format

#: Cells of at most so many people are scored apart, as in the paper's Table 3.
SMALL = 5

#: Counts that the report of an attack on the user's own system shows; its JSON has all.
SHOWN = 24
FRESH = "fresh sums next to the threshold came as predicted"
PROVED = "Theorem 5.12, if every count up to {} occurs and ε₁ is right"

Counts = NDArray[np.int64]


def summary(values: Sequence[float]) -> dict[str, float | None]:
    """Mean, standard error of the mean and smallest of fractions; None where there is nothing to average."""
    if math.isnan(values[0]):
        return {"mean": None, "standard_error": None, "least": None}
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "standard_error": error, "least": float(np.min(values))}


def text(result: dict[str, Any]) -> str:
    """The report of `dpwitness attack threshold_testing`, from the values of its JSON."""
    how = "ordered partition (Algorithms 3 and 4)"
    if result["adaptive"]:
        how = "adaptive weighing"
    elif result["support"] is not None:
        how = f"ordered partition (Algorithm 3), all counts up to {result['support']} known to occur"
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
    if result["claimed"]:
        wrong = f"{result['claimed_wrong']} of them wrong" if result["claimed_wrong"] else "none of them wrong"
        lines.append(
            f"  {result['claimed']:.4f} of all cells claimed (the last time with confidence "
            f"{result['confidence']:.4f}), {wrong}"
        )
    if result["adaptive"] and (others := {k: v for k, v in result["methods"].items() if "weighing" not in k}):
        lines.append(f"  in {sum(others.values())} of them the weighing did not pass its own test: Algorithm 4 instead")
    copies = "" if result["copies"] is None else f", {result['copies']:,} copies of each"
    lines.append(f"  {result['queries_per_cell']:,.1f} threshold queries a cell{copies}")
    attacks = f"{result['repeat']} attacks" + (", then the time was over" if result["out_of_time"] else "")
    return "\n".join([*lines, f"  {attacks}; {result['seconds']:.1f} s; seed {result['seed']}"])


def system_text(result: dict[str, Any]) -> str:
    """The report of an attack on the user's own system, from the values of its JSON."""
    lines = [f"counts of {result['cells']} cells through {result['oracle']}: {result['questions']:,} questions"]
    if result["stopped"] is not None:
        lines.append(f"  stopped: {result['stopped']}; no count is claimed before the test at the end")
    elif not result["claimed"]:
        lines.append("  no count is claimed: what was found did not pass the attack's own test")
    else:
        fresh = "weighing" in result["method"]  # the ordered partition asks no fresh sums
        lines.append(
            f"  {result['claimed']} counts recovered by {result['method']}, each with confidence "
            f"{result['confidence']:.6f}: {FRESH if fresh else PROVED.format(result['support'])}"
        )
        if result["factor"] is None:
            limit = result["factor_at_most"]
            known = "" if limit is None else f", at most {limit:.3g} with confidence 0.95"
            lines.append(
                "  readable up to a factor: these counts times one whole number, the same for all cells, explain all "
                f"answers as well (it is 1 unless the counts have a common divisor{known})"
            )
        lines.append("  " + _some(result["recovered"], result["known"]))
    if result["right"] is not None:
        lines.append(f"  right: {result['right']} of {result['cells']} counts of --data")
        if result["right_up_to_factor"] is not None:
            lines.append(f"  right up to a factor: {result['right_up_to_factor']} of them")
    return "\n".join([*lines, f"  {result['seconds']:.1f} s; seed {result['seed']}"])


def _some(counts: list[int], known: list[bool]) -> str:
    """The first counts on a line; a question mark for those that are not claimed."""
    shown = [str(count) if sure else "?" for count, sure in zip(counts[:SHOWN], known, strict=False)]
    return "counts: " + ", ".join(shown) + (", …" if len(counts) > SHOWN else "")


def plot_counts(counts: Counts, guess: Counts, path: str | Path) -> None:
    """Draw true against guessed counts of the last attack, on axes that show 0 and large counts alike.

    `counts`, `guess`: people, shape (cells,). Raises `InvalidParameter` for an unknown format.
    """
    from matplotlib.figure import Figure  # 0.3 s

    kind = plot_format(path)
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
    figure.savefig(buffer, format=kind, dpi=150)
    write_atomically(path, buffer.getvalue())
