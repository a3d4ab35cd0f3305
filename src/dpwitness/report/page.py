"""A result, or several, as one HTML page that needs nothing else: no network, no script, pictures within it."""

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

import numpy as np

from dpwitness.events import is_partition, outcomes_of, statistic_of
from dpwitness.mechanisms.catalog import PROGRAM_PREFIX, registered
from dpwitness.neighbours import Pair
from dpwitness.neighbours.difference import both, summary
from dpwitness.neighbours.pair import ATTACK
from dpwitness.report import figures
from dpwitness.report.markup import LONGEST_NAME, Child, Markup, element, join, name, own, readable, table
from dpwitness.report.nist import Shown, fields
from dpwitness.report.style import COMMON, PAGE
from dpwitness.results.bound import Bound
from dpwitness.results.curve import Curve
from dpwitness.results.profile import SHOWN_RATES, Profile
from dpwitness.results.text import UNKNOWN, at_least, at_most, confidence, p_value, relation_text
from dpwitness.results.verdict import EARLY_ENDS, SUFFICIENT_ENDS, Course, NotRefuted, Verdict, Violation
from dpwitness.results.witness import Witness

#: A larger α is warned of.
LARGE_ALPHA: Final = 0.01
#: Entries of an input that are compared one by one.
COMPARED: Final = 400
#: What a text of an input is made of: entries, and what stands between them.
ENTRY: Final = re.compile(r"[^\s,\[\](){}]+|\s+|.", re.DOTALL)
#: Values of a curve in its table, and of a band.
ROWS: Final = 200
POINTS: Final = 11
#: Outcomes in the order in which they are counted.
ORDER: Final = ("violated", "no verdict", "not refuted", "lower bound", "privacy profile", "curve")
#: Why runs ended, for people.
ENDED: Final = {
    "refuted": "the claim was refuted",
    "runs": "all runs that were asked for were made",
    **EARLY_ENDS,
    **SUFFICIENT_ENDS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A result for a page; `result` None: there is none, for `reason`. `facts`: further ones, such as the test's name.

    `replay`: the command that counts it again; empty where nothing is saved yet. `of_bits`: it counts what the
    last bits of a pass show, and not the best candidate.
    """

    name: str
    result: Shown | None
    replay: str = ""
    of_bits: bool = False
    reason: str = ""
    facts: tuple[tuple[str, str], ...] = ()


def page(entries: Sequence[Entry], *, facts: Sequence[tuple[str, str]] = ()) -> str:
    """The page of some results, with `facts` about all of them; text of a whole HTML file."""
    articles = [_article(entry, f"result-{number}") for number, entry in enumerate(entries, 1)]
    many = f"Privacy tests: {_tally(entries) or 'none'}"
    title = f"{_outcome(entries[0])}: {entries[0].name}" if len(entries) == 1 else many
    overview = None
    if len(entries) != 1:
        rows = [
            (element("a", name(entry.name), href=f"#result-{number}"), _word(entry))
            for number, entry in enumerate(entries, 1)
        ]
        overview = element(
            "nav",
            table(("Result", "Outcome"), rows, caption=_tally(entries) or "Nothing was tested"),
            aria_label="Results",
        )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{readable(title, LONGEST_NAME)} · dpwitness"),
        element("style", Markup(COMMON + PAGE)),
    )
    top = element("header", element("h1", "dpwitness: a test of differential privacy"))
    session = table((), facts, caption="All results") if facts else None
    body = element("body", element("div", top, element("main", session, overview, articles), class_="dpw"))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def page_of(result: Shown) -> str:
    """The page of one result."""
    return page([Entry(name=result.call, result=result)])


def block(result: Shown) -> str:
    """A compact block of a result for a notebook: what was found, the main numbers, the first figure."""
    left_out = ("Pair chosen", "End of the runs", "Time")
    rows = [row for row in (*_bounds(result), *_searched(result)) if row[0] not in left_out]
    content = _headline(result), _table(rows, "In numbers"), _pictures(result)[:1]
    return element(
        "div", element("style", Markup(COMMON)), element("div", content, class_=_colour(result)), class_="dpw"
    )


def _outcome(entry: Entry) -> str:
    match entry.result:
        case None:
            return "No verdict"
        case Violation():
            return "Violated"
        case NotRefuted():
            return "Not refuted"
        case Profile() as profile if profile.claim is not None:
            return "Violated" if profile.refuted else "Not refuted"
        case Profile():
            return "Privacy profile"
        case Bound():
            return "Lower bound"
        case Curve():
            return "Curve"


def _word(entry: Entry) -> Markup:
    """The outcome in its colour."""
    colour = None if entry.result is None else _colour(entry.result)
    return element("span", element("strong", _outcome(entry)), class_=colour)


def _tally(entries: Sequence[Entry]) -> str:
    found = [_outcome(entry).lower() for entry in entries]
    return ", ".join(f"{found.count(one)} {one}" for one in sorted(set(found), key=ORDER.index))


def _article(entry: Entry, place: str) -> Markup:
    """One result, in the order in which an auditor asks."""
    result = entry.result
    if result is None:
        warning = element("section", element("h3", "Without a verdict"), element("p", entry.reason), class_="warnings")
        return element("article", element("h2", name(entry.name)), warning, _table(entry.facts, "Facts"), id_=place)
    pieces = {
        "Claim": _table([*entry.facts, *_facts(result)], "What was tested, and how"),
        "Search": _table(_searched(result), "What was searched"),
        "Bounds": _table(_bounds(result), "What was shown, and what would have been"),
        "Outputs": join(_pictures(result), _numbers(result)),
        "Evidence": _evidence(result),
        "Inputs": _inputs(result),
        "Witness": _witness(result, None if entry.of_bits else entry.replay),
        "Floating point": _bits(result, entry.replay),
        "Limits": _list(_limits(result)),
        "Appendix": fields(result),
    }
    titles = {
        "Outputs": "Outputs on both inputs" if isinstance(result, Verdict | Bound) else "Plot and numbers",
        "Limits": "What this does not show",
        "Appendix": "Appendix: fields of NIST SP 800-226",
        "Inputs": "The two inputs",
        "Witness": "The witness" if _refuted(result) else "The best candidate",
        "Claim": "Claim and mechanism",
    }
    shown = {key: piece for key, piece in pieces.items() if piece}
    sections = [
        element("section", element("h3", titles.get(key, key)), piece, id_=_id(place, key))
        for key, piece in shown.items()
    ]
    links = (element("li", element("a", key, href=f"#{_id(place, key)}")) for key in shown)
    return element(
        "article",
        element("h2", name(entry.name)),
        _warnings(result),
        _headline(result),
        element("nav", element("ul", links), aria_label=f"Sections of {readable(entry.name, LONGEST_NAME)}"),
        sections,
        map(_other, _others(result)),
        id_=place,
        class_=_colour(result),
    )


def _id(place: str, key: str) -> str:
    return f"{place}-{key.lower().replace(' ', '-')}"


def _table(rows: Sequence[tuple[str, Child]], caption: str) -> Markup:
    return table((), rows, caption=caption) if rows else Markup()


def _refuted(result: Shown) -> bool:
    return isinstance(result, Violation) or (isinstance(result, Profile) and result.refuted)


def _colour(result: Shown) -> str | None:
    if _refuted(result):
        return "violated"
    claimed = isinstance(result, NotRefuted) or (isinstance(result, Profile) and result.claim is not None)
    return "not-refuted" if claimed else None


def _headline(result: Shown) -> Markup:
    """The result in one sentence."""
    word = _word(Entry(name="", result=result))
    return element("p", word, ". ", _sentence(result), class_=f"headline {_colour(result) or ''}".strip())


def _sentence(result: Shown) -> Child:
    call = name(result.call)
    match result:
        case Violation():
            by = " by the last bits of its floating-point outcomes" if result.by_bits else ""
            sure = f"with confidence {confidence(result.alpha)}"
            return [call, f" is not {result.claim.short}{by}: {result.exceeded} {sure}."]
        case NotRefuted():
            said = f"{result.sentence[0].upper()}{result.sentence[1:]}. This is no proof of privacy."
            return [call, f" was tested against the claim {result.claim}. {said}"]
        case Bound():
            least, sure = at_least(result.lower_bound), confidence(result.alpha)
            return [call, f" has {result.parameter} ≥ {least}{result.condition} with confidence {sure}."]
        case Profile():
            if result.claim is None:
                sure = f"at all ε at once, with confidence {confidence(result.alpha)}."
                return ["δ(ε) of ", call, f" is at least the band, {sure}"]
            if result.refuted:
                sure = f"its profile lies above the claim's, with confidence {confidence(result.alpha)}."
                return [call, f" is not {result.claim.short}: {sure}"]
            return [call, f" was tested against the claim {result.claim}. This is no proof of privacy."]
        case Curve():
            values = f"{len(result.lines[0].test_epsilons)} values of {result.parameter}"
            return ["p-values of ", call, f" against {values}."]


def _warnings(result: Shown) -> Markup:
    """What can make the result meaningless, before all else."""
    texts: list[Child] = []
    if isinstance(result, NotRefuted) and not math.isfinite(result.detectable):
        texts.append("So few runs fell into the event that no violation would have been caught: this says nothing.")
    if isinstance(result, NotRefuted) and result.floating_point is not None:
        texts.append(
            f"Floating point: the last bits of the outcomes refute the claim ({result.floating_point.exceeded}). The "
            "verdict below is that in real arithmetic."
        )
    if result.ended in EARLY_ENDS:
        texts.append(f"The runs ended early: {EARLY_ENDS[result.ended]}. What was counted until then is valid.")
    if not isinstance(result, Curve):
        if result.alpha > LARGE_ALPHA:
            texts.append(f"α = {result.alpha:g}: so often such a finding is wrong although the claim holds.")
        if result.witness is not None and result.witness.relation is None:
            texts.append("The relation is not known: nothing here says that the two inputs are neighbours.")
    if not result.reproducible:
        own_randomness = "The mechanism draws its own randomness: a seed cannot reproduce these counts"
        said = own_randomness if result.witness is None else result.witness.not_reproducible
        texts.append(f"{said[0].upper()}{said[1:]}.")
    texts += [own(note) for note in result.notes]
    if not texts:
        return Markup()
    return element("section", element("h3", "Read this first"), _list(texts), class_="warnings")


def _list(texts: Sequence[Child]) -> Markup:
    return element("ul", (element("li", text) for text in texts))


def _facts(result: Shown) -> list[tuple[str, Child]]:
    """What was tested: claim, adjacency, mechanism, versions, seed and α."""
    witness = result.witness
    claim = None if isinstance(result, Bound) else result.claim
    rows: list[tuple[str, Child]] = [("Claim", "none was tested" if claim is None else own(str(claim)))]
    if witness is not None:
        rows.append(("Adjacency", own(UNKNOWN if witness.relation is None else f"{witness.relation.described:.200}")))
    rows += [("Mechanism", own(result.mechanism))]
    rows += [(f"Parameter {readable(key, LONGEST_NAME)}", own(str(value))) for key, value in result.parameters.items()]
    if not isinstance(result, Curve):
        rows.append(("False alarms", _alpha(result)))
        rows.append(("Versions", ", ".join(f"{package} {version}" for package, version in result.versions.items())))
    rows.append(("Seed", f"{result.seed}"))
    return rows


def _alpha(result: Verdict | Bound | Profile) -> str:
    """The probability of a false alarm, and for what it was spent."""
    spent = [f"α = {result.alpha:g} for this result"]
    if isinstance(result, NotRefuted) and result.floating_point is not None:
        spent.append(f"{result.floating_point.alpha:g} for the last bits")
    spent += [f"{other.alpha:g} under another relation" for other in _others(result)]
    return "; ".join(spent)


def _searched(result: Shown) -> list[tuple[str, Child]]:
    """Pairs, events and runs."""
    if isinstance(result, Curve):
        rows: list[tuple[str, Child]] = []
        for line in result.lines:
            made = f"{line.run_counts.search:,} search, {line.run_counts.confirm:,} tested"
            rows.append((f"Runs at ε = {line.epsilon:g}", made))
        return [*rows, ("Time", f"{result.seconds:.1f} s")]
    pair = result.pair if isinstance(result, Profile) else result.witness.pair
    attack = pair.label.removeprefix(ATTACK)
    rows = [("Pair chosen", own(attack if attack == pair.label else f"by an attack: {attack}"))]
    if isinstance(result, Profile):
        rows.append(("Events", f"{len(result.events)} in the band"))
    else:
        rows.append(("Event chosen", own(result.witness.description)))
    course = None if isinstance(result, Profile) else result.course
    if course is not None:
        rows.append(("Tried", _tried(course)))
    runs = result.run_counts
    fresh = f"{runs.search:,} to search; {runs.confirm:,} to confirm on fresh runs"
    since = f"{runs.confirm:,} since the event was chosen"
    epochs = f"{runs.epochs or 0:,} in epochs, each bet on before it was made; {since}"
    rows.append(("Paired runs", epochs if runs.epochs else fresh))
    rows.append(("End of the runs", ENDED.get(result.ended, result.ended)))
    rows.append(("Time", f"{result.seconds:.1f} s"))
    return rows


def _tried(course: Course) -> str:
    """How much was searched."""
    if not course.pairs:
        return "nothing: pair and event were given"
    pairs = "1 pair of inputs" if course.pairs == 1 else f"{course.pairs:,} pairs of inputs"
    events = "1 event" if course.events == 1 else f"{course.events:,} events"
    return f"{pairs}; {events} compared, most of them the best of all cuts, sets or scores of one kind"


def _bounds(result: Shown) -> list[tuple[str, Child]]:
    """Lower bounds, and what would have been caught."""
    rows: list[tuple[str, Child]] = []
    if isinstance(result, Verdict | Bound):
        sure = f"with confidence {confidence(result.alpha)}"
        least = f"{result.parameter} ≥ {at_least(result.lower_bound)}"
        rows.append(("Lower bound", f"{result.exceeded if isinstance(result, Violation) else least} {sure}"))
    if isinstance(result, Verdict):
        rows.insert(0, ("Claimed", own(str(result.claim))))
    if isinstance(result, NotRefuted):
        rows.append(("Would have caught", f"by this event {result.caught} {result.power}"))
    if isinstance(result, NotRefuted | Profile) and (tail := result.tail):
        rows.append(("Rare events", f"{tail[0].upper()}{tail[1:]}."))
    return rows


def _pictures(result: Shown) -> list[Markup]:
    """The figures of a result."""
    if isinstance(result, Profile | Curve):
        from dpwitness.report.plots import pictures  # matplotlib takes 0.3 s

        return [_figure(drawn, text) for drawn, text in pictures(result)]
    counts, witness = result.counts, result.witness
    interval = "Lines on the bars: 95 % intervals (Clopper–Pearson) for a fixed number of runs."
    return [
        _figure(figures.event_rates(witness, tested=result.tested), "How often the event was seen. ", interval),
        _figure(figures.cells(counts, witness.event), "In colour: on D; grey: on D′; shaded: the event."),
        *_outputs(result),
    ]


def _outputs(result: Verdict | Bound) -> list[Markup]:
    """Both distributions of what the event looks at; where it looks at several values, that it does."""
    event, course = result.witness.event, result.course
    if course is None or is_partition(event):
        return []
    if (shown := course.outputs) is not None:
        left = [shown.runs - sum(side) for side in (shown.on_data, shown.on_neighbour)]
        others = f" Not drawn are other values: {left[0]:,} on D, {left[1]:,} on D′." if any(left) else ""
        runs = f"{shown.runs:,} runs on each input, for the eye: the verdict does not rest on them."
        drawn = _figure(figures.outputs(shown), f"In colour: on D; grey: on D′; shaded: the event. {runs}{others}")
        if figures.fits(shown):
            return [drawn]
        rows = [
            (f"{number}", [own(text, LONGEST_NAME), " (in the event)" if inside else None], f"{a:,}", f"{b:,}")
            for number, (text, inside, a, b) in enumerate(
                zip(shown.values, shown.inside, shown.on_data, shown.on_neighbour, strict=True), 1
            )
        ]
        return [drawn, table(("", "Value", "D", "D′"), rows, caption="Runs with each value", class_="numbers")]
    if statistic_of(event) is None and outcomes_of(event) is None:
        return [element("p", "The event looks at several values at once: no distribution of one is drawn.")]
    return []


def _numbers(result: Shown) -> Markup:
    """The numbers of a plot."""
    if not isinstance(result, Curve | Profile):
        return Markup()
    if isinstance(result, Curve):
        head = [f"test {result.parameter}", *(f"p at ε = {line.epsilon:g}" for line in result.lines)]
        rows = [
            [f"{test:g}", *(p_value(line.p_values[k]) for line in result.lines)]
            for k, test in enumerate(result.lines[0].test_epsilons[:ROWS])
        ]
        left = len(result.lines[0].test_epsilons) - len(rows)
        caption = (
            f"p-values; a small one speaks against the tested value{f' ({left:,} more are left out)' if left else ''}"
        )
        return table(head, rows, caption=caption, class_="numbers")
    points = np.linspace(0.0, result.largest_epsilon, POINTS) if result.largest_epsilon else np.zeros(1)
    band = [
        [f"{at:.3g}", at_least(delta, 3)] for at, delta in zip(points, np.atleast_1d(result.delta(points)), strict=True)
    ]
    rates = [[f"{at:g}", at_least(result.power(at), 3)] for at in SHOWN_RATES]
    return join(
        table(("ε", "δ(ε) ≥"), band, caption="Lower band of the privacy profile", class_="numbers"),
        table(("false positive rate", "true positive rate ≥"), rates, caption="Power of tests", class_="numbers"),
    )


def _figure(drawing: Markup, *caption: Child) -> Markup:
    return element("figure", drawing, element("figcaption", caption)) if drawing else Markup()


def _evidence(result: Shown) -> Markup:
    if not isinstance(result, Verdict):
        return Markup()
    needed = math.log(1 / result.alpha)
    least = at_most(result.p_value, 3) if result.p_value else "1e-300"
    points = () if result.course is None else result.course.evidence
    drawn = figures.evidence(result.log_e_value, needed, points)
    over = "Log e-value over the runs, in nats" if points else "Log e-value at the end of the runs, in nats"
    return _figure(drawn, f"{over}; in the end p ≤ {least}, valid however the runs were stopped.")


def _inputs(result: Shown) -> Markup:
    """The two inputs with their difference marked."""
    if isinstance(result, Curve):
        return Markup()
    pair = result.pair if isinstance(result, Profile) and result.witness is None else _pair(result)
    first, second = marked(pair)
    return table((), [("Input D", first), ("Neighbour D′", second)], caption="What differs is underlined")


def _pair(result: Verdict | Bound | Profile) -> Pair:
    witness = result.witness
    assert witness is not None
    return witness.pair


def marked(pair: Pair) -> tuple[Markup, Markup]:
    """Both inputs as text; where both are short, the entries that differ are marked, else what differs is said."""
    first, second = both(pair.data, pair.neighbour)
    whole = (summary(pair.data), summary(pair.neighbour)) == (first, second)
    entries = [ENTRY.findall(text) for text in (first, second)]
    if not whole or max(map(len, entries)) > COMPARED:
        return element("code", own(first)), element("code", own(second))
    if len(entries[0]) == len(entries[1]):
        differing = [[k for k, (a, b) in enumerate(zip(*entries, strict=True)) if a != b]] * 2
    else:
        codes = SequenceMatcher(a=entries[0], b=entries[1], autojunk=False).get_opcodes()
        changes = [change for kind, *change in codes if kind != "equal"]
        differing = [[k for change in changes for k in range(change[i], change[i + 1])] for i in (0, 2)]
    return _with_marks(entries[0], set(differing[0])), _with_marks(entries[1], set(differing[1]))


def _with_marks(entries: Sequence[str], differing: set[int]) -> Markup:
    pieces = (element("mark", text) if k in differing else text for k, text in enumerate(entries))
    return element("code", element("bdi", pieces))


def _witness(result: Shown, replay: str | None, part: str = "") -> Markup:
    """The witness in words, and the command that counts it on fresh runs.

    `replay`: the command; where it is empty the witness is saved first, that of such a part of the result; None: none.
    """
    witness = result.witness
    if witness is None:
        return Markup()
    rows: list[tuple[str, Child]] = [
        ("Event", own(witness.description)),
        ("On D", witness.rates[0]),
        ("On D′", witness.rates[1]),
    ]
    if comparison := witness.comparison(tested=not isinstance(result, Bound)):
        rows.append(("Claim", comparison))
    if witness.explanation is not None:
        rows.append(("Where in the code", own(f"{witness.explanation} ({witness.explanation.basis})")))
    if replay:
        rows.append(("Replay", element("code", replay)))
    elif replay is not None:
        saving, line = f'{part}.witness.save("witness.json")', replay_line(witness, "witness.json")
        rows.append(("Replay", ["after ", element("code", saving), ": ", element("code", line)]))
    return table((), rows, caption="An event, and how often each input was seen in it")


def replay_line(witness: Witness, file: str) -> str:
    """The command that counts a saved witness on fresh runs."""
    line = ["dpwitness", "replay", file]
    if witness.mechanism.startswith(PROGRAM_PREFIX):
        line += ["--command", witness.mechanism.removeprefix(PROGRAM_PREFIX)]
    elif witness.mechanism not in registered():
        line += ["--mechanism", witness.mechanism]
    for option in ("python", "outcome", "errors"):
        if (value := getattr(witness, option)) is not None:
            line += [f"--{option}", value]
    return shlex.join(line)


def _bits(result: Shown, replay: str) -> Markup:
    """What the last bits show, below a pass."""
    by_bits = result.floating_point if isinstance(result, NotRefuted) else None
    if by_bits is None:
        return Markup()
    headline = element("p", _sentence(by_bits))
    witness = _witness(by_bits, replay, ".floating_point")
    return element("div", headline, _pictures(by_bits), _inputs(by_bits), witness, class_="violated")


def _others(result: Shown) -> tuple[Verdict, ...]:
    return result.others if isinstance(result, Verdict) else ()


def _other(result: Verdict) -> Markup:
    """A verdict under another relation."""
    return element(
        "section",
        element("h2", f"Under {relation_text(result.witness.relation)}"),
        [_warnings(result), _headline(result), _table(_bounds(result), "Bounds"), _pictures(result), _inputs(result)],
        class_=_colour(result),
    )


def _limits(result: Shown) -> list[str]:
    """What a reader might take it for, and what it is not."""
    texts = []
    if _refuted(result):
        texts.append("How large the violation is: the bound is of one event on one pair of inputs, and may be larger.")
        texts.append(
            "Whether the adjacency is the one that the claim means: under another one the claim may hold. Compare it "
            "with what the mechanism's documentation says."
        )
    else:
        texts.append("That the mechanism is private: other events or inputs may show a violation.")
        texts.append("Events that are too rare to be seen in so many runs.")
    texts.append("Other parameters, other versions, and other code around the mechanism.")
    texts.append("Side channels: how long a run takes, how much memory it needs, what it logs.")
    texts.append("Several releases from the same data, unless the tested function makes all of them.")
    texts.append("Runs are taken to be independent of each other; what keeps something between runs breaks this.")
    return texts
