"""What a reconstruction from subset sums recovered, as text and as a plot."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.files import write_atomically
from dpwitness.report.plots import plot_format

__all__ = ["plot_reconstruction", "text"]


def text(result: dict[str, Any]) -> str:
    """The report of `dpwitness attack subset_sum`, from the values of its JSON."""
    number = f"{result['queries']:,}"
    asked = f"all {number}" if result["adversary"] == "exponential" else f"{number} random"
    ratio = f"E/√n = {result['error_over_root_size']:.3g}"
    if result["law"] == "binomial":
        errors = f"binomial errors of standard deviation {result['error'] / 2:g}; {ratio}"
    else:
        errors = f"wrong by at most {result['error']:g} ({result['law']}); {ratio}"
    lines = [
        f"RECOVERED {result['right']} of {result['size']} bits ({result['fraction_right']:.1%})",
        f"  adversary    {result['adversary']}, {asked} subsets",
        f"  answers      {errors}",
        f"  for scale    always the commoner bit: {result['guessing']:.1%} right",
    ]
    if result["largest_residual"] is not None:
        lines.append(f"  fit          misses no answer by more than {result['largest_residual']:.4g}")
    return "\n".join([*lines, f"  {result['seconds']:.1f} s; seed {result['seed']}"])


def plot_reconstruction(secret: NDArray[Any], fractions: NDArray[np.float64], path: str | Path, title: str) -> None:
    """Each person's reconstructed value before rounding, by their true bit; the rounding cuts at 1/2.

    `secret`: bits, `fractions`: in [0, 1]; both of shape (n,). Raises `InvalidParameter` for an unknown format.
    """
    from matplotlib.figure import Figure  # 0.3 s

    kind = plot_format(path)
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    people = np.arange(1, len(secret) + 1)
    for bit, marker in ((0, "o"), (1, "^")):
        here = secret == bit
        axes.plot(people[here], fractions[here], marker, ms=4, color=f"C{bit}", label=f"true bit {bit}")
    axes.axhline(0.5, color="black", lw=0.8, ls="--")
    axes.set(xlabel="person", ylabel="reconstructed value", ylim=(-0.05, 1.05), title=title)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=150)
    write_atomically(path, buffer.getvalue())
