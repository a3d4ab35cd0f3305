"""Figures of results by matplotlib: in given axes, in a file, or as SVG within a page."""

import io
from collections.abc import Callable
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from warnings import catch_warnings, simplefilter
from xml.dom import minidom

import numpy as np

from dpwitness.arrays import Booleans, Floats
from dpwitness.claims import Claim
from dpwitness.claims.trade_off import meeting_points
from dpwitness.errors import InvalidParameter
from dpwitness.events.event import is_partition
from dpwitness.files import write_atomically
from dpwitness.results.bound import Bound
from dpwitness.results.curve import Curve
from dpwitness.results.profile import Profile
from dpwitness.results.verdict import NotRefuted, Outputs, Verdict, Violation
from dpwitness.results.witness import Witness

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: LINE_POINTS is the number of points of a drawn line.
LINE_POINTS: Final = 241
#: LOG_ODDS has the log-odds (nats) of the false positive rates at which a claim's largest power is computed.
LOG_ODDS: Final = np.linspace(-27.0, 27.0, 541)
#: LEAST_DELTA is the smallest δ that is drawn.
LEAST_DELTA: Final = 1e-6
#: PAGE_WIDTH is the width of a page's figure in points.
PAGE_WIDTH: Final = 360.0
#: PAGE_STYLE is the style of a page's figure, without ticks: they are copies of an element that style sheets do not
#: reach, and would stay black on a dark page.
PAGE_STYLE: Final = {
    **dict.fromkeys(("xtick.bottom", "ytick.left", "axes.spines.top", "axes.spines.right"), False),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor"), "none"),
    **{"svg.fonttype": "none", "font.size": 9, "legend.frameon": False},
}
#: DATA_COLOUR is the colour of D, which a page replaces.
DATA_COLOUR: Final = "C0"
#: NEIGHBOUR_COLOUR is the colour of D′.
NEIGHBOUR_COLOUR: Final = "0.6"
#: CLAIM_COLOUR is the colour of the claim, which a page replaces.
CLAIM_COLOUR: Final = "C3"


def plot_format(path: str | Path) -> str:
    """The format that a file's name asks for: svg, png or pdf. Raises `InvalidParameter` for other names."""
    suffix = Path(path).suffix.removeprefix(".").lower()
    if suffix not in ("svg", "png", "pdf"):
        raise InvalidParameter(f"cannot plot to {path}: the name must end in .svg, .png or .pdf")
    return suffix


def draw(result: Verdict | Bound | Curve | Profile, axes: "Axes | None" = None) -> "Axes":
    """Draw a result into axes, by default the axes of a new pyplot figure, and return them."""
    if axes is None:
        from matplotlib import pyplot  # notebooks show pyplot's figures

        axes = pyplot.subplots(layout="constrained")[1]
    match result:
        case Curve():
            draw_curve(axes, result)
        case Profile():
            draw_profile(axes, result)
        case Violation() | NotRefuted() | Bound():
            draw_rates(axes, result)
    return axes


def interval(hits: int, runs: int) -> tuple[float, float]:
    """The exact 95 % interval of a probability for a fixed number of runs (Clopper & Pearson 1934), for figures."""
    from scipy.stats import binomtest  # only figures need it

    ends = binomtest(hits, runs).proportion_ci(method="exact")
    return float(ends.low), float(ends.high)


