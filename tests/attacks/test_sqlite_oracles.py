"""The example of a real SQLite database behind each noisy interface, attacked by calls and by files."""

import runpy
import sqlite3
from pathlib import Path

import pytest
from attacking import attack

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "sqlite_oracles.py"
REGIONS = "border,centre,city,coast,east,hills,islands,lakes,north,plains,south,west"
BITS = "SELECT smokes FROM people WHERE id < 48 ORDER BY id"


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("system", "line", "told", "truth"),
    [
        ("subset_sums", "subset_sum --size 48", "", BITS),
        (
            "noisy_counts",
            "table_builder --column region --value hills --partitions 150",
            f"--values region={REGIONS}",
            "SELECT COUNT(*) FROM people WHERE region = 'hills'",
        ),
    ],
)
def test_a_database_is_read_by_calls_and_by_files(tmp_path, monkeypatch, system, line, told, truth):
    monkeypatch.setenv("PEOPLE_SQLITE", str(tmp_path / "people.sqlite"))
    example = runpy.run_path(str(EXAMPLE))
    secret = [number for (number,) in example["connect"]().execute(truth)]
    _, called = attack(tmp_path, *line.split(), *told.split(), "--oracle", f"{EXAMPLE}:{system}", "--seed", 1)
    questions, filed = tmp_path / "questions.csv", None
    for _ in range(9):
        _, filed = attack(tmp_path, *line.split(), *told.split(), "--ask", questions, "--seed", 1)
        if filed is not None:
            break
        example["fill"](system, questions)
    for found in (called, filed):
        # Fits of n·ln²n = 720 answers with errors of 2 have errors of 2/√(720/4) = 0.15: a bit is wrong once in 2,000.
        assert sum(a != b for a, b in zip(found["recovered"], secret, strict=True)) <= (system == "subset_sums")
        assert found["right"] is None
    if system == "subset_sums":
        # Of what further differences between people, and ones that add less than others, leave open.
        assert called["probably_right"] > 43
        assert called["spread"] == pytest.approx(2.0, rel=0.2)


def test_thresholds_go_on_from_round_to_round(tmp_path, monkeypatch):
    """Of few people, since every question follows from the answers so far: a round has many questions."""
    people = (1, 0, 2, 3, 1, 0, 5, 2, 1, 4, 0, 1)
    monkeypatch.setenv("PEOPLE_SQLITE", str(tmp_path / "small.sqlite"))
    with sqlite3.connect(tmp_path / "small.sqlite") as connection:
        connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, cell)")
        cells = [(cell,) for cell, number in enumerate(people) for _ in range(number)]
        connection.executemany("INSERT INTO people (cell) VALUES (?)", cells)
    connection.close()
    example = runpy.run_path(str(EXAMPLE))
    (tmp_path / "same.py").write_text(
        f"import runpy\nsystem = runpy.run_path({str(EXAMPLE)!r})['SYSTEMS']['thresholds'][0]()\n"
    )
    line = ("threshold_testing", "--cells", len(people), "--seed", 3)
    found = attack(tmp_path, *line, "--oracle", f"{tmp_path / 'same.py'}:system")[1]
    assert (len(found["recovered"]), found["claimed"]) == (len(people), 0)  # of so few cells nothing is claimed
    questions, asked = tmp_path / "questions.csv", 0
    for _ in range(3):
        assert attack(tmp_path, *line, "--ask", questions) == (0, None)
        before, asked = asked, len(questions.read_text().splitlines()) - 1
        assert asked > before
        example["fill"]("thresholds", questions)
