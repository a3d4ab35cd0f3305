"""What a mechanism prints in Python goes to standard error: standard output is the result alone."""

import json
import subprocess
import sys

import pytest

from dpwitness.cli import main

PRINTS = """
from sys import stdout
print("at import")

def noisy(rng, data, size, epsilon):
    print("of a run")
    stdout.write("of a kept stream\\n")
    return data[0] + rng.laplace(0, 1 / epsilon, size)
"""
SAID = {"at import", "of a run", "of a kept stream"}
LINE = ["check", "prints.py:noisy", "--epsilon", "1", "--queries", "1", "--runs", "200", "--seed", "1", "--json"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "prints.py").write_text(PRINTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.campaign
def test_json_stays_json(place):
    code = "import sys; from dpwitness.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, *LINE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "not-refuted"
    assert set(done.stderr.splitlines()) >= SAID


def test_within_another_program_its_standard_output_comes_back(place, capfd):
    before = sys.stdout
    assert main(LINE) == 0
    assert sys.stdout is before
    print("after")
    out, err = capfd.readouterr()
    result, after = out[: out.rindex("}") + 1], out[out.rindex("}") + 1 :]
    assert json.loads(result)["verdict"] == "not-refuted"
    assert after.split() == ["after"]
    assert set(err.splitlines()) >= SAID