def draw_rates(axes: "Axes", result: Verdict | Bound) -> None:
    """Draw the share of runs in the event on each input, and the share that a tested claim allows on D."""
    counts, shares = result.counts, result.witness.shares
    hits = (counts.hits, counts.neighbour_hits)
    if counts.runs:
        ends = np.array([interval(number, counts.runs) for number in hits])
        errors = np.abs(ends.T - shares)
        axes.barh([0, 1], shares, 0.6, color=[DATA_COLOUR, NEIGHBOUR_COLOUR], xerr=errors)
    if counts.runs and result.tested:
        most = result.witness.claim.largest(shares[1])
        label = f"allowed on D at the rate seen on D′: {most:.4g}"
        axes.plot([most, most], [-0.4, 0.4], color=CLAIM_COLOUR, ls="--", label=label)
        axes.legend(fontsize="small", loc="lower right", frameon=False)
    texts = [
        f"{name}: {share:.4g}\n{number:,} runs" for name, share, number in zip(("D", "D′"), shares, hits, strict=True)
    ]
    # The space below the bars holds the legend.
    axes.set(yticks=[0, 1], yticklabels=texts, ylim=(2.2 if result.tested else 1.6, -0.6), xlim=(0, None))
    axes.set(xlabel="share of runs in the event")
    title = f"{_label(result.call)}, {counts.runs:,} runs on each input\n{_label(result.witness.description)}"
    axes.set_title(title, fontsize="small")


def draw_cells(axes: "Axes", witness: Witness) -> None:
    """Draw the share of runs in each cell of a partition on both inputs, with the cells of the event shaded."""
    counts, event = witness.counts, witness.event
    assert is_partition(event)
    table = np.reshape(counts.cells, (isqrt(len(counts.cells)), -1))
    shares = np.array([table.sum(axis=1), table.sum(axis=0)]) / counts.runs
    _draw_bins(axes, np.arange(len(table) + 1.0), shares, np.array(event.inside))
    axes.set(xlabel=f"{len(table)} cells by rising likelihood ratio, the event's last", ylabel="share of runs")
    axes.set_xticks([])


def draw_outputs(axes: "Axes", shown: Outputs) -> None:
    """Draw both distributions of the value that an event looks at, with the values of the event shaded."""
    shares = np.array([shown.on_data, shown.on_neighbour]) / shown.runs
    inside = np.array(shown.inside)
    axes.set(xlabel=_label(shown.statistic))
    if shown.values:
        edges = np.arange(len(shown.values) + 1.0)
        _draw_bins(axes, edges, shares, inside)
        texts = map(_label, shown.values) if values_fit(shown) else (f"{number:g}" for number in edges[1:])
        axes.set(ylabel="share of runs")
        axes.set_xticks(edges[1:] - 0.5, list(texts))
        return
    edges = np.array(shown.edges)
    if not np.isfinite(shown.edges[-1] - shown.edges[0]):  # too long for an axis: bins of one width, without values
        edges = np.arange(float(len(edges)))
    # Heights are shares divided by widths, so that areas are probabilities; very narrow bins would hide all other bins.
    widths = np.diff(edges)
    heights = shares / np.maximum(widths / np.median(widths), 0.25)
    *_, second, highest = 0.0, *np.sort(heights.max(axis=0))
    _draw_bins(axes, edges, heights, inside)
    axes.set(yticks=[], ylabel="density")
    if 0 < 3 * second < highest:  # the bin of an atom, such as the end of a clipped range, is cut off
        axes.set_ylim(0, 1.5 * second)
        bin_ = int(np.argmax(heights.max(axis=0)))
        side = "right" if edges[bin_] > (edges[0] + edges[-1]) / 2 else "left"
        text = f"cut off: {shares[0, bin_]:.3g} and {shares[1, bin_]:.3g}"
        at = edges[bin_] if side == "right" else edges[bin_ + 1]
        axes.annotate(text, (at, 0.95), xycoords=("data", "axes fraction"), ha=side, va="top", fontsize="small")
    if edges[-1] != shown.edges[-1]:
        axes.set_xticks([])


def _draw_bins(axes: "Axes", edges: Floats, heights: Floats, inside: Booleans) -> None:
    """Draw the columns of D and of D′ side by side in each bin, and shade the bins of the event."""
    left, widths = edges[:-1], np.maximum(np.diff(edges), (edges[-1] - edges[0]) / 250)
    for place, side, colour in zip((0.1, 0.5), heights, (DATA_COLOUR, NEIGHBOUR_COLOUR), strict=True):
        _draw_columns(axes, left + place * widths, 0.4 * widths, side, color=colour)
    height = axes.get_ylim()[1]
    _draw_columns(axes, left[inside], widths[inside], np.full(sum(inside), height), color="0.5", alpha=0.15, zorder=0)
    axes.set(ylim=(0, height), xlim=(left[0], left[-1] + widths[-1]))


