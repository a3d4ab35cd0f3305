"""Plots of results by matplotlib: into axes, into a file, written whole or not at all, or into a page."""

import io
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.claims import Claim
from dpwitness.claims.trade_off import meeting_points
from dpwitness.errors import InvalidParameter
from dpwitness.files import write_atomically
from dpwitness.report.figures import allowed, rates
from dpwitness.report.markup import Markup, element, join
from dpwitness.results.bound import Bound
from dpwitness.results.curve import Curve
from dpwitness.results.profile import Profile
from dpwitness.results.verdict import NotRefuted, Verdict, Violation

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


def draw(result: Verdict | Bound | Curve | Profile, axes: "Axes | None" = None) -> "Axes":
    """Draw a result into axes, those of a new figure of pyplot where none are given, and return them."""
    if axes is None:
        from matplotlib import pyplot  # which notebooks show

        axes = pyplot.subplots(layout="constrained")[1]
    match result:
        case Curve():
            _draw_curve(axes, result)
        case Profile():
            _draw_profile(axes, result)
        case Violation() | NotRefuted() | Bound():
            _draw_rates(axes, result)
    return axes


def _draw_rates(axes: "Axes", result: Verdict | Bound) -> None:
    """How often the event was seen on each input, and what the claim allows on D."""
    witness = result.witness
    for place, (rate, colour) in enumerate(zip(rates(witness), ("C0", "0.6"), strict=True)):
        low, high = rate.ends
        text = f"on {rate.name}: {rate.text}"
        errors = [[rate.share - low], [high - rate.share]]
        axes.barh(place, rate.share, 0.6, color=colour, label=text, xerr=errors, capsize=4)
    most = allowed(witness) if result.tested else None
    if most is not None:
        label = f"allowed on D at the rate seen on D′: {most:.4g}"
        axes.plot([most, most], [-0.4, 0.4], color="C3", ls="--", label=label)
    axes.set(
        yticks=[0, 1], yticklabels=["D", "D′"], ylim=(1.6, -0.6), xlabel="share of runs in the event", xlim=(0, None)
    )
    event = witness.description
    axes.set_title(_plain(f"{result.call}\n{event if len(event) <= 80 else event[:79] + '…'}"), fontsize="small")
    axes.legend(fontsize="small")


def _draw_curve(axes: "Axes", result: Curve) -> None:
    """p-value against the tested parameter: a line an ε of the mechanism and a vertical one at it."""
    for k, line in enumerate(result.lines):
        colour = f"C{k}"
        axes.plot(
            line.test_epsilons, line.p_values, marker="os^Dv"[k % 5], ms=4, color=colour, label=f"ε₀ = {line.epsilon:g}"
        )
        if result.claim is None:  # the mechanism's ε is no value of another parameter
            axes.axvline(line.epsilon, color=colour, lw=0.8, alpha=0.6, label=f"test ε = {line.epsilon:g}")
    axes.axhline(0.05, color="0.4", lw=0.8, ls="--", label="p = 0.05")
    axes.set(xlabel=f"test {result.parameter}", ylabel="p-value", ylim=(-0.03, 1.03))
    runs = f"{max(line.run_counts.confirm for line in result.lines):,} runs a test"
    axes.set_title(_plain(f"{result.call}\n{runs}"), wrap=True)
    axes.legend()


def _plain(text: str) -> str:
    """A text without the dollars that matplotlib takes for mathematics, and without what it cannot draw."""
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in text).replace("$", r"\$")


def plot_curve(result: Curve, path: str | Path) -> None:
    """Draw the p-values of a curve."""
    figure, axes = new_figure()
    _draw_curve(axes, result)
    write_figure(figure, path)


