"""Every command and every program in the README is run."""

import re
import shlex
from pathlib import Path

import pytest

from dpwitness.cli import main

README = (Path(__file__).parents[2] / "README.md").read_text()
COMMANDS = re.findall(r"^\$ (dpwitness .*)$", README, re.MULTILINE)
TABLE = re.findall(r"^\| `(dpwitness .*?)` \|", README, re.MULTILINE)
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_first_screen_has_the_command_that_ci_runs():
    assert "$ pip install . && dpwitness check isvt3 --epsilon 0.7" in README.splitlines()[:20]
    assert "$ pip install -e '.[test]' && pytest" in README


@pytest.mark.parametrize("command", COMMANDS + TABLE)
def test_commands(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    named = next(program for program in PROGRAMS if program.startswith("# mine.py"))
    Path("mine.py").write_text(named)
    if "WITNESS.json" in command:
        assert main(["check", "isvt1", "--epsilon", "0.7", "--save", "WITNESS.json"]) == 1
    words = shlex.split(command.replace("TARGET", "laplace_mechanism").replace(" E", " 0.7").replace("2e7", "1e5"))[1:]
    if words[0] == "curve":
        words += ["--runs", "2e4"]
    expected = 1 if words[0] == "replay" else 0
    assert main(words) == expected
    assert capsys.readouterr().out


@pytest.mark.parametrize("program", [p for p in PROGRAMS if "dpw.check" in p])
def test_programs(program, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "README.md", "exec"), {"__name__": "readme"})
    assert "would have caught" in capsys.readouterr().out


def test_the_shown_output_has_the_shape_of_the_real_one(capsys):
    shown = re.search(r"```text\n(VIOLATED.*?)```", README, re.DOTALL).group(1)
    assert main(["check", "isvt3", "--epsilon", "0.7"]) == 1
    real = capsys.readouterr().out
    assert shown.splitlines()[0] == real.splitlines()[0]
    for line in shown.splitlines()[1:-1]:
        assert line[:15] in real


def test_the_shown_test_fails_with_a_witness(pytester):
    program = next(p for p in PROGRAMS if p.startswith("# test_noisy_count.py"))
    pytester.makepyfile(test_noisy_count=program)
    result = pytester.runpytest_inprocess("--dp-seed=7", "--dp-profile=dev", "-p", "no:hypothesispytest")
    result.assert_outcomes(failed=1)
    shown = re.findall(r"```text\n(VIOLATED.*?)```", README, re.DOTALL)[1]
    real = result.stdout.str()
    for line in shown.splitlines():
        assert line[:10] in real
