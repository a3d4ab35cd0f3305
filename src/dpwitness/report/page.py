"""The content of an HTML page of results, laid out by `page.html.j2`; the page needs no network or other file."""

import json
import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpwitness.events import outcomes_of, statistic_of
from dpwitness.events.event import is_partition
from dpwitness.mechanisms.catalog import PROGRAM_PREFIX, is_registered
from dpwitness.report import plots
from dpwitness.report.nist import fields
from dpwitness.results.bound import Bound
from dpwitness.results.curve import Curve
from dpwitness.results.profile import Profile
from dpwitness.results.saved import Shown
from dpwitness.results.text import UNKNOWN_RELATION, at_most
from dpwitness.results.verdict import NotRefuted, Verdict, Violation
from dpwitness.results.witness import Witness

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: NamedText is a row of a table: a name and a text.
NamedText = tuple[str, str]
#: Piece is a piece of a page for the template, a dict with a key for the kind of piece.
Piece = dict[str, Any]

#: TEXT_CHARACTERS is the largest number of characters of a text that are shown.
TEXT_CHARACTERS: Final = 1_500
#: REPORT_CHARACTERS is the largest number of characters of a whole report.
REPORT_CHARACTERS: Final = 10_000
#: NAME_CHARACTERS is the largest number of characters of a name in a heading or a sentence.
NAME_CHARACTERS: Final = 160
#: RESULT_STATUSES has the statuses of results in the order in which the title counts them.
RESULT_STATUSES: Final = ("violated", "no verdict", "not refuted", "lower bound", "privacy profile", "curve")


def readable(text: str, longest: int = TEXT_CHARACTERS) -> str:
    """The text, cut if it is long, with control characters, surrogates and marks of direction escaped as in JSON."""
    cut = text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in cut)


