"""Plots of curves and of privacy profiles, by matplotlib, written whole or not at all."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.claims import Claim
from dpwitness.errors import InvalidParameter
from dpwitness.files import write_atomically
from dpwitness.results.curve import Curve
from dpwitness.results.profile import Profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

#: ε and false positive rates that are drawn.
POINTS: Final = 241
#: Log-odds of the false positive rates at which a claim's region is looked at.
LOG_ODDS: Final = np.linspace(-27.0, 27.0, 541)
#: The smallest δ that is drawn, and the range of false positive rates.
LEAST_DELTA: Final = 1e-6
LEAST_RATE: Final = 1e-4
FORMATS: Final = ("svg", "png", "pdf")


def plot_format(path: str | Path) -> str:
    """The format that a file's name asks for. Raises `InvalidParameter` for any other than svg, png, pdf."""
    suffix = Path(path).suffix.removeprefix(".").lower()
    if suffix not in FORMATS:
        raise InvalidParameter(f"cannot plot to {path}: the name must end in .svg, .png or .pdf")
    return suffix


def plot_curve(result: Curve, path: str | Path) -> None:
    """p-value against test ε, or another parameter: a line a claimed ε, a vertical line at it, a dashed one at 0.05."""
    from matplotlib.figure import Figure  # 0.3 s

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for k, line in enumerate(result.lines):
        colour = f"C{k}"
        axes.plot(
            line.test_epsilons, line.p_values, marker="os^Dv"[k % 5], ms=4, color=colour, label=f"ε₀ = {line.epsilon:g}"
        )
        if result.claim is None:  # the mechanism's ε is no value of another parameter
            axes.axvline(line.epsilon, color=colour, lw=0.8, alpha=0.6, label=f"test ε = {line.epsilon:g}")
    axes.axhline(0.05, color="black", lw=0.8, ls="--", label="p = 0.05")
    axes.set(xlabel=f"test {result.parameter}", ylabel="p-value", ylim=(-0.03, 1.03))
    axes.set_title(f"{result.call}\n{max(line.run_counts.confirm for line in result.lines):,} runs a test", wrap=True)
    axes.legend()
    _write(figure, path)


def _write(figure: "Figure", path: str | Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=plot_format(path), dpi=150)
    write_atomically(path, buffer.getvalue())


def claimed_delta(claim: Claim, epsilons: Floats) -> Floats:
    """The δ that a claim allows at each ε: the largest G(q) − e^ε·q over a fine grid of q. For drawing, no evidence."""
    rates = 1 / (1 + np.exp(-LOG_ODDS))
    allowed = np.array([claimed_power(claim, float(q)) for q in rates])
    found = np.max(allowed - np.exp(epsilons)[:, None] * rates, axis=1)
    return np.asarray(np.maximum(found, max(claim.largest(0.0), 0.0)))


def claimed_power(claim: Claim, rate: float) -> float:
    """The largest power that a claim allows a test, by the bounds of either direction of a pair.

    With p ≤ G(q), also 1 − q ≤ G(1 − p): that is the same event's complement with D and D′ exchanged.
    """
    return min(claim.largest(rate), 1 - claim.smallest(1 - rate, claim.parameter))


def plot_profile(result: Profile, path: str | Path) -> None:
    """Draw the lower band of δ(ε), logarithmic, and beside it the upper band of the trade-off function."""
    from matplotlib.figure import Figure  # 0.3 s

    figure = Figure(figsize=(10.4, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_profile(left, result)
    _draw_trade_off(right, result)
    figure.suptitle(result.call if len(result.call) <= 80 else result.mechanism, fontsize="medium")
    _write(figure, path)


def _draw_profile(axes: "Axes", result: Profile) -> None:
    top = max(result.largest_epsilon, 0.5)
    epsilons = np.linspace(0.0, 1.15 * top, POINTS)
    band = np.atleast_1d(result.delta(epsilons))
    shown = np.where(band >= LEAST_DELTA, band, np.nan)
    axes.fill_between(epsilons, LEAST_DELTA / 10, np.maximum(band, LEAST_DELTA / 10), color="C0", alpha=0.15, lw=0)
    axes.plot(epsilons, shown, color="C0", label=f"lower band, confidence 1 − {result.alpha:g}")
    if result.claim is not None:
        claimed = claimed_delta(result.claim, epsilons)
        axes.plot(
            epsilons, np.where(claimed >= LEAST_DELTA, claimed, np.nan), color="C3", ls="--",
            label=f"claim {result.claim}",
        )  # fmt: skip
    witness = result.witness
    if witness is not None and witness.counts.runs:
        event = next(event for event in result.events if event.counts == witness.counts)
        if event.line.slope >= 1:
            at = float(np.log(event.line.slope))
            axes.plot([at], [result.delta(at)], "o", color="C3", ms=5, label="witness")
    least = 10 ** np.floor(np.log10(max(np.nanmin(shown), LEAST_DELTA))) if np.any(band >= LEAST_DELTA) else LEAST_DELTA
    axes.set(xlabel="ε (nats)", ylabel="δ(ε)", yscale="log", ylim=(least, 1.0), xlim=(0, float(epsilons[-1])))
    axes.set_title("privacy profile; the shaded part is excluded", fontsize="small")
    axes.legend(fontsize="small")


def _draw_trade_off(axes: "Axes", result: Profile) -> None:
    rates = 1 / (1 + np.exp(-np.linspace(np.log(LEAST_RATE), -np.log(LEAST_RATE), POINTS)))
    band = np.atleast_1d(result.trade_off(rates))
    axes.fill_between(rates, band, 1.0, color="C0", alpha=0.15, lw=0)
    axes.plot(rates, band, color="C0", label=f"upper band, confidence 1 − {result.alpha:g}")
    if result.claim is not None:
        claimed = np.array([1 - claimed_power(result.claim, float(rate)) for rate in rates])
        axes.plot(rates, claimed, color="C3", ls="--", label=f"claim {result.claim}")
    axes.plot([0, 1], [1, 0], color="black", lw=0.6, ls=":")
    axes.set(xlabel="false positive rate", ylabel="false negative rate", xlim=(0, 1), ylim=(0, 1))
    axes.set_title("trade-off function; the shaded part is excluded", fontsize="small")
    axes.legend(fontsize="small")
