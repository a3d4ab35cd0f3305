"""Small figures as SVG: bars with intervals and a mark, and the cells of a partition. Colours are those of the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from dpwitness.claims import Claim
from dpwitness.events.event import Counted, is_partition
from dpwitness.evidence.counts import Counts
from dpwitness.report.markup import Child, Markup, element
from dpwitness.report.rates import allowed, cell_shares, rates

#: Width of a figure and of what stands left and right of its bars, in its own units; a page scales it.
WIDTH: Final = 400.0
LEFT: Final = 52.0
RIGHT: Final = 78.0
ROW: Final = 30.0
#: Width of a bar's value.
ROOM: Final = 60.0
HEIGHT: Final = 110.0

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


def event_rates(counts: Counts, claim: Claim) -> Markup:
    """How often the event was seen on D and on D′, and what the claim allows on D; nothing without runs."""
    if not counts.runs:
        return Markup()
    seen, most = rates(counts), allowed(counts, claim)
    texts = [f"on {rate.name} in {rate.hits:,} of {rate.runs:,} runs ({rate.share:.4g})" for rate in seen]
    mark = None
    if most is not None and claim.parameter:
        mark = (most, f"allowed on D {most:.4g}")
        texts.append(f"at the rate seen on D′ the claim allows {most:.4g} on D")
    rows = [
        Bar(label=f"on {rate.name}", value=rate.share, text=f"{rate.share:.4g}", kind=kind, ends=rate.ends)
        for rate, kind in zip(seen, ("own", "other"), strict=True)
    ]
    return bars("How often the event was seen", f"{'; '.join(texts)}.", rows, mark)


def evidence(log_e_value: float, needed: float) -> Markup:
    """The evidence at the end of the runs beside what refutes the claim, in nats."""
    bar = Bar(label="log E", value=log_e_value, text=f"{log_e_value:.1f}".replace("-", "−"), kind="own")
    text = f"log e-value {log_e_value:.1f}; {needed:.1f} refutes the claim."
    return bars("Evidence against the claim", text, [bar], (needed, f"refutes from {needed:.1f} on"))


def cells(counts: Counts, event: Counted) -> Markup:
    """The share of runs in each cell of the partition that the event is made of, on both inputs; nothing where none."""
    shares = cell_shares(counts)
    if not counts.cells or not is_partition(event):
        return Markup()
    base, top = HEIGHT - 18, 8.0
    width = (WIDTH - 8) / len(shares[0])
    scale = (base - top) / max(max(side) for side in shares)
    drawn: list[Child] = []
    for cell, inside in enumerate(event.inside):
        left = 4 + cell * width
        if inside:
            drawn.append(element("rect", x=left, y=top, width=width, height=base - top, class_="inside"))
        for side, kind in ((0, "own"), (1, "other")):
            height = shares[side][cell] * scale
            x = left + width * (0.1 + 0.4 * side)
            drawn.append(element("rect", x=x, y=base - height, width=0.4 * width, height=height, class_=kind))
    drawn.append(element("path", d=f"M4 {base:g}H{WIDTH - 4:g}", class_="axis"))
    drawn.append(element("text", f"{len(shares[0])} cells, by rising likelihood ratio", x=4, y=HEIGHT - 4))
    inside_text = f"The event is made of {int(sum(event.inside))} of {len(shares[0])} cells, which are shaded."
    return drawing("Both output distributions over the cells", inside_text, HEIGHT, drawn)