#: ENVIRONMENT has the templates of pages, which escape every text and make it `readable`.
ENVIRONMENT: Final = Environment(
    loader=PackageLoader("dpwitness", "report"),
    autoescape=True,
    finalize=lambda value: readable(value) if isinstance(value, str) and type(value) is not Markup else value,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters["name"] = lambda text: readable(text, NAME_CHARACTERS)
ENVIRONMENT.filters["report"] = lambda text: Markup.escape(readable(text, REPORT_CHARACTERS))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEntry:
    """A result on a page, or None and the `reason` for its absence; `facts`: more facts, such as the test.

    `replay`: the command that counts the event again; empty if no file holds the result.
    """

    name: str
    result: Shown | None
    replay: str = ""
    reason: str = ""
    facts: tuple[NamedText, ...] = ()


def page(entries: Sequence[PageEntry], *, facts: Sequence[NamedText] = ()) -> str:
    """The HTML page of several results, with `facts` about all results."""
    found = [_status(entry.result).lower() for entry in entries]
    tally = ", ".join(f"{found.count(one)} {one}" for one in sorted(set(found), key=RESULT_STATUSES.index))
    title = f"Privacy tests: {tally or 'none'}"
    if len(entries) == 1:
        title = f"{_status(entries[0].result)}: {entries[0].name}"
    articles = [_article(entry, f"result-{number}") for number, entry in enumerate(entries, 1)]
    template = ENVIRONMENT.get_template("page.html.j2")
    return template.render(title=title, tally=tally, session=_table("All results", facts), articles=articles)


def page_of(result: Shown) -> str:
    """The page of one result."""
    return page([PageEntry(name=result.call, result=result)])


def _table(caption: str, rows: Sequence[NamedText]) -> list[Piece]:
    """A table of names and texts; an empty list without rows."""
    return [{"caption": caption, "rows": rows}] if rows else []


def _status(result: Shown | None) -> str:
    match result:
        case None:
            return "No verdict"
        case Bound():
            return "Lower bound"
        case Curve():
            return "Curve"
        case Profile(claim=None):
            return "Privacy profile"
        case Violation() | Profile(refuted=True):
            return "Violated"
        case _:
            return "Not refuted"


def _headline(result: Shown) -> str:
    return str(result).partition("\n")[0]


def _article(entry: PageEntry, place: str) -> Piece:
    """The article of a result, with sections in the order of an audit; `place` is the identifier of its element."""
    result = entry.result
    about = {"name": entry.name, "place": place, "status": _status(result), "reason": entry.reason}
    if result is None:
        return {**about, "facts": _table("Facts", entry.facts)}
    replay = [{"replay": entry.replay}] if entry.replay else []
    sections: list[tuple[str, list[Piece]]] = [
        ("Claim", _table("What was tested, and how", [*entry.facts, *_facts(result)])),
        ("Report", [{"report": str(result)}, *replay]),
        ("Outputs", _figures(result)),
        ("Evidence", _evidence(result)),
        ("Limits", [{"limits": _status(result) == "Violated"}]),
        ("Appendix", _table("Fields of evaluation after NIST SP 800-226 (2025)", fields(result))),
    ]
    return {**about, "headline": _headline(result), "warnings": _warnings(result), "sections": sections}


def _warnings(result: Shown) -> list[str]:
    """Warnings about circumstances that can make the result meaningless."""
    texts: list[str] = []
    if isinstance(result, NotRefuted) and not math.isfinite(result.detectable):
        texts.append("So few runs fell into the event that no violation would have been caught: this says nothing.")
    if isinstance(result, NotRefuted) and result.floating_point is not None:
        texts.append("The last bits of the outcomes refute the claim. The verdict below holds in real arithmetic.")
    if not isinstance(result, Curve):
        if result.alpha > 0.01:
            texts.append(
                f"α = {result.alpha:g}: a finding is wrong, although the claim holds, with a probability of up to α."
            )
        if result.witness is not None and result.witness.relation is None:
            texts.append("The relation is not known: nothing here says that the two inputs are neighbours.")
    return [*texts, *result.notes]


def _facts(result: Shown) -> list[NamedText]:
    """The facts of the test: claim, adjacency, mechanism, parameters, α, versions, size of the search, and seed."""
    witness = result.witness
    claim = None if isinstance(result, Bound) else result.claim
    rows = [("Claim", "none was tested" if claim is None else str(claim))]
    if witness is not None:
        rows.append(
            ("Adjacency", UNKNOWN_RELATION if witness.relation is None else f"{witness.relation.described:.200}")
        )
    rows.append(("Mechanism", result.mechanism))
    rows += [(f"Parameter {readable(key, NAME_CHARACTERS)}", str(value)) for key, value in result.parameters.items()]
    if not isinstance(result, Curve):
        rows.append(("False alarms", f"α = {result.alpha:g}"))
        rows.append(("Versions", ", ".join(f"{package} {version}" for package, version in result.versions.items())))
    if isinstance(result, Verdict) and (course := result.course) is not None and course.pairs:
        rows.append(("Search", f"pairs of inputs: {course.pairs:,}; events compared: {course.events:,}"))
    return [*rows, ("Seed", f"{result.seed}")]


def _figure(
    draw: "Callable[[Axes, Any], None]", shown: object, title: str, caption: str = "", **points: float
) -> list[Piece]:
    """One piece: a figure with a title for screen readers and a caption; `points`: sizes in points, for `plots.svg`."""
    return [{"figure": plots.svg(draw, shown, title, caption or title, **points), "caption": caption or title}]


def _figures(result: Shown) -> list[Piece]:
    """The figures of a result."""
    match result:
        case Curve():
            text = "p-value against the tested value, a line an ε of the mechanism; below 0.05 the value is doubtful."
            return _figure(plots.draw_curve, result, text, height=260)
        case Profile():
            band = "Lower band of the privacy profile δ(ε); the shaded part is excluded."
            power = "Upper band of the trade-off function of tests; the shaded part is excluded."
            return [
                *_figure(plots.draw_profile, result, band, height=260),
                *_figure(plots.draw_trade_off, result, power, height=260),
            ]
        case _:
            return [*_rates(result), *_outputs(result)]


def _rates(result: Verdict | Bound) -> list[Piece]:
    """The figure of the event's rates on both inputs; no piece without runs."""
    if not result.counts.runs:
        return []
    title = f"How often the event was seen in {result.counts.runs:,} runs on each input"
    caption = f"{title}. Lines on the bars: 95 % intervals (Clopper–Pearson) for a fixed number of runs."
    return _figure(plots.draw_rates, result, title, caption, left=95)


def _outputs(result: Verdict | Bound) -> list[Piece]:
    """The figure of the event's value on both inputs; a sentence for an event of several values."""
    event, course = result.witness.event, result.course
    legend = "In colour: on D; grey: on D′; shaded: the event."
    if is_partition(event):
        if not result.counts.cells:
            return []
        title = "Both output distributions over the cells"
        return _figure(plots.draw_cells, result.witness, title, legend, bottom=20)
    if course is None or course.outputs is None:
        several = course is not None and statistic_of(event) is None and outcomes_of(event) is None
        return [{"text": "The event looks at several values at once: no distribution of one is drawn."}] * several
    shown = course.outputs
    left = [shown.runs - sum(side) for side in (shown.on_data, shown.on_neighbour)]
    others = f" Not drawn are other values: {left[0]:,} on D, {left[1]:,} on D′." if any(left) else ""
    runs = f"{shown.runs:,} runs on each input, drawn for illustration; the verdict does not use them."
    title = f"Both distributions of: {readable(shown.statistic, NAME_CHARACTERS)}"
    values = "; ".join(f"{k}: {readable(one, NAME_CHARACTERS)}" for k, one in enumerate(shown.values, 1))
    named = "" if plots.values_fit(shown) else f" Values: {values}."
    return _figure(plots.draw_outputs, shown, title, f"{legend} {runs}{others}{named}", left=50 if shown.values else 32)


def _evidence(result: Shown) -> list[Piece]:
    """The figure of the evidence of a verdict."""
    if not isinstance(result, Verdict):
        return []
    least = at_most(result.p_value, 3) if result.p_value else "1e-300"
    caption = f"Log e-value in nats; in the end p ≤ {least}, valid however the runs were stopped."
    return _figure(plots.draw_evidence, result, "Evidence against the claim", caption)


def replay_line(witness: Witness, file: str) -> str:
    """The command that counts a saved witness on fresh runs."""
    line = ["dpwitness", "replay", file]
    if witness.mechanism.startswith(PROGRAM_PREFIX):
        line += ["--command", witness.mechanism.removeprefix(PROGRAM_PREFIX)]
    elif ":" in witness.mechanism or not is_registered(witness.mechanism):
        line += ["--mechanism", witness.mechanism]
    for option in ("python", "outcome", "errors"):
        if (value := getattr(witness, option)) is not None:
            line += [f"--{option}", value]
    return shlex.join(line)
