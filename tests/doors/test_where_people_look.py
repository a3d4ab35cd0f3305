"""GitHub annotations and step summaries, and SARIF files: of the plugin, with and without xdist, and of commands."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

import dpwitness.plugin.asserter
import dpwitness.plugin.ledger  # noqa: F401  # pytester drops what an inner run imports; numba's is loaded once
from dpwitness.cli import main
from dpwitness.report import github

MINE = """\
import numpy as np


def good(rng, q, epsilon, size):
    return q[0] + rng.laplace(0, 1 / epsilon, size=size)


def bad(rng, q, epsilon, size):
    return q[0] + rng.laplace(0, 0.5 / epsilon, size=size)
"""
TESTS = """\
import dpwitness as dpw
from mine import bad, good


def test_good(assert_private):
    assert_private(good, epsilon=1.0, neighbours=dpw.queries(1))


def test_bad(assert_private):
    assert_private(bad, epsilon=1.0, neighbours=dpw.queries(1))


def test_refused(assert_private):
    assert_private(lambda rng, q: 0.0, claim=1.0, neighbours=dpw.queries(1))
"""
BAD, ASSERTION = 8, 10  # lines of the mechanism and of the assertion that fail


def sarif_object(required="", **properties):
    """The schema of an object with these properties and no others."""
    kind = {"type": "object", "properties": properties, "additionalProperties": False}
    return kind | ({"required": required.split()} if required else {})


def array_of(items):
    return {"type": "array", "items": items}


#: What the SARIF 2.1.0 specification asks of the objects that are written: 3.13, 3.14, 3.18, 3.19, 3.27, 3.28, 3.29,
#: 3.4, 3.30 and 3.49. No key that it does not have, and all that it requires.
STRING, TEXT = {"type": "string"}, sarif_object("text", text={"type": "string", "minLength": 1})
LEVEL, NUMBER = {"enum": ["none", "note", "warning", "error"]}, {"type": "integer", "minimum": -1}
PLACE = sarif_object(
    "artifactLocation",
    artifactLocation=sarif_object("uri", uri={"type": "string", "format": "uri-reference"}, uriBaseId=STRING),
    region=sarif_object(startLine={"type": "integer", "minimum": 1}),
)
RULE = sarif_object(
    "id", id=STRING, shortDescription=TEXT, fullDescription=TEXT, defaultConfiguration=sarif_object(level=LEVEL)
)
RESULT = sarif_object(
    "message", ruleId=STRING, ruleIndex=NUMBER, level=LEVEL, message=TEXT, properties={"type": "object"},
    partialFingerprints={"type": "object", "additionalProperties": STRING},
    locations=array_of(sarif_object(physicalLocation=PLACE)),
    relatedLocations=array_of(sarif_object(physicalLocation=PLACE, id=NUMBER, message=TEXT)),
)  # fmt: skip
RUN = sarif_object(
    "tool results", columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]}, results=array_of(RESULT),
    tool=sarif_object("driver", driver=sarif_object("name", name=STRING, version=STRING, rules=array_of(RULE))),
)  # fmt: skip
SARIF = sarif_object("version runs", **{"$schema": STRING}, version={"const": "2.1.0"}, runs=array_of(RUN))


def read_sarif(path):
    log = json.loads(Path(path).read_text())
    jsonschema.validate(log, SARIF)
    run = log["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
    return rules, run["results"]


def place_in(result):
    place = result["locations"][0]["physicalLocation"]
    return place["artifactLocation"].get("uriBaseId"), place["artifactLocation"]["uri"], place["region"]["startLine"]


@pytest.fixture
def actions(tmp_path, monkeypatch):
    """A step of GitHub Actions; the file of its summary."""
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    return summary


@pytest.fixture
def session(pytester, loaded, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:benchmark")
    pytester.makepyfile(mine=MINE, test_it=TESTS)

    def run(*options):
        return pytester.runpytest_inprocess(
            *("-p", "no:randomly", "--dp-seed=1", "--dp-runs=100000", "-o", "dp_database=none"), *options
        )

    return run


@pytest.mark.campaign
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["one process", "xdist"])
def test_a_session_says_everywhere_what_it_refutes(session, actions, pytester, workers):
    files = ("--dp-sarif=dp.sarif", "--dp-report=all.json")
    result = session(*files, *workers)
    result.assert_outcomes(passed=1, failed=2)
    marks = [line for line in result.outlines if line.startswith("::error ")]
    assert len(marks) == 1
    assert marks[0].startswith(f"::error file=test_it.py,line={ASSERTION},title=bad violates ε = 1::VIOLATED: bad(")
    assert "%0A  input D " in marks[0]
    text = actions.read_text()
    assert text.startswith("before\n### dpwitness\n\n3 assertions in 3 tests: 1 violated, 1 not refuted")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| test_it.py::")]
    assert [(row[0].partition("::")[2], row[2]) for row in rows] == [
        ("test_good", "not refuted"),
        ("test_bad", "**violated**"),
        ("test_refused", "unhealthy"),
    ]
    assert rows[0][3].startswith("its event would have caught ε ≥ ")
    assert rows[1][3].startswith("ε ≥ ")
    rules, results = read_sarif(pytester.path / "dp.sarif")
    assert rules == ["approx-dp"]
    assert [place_in(result) for result in results] == [("%SRCROOT%", "mine.py", BAD)]
    assert results[0]["properties"]["witness"]["format"].startswith("dpwitness-witness/")
    assert results[0]["message"]["text"].startswith("VIOLATED: bad(epsilon=1)")
    assert main(["report", "all.json", "-o", "all.html"]) == 0
    page = (pytester.path / "all.html").read_text()
    assert page.count("<article") == 3
    for said in ("1 violated, 1 no verdict, 1 not refuted", "returned [0.0]", "--dp-seed=1"):
        assert said in re.sub("<.*?>", "", page)


def test_escapes_are_those_of_github(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    record = {"mechanism": "f", "claim": "(ε, δ): 1, 50%", "text": "100 % sure:\r\na, b"}
    assert github.annotation(record | {"place": {"file": "a,b:c%.py", "line": 3}}, tmp_path / "deep") == (
        "::error file=deep/a%2Cb%3Ac%25.py,line=3,title=f violates (ε%2C δ)%3A 1%2C 50%25::100 %25 sure:%0D%0Aa, b"
    )
    outside = record | {"place": {"file": "/usr/lib/python3/x.py", "line": 3}}
    assert github.annotation(outside, tmp_path).startswith("::error title=")
    row = {"test": "t|b[![x](http://e/)]", "assertion": 2, "claim": None, "verdict": "error", "alpha": 0.1}
    last = github.table([row | {"reason": "a\n<b> `c` | __x__, a_b, *c*, ~~d~~"}], "one").splitlines()[-1]
    test = r"t\|b\[!\[x\](http://e/)\] (2)"
    assert last == rf"| {test} |  | error | a &lt;b> \`c\` \| \_\_x\_\_, a_b, \*c\*, \~\~d\~\~ |  | 0.1 |"
