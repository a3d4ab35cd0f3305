"""Plots of what a reconstruction attack recovers, by matplotlib, written whole or not at all."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.files import write_atomically
from dpwitness.report.plots import plot_format


def plot_reconstruction(secret: NDArray[Any], fractions: NDArray[np.float64], path: str | Path, title: str) -> None:
    """Each person's reconstructed value before rounding, by their true bit; the rounding cuts at 1/2.

    `secret` and `fractions`: shape (n,). Raises `InvalidParameter` for an unknown format.
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
