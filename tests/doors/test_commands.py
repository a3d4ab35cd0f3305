"""The commands around checks: compare, doctor, init, and completion in shells."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_lines import refusal, run

import dpwitness as dpw
from conftest import without_processes
from dpwitness.cli import main
from dpwitness.errors import InvalidWitness
from dpwitness.report.comparison import compare

ONE = dpw.queries(1)


def good(rng, data, epsilon, size):
    return data[0] + rng.laplace(0, 1 / epsilon, size)


def bad(rng, data, epsilon, size):
    return data[0] + rng.laplace(0, 0.5 / epsilon, size)


def checked(function, **settings):
    return dpw.check(function, epsilon=1.0, neighbours=ONE, **{"seed": 1, "runs": 30_000, "bits": False} | settings)


@pytest.fixture(scope="module")
def verdicts():
    """A pass, a violation, and a pass of fewer runs, as JSON."""
    with without_processes():
        return [found.to_json() for found in (checked(good), checked(bad), checked(good, runs=8_000))]


def report(*verdicts, name="test_it.py::test"):
    """A report of the plugin, as far as it is compared."""
    assertions = [{**verdict, "test": name, "assertion": k, "claim": "ε = 1"} for k, verdict in enumerate(verdicts, 1)]
    return {"format": "dpwitness-report/1", "assertions": assertions}


def kinds(old, new):
    return [change.kind for change in compare(old, new).changes]


def test_compare_of_reports_goes_test_by_test(verdicts):
    passed, violated, _ = verdicts
    refused, other = report({"verdict": "unhealthy", "reason": "too slow"}), report(passed)
    other["assertions"][0]["claim"] = "ε = 2"
    for old, new, expected in (
        (report(passed, passed), report(passed, violated), ["newly refuted"]),
        (report(passed), report(passed, violated), ["newly refuted"]),  # a new assertion that is refuted
        (report(passed), report(passed, passed), ["added"]),
        (report(passed, passed), report(passed), ["removed"]),
        (report(violated), refused, ["no verdict any more"]),
        (refused, refused, []),
        (refused, report(violated), ["newly refuted"]),
        (refused, report(passed), ["changed"]),
        (report(passed), other, ["changed"]),
    ):
        assert kinds(old, new) == expected
    shown = str(compare(report(passed, passed), report(passed, violated)))
    assert shown.startswith("newly refuted: test_it.py::test (assertion 2)\n")
    assert shown.endswith("1 newly refuted, 1 unchanged")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["compare", "-", "-"], "- is given for OLD.json and NEW.json, and standard input can be read once"),
        (["report", "-", "-", "-o", "page.html"], "- is given for RESULT.json and RESULT.json, "),
        (["check", "svt", "--epsilon", "1", "--data", "-", "--records", "-"], "- is given for --records and --data, "),
    ],
)
def test_standard_input_is_read_for_one_file_only(command, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert refusal(capsys, *command).startswith(said)


def test_compare_calls_what_an_interrupted_session_lacks_not_run(verdicts):
    passed, violated, _ = verdicts
    cut_off = {**report(passed), "interrupted": True}
    found = compare(report(passed, passed), cut_off)
    assert [change.kind for change in found.changes] == ["not run"]
    assert str(found).splitlines()[1:] == [
        "the new session was interrupted: tests that did not run are not compared", "1 not run, 1 unchanged",
    ]  # fmt: skip
    assert found.to_json()["interrupted"]
    assert not compare(cut_off, report(passed)).interrupted
    assert kinds(report(passed, passed), {**report(violated), "interrupted": True}) == ["newly refuted", "not run"]


def test_compare_sees_lost_power_and_last_bits(verdicts):
    passed, violated, _ = verdicts
    nothing = {**passed, "detectable": None, "detectable_epsilon": None}
    for old, new in ((passed, nothing), (nothing, passed)):
        (change,) = compare(old, new).changes
        assert change.kind == "changed"
        assert re.fullmatch(r"would have caught (nothing → ε ≥ \S+|ε ≥ \S+ → nothing)", change.details[-1])
    leaks = {**passed, "floating_point": violated}
    for old, new in ((passed, leaks), (report(passed), report(leaks)), (passed, {**passed, "others": [leaks]})):
        (change,) = compare(old, new).changes
        assert change.kind == "newly refuted by last bits"
        (change,) = compare(new, old).changes
        assert re.fullmatch(r"last bits ε ≥ \S+ → no finding", change.details[0])
        assert not compare(old, new).newly_refuted


def test_compare_refuses_what_is_no_result_or_damaged(verdicts):
    passed = verdicts[0]
    for value in (3, {}, {"verdict": "violated"}, {"format": "dpwitness-report/1", "assertions": [{"test": 1}]}):
        for pair in ((value, passed), (passed, value)):
            with pytest.raises(InvalidWitness):
                compare(*pair)
    for damage in ({"parameters": [1]}, {"parameters": None}, {"lower_bound": 10**400}, {"detectable": 10**400}):
        with pytest.raises(InvalidWitness, match="the new result is a damaged report"):
            compare(report(passed), report({**passed, **damage}))


def test_compare_as_a_command(verdicts, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, value in zip(("passed", "violated"), verdicts, strict=False):
        Path(f"{name}.json").write_text(json.dumps(value))
    assert main(["compare", "passed.json", "violated.json"]) == 1
    assert capsys.readouterr().out.startswith("newly refuted: ")
    assert main(["compare", "violated.json", "passed.json", "--json", "--save", "changes.json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(Path("changes.json").read_text())
    assert refusal(capsys, "compare", "passed.json", "none.json").startswith("cannot read none.json")


SOURCES = {
    "noisy_sum": "def noisy_sum(rng, data, epsilon):\n    return data.sum() + rng.laplace(0, 1 / epsilon)\n",
    "half_noise": "def half_noise(rng, data, epsilon):\n    return data.sum() + rng.laplace(0, 0.5 / epsilon)\n",
    "clipped": "def clipped(values, bound, *, epsilon, rng):\n"
    "    return values.clip(0, bound).sum() + rng.laplace(0, bound / epsilon)\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("\n".join(SOURCES.values()) + "\nraise_if_run = 1\n")
    return tmp_path


def edited(text):
    """What `init` wrote, with each value taken as it was guessed."""
    return "".join(line for line in text.splitlines(keepends=True) if "TODO" not in line)


def run_pytest(*files):
    """The exit code and output of pytest in a process of its own."""
    options = ["-p", "no:hypothesispytest", "-p", "no:cacheprovider", "-q", "--dp-seed=1", "--dp-runs=30000"]
    options += ["-o", "dp_suppress=low_power too_slow", "--dp-max-time=30s"]  # how fast this machine is decides nothing
    done = subprocess.run([sys.executable, "-m", "pytest", *options, *map(str, files)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.campaign
def test_the_tests_that_init_writes_pass_or_fail_by_themselves(folder, capsys):
    files = {name: Path(f"test_{name}.py") for name in SOURCES}
    for name, file in files.items():
        assert main(["init", f"mine.py:{name}"]) == 0
        assert f"wrote a test to {file}" in capsys.readouterr().out
    found, said = run_pytest(*files.values())
    assert (found, "3 failed" in said, "TODO: set each value of" in said) == (1, True, True), said
    for file in files.values():
        file.write_text(edited(file.read_text()))
    found, said = run_pytest(*files.values())
    assert (found, "VIOLATED: half_noise" in said, "1 failed, 2 passed" in said) == (1, True, True), said


def test_init_never_overwrites(folder, capsys):
    Path("test_noisy_sum.py").write_text("mine")
    assert "test_noisy_sum.py exists: move it, or delete it" in refusal(capsys, "init", "mine.py:noisy_sum")
    assert Path("test_noisy_sum.py").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mine.py:noisy_sun"], "mine.py has no function 'noisy_sun' at its top; did you mean 'noisy_sum'?"),
        (["none.py:f"], "there is no Python source none.py that can be read"),
        (["isvt3"], "'isvt3' must be FILE.py:FUNCTION"),
        (["my-own.py:f"], "cannot be imported by its name"),
        (["my-own.py:no_data"], "my-own.py:no_data has no parameter for the input: give it one, such as `data`"),
    ],
)
def test_what_init_refuses(folder, capsys, arguments, said):
    Path("my-own.py").write_text("def f(rng, x): return 0\ndef no_data(rng, epsilon): return 0\n")
    assert said in refusal(capsys, "init", *arguments)
    assert not [*Path().glob("test_*.py")]


def test_evidence_goes_on_in_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def flipped(rng, x, size):\n    return (x[0] > 0) ^ (rng.random(size) < 0.25)\n")
    line = ["check", "mine.py:flipped", "--claim", "1", "--pair", "[0]", "[1]", "--runs", "500", "--seed", "1"]
    line += ["--bits", "off", "--quiet", "--keep", "kept.json"]
    assert run(capsys, *line)[0] == 0
    code, out, _ = run(capsys, *line, "--details")
    assert code == 0
    assert re.search(r"note: kept evidence: log e-value \S+ of 14.5 needed, from \w{8} \(500 runs, log e-value", out)
    assert "would overwrite the file of --keep" in refusal(capsys, *line, "--save", "kept.json")
    Path("kept.json").write_text("[]")
    assert "kept.json: the kept evidence is damaged: " in refusal(capsys, *line)
    assert "there is no folder nowhere" in refusal(capsys, *line[:-1], "nowhere/kept.json")
