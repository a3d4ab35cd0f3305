"""The command `one-run`: its result is that of the function, and files that cannot be used are refused by line."""

import json

import numpy as np
import pytest
from command_lines import refusal, run

import dpwitness as dpw


def test_the_command(tmp_path, capsys):
    rng = np.random.default_rng(1)
    inner, outer = rng.standard_normal(210) + 1.5, rng.standard_normal(190)
    path = tmp_path / "scores.csv"
    path.write_text("in,score\n" + "".join(f"1,{x}\n" for x in inner) + "".join(f"0,{x}\n" for x in outer))
    code, printed, _ = run(capsys, "one-run", path, "--epsilon", 1, "--delta", 1e-5, "--seed", 3, "--json")
    assert code == 1
    assert json.loads(printed) == dpw.one_run(inner, outer, dpw.ApproxDP(1, 1e-5), seed=3).to_json()
    code, printed, _ = run(capsys, "one-run", path, "--claim", "3", "--guesses", 300)
    assert code == 0
    assert printed.startswith("NOT REFUTED: 3-DP")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("score,inside\n1,1\n", 'has no column "in"; its columns: score, inside'),
        ("score,in\n1,1\n2,maybe\n", "line 3: in='maybe' must be 1 or 0"),
        ("score,in\n1,1\nx,0\n", "line 3: score='x' must be a number"),
        ("score,in\n", "holds no records"),
    ],
)
def test_files_that_are_refused(tmp_path, capsys, text, said):
    path = tmp_path / "scores.csv"
    path.write_text(text)
    assert said in refusal(capsys, "one-run", path, "--epsilon", 1)


def test_a_claim_is_needed(tmp_path, capsys):
    assert "--epsilon or --claim" in refusal(capsys, "one-run", tmp_path / "scores.csv")
