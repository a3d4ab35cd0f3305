"""Pages of results: what stands in them, in which order, and that no text of a user's becomes markup."""

import datetime
import html
import io
import json
import re
import shlex
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from report_pages import HOSTILE, hostile, huge, results

import dpwitness as dpw
from dpwitness.cli import main
from dpwitness.errors import UnknownTarget
from dpwitness.mechanisms.catalog import load_code
from dpwitness.neighbours.pair import Pair
from dpwitness.problem import HowRun, Statement
from dpwitness.report import plots
from dpwitness.report.files import report, session_page
from dpwitness.report.page import TEXT_CHARACTERS, Entry, marked, page, replay_line
from dpwitness.results.saved import result_from_json
from dpwitness.results.text import at_least
from dpwitness.results.verdict import Outputs
from running import sampled

KINDS = ("violation", "pass", "cells", "bound", "curve", "profile")
LONG = pytest.mark.campaign
#: Elements of pages that have no end tag in HTML, or that end themselves in SVG.
VOID = {"meta", "br", "col"}


class Reader(HTMLParser):
    """The elements of a page with their attributes, and its text; raises where tags do not match."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(params=KINDS)
def result(request):
    return results()[request.param]


def test_a_page_stands_alone(result):
    text = result.to_html()
    read = Reader(text)
    assert text.startswith("<!DOCTYPE html>")
    assert not {"script", "link", "img", "iframe", "object", "embed"} & {tag for tag, _ in read.elements}
    for _, attributes in read.elements:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href"):
            assert attributes.get(name, "#").startswith("#")
    outside = re.sub(r'xmlns(:xlink)?="[^"]*"', "", text)  # names, not addresses
    assert not re.search(r"https?:|@import|url\((?!#)", outside)


def test_every_figure_and_table_says_what_it_is(result):
    read = Reader(result.to_html())
    names = [attributes["id"] for _, attributes in read.elements if attributes.get("id")]
    assert len(names) == len(set(names))
    drawings = read.all("svg")
    assert drawings
    for drawing in drawings:
        assert drawing["role"] == "img"
        assert drawing["aria-label"]
    assert len(read.all("caption")) == len(read.all("table"))
    assert {attributes.get("scope") for attributes in read.all("th")} <= {"row", "col"}
    targets = {link["href"][1:] for link in read.all("a")}
    assert targets <= set(names)


def test_warnings_come_first_then_the_verdict_then_the_claim():
    text = hostile().to_html()
    headings = re.findall(r"<h3>(.*?)</h3>", text)
    assert headings == [
        "Read this first", "Claim and mechanism", "Search", "Bounds", "Outputs on both inputs", "Evidence",
        "The two inputs", "The witness", "What this does not show", "Appendix: fields of NIST SP 800-226",
    ]  # fmt: skip
    shown = text[text.index("<article") :]
    warnings = ("The runs ended early", "draws its own randomness")
    places = [shown.index(part) for part in (*warnings, 'class="headline', "Claim and mechanism")]
    assert places == sorted(places)


def test_numbers_of_a_violation_are_those_of_the_result():
    found = results()["violation"]
    text = Reader(found.to_html()).text
    counts = found.counts
    assert f"ε ≥ {at_least(found.lower_bound)} with confidence 99.9999 %" in text
    assert f"{counts.hits:,} of {counts.runs:,} runs" in text
    assert f"{found.seed}" in text
    assert "α = 1e-06" in text
    for name, version in found.versions.items():
        assert f"{name} {version}" in text
    assert "dpwitness replay witness.json --mechanism" in text


def test_a_pass_says_what_it_would_have_caught_and_that_it_is_no_proof():
    found = results()["pass"]
    assert isinstance(found, dpw.NotRefuted)
    text = Reader(found.to_html()).text
    assert "Not refuted" in text
    assert f"would have caught {found.caught} with 95 % power" in text
    assert "no proof of privacy" in text


@pytest.mark.parametrize("kind", ["pass", "profile"])
def test_a_page_says_the_sentence_on_rare_events_that_the_text_says(kind):
    found = results()[kind]
    if kind == "pass":
        found = replace(found, claim=dpw.ApproxDP(1.0, 1e-5))
    says = found.tail
    assert says in " ".join(str(found).split())
    assert says[0].upper() + says[1:] + "." in Reader(found.to_html()).text


def axes_of(draw, shown):
    """The axes of a figure that a page shows."""
    _, axes = plots.page_axes(left=32, bottom=44, height=144)
    draw(axes, shown)
    return axes


def sides(axes):
    """The heights of the columns of D and of D′ in each bin, and the number of shaded bins."""
    on_data, on_neighbour, shaded = ([h for h in columns.get_data().values if h >= 0] for columns in axes.patches)
    return on_data, on_neighbour, len(shaded)


def test_cells_are_drawn_with_the_event_marked():
    found = results()["cells"]
    inside = found.witness.event.inside
    assert 0 < sum(inside) < len(inside)
    on_data, on_neighbour, shaded = sides(axes_of(plots.draw_cells, found.witness))
    assert shaded == sum(inside)
    assert sum(on_data) == pytest.approx(1)
    assert sum(h for h, event in zip(on_data, inside, strict=True) if event) == pytest.approx(found.witness.shares[0])
    assert sum(h for h, event in zip(on_neighbour, inside, strict=True) if event) == pytest.approx(
        found.witness.shares[1]
    )
    drawing(found.to_html(), "Both output distributions")


def drawing(text, title):
    """The one figure whose title begins so."""
    found = [one for one in re.findall(r"<svg.*?</svg>", text, re.DOTALL) if f"<title>{title}" in one]
    assert len(found) == 1
    return found[0]


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["violation", "pass", "bound"])
def test_distributions_of_what_an_event_looks_at_are_drawn_with_the_event_marked(kind):
    found = results()[kind]
    shown = found.course.outputs
    drawn = drawing(found.to_html(), "Both distributions of: output")
    on_data, on_neighbour, shaded = sides(axes_of(plots.draw_outputs, shown))
    assert shaded == sum(shown.inside) > 0
    assert max(on_data) > 0
    assert max(on_neighbour) > 0
    share = sum(n for n, inside in zip(shown.on_data, shown.inside, strict=True) if inside) / shown.runs
    assert f"{share:.3g} on D and" in Reader(drawn).text


def test_values_without_room_below_their_bins_are_listed_and_text_stays_text():
    found = results()["violation"]
    bins = {"inside": (True, False), "on_data": (8, 2), "on_neighbour": (1, 9), "runs": 10}
    for values, listed in ((("<b>a</b>" * 20, HOSTILE), True), (("0", "1"), False)):
        course = replace(found.course, outputs=Outputs(statistic=HOSTILE, values=values, **bins))
        text = replace(found, course=course).to_html()
        read = Reader(text)
        assert ("Runs with each value" in read.text) == listed
        assert "b" not in {tag for tag, _ in read.elements}
        drawing(text, "Both distributions of: ")


def test_one_bin_far_above_all_others_is_cut_off_and_its_shares_are_said():
    found = results()["violation"]
    bins = {"inside": (True, False, False), "on_data": (90, 2, 3), "on_neighbour": (60, 4, 3), "runs": 100}
    shown = Outputs(statistic="output", edges=(0.0, 1.0, 2.0, 3.0), **bins)
    drawn = drawing(replace(found, course=replace(found.course, outputs=shown)).to_html(), "Both distributions")
    assert "cut off: 0.9 and 0.6" in Reader(drawn).text
    axes = axes_of(plots.draw_outputs, shown)
    assert axes.get_ylim()[1] <= 2 * max(sides(axes)[0][1:])


DAY = 86_400.0
NEW_YEAR = 1_704_067_200.0


@pytest.mark.parametrize(
    ("edges", "unit", "texts"),
    [
        ((NEW_YEAR, NEW_YEAR + 9.3 * DAY, NEW_YEAR + 30 * DAY), "s",
         {"2024-01-01", "2024-01-10 07:12:00", "2024-01-31"}),
        ((19_723.0, 19_740.5, 19_753.0), "D", {"2024-01-01", "2024-01-19", "2024-01-31"}),
        ((NEW_YEAR * 1e9, (NEW_YEAR + DAY) * 1e9, (NEW_YEAR + 2 * DAY) * 1e9), "ns",
         {"2024-01-01", "2024-01-02", "2024-01-03"}),
        ((NEW_YEAR, NEW_YEAR + 0.25, NEW_YEAR + 0.5), "s",
         {"2024-01-01", "2024-01-01 00:00:00.25", "2024-01-01 00:00:00.5"}),
        ((NEW_YEAR, NEW_YEAR + 1, NEW_YEAR + DAY), "s", {"2024-01-01", "2024-01-02"}),
        ((0.0, 1e300, 2e300), "D", {"1970-01-01", "1e+300", "2e+300"}),
    ],
)  # fmt: skip
def test_a_histogram_of_dates_has_dates_below_that_do_not_overlap(edges, unit, texts):
    bins = {"inside": (False, True), "on_data": (10, 90), "on_neighbour": (60, 40), "runs": 100}
    axes = axes_of(plots.draw_outputs, Outputs(statistic="output", edges=edges, date_unit=unit, **bins))
    axes.figure.canvas.draw()
    labels = axes.get_xticklabels()
    assert {label.get_text().replace("\n", " ") for label in labels} == texts
    spans = sorted((label.get_window_extent().x0, label.get_window_extent().x1) for label in labels)
    assert spans[0][0] >= 0
    assert spans[-1][1] <= axes.figure.bbox.x1
    assert all(end < start for (_, end), (start, _) in pairwise(spans))


@pytest.mark.parametrize("ends", [(-1.7e308, 1.7e308), (-np.inf, np.inf), (-5e-324, 5e-324)])
def test_a_histogram_of_any_range_is_drawn(ends):
    found = results()["violation"]
    bins = {"inside": (False, True), "on_data": (10, 90), "on_neighbour": (60, 40), "runs": 100}
    shown = Outputs(statistic="output", edges=(ends[0], 0.0, ends[1]), **bins)
    drawn = drawing(replace(found, course=replace(found.course, outputs=shown)).to_html(), "Both distributions")
    assert "nan" not in drawn


def month(rng, data):
    """Mid-month on one input, one of both ends on the other: no event with one end tells so much."""
    middle = rng.random() < 0.1 + 0.8 * data[0]
    return datetime.date(2024, 1, 16 if middle else 1 + 30 * int(rng.integers(2)))


def moment(rng, data):
    return datetime.datetime(2024, 1, 31, tzinfo=datetime.UTC) + datetime.timedelta(hours=1) * (data[0] + rng.laplace())


@pytest.mark.usefixtures("asked_here")  # the subject is texts
@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.campaign), 2])
def test_a_date_is_told_once_wherever_it_is_told(workers, monkeypatch):
    monkeypatch.setattr("dpwitness.api.outputs.SECONDS", 60.0)
    effort = {"runs": 2_000, "seed": 1, "workers": workers}
    pair = dpw.pairs((np.array([0.0]), np.array([1.0])))
    found = dpw.check(month, claim=1.0, neighbours=pair, **effort)
    replayed = dpw.replay(found.witness, month, **effort | {"seed": 2})
    for one in (found, replayed):
        assert one.witness.description in ("output 2024-01-16", "output from 2024-01-16 to below 2024-01-31")
        assert one.course.outputs.values == ("2024-01-01", "2024-01-16", "2024-01-31")
        for text in (str(one), Reader(one.to_html()).text, json.dumps(one.to_json())):
            assert not re.search(r"\(2024|2024-01-\d\d, 2024|1\.70\d+e", text)


@pytest.mark.usefixtures("asked_here")  # the subject is a figure
@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
def test_the_axis_of_a_datetime_has_times_of_the_day_or_dates(monkeypatch):
    monkeypatch.setattr("dpwitness.api.outputs.SECONDS", 60.0)
    pair = dpw.pairs((np.array([0.0]), np.array([9.0])))
    found = dpw.check(moment, claim=0.1, neighbours=pair, runs=2_000, seed=1, workers=1)
    assert found.course.outputs.date_unit == "s"
    drawn = Reader(drawing(found.to_html(), "Both distributions")).text
    assert "2024-01-3" in drawn
    assert "e+09" not in drawn


def test_an_event_of_several_values_says_that_no_distribution_is_drawn():
    found = results()["violation"]
    box = dpw.events.Box([dpw.events.Interval(coordinate=0, low=1.0), dpw.events.Interval(coordinate=1, low=1.0)])
    without = replace(found, witness=replace(found.witness, event=box), course=replace(found.course, outputs=None))
    assert "looks at several values at once: no distribution of one is drawn" in Reader(without.to_html()).text
    assert "Both distributions" not in without.to_html()


@pytest.mark.parametrize("kind", ["violation", "pass"])
def test_the_evidence_is_drawn_over_the_runs_with_the_threshold(kind):
    found = results()[kind]
    text = found.to_html()
    drawn = drawing(text, "Evidence against runs")
    assert "refutes from 13.8 on" in Reader(drawn).text
    assert "paired runs" in Reader(drawn).text
    assert f"{found.log_e_value:.1f}".replace("-", "−") in Reader(drawn).text
    course, end, needed = axes_of(plots.draw_evidence, found).lines
    assert course.get_xydata().tolist() == [[0, 0], *map(list, found.course.evidence)]
    assert end.get_xydata().tolist() == course.get_xydata()[-1:].tolist()
    assert needed.get_ydata() == pytest.approx([np.log(1 / found.alpha)] * 2)
    assert "1 pair of inputs; " in Reader(text).text


def test_results_of_earlier_versions_show_the_end_of_their_evidence_alone():
    found = replace(results()["violation"], course=None)
    text = found.to_html()
    drawing(text, "Evidence against the claim")
    assert "Evidence against runs" not in text
    assert "Tried" not in Reader(text).text
    assert "Both distributions" not in text


def test_texts_of_users_stay_texts():
    read = Reader(hostile().to_html())
    assert not read.all("img")
    assert "<img src=x onerror=alert(1)>" in read.text  # as a reader sees it
    for hidden in "\0\u202e\ud800":
        assert hidden not in read.text
    assert "\\u202e" in read.text
    assert "שלום" in read.text
    hostile().to_html().encode()
    shown = max(read.texts, key=len)
    assert len(shown) < 8 * TEXT_CHARACTERS
    assert f"({len(HOSTILE) * 1000:,} characters)" in read.text
    Reader(hostile()._repr_html_())


def test_inputs_of_a_million_values_are_shortened():
    text = huge().to_html()
    assert len(text.encode()) < 300_000
    assert "1000000 values" in text
    assert "the same but for entry 500000: 0.0 → 1.0" in Reader(text).text


def test_verdicts_under_other_adjacencies_stand_below_the_first():
    found = replace(results()["violation"], others=(results()["pass"],))
    read = Reader(found.to_html())
    assert {"violated", "not-refuted"} <= {attributes.get("class") for _, attributes in read.elements}
    assert read.text.index("is not 1-DP") < read.text.index("Under pairs(") < read.text.index("claim ε = 3")
    assert "1e-06 under another relation" in read.text


def test_last_bits_under_another_adjacency_are_a_finding():
    found = results()
    leaks = replace(found["pass"], floating_point=found["violation"], log_e_value=3.0)
    passed = replace(found["pass"], log_e_value=-1.0, others=(leaks,))
    assert "Refuted: the last bits" in passed.to_html()
    assert "Refuted: the last bits" not in found["pass"].to_html()
    assert passed.margin == leaks.margin == pytest.approx(np.log(1 / leaks.alpha) - 3.0)


def test_a_claim_of_a_class_that_only_the_tests_define_costs_no_page():
    found = results()["violation"].to_json()
    record = {**found, "claim": "own claim", "test": "test_a.py::test_a", "assertion": 1}
    record["witness"] = {**found["witness"], "claim": {"kind": "mine"}}
    session = {"profile": "dev", "seed": 1, "alpha": 1e-6, "assertions": [record]}
    text = Reader(session_page(session)).text
    assert "violated, claim own claim; the rest cannot be shown" in text


@pytest.mark.parametrize(
    "odd",
    [{"a": 1}, *(pytest.param(odd, marks=LONG) for odd in sampled([None, True, -1, 1e308, "x", [], {}, [None]], 3))],
)
@pytest.mark.parametrize("kind", ["violation", "curve", "bound", pytest.param("profile", marks=LONG)])
def test_a_damaged_file_is_refused_or_drawn(kind, odd, tmp_path, capsys):
    given = results()[kind].to_json()
    file, page_file = tmp_path / "given.json", tmp_path / "report.html"
    for key in given:
        file.write_text(json.dumps({**given, key: odd}))
        code = main(["report", str(file), "-o", str(page_file)])
        error = capsys.readouterr().err
        assert (code, error.count("\n")) in ((0, 0), (2, 1)), (key, error)


@pytest.mark.parametrize("text", ["<b>", "'\"&", "\0", "a" * 10_000, "\u202eabc", "\ud800", "{{ 1 }}", "\\u202e"])
def test_every_text_of_an_entry_is_escaped(text):
    """Each field that a page shows; an attribute of the page has the name too."""
    found = replace(results()["violation"], notes=(text,), mechanism=text, parameters={text: text})
    entries = [
        Entry(name=text, result=None, reason=text, facts=((text, text),)),
        Entry(name=text, result=found, replay=text, facts=((text, text),)),
    ]
    made = page(entries, facts=[(text, text)])
    read = Reader(made)
    assert "b" not in {tag for tag, _ in read.elements}
    assert made.encode()
    assert all(c.isprintable() or c == "\n" for c in read.text)
    (label,) = [nav["aria-label"] for nav in read.all("nav") if nav["aria-label"].startswith("Sections of ")]
    if text.isprintable() and len(text) < 100:
        assert label == f"Sections of {text}"
        assert read.text.count(text) >= 10


@pytest.mark.parametrize(
    ("data", "neighbour", "marks"),
    [
        ([1, 2, 3], [1, 5, 3], ["2", "5"]),
        ([1, 2], [1, 2, 7], ["7"]),
        ({"age": 30}, {"age": 31}, ["30", "31"]),
        ([], [1], ["1"]),
    ],
)
def test_the_difference_of_inputs_is_marked(data, neighbour, marks):
    first, second = marked(Pair(data, neighbour))
    found = [text.strip(" ,") for element, text in (*first, *second) if element == "mark"]
    assert [text for text in found if text] == marks


def test_saved_results_become_the_same_page(result):
    result = replace(result, seconds=4.8503)  # 4.9 as measured, and 4.8 once rounded to 4.850
    again = result_from_json(json.loads(json.dumps(result.to_json())))
    numbers = re.compile(r"[mpC][0-9a-f]{10}|C\d_\d_[0-9a-f]{10}")  # identifiers, drawn at random
    assert numbers.sub("", again.to_html()) == numbers.sub("", result.to_html())


def test_the_command_draws_saved_results(tmp_path, capsys):
    for name in ("violation", "pass", "curve"):
        (tmp_path / f"{name}.json").write_text(json.dumps(results()[name].to_json()))
    page_file = tmp_path / "report.html"
    given = [str(tmp_path / f"{name}.json") for name in ("violation", "pass", "curve")]
    assert main(["report", *given, "-o", str(page_file)]) == 0
    assert capsys.readouterr() == ("", "")
    read = Reader(page_file.read_text())
    assert len(read.all("article")) == 3
    assert "1 violated, 1 not refuted, 1 curve" in read.text
    assert f"dpwitness replay {given[0]}" in read.text


ESTIMATOR = """
class Fit:
    pass