def new_figure(width: float = 6.4, height: float = 4.2) -> "tuple[Figure, Axes]":
    """A figure with one pair of axes, in inches."""
    from matplotlib.figure import Figure  # 0.3 s

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def write_figure(figure: "Figure", path: str | Path) -> None:
    """Write a figure, whole or not at all. Raises `InvalidParameter` for an unknown format."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=plot_format(path), dpi=150)
    write_atomically(path, buffer.getvalue())


#: What matplotlib gives names that no other figure of a page must have: whole elements, which nothing refers to.
NAMED: Final = re.compile(
    r' id="(?:figure|axes|patch|line2d|text|legend|matplotlib\.axis|xtick|ytick|\w*Collection)_\d+"'
)
#: Drawn in place of black, and then exchanged for the colour of the text around: the page may be dark.
INK: Final = "#010203"

_figures = count(1)


def pictures(result: Curve | Profile) -> list[tuple[Markup, str]]:
    """The plots of a result as SVG within a page, each with what it shows."""
    match result:
        case Curve():
            text = "p-value against the tested value, a line an ε of the mechanism; below 0.05 the value is doubtful."
            return [(_picture(lambda axes: _draw_curve(axes, result), text), text)]
        case Profile():
            band = "Lower band of the privacy profile δ(ε); the shaded part is excluded."
            power = "Upper band of the trade-off function of tests; the shaded part is excluded."
            return [
                (_picture(lambda axes: _draw_profile(axes, result), band), band),
                (_picture(lambda axes: _draw_trade_off(axes, result), power), power),
            ]


def _picture(draw_into: "Callable[[Axes], None]", title: str) -> Markup:
    import matplotlib as mpl

    number = next(_figures)
    ink = dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK)
    own: dict[Any, Any] = {**ink, "svg.fonttype": "none", "svg.hashsalt": f"dpwitness-{number}", "font.size": 9}
    with mpl.rc_context({**own, "legend.framealpha": 0.0}):
        figure, axes = new_figure(5.0, 3.6)
        draw_into(axes)
        axes.set_title("")
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = NAMED.sub("", text).replace(INK, "currentColor").replace(" xlink:href=", " href=")
    head = text[: text.index(">")]
    box = re.search(r'viewBox="[^"]*"', head)
    assert box is not None
    names = f"dpw-plot-{number}", f"dpw-plot-text-{number}"
    said = join(element("title", title, id_=names[0]), element("desc", "The tables have its numbers.", id_=names[1]))
    start = f'<svg {box[0]} role="img" aria-labelledby="{" ".join(names)}">'
    return Markup(f"{start}{said}{text[text.index('>') + 1 :].rstrip()}")


def claimed_delta(claim: Claim, epsilons: Floats) -> Floats:
    """The δ that a claim allows at each ε: the largest G(q) − e^ε·q. For drawing, no evidence.

    It is nowhere too small: exact where G is a polygon, and less than 0.5 % too large where G is smooth.
    """
    q, p = claimed_powers(claim)
    return np.asarray(np.max(p - np.exp(epsilons)[:, None] * q, axis=1))


def claimed_powers(claim: Claim) -> tuple[Floats, Floats]:
    """Rates q, rising, and powers through which a line lies nowhere below the largest powers G(q) of tests.

    Between two points of the grid a concave G lies below the lines through the two points before and the two behind;
    where these meet is a point too.
    """
    q = np.concatenate([[0.0], 1 / (1 + np.exp(-LOG_ODDS)), [1.0]])
    p = np.array([claimed_power(claim, float(rate)) for rate in q])
    at, lower = meeting_points(q, -p, -np.diff(p) / np.diff(q))  # of −G, which is convex
    p, q = np.append(p, np.minimum(-lower, 1.0)), np.append(q, at)
    order = np.argsort(q, kind="stable")
    return q[order], p[order]


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
    figure.suptitle(_plain(result.call if len(result.call) <= 80 else result.mechanism), fontsize="medium")
    write_figure(figure, path)


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
        event = next((event for event in result.events if event.counts == witness.counts), None)
        if event is not None and event.line.slope >= 1:  # a file may hold a witness without its event
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
        claimed, powers = claimed_powers(result.claim)
        axes.plot(claimed, 1 - powers, color="C3", ls="--", label=f"claim {result.claim}")
    axes.plot([0, 1], [1, 0], color="0.5", lw=0.6, ls=":")
    axes.set(xlabel="false positive rate", ylabel="false negative rate", xlim=(0, 1), ylim=(0, 1))
    axes.set_title("trade-off function; the shaded part is excluded", fontsize="small")
    axes.legend(fontsize="small")
