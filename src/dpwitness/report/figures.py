"""Small figures as SVG: bars with intervals and a mark, and the cells of a partition. Colours are those of the page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from math import isqrt
from typing import Final

import numpy as np

from dpwitness.events.event import Counted, date_text, is_partition
from dpwitness.evidence.counts import Counts
from dpwitness.report.markup import Child, Markup, element
from dpwitness.results.verdict import Outputs
from dpwitness.results.witness import Witness

#: Width of a figure and of what stands left and right of its bars, in its own units; a page scales it.
WIDTH: Final = 400.0
LEFT: Final = 52.0
RIGHT: Final = 78.0
ROW: Final = 30.0
#: Width of a bar's value.
ROOM: Final = 60.0
HEIGHT: Final = 110.0
COURSE_HEIGHT: Final = 150.0
#: Width of a letter; letters of what a figure is about; from one text below a histogram to the next, at least and by
#: letter: one begins at the left end, the next one has its middle at its place.
LETTER: Final = 9.0
TICK_ROOM: Final = 60.0
TICK_LETTER: Final = 11.0
LONGEST_AXIS: Final = 60
#: Letters of a time of day that a text below a histogram has: none, minutes, seconds, all.
CLOCK: Final = (0, 5, 8, None)
MIDNIGHT: Final = "00:00"
#: A bin higher than twice so many times the next one is cut off at so many times.
CUT: Final = 1.5

_numbers = count(1)


def drawing(title: str, description: str, height: float, *children: Child) -> Markup:
    """A figure with what it shows as its title and description, for who cannot see it."""
    number = next(_numbers)
    names = f"dpw-title-{number}", f"dpw-text-{number}"
    return element(
        "svg",
        element("title", title, id_=names[0]),
        element("desc", description, id_=names[1]),
        children,
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="img",
        aria_labelledby=" ".join(names),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar with a label and its value as text; `ends`: an interval that is drawn on it."""

    label: str
    value: float
    text: str
    kind: str
    ends: tuple[float, float] | None = None


def bars(title: str, description: str, rows: Sequence[Bar], mark: tuple[float, str] | None) -> Markup:
    """Horizontal bars from 0 on; `mark`: a value with its text, drawn across the first bar."""
    largest = max([bar.ends[1] if bar.ends else bar.value for bar in rows] + ([mark[0]] if mark else []))
    scale = (WIDTH - LEFT - RIGHT) / (largest or 1.0)
    top = 20.0 if mark else 4.0
    drawn: list[Child] = []
    for number, bar in enumerate(rows):
        y = top + number * ROW
        length = max(bar.value, 0.0) * scale
        drawn.append(element("text", bar.label, x=LEFT - 8, y=y + 16, text_anchor="end"))
        drawn.append(element("rect", x=LEFT, y=y + 3, width=max(length, 0.8), height=ROW - 12, class_=bar.kind))
        end = length
        if bar.ends:
            low, end = (LEFT + value * scale for value in bar.ends)
            drawn.append(element("path", d=f"M{low:.2f} {y + 12:g}H{end:.2f}", class_="interval"))
            drawn += [element("path", d=f"M{x:.2f} {y + 8:g}v8", class_="interval") for x in (low, end)]
            end -= LEFT
        if mark and number == 0 and mark[0] * scale < end + ROOM:
            end = max(end, mark[0] * scale)
        drawn.append(element("text", bar.text, x=LEFT + end + 8, y=y + 16, class_="value"))
    if mark:
        x = LEFT + mark[0] * scale
        anchor = "start" if x < 120 else "end" if x > WIDTH - 110 else "middle"
        drawn.append(element("path", d=f"M{x:.2f} {top - 4:g}v{ROW:g}", class_="mark"))
        drawn.append(element("text", mark[1], x=x, y=top - 8, text_anchor=anchor))
    drawn.append(element("path", d=f"M{LEFT:g} {top:g}v{len(rows) * ROW - 6:g}", class_="axis"))
    return drawing(title, description, top + len(rows) * ROW, drawn)


