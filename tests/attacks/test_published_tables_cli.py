"""`attack published_tables` on the command line: results, files that are no publication, exit codes."""

import json
from decimal import Decimal

import numpy as np
import pytest

from dpwitness.cli import main
from dpwitness.reconstruction.published_tables import attack as attacking
from dpwitness.reconstruction.published_tables.statements import read_publication

PEOPLE = """\
sex,race,smokes
F,B,yes
F,W,no
M,B,no
F,W,no
M,W,yes
"""
ATTRIBUTES = """\
{"attribute": "age", "range": [0, 9]}
{"attribute": "sex", "values": ["F", "M"]}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path


def run(capsys, *arguments):
    code = main(["attack", "published_tables", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def attacked(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json", "--seed", "1")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_published_counts_of_a_table_are_attacked(capsys, here):
    found = attacked(capsys, "--data", "people.csv", "--publish", "3-way")
    assert (found["tables"], found["complete"], found["people"], found["basis"]) == (1, True, 5, "tables")
    rows = [tuple(line.split(",")) for line in PEOPLE.splitlines()[1:]]
    assert {tuple(one["row"]): one["people"] for one in found["certain"]} == {row: rows.count(row) for row in rows}
    assert all(one["right"] and one["frequency"] == 1 for one in found["ranked"])
    few = attacked(capsys, "--data", "people.csv", "--publish", "1-way")
    assert few["tables"] > 1
    assert few["complete"]
    assert few["certain"] == []
    shares = {tuple(one["row"]): one["frequency"] for one in few["ranked"]}
    assert sorted(shares.values(), reverse=True) == [*shares.values()]
    assert not all(one["right"] for one in few["ranked"])
    assert few["precision"][0]["rows"] == len(few["ranked"]) == 8


def test_the_truth_tells_only_what_is_right(capsys, here):
    (here / "sex_race.csv").write_text("sex,race,count\nF,B,1\nF,W,2\nM,B,1\nM,W,1\n")
    (here / "more.jsonl").write_text(
        '{"attribute": "smokes", "values": ["yes", "no"]}\n{"by": ["smokes", "sex"], "counts": [[1, 1], [2, null]]}\n'
    )
    arguments = ("--tables", "sex_race.csv", "more.jsonl")
    without, beside = attacked(capsys, *arguments), attacked(capsys, *arguments, "--data", "people.csv")
    assert without["precision"] is None
    assert {one["right"] for one in without["ranked"]} == {None}
    for one in (*beside["ranked"], *beside["certain"]):
        row = dict(zip(beside["attributes"], one["row"], strict=True))
        assert one["right"] == (f"{row['sex']},{row['race']},{row['smokes']}" in PEOPLE)
    same = ("tables", "complete", "certain_complete", "statements")
    assert {name: without[name] for name in same} == {name: beside[name] for name in same}
    # One of three women smokes; of the men one does, and one does not: 3 · 2 tables.
    assert (without["tables"], without["complete"]) == (4, True)


@pytest.mark.campaign
def test_restarts_rank_where_tables_are_too_many(capsys, here, monkeypatch):
    arguments = ("--data", "people.csv", "--publish", "2-way", "--restarts", 3)
    (here / "people.csv").write_text("a,b,c\n" + "".join(f"{k % 3},{k % 4},{k % 5 % 3}\n" for k in range(60)))
    found = attacked(capsys, *arguments, "--most", 2)
    assert (found["tables"], found["complete"], found["basis"], found["restarts"]) == (2, False, "restarts", 3)
    assert all(0 < one["independent"] <= 1 for one in found["ranked"])
    again = attacked(capsys, *arguments, "--most", 2)
    assert {**again, "seconds": 0} == {**found, "seconds": 0}
    code, out, _ = run(capsys, *arguments, "--most", 2, "--plot", "ranked.svg", "--save", "found.json", "--seed", 1)
    assert code == 0
    assert out.startswith("AT LEAST 2 tables agree with what is published\n")
    assert "3 restarts made them: a frequency, no probability" in " ".join(out.split())
    assert (here / "ranked.svg").read_text().startswith("<?xml")
    assert json.loads((here / "found.json").read_text())["ranked"] == found["ranked"]

    def interrupted(*_):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(attacking, "restarts", interrupted)
    code, out, _ = run(capsys, *arguments, "--most", 2)
    assert code == 130
    assert out.startswith("AT LEAST 2 tables agree with what is published\n")
    assert "nothing: interrupted" in out
    monkeypatch.setattr(attacking, "find_tables", interrupted)
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 130
    assert json.loads(out)["solver_stopped"] == "interrupted"


def test_what_cannot_be_ranked_says_why(capsys, here, monkeypatch):
    (here / "given.jsonl").write_text(
        '{"attribute": "a", "range": [0, 9]}\n{"attribute": "b", "range": [0, 9]}\n{"people": 40}\n'
    )
    found = attacked(capsys, "--tables", "given.jsonl", "--most", 2)
    assert (found["basis"], found["unranked"]) == (None, "no counts by two attributes are published")
    (here / "given.jsonl").write_text('{"attribute": "a", "range": [0, 9]}\n{"count": null, "below": 9}\n')
    found = attacked(capsys, "--tables", "given.jsonl", "--most", 2)
    assert found["unranked"] == 'it is not published how many people there are; give {"people": n}'
    counts = json.dumps([[1, None]] * 10)
    (here / "given.jsonl").write_text(f'{ATTRIBUTES}{{"by": ["age", "sex"], "counts": {counts}}}\n{{"people": 30}}\n')
    found = attacked(capsys, "--tables", "given.jsonl", "--most", 2, "--restarts", 0)
    assert (found["unranked"], found["ranked"], found["tables"]) == ("--restarts 0", [], 2)
    assert {one["people"] for one in found["certain"]} == {1}
    assert len(found["certain"]) == 10
    monkeypatch.setattr(attacking, "memory", lambda: 1000)
    found = attacked(capsys, "--tables", "given.jsonl", "--most", 2)
    assert found["unranked"] == "restarts of 30 people do not fit into 0 GB of memory"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "given.jsonl: it has no attribute; give lines as "),
        ("\0\1", "line 1: '\\x00\\x01' is not JSON"),
        ("7", "line 1: 7 is no statement; give an object"),
        ("[" * 200, "line 1: lists are nested deeper than 100 levels"),
        ('{"people": 1e999}', "line 1: 1e999 must be written with at most 25 digits, and lie within ±1,000,000,000"),
        ('{"people": 0e999999999}', "line 1: 0e999999999 must be written"),
        (f'{{"people": {"9" * 5000}}}', "line 1: Exceeds the limit"),
        (ATTRIBUTES + f'{{"people": {"9" * 40}}}', "must be a whole number from 1 to 16,777,216"),
        ('{"people": NaN}', "line 1: NaN is no number"),
        (ATTRIBUTES + '{"people": true}', "line 3: people True must be a whole number from 1 to"),
        ('{"peple": 7}', "'peple' is unknown in a line; it may have where, "),
        ('{"attribute": "age", "value": [1]}', "'value' is unknown in a line with 'attribute'; it may have attr"),
        ('{"attribute": "", "values": [1]}', "attribute '' must be a name"),
        ('{"attribute": "x", "values": [1], "range": [0, 1]}', "attribute 'x' needs either values, a list, or range"),
        ('{"attribute": "x", "range": [0, 1e6]}', "1e6 must be written with"),
        ('{"attribute": "x", "range": [0, 1000000]}', "range [0, 1000000] must go up, by fewer than 10,000"),
        ('{"attribute": "x", "values": [null]}', "value None must be a text, or a number within"),
        ('{"attribute": "x", "values": [1, 1.0]}', "value 1.0 of 'x' is given twice"),
        (ATTRIBUTES + '{"attribute": "sex", "values": [1]}', "line 3: attribute 'sex' is given twice"),
        (ATTRIBUTES, "given.jsonl: nothing is published; give counts, means or medians"),
        (ATTRIBUTES + '{"where": {"sex": ["X"]}, "count": 1}', "line 3: 'sex' has no value 'X'; list it among"),
        (ATTRIBUTES + '{"where": {"six": ["F"]}, "count": 1}', "line 3: there is no attribute 'six'; there are age"),
        (ATTRIBUTES + '{"where": {"sex": "F"}, "count": 1}', "line 3: 'F' must be a list of values of 'sex', as "),
        (ATTRIBUTES + '{"where": {"sex": {"below": 1}}, "count": 1}', "line 3: attribute 'sex' has the value 'F'"),
        (ATTRIBUTES + '{"where": {"age": {"under": 1}}, "count": 1}', "must be values, or limits as"),
        (ATTRIBUTES + '{"where": [], "count": 1}', "line 3: where [] must be an object"),
        (ATTRIBUTES + '{"count": -1}', "line 3: count -1 must be a whole number from 0"),
        (ATTRIBUTES + '{"count": 1.5}', "must be a whole number from 0"),
        (ATTRIBUTES + '{"count": null, "below": 2, "at_least": 2}', "line 3: at_least 2 is not below 2; no count is"),
        (ATTRIBUTES + '{"of": "age"}', "line 3: nothing is said; give count"),
        (ATTRIBUTES + '{"mean": 3}', 'line 3: whose mean or median is it? give "of"'),
        (ATTRIBUTES + '{"of": "sex", "mean": 3}', "line 3: attribute 'sex' has the value 'F', which is no number"),
        (ATTRIBUTES + '{"of": "age", "mean": "3"}', "line 3: mean '3' must be a number within"),
        (ATTRIBUTES + '{"of": "age", "mean": 3.25, "decimals": 1}', "line 3: mean 3.25 with decimals 1: give as many"),
        (ATTRIBUTES + '{"of": "age", "mean": 3.12345678}', "line 3: mean 3.12345678 with decimals 8: give as many"),
        (ATTRIBUTES + '{"by": ["sex", "sex"], "counts": [[1, 1], [1, 1]]}', "must name attributes once"),
        (ATTRIBUTES + '{"by": [], "counts": 1}', "line 3: by [] must be a list of attributes"),
        (ATTRIBUTES + '{"by": ["sex"], "counts": [1, 2, 3]}', "line 3: counts: 3 entries where 'sex' has 2 values"),
        (ATTRIBUTES + '{"by": ["sex"], "counts": {"F": 1}}', "where 'sex' has 2 values; give one a value, in order"),
        (ATTRIBUTES + '{"where": {"sex": ["F"]}, "count": 4}', "given.jsonl: nothing limits how many people there are"),
        (ATTRIBUTES + '{"people": 3}\n{"where": {"sex": ["F"]}, "count": 4}', "line 4: no table agrees with this"),
        (ATTRIBUTES + '{"people": 2}\n{"of": "age", "mean": 3.3}\n{"count": 2}', "line 4: no table agrees with this"),
    ],
)  # fmt: skip
def test_files_that_are_no_publication(capsys, here, text, message):
    (here / "given.jsonl").write_text(text)
    code, out, err = run(capsys, "--tables", "given.jsonl")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "given.csv: give a header line with attributes and 'count'"),
        ("sex,count\n", "given.csv: give a header line"),
        ("sex,sex,count\nF,F,1\n", "each once"),
        ("count\n1\n", "give a header line with attributes"),
        ("sex,count\nF\n", "given.csv, line 2: 1 values for 2 columns"),
        ("sex,count\n,1\n", "line 2: the value of 'sex' is missing"),
        ("age,count\n7,1\n10000000000,1\n", "line 3: 10000000000 of 'age' must be"),
        ("sex,count\nF,1\nF,2\n", "line 3: a count of F stands above, too"),
        ("sex,count\nF,x\n", "line 2: count 'x' must be a whole number"),
        ("sex,count\nF,<x\n", "line 2: below 'x' must be a whole number"),
        ("sex,count\nF,-1\n", "line 2: count -1 must be a whole number"),
        ("a,b,c,count\n" + "".join(f"{k},{k},{k},1\n" for k in range(101)), "a table of 1,030,301 counts is too large"),
    ],
)
def test_csv_that_is_no_publication(capsys, here, text, message):
    (here / "given.csv").write_text(text)
    code, out, err = run(capsys, "--tables", "given.csv")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing is published: give --tables FILE, or --data FILE.csv and --publish 2-way"),
        (["--publish", "2-way"], "--publish needs a table to publish: give --data FILE.csv"),
        (["--tables", "people.csv", "--publish", "1-way", "--data", "people.csv"], "leave one of them out"),
        (["--data", "people.csv", "--publish", "3-way", "--most", "0"], "--most 0 must be from 1 to 100,000 tables"),
        (["--data", "people.csv", "--publish", "3-way", "--restarts", "-1"], "--restarts -1 must be from 0 to"),
        (
            ["--data", "two.csv", "--publish", "3-way"],
            "--publish 3-way: --data has 2 attributes; publish counts by 1 to 2",
        ),
        (
            ["--tables", "counts.csv", "--data", "people.csv"],
            "--data has no column 'age', which is published; its columns",
        ),
        (["--tables", "no.jsonl"], "cannot read no.jsonl: No such file"),
    ],
)
def test_options_that_do_not_go_together(capsys, here, arguments, message):
    (here / "two.csv").write_text("a,b\n1,2\n")
    (here / "counts.csv").write_text("age,count\n1,2\n")
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_an_attribute_is_one_column_whichever_files_it_is_in(here, capsys):
    """A code of a file in which all begin with other digits is the code of the other file, and of the truth."""
    (here / "by_zip.csv").write_text("zip,count\n02138,1\n10001,2\n")
    (here / "by_both.csv").write_text("zip,sex,count\n10001,F,1\n10001,M,1\n")
    assert read_publication(["by_zip.csv", "by_both.csv"]).attributes["zip"] == ("02138", "10001")
    (here / "people.csv").write_text("zip,sex\n10001,F\n10001,M\n")  # integers by itself
    (here / "more.jsonl").write_text('{"where": {"zip": ["02138"], "sex": ["M"]}, "count": 1}\n')
    found = attacked(capsys, "--tables", "by_zip.csv", "by_both.csv", "more.jsonl", "--data", "people.csv")
    right = {tuple(one["row"]): one["right"] for one in found["certain"]}
    assert right == {("02138", "M"): False, ("10001", "F"): True, ("10001", "M"): True}
    (here / "declared.jsonl").write_text('{"attribute": "zip", "values": ["02138", "10001"]}\n')
    assert read_publication(["declared.jsonl", "by_both.csv"]).statements[0].low.tolist() == [[0, 0], [1, 1]]
    (here / "twice.csv").write_text("zip,count\n10,1\n1_0,2\n1e1,3\n")
    assert read_publication(["twice.csv"]).attributes["zip"] == ("10", "1_0", "1e1")


def test_csv_with_suppressed_counts(here):
    (here / "given.csv").write_text("age,sex,count\n1,F,<3\n1,M,\n2,F,7\n")
    published = read_publication(["given.csv"])
    assert published.attributes == {"age": (1, 2), "sex": ("F", "M")}
    (counts,) = published.statements
    assert counts.low.tolist() == [[0, 0], [7, 0]]
    assert counts.high.ravel().tolist()[::2] == [2, 7]
    assert np.all(counts.high[:, 1] > 1e9)  # suppressed, or not in the file: nothing is known


def test_a_figure_is_as_exact_as_it_is_written(here):
    lines = [f'{{"of": "age", "mean": {text}}}' for text in ("3", "3.0", "3.5", "3.50")]
    (here / "given.jsonl").write_text(ATTRIBUTES + "\n".join(lines))
    halves = [(one.high - one.low) / 2 for one in read_publication(["given.jsonl"]).statements]
    assert halves == [Decimal("0.5"), Decimal("0.5"), Decimal("0.05"), Decimal("0.005")]
