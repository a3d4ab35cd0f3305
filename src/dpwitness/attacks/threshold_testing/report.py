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

__all__ = ["SMALL", "plot_counts", "summary", "text"]

#: Cells of at most so many people are scored apart, as in the paper's Table 3.
SMALL = 5

Counts = NDArray[np.int64]


def summary(values: Sequence[float]) -> dict[str, float | None]:
    """Mean, standard error of the mean and smallest of fractions; None where there is nothing to average."""
    if math.isnan(values[0]):
        return {"mean": None, "standard_error": None, "least": None}
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "standard_error": error, "least": float(np.min(values))}


def text(result: dict[str, Any]) -> str:
    """The report of `dpwitness attack threshold_testing`, from the values of its JSON."""
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
    attacks = f"{result['repeat']} attacks" + (", then the time was over" if result["out_of_time"] else "")
    return "\n".join([*lines, f"  {attacks}; {result['seconds']:.1f} s; seed {result['seed']}"])


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
