"""An HTML page of results without network, scripts or other files: its content, which `page.html.j2` lays out."""

import json
import math
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpwitness.events import is_partition, outcomes_of, statistic_of
from dpwitness.mechanisms.catalog import PROGRAM_PREFIX, is_registered
from dpwitness.neighbours import Pair
from dpwitness.neighbours.difference import both, summary
from dpwitness.neighbours.pair import ATTACK_PREFIX
from dpwitness.report import plots
from dpwitness.report.nist import fields
from dpwitness.results.bound import Bound
from dpwitness.results.curve import Curve
from dpwitness.results.profile import SHOWN_RATES, Profile
from dpwitness.results.saved import Shown
from dpwitness.results.text import UNKNOWN_RELATION, at_least, at_most, confidence, p_value, relation_text
from dpwitness.results.verdict import EARLY_END_REASONS, SUFFICIENT_RUNS_REASONS, Course, NotRefuted, Verdict, Violation
from dpwitness.results.witness import Witness

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Span is the name of an element ("mark", "code", or "" for none) and a part of a text in it.
Span = tuple[str, str]
Cell = str | Sequence[Span]
#: Piece is a piece of a page for the template, a dict with a key for the kind of piece.
Piece = dict[str, Any]

#: TEXT_CHARACTERS is the largest number of characters of a text that are shown.
TEXT_CHARACTERS: Final = 1_500
#: NAME_CHARACTERS is the largest number of characters of a name in a heading or a sentence.
NAME_CHARACTERS: Final = 160
#: STATUSES has the statuses of results in the order in which the title counts them.
STATUSES: Final = ("violated", "no verdict", "not refuted", "lower bound", "privacy profile", "curve")
#: END_REASONS has the texts of the reasons that end confirm runs.
END_REASONS: Final = {
    "refuted": "the claim was refuted",
    "runs": "all runs that were asked for were made",
    **EARLY_END_REASONS,
    **SUFFICIENT_RUNS_REASONS,
}


def readable(text: str, longest: int = TEXT_CHARACTERS) -> str:
    """The text, cut if it is long, with control characters, surrogates and marks of direction escaped as in JSON."""
    cut = text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in cut)