def _draw_columns(axes: "Axes", left: Floats, widths: Floats, heights: Floats, **look: Any) -> None:
    """Draw columns as one artist, since many bars take long to draw."""
    if len(left):  # an event may lie between the drawn bins
        tops = np.column_stack([heights, np.full(len(heights), np.nan)])  # NaN leaves the space between columns empty
        axes.stairs(tops.ravel()[:-1], np.column_stack([left, left + widths]).ravel(), fill=True, **look)


def values_fit(shown: Outputs) -> bool:
    """Whether the values of bins fit below the bins; otherwise the figure numbers the bins."""
    return len(shown.values) * max(map(len, shown.values), default=0) <= 44  # characters


def draw_evidence(axes: "Axes", verdict: Verdict) -> None:
    """Draw the log e-value (nats) over the paired runs, or its last value, and the value that refutes the claim."""
    needed, course = np.log(1 / verdict.alpha), verdict.course
    points = [] if course is None else [(0, 0.0), *course.evidence]
    if len(points) > 1:
        axes.plot(*zip(*points, strict=True), color=DATA_COLOUR)
    last = points[-1] if len(points) > 1 else (verdict.counts.runs, verdict.log_e_value)
    axes.plot(*last, "o", color=DATA_COLOUR, mew=0, clip_on=False, label=f"in the end {last[1]:.1f}".replace("-", "−"))
    axes.axhline(needed, color=CLAIM_COLOUR, ls="--", label=f"refutes from {needed:.1f} on")
    axes.set(xlabel="paired runs", ylabel="log e-value", xlim=(0, None))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend(fontsize="small")


def page_axes(left: float, bottom: float, height: float) -> "tuple[Figure, Axes]":
    """A page's figure, `height` points high, and its axes, with margins in points: a layout engine would draw twice."""
    from matplotlib.figure import Figure  # takes 0.3 s to import

    figure = Figure(figsize=(PAGE_WIDTH / 72, height / 72))
    size = (PAGE_WIDTH - left - 30, height - bottom - 12)
    axes = figure.add_axes((left / PAGE_WIDTH, bottom / height, size[0] / PAGE_WIDTH, size[1] / height))
    axes.locator_params(nbins=4)
    axes.xaxis.set_label_coords(0.5, (14 - bottom) / size[1])
    axes.yaxis.set_label_coords((12 - left) / size[0], 0.5)
    return figure, axes


def svg(
    draw_into: "Callable[[Axes, Any], None]",
    shown: object,
    title: str,
    description: str,
    *,
    left: float = 50,
    bottom: float = 32,
    height: float = 144,
) -> str:
    """The figure that `draw_into` draws of a value, as an SVG element of a page, whose style sheet sets the colours.

    Texts stay texts, and no element has an identifier that another figure on the page may have. `left` and `bottom` are
    the margins for the labels of the axes, in points.
    """
    from matplotlib import style

    with style.context(["default", PAGE_STYLE]), catch_warnings():
        simplefilter("ignore")  # about glyphs that the font lacks: the reader's browser has other fonts
        figure, axes = page_axes(left, bottom, height)
        draw_into(axes, shown)
        axes.set_title("")
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    document = minidom.parseString(buffer.getvalue())
    drawing = document.documentElement
    assert drawing is not None
    for group in drawing.getElementsByTagName("g"):
        if group.hasAttribute("id"):
            group.removeAttribute("id")
    drawing.removeChild(drawing.getElementsByTagName("defs")[0])  # style rules, which would apply to the whole page
    drawing.setAttribute("role", "img")
    drawing.setAttribute("aria-label", title)
    for tag, text in (("desc", description), ("title", title)):
        element = document.createElement(tag)
        element.appendChild(document.createTextNode(text))
        drawing.insertBefore(element, drawing.firstChild)
    return drawing.toxml()


