"""`[tool.dpwitness]` of pyproject.toml: defaults of the command line and of the pytest plugin."""

import json
from pathlib import Path

import pytest
from command_lines import refusal

import dpwitness.plugin.asserter  # noqa: F401  # pytester drops what an inner run imports; numba's is loaded once
from dpwitness.cli import main
from dpwitness.errors import DPWitnessError
from dpwitness.project import nearest, project_of

NOISY = """
def noisy(rng, data, epsilon):
    return data[0] + rng.laplace(0, 1 / epsilon)
"""
TEST = """
from mine import noisy


def test_noisy(assert_private):
    assert_private(noisy, epsilon=1.0, neighbours=[([0], [1])])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(NOISY)
    return tmp_path


def settings(*lines):
    Path("pyproject.toml").write_text("\n".join(["[tool.dpwitness]", *lines]))


def check(capsys, *options):
    code = main(["check", "mine.py:noisy", "--epsilon", "1", "--pair", "[0]", "[1]", "--json", *options])
    printed = capsys.readouterr()
    return code, json.loads(printed.out) if printed.out else printed.err


def test_the_command_line_takes_the_settings_and_comes_before_them(folder, capsys):
    settings("alpha = 1e-4", "seed = 7", "runs = 5_000", "workers = 1", 'max-time = "20s"', 'bits = "off"')
    (folder / "below" / "deeper").mkdir(parents=True)
    code, found = check(capsys)
    assert (code, found["alpha"], found["seed"], found["runs"]["confirm"]) == (0, 1e-4, 7, 5_000)
    code, found = check(capsys, "--alpha", "1e-6", "--seed", "8", "--runs", "6e3")
    assert (code, found["alpha"], found["seed"], found["runs"]["confirm"]) == (0, 1e-6, 8, 6_000)


def test_the_nearest_file_counts_alone(folder, monkeypatch):
    settings("alpha = 1e-4")
    inner = folder / "a" / "b"
    inner.mkdir(parents=True)
    assert nearest(inner) == folder / "pyproject.toml"
    (folder / "a" / "pyproject.toml").write_text("[project]\nname = 'dpwitness-user'\n")
    assert nearest(inner) == folder / "a" / "pyproject.toml"
    assert project_of(nearest(inner)).settings == {}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("alhpa = 1", "has no setting 'alhpa'; did you mean 'alpha'?"),
        ("alpha = nan", "alpha=nan must lie between 0 and 1"),
        ("confidence = '99'", "confidence='99' must be a number"),
        ("runs = 0", "runs=0 must be a whole number at least 1"),
        ("max-time = 'soon'", "max-time='soon' must be a time"),
        ("bits = true", "bits=True must be one of report, strict, off"),
        ("suppress = 1", "suppress=1 must be a list of health checks"),
        ("suppress = ['x']", "suppress='x' must be one of identical_inputs, "),
        ("profile = 'fast'", "profile='fast' must be one of dev, ci, nightly"),
        ("= 3", "is not TOML"),
    ],
)
def test_a_bad_setting_is_one_line_with_file_and_key(folder, capsys, line, said):
    settings(line)
    error = refusal(capsys, "check", "mine.py:noisy", "--epsilon", "1", "--pair", "[0]", "[1]")
    assert error.startswith("pyproject.toml")
    assert said in error


def test_a_file_that_does_not_name_us_is_not_parsed(folder):
    Path("pyproject.toml").write_text("= this is no TOML")
    assert project_of(Path("pyproject.toml")).settings == {}
    Path("pyproject.toml").write_text("[tool]\ndpwitness = 3\n")
    with pytest.raises(DPWitnessError, match=r"tool\.dpwitness\] must be a table"):
        project_of(Path("pyproject.toml"))


@pytest.fixture
def session(pytester, loaded, monkeypatch):
    """Run a small project with settings; return its result and the report of it."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:benchmark")

    def run(*options, lines=()):
        pytester.makepyprojecttoml("\n".join(["[tool.dpwitness]", *lines]))
        pytester.makepyfile(mine=NOISY, test_it=TEST)
        result = pytester.runpytest_inprocess("-p", "no:randomly", "--dp-report=dp.json", *options)
        path = pytester.path / "dp.json"
        return result, json.loads(path.read_text()) if path.exists() else None

    return run


@pytest.mark.campaign
def test_the_plugin_takes_the_settings_and_its_options_come_before_them(session, pytester):
    lines = ("alpha = 1e-4", "runs = 20_000", "seed = 3", "profile = 'ci'", "bits = 'off'", "database = 'kept'")
    result, report = session(lines=lines)
    result.stdout.fnmatch_lines("dpwitness: profile ci, --dp-seed=3, α = 0.0001 for the session")
    assert (report["profile"], report["seed"], report["alpha"]) == ("ci", 3, 1e-4)
    assert report["assertions"][0]["runs"]["confirm"] <= 20_000
    result, report = session("--dp-alpha=1e-5", "--dp-profile=dev", "-o", "dp_seed=4", lines=lines)
    assert (report["profile"], report["seed"], report["alpha"]) == ("dev", 4, 1e-5)


def test_a_bad_setting_ends_the_session_with_one_line(session):
    result, report = session(lines=["alhpa = 1"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = "has no setting 'alhpa'; did you mean 'alpha'?"
    result.stderr.fnmatch_lines(f"ERROR: pyproject.toml: [[]tool.dpwitness[]] {said}*")
    assert report is None