def event_rates(witness: Witness, *, tested: bool) -> Markup:
    """How often the event was seen on D and on D′, and what the claim allows on D if it was tested.

    Nothing without runs.
    """
    if not witness.counts.runs:
        return Markup()
    seen, most = rates(witness), allowed(witness) if tested else None
    texts = [f"on {rate.name} in {rate.text} ({rate.share:.4g})" for rate in seen]
    mark = None
    if most is not None:
        mark = (most, f"allowed on D {most:.4g}")
        texts.append(f"at the rate seen on D′ the claim allows {most:.4g} on D")
    rows = [
        Bar(label=f"on {rate.name}", value=rate.share, text=f"{rate.share:.4g}", kind=kind, ends=rate.ends)
        for rate, kind in zip(seen, ("own", "other"), strict=True)
    ]
    return bars("How often the event was seen", f"{'; '.join(texts)}.", rows, mark)


def evidence(log_e_value: float, needed: float, points: Sequence[tuple[int, float]] = ()) -> Markup:
    """The evidence over the runs, or at their end alone where `points` (runs, log e-value) are not known, in nats."""
    if points:
        return _course(points, needed)
    bar = Bar(label="log E", value=log_e_value, text=_signed(log_e_value), kind="own")
    text = f"log e-value {log_e_value:.1f}; {needed:.1f} refutes the claim."
    return bars("Evidence against the claim", text, [bar], (needed, f"refutes from {needed:.1f} on"))


def _course(points: Sequence[tuple[int, float]], needed: float) -> Markup:
    """A line from no evidence before the first run, and the threshold."""
    base, top, right = COURSE_HEIGHT - 18, 22.0, WIDTH - 8
    runs, last = points[-1]
    low, high = min(0.0, *(value for _, value in points)), max(needed, *(value for _, value in points))
    across, up = (right - LEFT) / max(runs, 1), (base - top) / ((high - low) or 1.0)

    def place(n: int, value: float) -> str:
        return f"{LEFT + n * across:.2f} {base - (value - low) * up:.2f}"

    line = "L".join(place(*point) for point in ((0, 0.0), *points))
    x, y = place(runs, last).split()
    threshold, zero = (base - (value - low) * up for value in (needed, 0.0))
    # The line rises from the lower left: what stands low stands on the right, and the last value above its point.
    said, aside = f"refutes from {needed:.1f} on", threshold > (base + top) / 2
    below = 0 < float(y) - threshold < 20
    drawn = [
        element("path", d=f"M{LEFT:g} {threshold:.2f}H{right:g}", class_="mark"),
        element("text", said, x=right if aside else LEFT + 6, y=threshold - 6, text_anchor="end" if aside else "start"),
        element("path", d=f"M{line}", class_="line"),
        element("circle", cx=x, cy=y, r=3, class_="own"),
        element("text", _signed(last), x=right - 4, y=float(y) + (16 if below else -8), text_anchor="end"),
        element("path", d=f"M{LEFT:g} {top - 10:g}V{base:g}", class_="axis"),
        element("path", d=f"M{LEFT:g} {zero:.2f}H{right:g}", class_="axis"),
        element("text", "0", x=LEFT - 8, y=zero + 4, text_anchor="end"),
        element("text", "log E", x=LEFT - 8, y=top, text_anchor="end"),
        element("text", f"{runs:,} paired runs", x=right, y=COURSE_HEIGHT - 4, text_anchor="end"),
    ]
    most = max(value for _, value in points)
    text = (
        f"The log e-value after up to {runs:,} paired runs: {_signed(last)} at the end, at most {_signed(most)}; "
        f"{needed:.1f} refutes the claim."
    )
    return drawing("Evidence against runs", text, COURSE_HEIGHT, drawn)


