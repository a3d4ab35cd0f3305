"""The museum: its exhibits are complete, and its runner says what it found. The releases themselves need a registry."""

import json
import runpy
import sys

import museum.exhibits
import pytest
from museum import __main__ as command
from museum import environments, exhibit, visit
from museum.exhibit import KINDS

import dpwitness as dpw

EXHIBITS = exhibit.exhibits()


def test_exhibits_have_names_of_their_own():
    files = {found.file for found in EXHIBITS.values()}
    assert (
        sum(len(list(runpy.run_path(str(file))["exhibits"](dpw, exhibit.Exhibit))) for file in files)
        == len(EXHIBITS)
        > 0
    )


@pytest.mark.parametrize("name", EXHIBITS)
def test_an_exhibit_is_complete(name):
    found = EXHIBITS[name]
    assert found.name == name
    assert found.kind in KINDS
    assert found.promised.strip()
    assert found.source.strip()
    assert found.fault.strip()
    assert 0 < found.max_time <= 60
    assert {found.release, found.fixed} - {None} <= set(environments.PINS)
    assert found.kind != "control" or found.fixed is None
    assert all("==" in pin for pin in environments.PINS[found.release])


SOURCE = """
import random


def {name}(value):
    return value if random.random() < {truthful} else 1 - value


def exhibits(dpw, Exhibit):
    return [Exhibit(
        release="nothing==1.0", function={name}, promised="1-DP", source="here", fault="It tells too much.",
        claim=dpw.PureDP(1.0), kind="{kind}", max_time=20.0, options={{"runs": 20_000}},
        neighbours=dpw.records(dpw.integers(0, 1), adjacency="replace-one", size=1, form="record"),
    )]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A museum of which no exhibit needs another environment."""
    package = tmp_path / "exhibits"
    package.mkdir()
    monkeypatch.setattr(exhibit, "FOLDER", package)
    monkeypatch.setattr(museum.exhibits, "__path__", [str(package)])
    monkeypatch.setattr(visit, "interpreter", lambda release, folder: sys.executable)
    yield package
    for name in [name for name in sys.modules if name.startswith("museum.exhibits.fake")]:
        del sys.modules[name]


@pytest.mark.campaign
def test_a_refuted_exhibit_is_a_row_with_a_witness(folder, tmp_path, capsys):
    (folder / "fake_bug.py").write_text(SOURCE.format(name="fake_bug", truthful=0.99, kind="undisputed"))
    rows, table, witnesses = tmp_path / "rows.json", tmp_path / "table.md", tmp_path / "witnesses"
    code = command.main([
        "fake_bug", "--seeds", "2", "--json", str(rows), "--markdown", str(table), "--witnesses", str(witnesses),
    ])  # fmt: skip
    assert code == 0, capsys.readouterr().out
    (row,) = json.loads(rows.read_text())
    assert row["right"] == 2
    assert {check["verdict"] for check in row["checks"]} == {"refuted"}
    assert {check["replayed"] for check in row["checks"]} == {"refuted"}
    assert all(1.0 < check["lower_bound"] < 4.6 for check in row["checks"])  # ln 99 = 4.595
    assert "| nothing==1.0 | `fake_bug` | undisputed | ε = 1 |" in table.read_text()
    assert dpw.Witness.load(witnesses / "fake_bug-nothing==1.0-0.json").claim == dpw.PureDP(1.0)


@pytest.mark.campaign
def test_a_verdict_that_is_not_expected_is_exit_code_1(folder, capsys):
    (folder / "fake_control.py").write_text(SOURCE.format(name="fake_control", truthful=0.99, kind="control"))
    assert command.main([]) == 1
    printed = capsys.readouterr().out
    assert "NOT EXPECTED: nothing==1.0, seed 0: refuted, replayed: refuted; expected: not refuted" in printed
    assert "not expected: fake_control" in printed


def test_a_mechanism_that_fails_is_no_verdict(folder, capsys):
    source = SOURCE.format(name="fake_failing", truthful=0.9, kind="undisputed")
    source = source.replace("return value if", "raise OSError; return value if")
    (folder / "fake_failing.py").write_text(source)
    assert command.main(["fake_failing"]) == 1
    assert "OSError" in capsys.readouterr().out


def test_the_list_runs_nothing_and_unknown_names_are_exit_code_2(capsys):
    assert command.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(EXHIBITS)
    with pytest.raises(SystemExit) as ended:
        command.main(["nothing_of_this_name"])
    assert ended.value.code == 2
    assert "nothing_of_this_name" in capsys.readouterr().err