def fit(rng, data):
    made = Fit()
    made.coef_, made.rows = data[0] + rng.laplace(0, 0.1), data
    return made


def released(made):
    return made.coef_
"""


@pytest.mark.campaign
def test_the_command_on_the_page_replays(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(ESTIMATOR)
    monkeypatch.chdir(tmp_path)
    how = ["--python", sys.executable, "--outcome", "coef_", "--errors", "outcome"]
    few = ["--runs", "1000", "--workers", "1", "--quiet"]
    given = ["--claim", "1", "--pair", "[0]", "[1]", "--save", "result.json", *few]
    assert main(["check", "mine.py:fit", *how, *given]) == 1
    capsys.readouterr()
    (line,) = map(html.unescape, re.findall("<code>(dpwitness replay .*?)</code>", report(["result.json"])))
    assert line == shlex.join(["dpwitness", "replay", "result.json", "--mechanism", "mine.py:fit", *how])
    assert main([*shlex.split(line)[1:], *few]) == 1
    assert "coef_" not in capsys.readouterr().err


def test_a_function_of_a_file_is_named_by_the_file_in_the_command_on_the_page(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(ESTIMATOR)
    monkeypatch.chdir(tmp_path)
    released = load_code("mine.py:released")
    assert HowRun.of(Statement(mechanism="mine.py:fit", claim=1.0, outcome=released)).outcome == "mine.py:released"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"mechanism": "svt"}, []),
        ({"mechanism": "mine.py:fit"}, ["--mechanism", "mine.py:fit"]),
        ({"mechanism": "command:./release --epsilon 3"}, ["--command", "./release --epsilon 3"]),
        ({"mechanism": "svt", "errors": "outcome"}, ["--errors", "outcome"]),
    ],
)
def test_the_command_on_the_page_says_how_the_mechanism_runs(said, words):
    line = replay_line(replace(results()["violation"].witness, **said), "w.json")
    assert shlex.split(line) == ["dpwitness", "replay", "w.json", *words]


def test_the_command_on_a_page_of_standard_input_names_a_file(monkeypatch):
    text = json.dumps(results()["violation"].to_json())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert "dpwitness replay RESULT.json" in Reader(report(["-"])).text


def test_the_command_of_a_pass_whose_last_bits_leak_stands_with_what_it_replays(tmp_path):
    found = results()
    leaks = replace(found["pass"], floating_point=found["violation"])
    (tmp_path / "leaks.json").write_text(json.dumps(leaks.to_json()))
    text = report([tmp_path / "leaks.json"])
    best, bits = text.index("<h3>The best candidate</h3>"), text.index("<h3>Floating point</h3>")
    assert best < bits < text.index("dpwitness replay")
    in_python = leaks.to_html()
    commands = [match.start() for match in re.finditer("dpwitness replay", in_python)]
    assert [at > in_python.index("<h3>Floating point</h3>") for at in commands] == [False, True]
    assert ".floating_point.witness.save(" in in_python


def test_of_a_program_a_replay_asks_for_the_program():
    with pytest.raises(UnknownTarget, match="--command PROGRAM"):
        dpw.replay(replace(results()["violation"].witness, mechanism="command:./release"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "is no result"),
        ("[1]", "is no result"),
        ("{", "is not JSON"),
        ('{"format": "dpwitness-witness/2"}', "dpwitness replay"),
        ('{"log_e_value": 1}', "verdict"),
        ('{"format": "dpwitness-report/1"}', "session is damaged"),
        ('{"format": "dpwitness-report/1", "assertions": [{"alpha": "x"}]}', "session is damaged"),
        (f'{{"format": "dpwitness-report/1", "assertions": [{{"alpha": 1{"0" * 400}}}]}}', "session is damaged"),
    ],
)
def test_what_is_no_result_is_refused_by_name(content, message, tmp_path, capsys):
    file = tmp_path / "given.json"
    file.write_text(content)
    assert main(["report", str(file), "-o", str(tmp_path / "report.html")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()


def test_a_place_that_cannot_be_written_is_refused(tmp_path, capsys):
    assert main(["report", "no.json", "-o", str(tmp_path / "no" / "report.html")]) == 2
    assert "no folder" in capsys.readouterr().err


def test_a_page_without_verdicts_says_why():
    text = page([Entry(name="test_a", result=None, reason="deterministic_output: <always 3>")])
    assert "deterministic_output: <always 3>" in Reader(text).text


@pytest.mark.campaign
def test_the_commands_of_the_documentation_write_a_page(tmp_path, monkeypatch, capsys):
    text = (Path(__file__).parents[2] / "docs" / "results.md").read_text()
    lines = [shlex.split(line) for line in re.findall(r"^\$ dpwitness (.*)$", text, re.MULTILINE)]
    monkeypatch.chdir(tmp_path)
    assert [main(line) for line in lines] == [1, 0, 0]
    read = Reader((tmp_path / "report.html").read_text())
    assert "1 violated, 1 not refuted" in read.text


TESTS = """
    import dpwitness as dpw
    import pytest

    def noisy_sum(rng, data, epsilon):
        return data.sum() + rng.laplace(0, 0.5 / epsilon)

    @pytest.mark.parametrize("claim", [1, 3])
    def test_sum(assert_private, claim):
        pair = dpw.pairs(([1, 1], [2, 1]))
        assert_private(noisy_sum, epsilon=1.0, claim=dpw.PureDP(claim), neighbours=pair, runs=50_000)

    def test_constant(assert_private):
        assert_private(lambda rng, data: 3, epsilon=1.0, neighbours=dpw.pairs(([1, 1], [2, 1])))
"""


@pytest.mark.campaign
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_session_writes_one_page(pytester, workers):
    pytester.makepyfile(TESTS)
    given = ["-n", workers, "--dp-seed=1", "--dp-report=all.json", "--dp-report-html=all.html"]
    pytester.runpytest(*given).assert_outcomes(passed=1, failed=2)
    text = (pytester.path / "all.html").read_text()
    read = Reader(text)
    assert len(read.all("article")) == 3
    assert "1 violated, 1 no verdict, 1 not refuted" in read.text
    assert "returned [3.0]" in read.text
    assert "--dp-seed=1" in read.text
    assert main(["report", "all.json", "-o", "again.html"]) == 0
    assert (pytester.path / "again.html").read_text().count("<article") == 3


def test_a_session_refuses_a_place_before_it_runs(pytester):
    pytester.makepyfile(TESTS)
    outcome = pytester.runpytest("-n", "0", "--dp-report-html=no/all.html")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines("*--dp-report-html: *")