def _signed(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


def outputs(shown: Outputs) -> Markup:
    """Both distributions of what the event looks at, with the values of the event shaded."""
    base, top = HEIGHT - 32, 8.0
    sides = (shown.on_data, shown.on_neighbour)
    places, widths = _bins(shown)
    # Heights are shares by width: an area is a probability. Bins much narrower than usual would hide all others.
    usual = sorted(widths)[len(widths) // 2]
    heights = [[n / shown.runs / max(w, usual / 4) for n, w in zip(side, widths, strict=True)] for side in sides]
    highest = sorted(map(max, zip(*heights, strict=True)))
    # A value that comes back makes one bin so high that all others vanish: it is cut off, and its shares said.
    room = CUT * highest[-2] if len(highest) > 2 and shown.edges else 0.0
    most = highest[-1] if room == 0 or highest[-1] < 2 * room else room
    scale = (base - top) / (most or 1.0)
    drawn: list[Child] = []
    for k, inside in enumerate(shown.inside):
        left, width = places[k], max(widths[k], 1.5)
        drawn += _columns(left, width, top, base, [min(side[k], most) * scale for side in heights], inside=inside)
        if max(heights[0][k], heights[1][k]) > most:
            text = f"cut off: {' and '.join(f'{side[k] / shown.runs:.3g}' for side in sides)}"
            right = left > WIDTH / 2
            x = left - 4 if right else left + width + 4
            drawn.append(element("text", text, x=x, y=top + 12, text_anchor="end" if right else "start"))
    drawn.append(element("path", d=f"M4 {base:g}H{WIDTH - 4:g}", class_="axis"))
    drawn += [
        element("text", text, x=x, y=HEIGHT - 18, text_anchor=anchor)
        for x, text, anchor in _ticks(shown, places, widths)
    ]
    day = _edge_texts(shown.edges, shown.date_unit)[1] if shown.edges else ""
    drawn.append(element("text", cut(shown.statistic, LONGEST_AXIS) + (day and f" on {day}"), x=4, y=HEIGHT - 4))
    shares = [sum(n for n, one in zip(side, shown.inside, strict=True) if one) / shown.runs for side in sides]
    text = (
        f"Of {shown.runs:,} runs on each input {shares[0]:.3g} on D and {shares[1]:.3g} on D′ lie in bins of the "
        f"event, which are shaded: {sum(shown.inside)} of {len(shown.inside)} bins."
    )
    return drawing(f"Both distributions of: {cut(shown.statistic, LONGEST_AXIS)}", text, HEIGHT, drawn)


def _columns(
    left: float, width: float, top: float, base: float, heights: Sequence[float], *, inside: bool
) -> Iterator[Markup]:
    """A bin: the columns of D and of D′ side by side, shaded where the event holds it."""
    if inside:
        yield element("rect", x=left, y=top, width=width, height=base - top, class_="inside")
    for place, height, kind in zip((0.1, 0.5), heights, ("own", "other"), strict=True):
        x = left + place * width
        yield element("rect", x=x, y=base - height, width=0.4 * width, height=height, class_=kind)


def _bins(shown: Outputs) -> tuple[list[float], list[float]]:
    """Where bins begin in the figure, and how wide they are."""
    room = WIDTH - 8
    if shown.values:
        width = room / len(shown.values)
        return [4 + k * width for k in range(len(shown.values))], [width] * len(shown.values)
    first, last = shown.edges[0], shown.edges[-1]
    places = [4 + room * (edge - first) / (last - first) for edge in shown.edges]
    return places[:-1], [b - a for a, b in pairwise(places)]


def _ticks(shown: Outputs, places: Sequence[float], widths: Sequence[float]) -> list[tuple[float, str, str]]:
    """Texts below the bins, and their anchors: values, or the ends of the histogram and of the event as they fit."""
    if shown.values:
        texts = shown.values if fits(shown) else [f"{number}" for number in range(1, len(shown.values) + 1)]
        return [(place + width / 2, text, "middle") for place, width, text in zip(places, widths, texts, strict=True)]
    ends = [k for k in range(1, len(shown.inside)) if shown.inside[k] != shown.inside[k - 1]]
    edges = [*places, places[-1] + widths[-1]]
    told = [*ends, 0, len(shown.inside)]
    texts, _ = _edge_texts([shown.edges[k] for k in told], shown.date_unit)
    room = max(TICK_ROOM, TICK_LETTER * max(map(len, texts)))
    found: list[tuple[float, str, str]] = []
    for k, text in zip(told, texts, strict=True):
        x = edges[k]
        if all(abs(x - other) > room for other, *_ in found):
            found.append((x, text, "start" if x < room / 3 else "end" if x > WIDTH - room / 3 else "middle"))
    return found


def _edge_texts(edges: Sequence[float], date_unit: str | None) -> tuple[list[str], str]:
    """Numbers of four digits; of dates days, minutes or seconds, the first that tell them apart, and the day of all."""
    if date_unit is None:
        return [f"{edge:.4g}".replace("-", "−") for edge in edges], ""
    # A midnight is told without its time of day.
    days, clocks = zip(*(date_text(edge, date_unit).partition(" ")[::2] for edge in edges), strict=True)
    one_day = len(set(days)) == 1 and any(clocks)
    for length in CLOCK:
        texts = [clock[:length] or MIDNIGHT for clock in clocks]
        if not one_day:
            texts = [f"{day} {clock[:length]}".rstrip() for day, clock in zip(days, clocks, strict=True)]
        if len(set(texts)) == len(texts):
            break
    return texts, days[0] if one_day else ""


def fits(shown: Outputs) -> bool:
    """Whether the values of bins have room below them; else they are numbered."""
    return max(map(len, shown.values), default=0) * LETTER <= (WIDTH - 8) / max(len(shown.values), 1)


def cut(text: str, longest: int) -> str:
    """A text, or its beginning."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def cells(counts: Counts, event: Counted) -> Markup:
    """The share of runs in each cell of the partition that the event is made of, on both inputs; nothing where none."""
    if not counts.cells or not is_partition(event):
        return Markup()
    table = np.reshape(counts.cells, (isqrt(len(counts.cells)), -1))
    shares = [(table.sum(axis=axis) / counts.runs).tolist() for axis in (1, 0)]
    base, top = HEIGHT - 18, 8.0
    width = (WIDTH - 8) / len(shares[0])
    scale = (base - top) / max(max(side) for side in shares)
    drawn: list[Child] = []
    for cell, inside in enumerate(event.inside):
        left = 4 + cell * width
        drawn += _columns(left, width, top, base, [side[cell] * scale for side in shares], inside=inside)
    drawn.append(element("path", d=f"M4 {base:g}H{WIDTH - 4:g}", class_="axis"))
    drawn.append(
        element("text", f"{len(shares[0])} cells by rising likelihood ratio, the event's last", x=4, y=HEIGHT - 4)
    )
    inside_text = f"The event is made of {int(sum(event.inside))} of {len(shares[0])} cells, which are shaded."
    return drawing("Both output distributions over the cells", inside_text, HEIGHT, drawn)


#: Of the intervals of figures.
LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How often runs on one input were seen in an event: the share, in words, and the ends of an interval at 95 %.

    The interval is for the eye: it holds for a number of runs fixed beforehand. The verdict rests on the e-value.
    """

    name: str
    share: float
    text: str
    ends: tuple[float, float]


def rates(witness: Witness) -> list[Rate]:
    """Those of its event, on D and on D′, with exact intervals."""
    counts, names = witness.counts, ("D", "D′")
    runs = counts.runs
    return [
        Rate(
            name=name,
            share=hits / runs if runs else 0.0,
            text=f"{hits:,} of {runs:,} runs",
            ends=clopper_pearson(hits, runs),
        )
        for name, hits in zip(names, (counts.hits, counts.neighbour_hits), strict=True)
    ]


def clopper_pearson(hits: int, runs: int) -> tuple[float, float]:
    """The exact interval of a share at `LEVEL`."""
    from scipy.special import betaincinv  # only figures need it

    tail = (1 - LEVEL) / 2
    low = betaincinv(hits, runs - hits + 1, tail) if hits else 0.0
    high = betaincinv(hits + 1, runs - hits, 1 - tail) if hits < runs else 1.0
    return float(low), float(high)


def allowed(witness: Witness) -> float | None:
    """The most that the claim allows on D at the rate seen on D′; None without runs."""
    return float(witness.claim.largest(rates(witness)[1].share)) if witness.counts.runs else None
