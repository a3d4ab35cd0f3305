"""Answers that were paid for are used, whatever ends the asking: one command for each family of attacks."""

import json

import pytest

from dpwitness.cli import main

MINE = """
import numpy as np
COUNTS = np.random.default_rng(3).integers(20, 400, 12)
BITS = np.random.default_rng(4).integers(0, 2, 48)
def limited(answer, quota):
    left = [quota]
    def system(question):
        left[0] -= 1
        if left[0] < 0:
            raise PermissionError("quota")
        return answer(question)
    return system
def counts(rng):
    return limited(lambda c: int(COUNTS[c["age"]].sum() + rng.integers(-2, 3)), 2600)
def few_counts(rng):
    return limited(lambda c: int(COUNTS[c["age"]].sum() + rng.integers(-2, 3)), 20)
def all_counts(rng):
    return limited(lambda c: int(COUNTS[c["age"]].sum() + rng.integers(-2, 3)), 10**9)
def sums(rng):
    return limited(lambda subset: BITS[subset].sum() + rng.normal(0, 2), 500)
def flags(rng):
    z = rng.laplace(0, 10)
    return limited(lambda signs: COUNTS @ signs >= z, 30)
"""
TABLE = ("table_builder", "--values", "age=0:11")
LINES = {
    "counts": TABLE,
    "sums": ("subset_sum", "--size", "48"),
    "flags": ("threshold_testing", "--cells", "12"),
}


def attack(capsys, tmp_path, name, *more):
    (tmp_path / "mine.py").write_text(MINE)
    family, *options = LINES[name]
    oracle = ("--oracle", f"{tmp_path / 'mine.py'}:{name}", "--retries", "0")
    assert main(["attack", family, *oracle, *options, "--seed", "1", "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", LINES)
def test_a_quota_ends_in_a_result_that_says_so(capsys, tmp_path, name):
    result = attack(capsys, tmp_path, name)
    assert "PermissionError: quota at question" in result["stopped"]
    assert result["questions"] >= 30


def test_too_few_answers_before_the_end_say_what_ended_them(capsys, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    oracle = ("--oracle", f"{tmp_path / 'mine.py'}:few_counts", "--retries", "0")
    assert main(["attack", *TABLE, *oracle, "--seed", "1"]) == 2
    error = capsys.readouterr().err
    assert "PermissionError: quota at question 21, " in error
    assert "the answers until then are too few for a result" in error
    assert len(error.splitlines()) == 1


def test_a_part_of_the_counts_that_the_answers_tell(capsys, tmp_path):
    """2,600 of 6,242 questions: all values are told by fewer sums, since these are asked in turn."""
    result = attack(capsys, tmp_path, "counts")
    assert result["unanswered"] > 0
    kept = tmp_path / "kept.jsonl"
    attack(capsys, tmp_path, "counts", "--ask", str(kept))
    paid = sum(json.loads(line)["answer"] is not None for line in kept.read_text().splitlines())
    assert paid == 2600
