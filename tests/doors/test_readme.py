"""Every command and every program in the README is run."""

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import dpwitness as dpw
from dpwitness.cli import main

README = (Path(__file__).parents[2] / "README.md").read_text()
COMMANDS = re.findall(r"^\$ (dpwitness .*)$", README, re.MULTILINE)
TABLE = re.findall(r"^\| `(dpwitness .*?)` \|", README, re.MULTILINE)
#: What takes seconds, which .ci/run runs.
SLOW = ("--size 128", "--adaptive")
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_first_screen_has_the_command_that_ci_runs():
    assert "$ pip install . && dpwitness check isvt3 --epsilon 0.7" in README.splitlines()[:20]
    assert "$ pip install -e '.[test]' && pytest" in README


@pytest.mark.parametrize(
    "command",
    [pytest.param(one, marks=[pytest.mark.campaign] * any(word in one for word in SLOW)) for one in COMMANDS + TABLE],
)
def test_commands(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for program in PROGRAMS:
        if program.startswith("# "):
            Path(program.splitlines()[0].removeprefix("# ")).write_text(program)
    Path("people.csv").write_text("age,city\n30,Bern\n41,Basel\n77,Bern\n")
    if "WITNESS.json" in command:
        assert main(["check", "isvt1", "--epsilon", "0.7", "--save", "WITNESS.json"]) == 1
    words = shlex.split(command.replace("TARGET", "laplace_mechanism").replace(" E", " 0.7").replace("2e7", "1e5"))[1:]
    if words[0] == "curve":
        words += ["--runs", "2e4"]
    expected = 1 if words[0] == "replay" or "mean_age.py" in command else 0
    assert main(words) == expected
    assert capsys.readouterr().out


@pytest.mark.parametrize("program", [p for p in PROGRAMS if "dpw.check" in p and "__main__" not in p])
def test_programs(program, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "README.md", "exec"), {"__name__": "readme"})
    assert "would have caught" in capsys.readouterr().out


@pytest.mark.campaign
def test_the_program_of_real_data_finds_the_pair(tmp_path):
    """It is a script: as `__main__` it checks, imported it defines the mechanism alone."""
    (tmp_path / "mean_age.py").write_text(next(p for p in PROGRAMS if p.startswith("# mean_age.py")))
    done = subprocess.run([sys.executable, "mean_age.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("VIOLATED: mean_age(epsilon=1) is not 1-DP")
    assert "DataFrame of 0 rows" in done.stdout


def test_the_names_in_the_text_exist():
    """Names of the public door, and options of the command line."""
    for name in re.findall(r"\bdpw\.(\w+)", README):
        assert hasattr(dpw, name), name
    with contextlib.redirect_stdout(io.StringIO()) as out:
        for command in ("check", "replay"):
            with contextlib.suppress(SystemExit):
                main([command, "--help"])
    known = set(re.findall(r"--[a-z][a-z-]*", out.getvalue()))
    section = README[README.index("## Real data") : README.index("## Commands")]
    assert set(re.findall(r"--[a-z][a-z-]*", section)) <= known


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
