"""The common parts of tests of attacks: the command's result, its file, and limits for numbers of right guesses."""

import csv
import json
from pathlib import Path

from scipy.stats import binom

from dpwitness.cli import main


def attack(folder, *words):
    """The exit code of `dpwitness attack`, and its result; None if it saved no result."""
    saved = folder / "result.json"
    saved.unlink(missing_ok=True)
    code = main(["attack", *map(str, words), "--save", str(saved), "--quiet"])
    return code, json.loads(saved.read_text()) if saved.exists() else None


def rows_of(path):
    """The rows of a file of questions and answers, by column, as texts."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fill(path, answer):
    """Write answers into a file of questions; `answer` gets a question and the row's place, and may return None."""
    rows = rows_of(path)
    for place, row in enumerate(rows):
        if not row["answer"] and (given := answer(json.loads(row["question"]), place)) is not None:
            row["answer"] = json.dumps(given)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def agrees(hits, runs, p):
    """Whether a number of hits agrees with a probability, by a test of level 1e-9."""
    return binom.ppf(0.5e-9, runs, p) <= hits <= binom.isf(0.5e-9, runs, p)
