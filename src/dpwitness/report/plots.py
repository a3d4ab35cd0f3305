"""Plots, by matplotlib, written whole or not at all."""

import io
from pathlib import Path

from dpwitness.errors import InvalidParameter
from dpwitness.files import write_atomically
from dpwitness.results.curve import Curve

FORMATS = ("svg", "png", "pdf")


def plot_format(path: str | Path) -> str:
    """The format that a file's name asks for. Raises `InvalidParameter` for any other than svg, png, pdf."""
    suffix = Path(path).suffix.removeprefix(".").lower()
    if suffix not in FORMATS:
        raise InvalidParameter(f"cannot plot to {path}: the name must end in .svg, .png or .pdf")
    return suffix


def plot_curve(result: Curve, path: str | Path) -> None:
    """p-value against test ε, or another parameter: a line a claimed ε, a vertical line at it, a dashed one at 0.05."""
    from matplotlib.figure import Figure  # 0.3 s

    kind = plot_format(path)
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for k, line in enumerate(result.lines):
        colour = f"C{k}"
        axes.plot(
            line.test_epsilons, line.p_values, marker="os^Dv"[k % 5], ms=4, color=colour, label=f"ε₀ = {line.epsilon:g}"
        )
        if result.claim is None:  # the mechanism's ε is no value of another parameter
            axes.axvline(line.epsilon, color=colour, lw=0.8, alpha=0.6)
    axes.axhline(0.05, color="black", lw=0.8, ls="--")
    axes.set(xlabel=f"test {result.parameter}", ylabel="p-value", ylim=(-0.03, 1.03), title=result.mechanism)
    axes.legend()
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=150)
    write_atomically(path, buffer.getvalue())
