"""A real SQLite database behind each noisy interface, attacked from the command line by calls and by files."""

import json
import runpy
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from dpwitness.cli import main

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "sqlite_oracles.py"


@pytest.fixture
def database(tmp_path, monkeypatch):
    """The example's database as a file, so that the truth can be read beside the attack."""
    path = tmp_path / "people.sqlite"
    monkeypatch.setenv("PEOPLE_SQLITE", str(path))
    runpy.run_path(str(EXAMPLE))["connect"]().close()
    connection = sqlite3.connect(path)
    yield connection
    connection.close()


def attack(capsys, *arguments, seed=1):
    code = main(["attack", *arguments, "--json", "--seed", str(seed)])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    return json.loads(printed.out)


def by_files(capsys, tmp_path, system, *arguments, seed=1):
    """The same attack where the questions are answered by another program, until it says what it recovered."""
    questions = tmp_path / "questions.csv"
    fill = runpy.run_path(str(EXAMPLE))["fill"]
    for _ in range(200):
        result = attack(capsys, *arguments, "--ask", str(questions), seed=seed)
        if "waiting" not in result:
            return result
        assert result["waiting"] > 0
        fill(system, questions)
    raise AssertionError("the attack never ends")


@pytest.mark.campaign
def test_subset_sums(database, tmp_path, capsys):
    smokes = [bit for (bit,) in database.execute("SELECT smokes FROM people WHERE id < 48 ORDER BY id")]
    truth = tmp_path / "truth.csv"
    truth.write_text("\n".join(["smokes", *map(str, smokes)]))
    result = attack(capsys, "subset_sum", "--oracle", f"{EXAMPLE}:subset_sums", "--size", "48")
    # Fits of n·ln²n = 720 answers with errors of 2 have errors of 2/√(720/4) = 0.15: a bit is wrong once in 2,000.
    assert sum(a == b for a, b in zip(result["recovered"], smokes, strict=True)) >= 47
    # Of what further differences between people, and ones that add less than others, leave open.
    assert result["probably_right"] > 43
    assert result["spread"] == pytest.approx(2.0, rel=0.2)
    assert result["right"] is None
    assert result["questions"] == 792
    filed = by_files(capsys, tmp_path, "subset_sums", "subset_sum", "--data", str(truth))
    assert filed["right"] >= 47
    assert (filed["size"], filed["questions"]) == (48, 792)


@pytest.mark.campaign
def test_noisy_counts(database, tmp_path, capsys):
    truth = dict(database.execute("SELECT region, COUNT(*) FROM people GROUP BY region"))
    line = (
        "table_builder",
        "--column",
        "region",
        "--value",
        "hills",
        "--partitions",
        "150",
        "--base-partitions",
        "400",
    )
    found = attack(capsys, *line, "--oracle", f"{EXAMPLE}:noisy_counts")
    assert found["recovered"] == [truth["hills"]]
    assert found["right"] is None
    regions = f"region={','.join(sorted(truth))}"
    filed = by_files(capsys, tmp_path, "noisy_counts", *line, "--values", regions)
    assert filed["recovered"] == [truth["hills"]]


#: People in each cell of a smaller database, for attacks whose every question follows from the answers so far.
SMALL = (1, 0, 2, 3, 1, 0, 5, 2, 1, 4, 0, 1)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A database of few people, and the example's system on it with always the same noisy threshold."""
    monkeypatch.setenv("PEOPLE_SQLITE", str(tmp_path / "small.sqlite"))
    with sqlite3.connect(tmp_path / "small.sqlite") as connection:
        connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, cell)")
        people = [(cell,) for cell, number in enumerate(SMALL) for _ in range(number)]
        connection.executemany("INSERT INTO people (cell) VALUES (?)", people)
    connection.close()
    (tmp_path / "same.py").write_text(
        f"import runpy\nsystem = runpy.run_path({str(EXAMPLE)!r})['SYSTEMS']['thresholds'][0]()\n"
    )
    return f"{tmp_path / 'same.py'}:system"


def test_thresholds(small, tmp_path, capsys):
    line = ("threshold_testing", "--cells", str(len(SMALL)))
    found = attack(capsys, *line, "--oracle", small, seed=3)
    assert found["recovered"] == list(SMALL)
    assert found["right"] is None
    # By files it is done in rounds of many questions; each goes on from the answers to those before.
    questions = tmp_path / "questions.csv"
    fill = runpy.run_path(str(EXAMPLE))["fill"]
    asked = 0
    for _ in range(3):
        waiting = attack(capsys, *line, "--ask", str(questions), seed=3)
        assert waiting["asked"] == asked
        asked += waiting["waiting"]
        fill("thresholds", questions)
    assert len(questions.read_text().splitlines()) == asked + 1 > 4


@pytest.mark.campaign
def test_a_broken_connection_ends_in_the_answers_there_are_and_is_gone_on_with(database, tmp_path, capsys):
    (tmp_path / "failing.py").write_text(
        "import os, runpy\n"
        f"system = runpy.run_path({str(EXAMPLE)!r})['subset_sums']\n"
        "def failing(rng):\n"
        "    answer, left = system(rng), [300]\n"
        "    def ask(subset):\n"
        "        left[0] -= 1\n"
        "        return answer(subset) if left[0] > 0 else answer(subset != subset)[1]\n"
        "    return ask\n"
    )
    line = ["attack", "subset_sum", "--size", "48", "--ask", str(tmp_path / "kept.jsonl"), "--json", "--seed", "1"]
    assert main([*line, "--oracle", f"{tmp_path / 'failing.py'}:failing", "--retries", "0"]) == 0
    partial = json.loads(capsys.readouterr().out)
    assert "failing raised" in partial["stopped"]
    assert "at question 300, [" in partial["stopped"]
    assert "the answers so far are kept" in partial["stopped"]
    assert partial["fresh_questions"] == 27  # of the 299 answers there are
    assert main([*line, "--oracle", f"{EXAMPLE}:subset_sums"]) == 0
    smokes = [bit for (bit,) in database.execute("SELECT smokes FROM people WHERE id < 48 ORDER BY id")]
    recovered = json.loads(capsys.readouterr().out)["recovered"]
    assert int(np.sum(np.array(recovered) == smokes)) >= 47