def draw_curve(axes: "Axes", result: Curve) -> None:
    """Draw p-values against the tested parameter: a line for each ε of the mechanism, and a vertical line at that ε."""
    for k, line in enumerate(result.lines):
        colour = f"C{k}"
        axes.plot(
            line.test_epsilons, line.p_values, marker="os^Dv"[k % 5], ms=4, color=colour, label=f"ε₀ = {line.epsilon:g}"
        )
        if result.claim is None:  # else the axis has the claim's parameter, not the mechanism's ε
            axes.axvline(line.epsilon, color=colour, lw=0.8, alpha=0.6, label=f"test ε = {line.epsilon:g}")
    axes.axhline(0.05, color="0.4", lw=0.8, ls="--", label="p = 0.05")
    axes.set(xlabel=f"test {result.parameter}", ylabel="p-value", ylim=(-0.03, 1.03))
    runs = f"{max(line.run_counts.confirm for line in result.lines):,} runs a test"
    axes.set_title(f"{_label(result.call)}\n{runs}")
    axes.legend()


def _label(text: str) -> str:
    """At most 60 characters of a text, without characters that matplotlib cannot draw or would read as mathematics."""
    short = text if len(text) <= 60 else f"{text[:59]}…"
    return "".join(c if c.isprintable() else "�" for c in short).replace("$", r"\$")


def plot(result: Curve | Profile, path: str | Path) -> None:
    """Draw a result into a file. Raises `InvalidParameter` for an unknown format."""
    figure, axes = new_figure()
    draw(result, axes)
    write_figure(figure, path)


def new_figure() -> "tuple[Figure, Axes]":
    """A figure for a file, with one pair of axes."""
    from matplotlib.figure import Figure  # takes 0.3 s to import

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    return figure, figure.add_subplot()


def write_figure(figure: "Figure", path: str | Path) -> None:
    """Write a figure, whole or not at all. Raises `InvalidParameter` for an unknown format."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=plot_format(path), dpi=150)
    write_atomically(path, buffer.getvalue())


def claimed_delta(claim: Claim, epsilons: Floats) -> Floats:
    """The δ that a claim allows at each ε, the largest G(q) − e^ε·q; exact for polygons, else up to 0.5 % too large."""
    q, p = claimed_powers(claim)
    return np.asarray(np.max(p - np.exp(epsilons)[:, None] * q, axis=1))


def claimed_powers(claim: Claim) -> tuple[Floats, Floats]:
    """Rising rates q and powers whose polygon lies nowhere below the largest powers G(q) of tests.

    Between two points of the grid a concave G lies below the lines through the two points before and the two points
    behind; the meeting point of these lines is added.
    """
    q = np.concatenate([[0.0], 1 / (1 + np.exp(-LOG_ODDS)), [1.0]])
    p = np.array([claimed_power(claim, float(rate)) for rate in q])
    at, lower = meeting_points(q, -p, -np.diff(p) / np.diff(q))  # for −G, which is convex
    p, q = np.append(p, np.minimum(-lower, 1.0)), np.append(q, at)
    order = np.argsort(q, kind="stable")
    return q[order], p[order]


def claimed_power(claim: Claim, rate: float) -> float:
    """The largest power that a claim allows a test of size `rate`, by both directions of a pair.

    Beside p ≤ G(q) it demands 1 − q ≤ G(1 − p), for the event's complement with D and D′ exchanged.
    """
    return min(claim.largest(rate), 1 - claim.smallest(1 - rate, claim.parameter))


def draw_profile(axes: "Axes", result: Profile) -> None:
    """Draw the lower band of δ(ε), logarithmic, and the claim's δ."""
    top = max(result.largest_epsilon, 0.5)
    epsilons = np.linspace(0.0, 1.15 * top, LINE_POINTS)
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


def draw_trade_off(axes: "Axes", result: Profile) -> None:
    """Draw the upper band of the false negative rate of tests, and the rate that the claim allows."""
    rates = 1 / (1 + np.exp(-np.linspace(np.log(1e-4), -np.log(1e-4), LINE_POINTS)))
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