#: ENVIRONMENT has the templates of pages and blocks, which escape every text and make it `readable`.
ENVIRONMENT: Final = Environment(
    loader=PackageLoader("dpwitness", "report"),
    autoescape=True,
    finalize=lambda value: readable(value) if isinstance(value, str) and type(value) is not Markup else value,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters["name"] = lambda text: readable(text, NAME_CHARACTERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A result on a page, or None and the `reason` for its absence; `facts`: more facts, such as the test.

    `replay`: the command that counts the event again (for a pass that leaks by last bits, their event); empty if no
    file holds the result.
    """

    name: str
    result: Shown | None
    replay: str = ""
    reason: str = ""
    facts: tuple[tuple[str, str], ...] = ()


def page(entries: Sequence[Entry], *, facts: Sequence[tuple[str, str]] = ()) -> str:
    """The HTML page of several results, with `facts` about all results."""
    found = [_status(entry.result).lower() for entry in entries]
    tally = ", ".join(f"{found.count(one)} {one}" for one in sorted(set(found), key=STATUSES.index))
    title = f"Privacy tests: {tally or 'none'}"
    if len(entries) == 1:
        title = f"{_status(entries[0].result)}: {entries[0].name}"
    articles = [_article(entry, f"result-{number}") for number, entry in enumerate(entries, 1)]
    template, session = ENVIRONMENT.get_template("page.html.j2"), _table("All results", facts)
    return template.render(title=title, tally=tally, session=session, articles=articles)


def page_of(result: Shown) -> str:
    """The page of one result."""
    return page([Entry(name=result.call, result=result)])


def block(result: Shown) -> str:
    """A compact block of a result for a notebook: the verdict, the main numbers, the first figure."""
    pieces = [*_table("In numbers", [*_bounds(result), *_search_rows(result)]), *_figures(result)[:1]]
    return ENVIRONMENT.get_template("block.html.j2").render(verdict=_verdict(result), pieces=pieces)


def _table(caption: str, rows: Sequence[Sequence[Cell]], *, head: Sequence[str] = (), look: str = "") -> list[Piece]:
    """A table whose first cells are names; an empty list without rows. `look`: the table's class in the style sheet."""
    return [{"caption": caption, "rows": rows, "head": head, "look": look}] if rows else []


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


def _article(entry: Entry, place: str) -> Piece:
    """The article of a result, with sections in the order of an audit; `place` is the identifier of its element."""
    result = entry.result
    about = {"name": entry.name, "place": place}
    if result is None:
        return {**about, "status": _status(None), "reason": entry.reason, "facts": _table("Facts", entry.facts)}
    refuted, bits = _status(result) == "Violated", _bits(result, entry.replay)
    plotted = "Outputs on both inputs" if isinstance(result, Verdict | Bound) else "Plot and numbers"
    sections: list[tuple[str, str, list[Piece]]] = [
        ("Claim", "Claim and mechanism", _table("What was tested, and how", [*entry.facts, *_facts(result)])),
        ("Search", "Search", _table("What was searched", _search_rows(result))),
        ("Bounds", "Bounds", _table("The bound shown, and the parameter that would have been caught", _bounds(result))),
        ("Outputs", plotted, [*_figures(result), *_plotted_numbers(result)]),
        ("Evidence", "Evidence", _evidence(result)),
        ("Inputs", "The two inputs", _inputs(result)),
        ("Witness", "The witness" if refuted else "The best candidate",
         _witness(result, None if bits and entry.replay else entry.replay)),
        ("Floating point", "Floating point", bits),
        ("Limits", "What this does not show", [{"limits": refuted}]),
        ("Appendix", "Appendix: fields of NIST SP 800-226",
         _table("After NIST SP 800-226 (2025)", fields(result), head=("Field", "What this result says"))),
    ]  # fmt: skip
    others = [
        {
            **_verdict(other),
            "heading": f"Under {relation_text(other.witness.relation)}",
            "pieces": [*_table("Bounds", _bounds(other)), *_figures(other), *_inputs(other)],
        }
        for other in _other_verdicts(result)
    ]
    return {**about, **_verdict(result), "reason": None, "sections": sections, "others": others}


def _verdict(result: Shown) -> Piece:
    """The verdict: status, warnings, and a sentence split at the call of the mechanism."""
    sentence = _sentence(result).partition(result.call)
    return {"status": _status(result), "warnings": _warnings(result), "sentence": sentence}


def _sentence(result: Shown) -> str:
    call = result.call
    match result:
        case Violation():
            by = " by the last bits of its floating-point outcomes" if result.by_bits else ""
            level = confidence(result.alpha)
            return f"{result.accused} is not {result.claim.short}{by}: {result.exceeded} with confidence {level}."
        case NotRefuted():
            verdict = f"{result.sentence[0].upper()}{result.sentence[1:]}. This is no proof of privacy."
            return f"{call} was tested against the claim {result.claim}. {verdict}"
        case Bound():
            least = f"{result.parameter} ≥ {at_least(result.lower_bound)}{result.condition}"
            return f"{call} has {least} with confidence {confidence(result.alpha)}."
        case Profile(claim=None):
            level = confidence(result.alpha)
            return f"δ(ε) of {call} is at least the band, at all ε at once, with confidence {level}."
        case Profile():
            if result.claim is not None and result.refuted:
                above = f"its profile lies above the claim's, with confidence {confidence(result.alpha)}"
                return f"{call} is not {result.claim.short}: {above}."
            return f"{call} was tested against the claim {result.claim}. This is no proof of privacy."
        case Curve():
            return f"p-values of {call} against {len(result.lines[0].test_epsilons)} values of {result.parameter}."


def _warnings(result: Shown) -> list[str]:
    """Warnings about circumstances that can make the result meaningless."""
    texts: list[str] = []
    if isinstance(result, NotRefuted) and not math.isfinite(result.detectable):
        texts.append("So few runs fell into the event that no violation would have been caught: this says nothing.")
    if isinstance(result, NotRefuted) and result.floating_point is not None:
        texts.append(
            f"Floating point: the last bits of the outcomes refute the claim ({result.floating_point.exceeded}). The "
            "verdict below holds in real arithmetic."
        )
    if result.ended in EARLY_END_REASONS:
        texts.append(f"The runs ended early: {EARLY_END_REASONS[result.ended]}. What was counted until then is valid.")
    if not isinstance(result, Curve):
        if result.alpha > 0.01:
            texts.append(
                f"α = {result.alpha:g}: a finding is wrong, although the claim holds, with a probability of up to α."
            )
        if result.witness is not None and result.witness.relation is None:
            texts.append("The relation is not known: nothing here says that the two inputs are neighbours.")
    if not result.reproducible:
        own_randomness = "The mechanism draws its own randomness: a seed cannot reproduce these counts"
        reason = own_randomness if result.witness is None else result.witness.not_reproducible
        texts.append(f"{reason[0].upper()}{reason[1:]}.")
    return [*texts, *result.notes]


def _facts(result: Shown) -> list[tuple[str, Cell]]:
    """The facts of the test: claim, adjacency, mechanism, versions, seed and α."""
    witness = result.witness
    claim = None if isinstance(result, Bound) else result.claim
    rows: list[tuple[str, Cell]] = [("Claim", "none was tested" if claim is None else str(claim))]
    if witness is not None:
        rows.append(
            ("Adjacency", UNKNOWN_RELATION if witness.relation is None else f"{witness.relation.described:.200}")
        )
    rows.append(("Mechanism", result.mechanism))
    rows += [(f"Parameter {readable(key, NAME_CHARACTERS)}", str(value)) for key, value in result.parameters.items()]
    if not isinstance(result, Curve):
        rows.append(("False alarms", _alpha(result)))
        rows.append(("Versions", ", ".join(f"{package} {version}" for package, version in result.versions.items())))
    return [*rows, ("Seed", f"{result.seed}")]


def _alpha(result: Verdict | Bound | Profile) -> str:
    """The text of the probability α of a false alarm, for each part of the result."""
    spent = [f"α = {result.alpha:g} for this result"]
    if isinstance(result, NotRefuted) and result.floating_point is not None:
        spent.append(f"{result.floating_point.alpha:g} for the last bits")
    return "; ".join([*spent, *(f"{other.alpha:g} under another relation" for other in _other_verdicts(result))])


def _search_rows(result: Shown) -> list[tuple[str, Cell]]:
    """The rows about the search: pairs, events and runs."""
    time = ("Time", f"{result.seconds:.1f} s")
    if isinstance(result, Curve):
        runs = [(line.epsilon, line.run_counts) for line in result.lines]
        return [*((f"Runs at ε = {at:g}", f"{n.search:,} search, {n.confirm:,} tested") for at, n in runs), time]
    pair = result.pair if isinstance(result, Profile) else result.witness.pair
    attack = pair.label.removeprefix(ATTACK_PREFIX)
    rows: list[tuple[str, Cell]] = [("Pair chosen", attack if attack == pair.label else f"by an attack: {attack}")]
    if isinstance(result, Profile):
        rows.append(("Events", f"{len(result.events)} in the band"))
    else:
        rows.append(("Event chosen", result.witness.description))
        rows += [] if result.course is None else [("Tried", _course_text(result.course))]
    counts = result.run_counts
    made = f"{counts.search:,} to search; {counts.confirm:,} to confirm on fresh runs"
    if counts.epochs:
        since = f"{counts.confirm:,} since the event was chosen"
        made = f"{counts.epochs:,} in epochs, each bet on before it was made; {since}"
    return [*rows, ("Paired runs", made), ("End of the runs", END_REASONS.get(result.ended, result.ended)), time]


def _course_text(course: Course) -> str:
    """The text of the extent of the search."""
    if not course.pairs:
        return "nothing: pair and event were given"
    pairs = "1 pair of inputs" if course.pairs == 1 else f"{course.pairs:,} pairs of inputs"
    events = "1 event" if course.events == 1 else f"{course.events:,} events"
    return f"{pairs}; {events} compared, most of them the best of all cuts, sets or scores of one kind"


def _bounds(result: Shown) -> list[tuple[str, Cell]]:
    """The rows of the lower bound and of the parameter that would have been caught."""
    rows: list[tuple[str, Cell]] = []
    if isinstance(result, Verdict | Bound):
        least = f"{result.parameter} ≥ {at_least(result.lower_bound)}"
        shown = result.exceeded if isinstance(result, Violation) else least
        rows.append(("Lower bound", f"{shown} with confidence {confidence(result.alpha)}"))
    if isinstance(result, NotRefuted):
        rows.append(("Would have caught", f"by this event {result.caught} {result.power}"))
    if isinstance(result, NotRefuted | Profile) and (tail := result.tail):
        rows.append(("Rare events", f"{tail[0].upper()}{tail[1:]}."))
    return rows


def _figure(
    draw: "Callable[[Axes, Any], None]", shown: object, title: str, description: str, caption: str, **points: float
) -> list[Piece]:
    """A figure with a caption; `title` and `description` are for screen readers; `points` go to `plots.svg`."""
    return [{"figure": plots.svg(draw, shown, title, description, **points), "caption": caption}]


def _figures(result: Shown) -> list[Piece]:
    """The figures of a result."""
    description = "The tables have its numbers."
    match result:
        case Curve():
            text = "p-value against the tested value, a line an ε of the mechanism; below 0.05 the value is doubtful."
            return _figure(plots.draw_curve, result, text, description, text, height=260)
        case Profile():
            band = "Lower band of the privacy profile δ(ε); the shaded part is excluded."
            power = "Upper band of the trade-off function of tests; the shaded part is excluded."
            return [
                *_figure(plots.draw_profile, result, band, description, band, height=260),
                *_figure(plots.draw_trade_off, result, power, description, power, height=260),
            ]
        case _:
            return [*_rates(result), *_outputs(result)]


def _rates(result: Verdict | Bound) -> list[Piece]:
    """The figure of the event's rates on both inputs; no piece without runs."""
    witness = result.witness
    if not result.counts.runs:
        return []
    texts = [f"on {name} in {rate}" for name, rate in zip(("D", "D′"), witness.rates, strict=True)]
    if result.tested:
        texts.append(f"at the rate seen on D′ the claim allows {witness.claim.largest(witness.shares[1]):.4g} on D")
    title = f"How often the event was seen in {result.counts.runs:,} runs on each input"
    caption = f"{title}. Lines on the bars: 95 % intervals (Clopper–Pearson) for a fixed number of runs."
    return _figure(plots.draw_rates, result, title, f"{'; '.join(texts)}.", caption, left=95)


def _outputs(result: Verdict | Bound) -> list[Piece]:
    """The figure of the event's value on both inputs; a sentence for an event of several values."""
    event, course = result.witness.event, result.course
    legend = "In colour: on D; grey: on D′; shaded: the event."
    if is_partition(event):
        if not result.counts.cells:
            return []
        description = f"The event is made of {sum(event.inside)} of {len(event.inside)} cells, which are shaded."
        return _figure(
            plots.draw_cells, result.witness, "Both output distributions over the cells", description, legend, bottom=20
        )
    if course is None:
        return []
    if (shown := course.outputs) is None:
        several = statistic_of(event) is None and outcomes_of(event) is None
        text = "The event looks at several values at once: no distribution of one is drawn."
        return [{"text": text}] if several else []
    sides = (shown.on_data, shown.on_neighbour)
    left = [shown.runs - sum(side) for side in sides]
    others = f" Not drawn are other values: {left[0]:,} on D, {left[1]:,} on D′." if any(left) else ""
    runs = f"{shown.runs:,} runs on each input, drawn for illustration; the verdict does not use them."
    shares = [sum(n for n, one in zip(side, shown.inside, strict=True) if one) / shown.runs for side in sides]
    description = (
        f"Of {shown.runs:,} runs on each input {shares[0]:.3g} on D and {shares[1]:.3g} on D′ lie in bins of the "
        f"event, which are shaded: {sum(shown.inside)} of {len(shown.inside)} bins."
    )
    title = f"Both distributions of: {readable(shown.statistic, NAME_CHARACTERS)}"
    points = {"left": 50 if shown.values else 32, "bottom": 44 if shown.date_unit else 32}
    figure = _figure(plots.draw_outputs, shown, title, description, f"{legend} {runs}{others}", **points)
    if plots.values_fit(shown):
        return figure
    rows = [
        (f"{number}", readable(text, NAME_CHARACTERS) + " (in the event)" * inside, f"{a:,}", f"{b:,}")
        for number, (text, inside, a, b) in enumerate(zip(shown.values, shown.inside, *sides, strict=True), 1)
    ]
    return [*figure, *_table("Runs with each value", rows, head=("", "Value", "D", "D′"), look="numbers")]


def _plotted_numbers(result: Shown) -> list[Piece]:
    """The numbers of the figure of a curve or a profile."""
    if isinstance(result, Curve):
        head = [f"test {result.parameter}", *(f"p at ε = {line.epsilon:g}" for line in result.lines)]
        tested = result.lines[0].test_epsilons
        rows = [[f"{test:g}", *(p_value(line.p_values[k]) for line in result.lines)] for k, test in enumerate(tested)]
        return _table("p-values; a small p-value speaks against the tested value", rows, head=head, look="numbers")
    if not isinstance(result, Profile):
        return []
    points = np.linspace(0.0, result.largest_epsilon, 11) if result.largest_epsilon else np.zeros(1)
    deltas = np.atleast_1d(result.delta(points))
    band = [[f"{at:.3g}", at_least(delta, 3)] for at, delta in zip(points, deltas, strict=True)]
    rates = [[f"{at:g}", at_least(result.power(at), 3)] for at in SHOWN_RATES]
    return [
        *_table("Lower band of the privacy profile", band, head=("ε", "δ(ε) ≥"), look="numbers"),
        *_table("Power of tests", rates, head=("false positive rate", "true positive rate ≥"), look="numbers"),
    ]


def _evidence(result: Shown) -> list[Piece]:
    if not isinstance(result, Verdict):
        return []
    needed, last = math.log(1 / result.alpha), f"{result.log_e_value:.1f}".replace("-", "−")
    drawn_over_runs = result.course is not None and bool(result.course.evidence)
    title = "Evidence against runs" if drawn_over_runs else "Evidence against the claim"
    description = f"The log e-value is {last} at the end of the runs; {needed:.1f} refutes the claim."
    over = "Log e-value over the runs, in nats" if drawn_over_runs else "Log e-value at the end of the runs, in nats"
    least = at_most(result.p_value, 3) if result.p_value else "1e-300"
    caption = f"{over}; in the end p ≤ {least}, valid however the runs were stopped."
    return _figure(plots.draw_evidence, result, title, description, caption)


def _inputs(result: Shown) -> list[Piece]:
    """The two inputs with their difference marked."""
    if result.witness is not None:
        first, second = marked(result.witness.pair)
    elif isinstance(result, Profile):
        first, second = marked(result.pair)
    else:
        return []
    return _table("What differs is underlined", [("Input D", first), ("Neighbour D′", second)], look="inputs")


def marked(pair: Pair) -> tuple[Sequence[Span], Sequence[Span]]:
    """Both inputs as text; differing entries are marked if both inputs are short, else the difference is described."""
    texts = both(pair.data, pair.neighbour)
    # The entries, and the characters between entries.
    entries = [re.findall(r"(?s)[^\s,\[\](){}]+|\s+|.", text) for text in texts]
    if (summary(pair.data), summary(pair.neighbour)) != texts or max(map(len, entries)) > 400:
        return [("", texts[0])], [("", texts[1])]
    first, second = [], []
    for kind, *ends in SequenceMatcher(a=entries[0], b=entries[1], autojunk=False).get_opcodes():
        element = "" if kind == "equal" else "mark"
        first.append((element, "".join(entries[0][ends[0] : ends[1]])))
        second.append((element, "".join(entries[1][ends[2] : ends[3]])))
    return first, second


def _witness(result: Shown, replay: str | None, part: str = "") -> list[Piece]:
    """The witness in words, and the command that counts its event on fresh runs.

    `replay`: the command; if empty, the witness of the result's `part` is saved first; None shows no command.
    """
    witness = result.witness
    if witness is None:
        return []
    rows: list[tuple[str, Cell]] = [
        ("Event", witness.description),
        ("On D", witness.rates[0]),
        ("On D′", witness.rates[1]),
    ]
    if comparison := witness.comparison(tested=not isinstance(result, Bound)):
        rows.append(("Claim", comparison))
    if witness.explanation is not None:
        rows.append(("Where in the code", f"{witness.explanation} ({witness.explanation.basis})"))
    if replay:
        rows.append(("Replay", [("code", replay)]))
    elif replay is not None:
        saving, line = f'{part}.witness.save("witness.json")', replay_line(witness, "witness.json")
        rows.append(("Replay", [("", "after "), ("code", saving), ("", ": "), ("code", line)]))
    return _table("An event, and how often each input was seen in it", rows)


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


def _bits(result: Shown, replay: str) -> list[Piece]:
    """The finding of a pass by the last bits of its outcomes; empty without such a finding."""
    by_bits = result.floating_point if isinstance(result, NotRefuted) else None
    if by_bits is None:
        return []
    sentence: Piece = {"sentence": _verdict(by_bits)["sentence"]}
    return [sentence, *_figures(by_bits), *_inputs(by_bits), *_witness(by_bits, replay, ".floating_point")]


def _other_verdicts(result: Shown) -> tuple[Verdict, ...]:
    return result.others if isinstance(result, Verdict) else ()
