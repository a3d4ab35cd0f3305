"""Programs of any language that answer requests for runs: what they get, what they answer, and how they fail."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpwitness as dpw
from dpwitness import cli
from dpwitness.errors import (
    InvalidNeighbours,
    InvalidOutcome,
    InvalidParameter,
    MechanismCrashed,
    MechanismRaised,
    MechanismTimeout,
)
from dpwitness.events.encoding import exception_code
from dpwitness.mechanisms import command as programs
from dpwitness.mechanisms.columns import OutputTraits
from dpwitness.mechanisms.command import CommandMechanism
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.outcomes import FlatRow
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.runs import Role
from programs import PYTHON, SERVER, served
from running import runner

LAPLACE = "print(data[0] + {scale} * (rng.expovariate(1) - rng.expovariate(1)))"
PAIR = dpw.pairs(([0.0], [1.0])).given[0]


def said(body, n=4, data=(0.0,), seed=0, **more):
    """Rows of some runs, of a mechanism that was not tried before."""
    errors = more.pop("errors", "raise")
    mechanism = CommandMechanism(Signature.of(served(body, **more), {}), errors=errors)
    return mechanism.outcomes(list(data), np.random.default_rng(seed), n)


CHECKED = {"claim": 1.0, "neighbours": [([0.0], [1.0])], "seed": 1, "workers": 1, "runs": 2_000, "search_runs": 1_000}


def test_sides_share_no_seeds_where_a_request_is_for_several_runs():
    mechanism = CommandMechanism(Signature.of(served("print(rng.random())", seeded=True, batch=3), {}))
    runs = PairedRuns.d_first(PAIR, 8, coupled=True)
    assert len(np.unique(mechanism.pair_outcomes(runs, np.random.default_rng(1)))) == 16


def test_the_sides_of_every_run_follow_each_other_in_a_random_order():
    mechanism = CommandMechanism(Signature.of(served("print(calls)"), {}))
    x, y = runner(mechanism).sample(PAIR, 512, Role.SEARCH)
    first = np.minimum(x, y)[:, 0]
    assert np.array_equal(first, first[0] + 2.0 * np.arange(512))
    assert np.array_equal(np.abs(x - y), np.ones((512, 1)))
    assert 180 < np.sum(x < y) < 332  # of 512 fair bits, but for one case in 10¹¹


@pytest.mark.parametrize("batch", [1, 3, 7, 100])
def test_the_dependence_test_knows_when_each_run_was_made(batch):
    mechanism = CommandMechanism(Signature.of(served("print(calls)", batch=batch), {}))
    order = np.array([0, 1, 1, 0, 1, 0, 1, 1, 0, 1], np.uint8)
    for _ in range(2):
        rows = mechanism.pair_outcomes(PairedRuns(pair=PAIR, order=order), np.random.default_rng(0))
        assert np.array_equal(mechanism.turns(order)[1:], rows[:, :, 0] - 1)


def test_a_program_that_keeps_its_noise_is_refused():
    body = "kept = kept if calls % 50 != 1 else rng.random(); print(data[0] + 4 * kept)"
    program = dpw.command([*PYTHON, "-c", "kept = 0.0\n" + SERVER.format(body=body)])
    with pytest.raises(dpw.DependentRuns):
        dpw.check(program, **{**CHECKED, "claim": 0.1, "runs": 20_000, "search_runs": 4_000})


#: What is written in a line, besides what `json.dumps` writes.
OUTCOMES = {
    "-0": -0.0, "[0, -0]": [0.0, -0.0], "-0.5e-3": -0.5e-3, "-Infinity": -math.inf, '"\\u00e9"': "é", ' 3\t': 3,
    "1e999": math.inf, "3\r": 3, '"\\ud800"': "\ud800",
}  # fmt: skip


@pytest.mark.parametrize("written", OUTCOMES)
def test_outcomes_in_any_form_of_json(written):
    assert said(f"print({written!r})")[0].tolist() == FlatRow(OutputTraits()).write(OUTCOMES[written])


INPUTS = [
    (np.arange(4.0).reshape(2, 2), [[0.0, 1.0], [2.0, 3.0]]),
    ((1, np.int64(2), np.float32(0.5), np.bool_(True)), [1, 2, 0.5, True]),
    ({"a": [None, "é"], 3: -math.inf}, {"a": [None, "é"], "3": -math.inf}),
    (pd.DataFrame({"a": [1, 2], "t": ["x", None]}, dtype=object), [{"a": 1, "t": "x"}, {"a": 2, "t": None}]),
    (pd.DataFrame({"when": pd.to_datetime(["2020-01-02", None])}), [{"when": "2020-01-02T00:00:00"}, {"when": None}]),
    (pd.DataFrame({"n": pd.array([1, None], "Int8")}), [{"n": 1}, {"n": None}]),
    (pd.Series([1.5, 2.5]), [1.5, 2.5]),
    (pl.DataFrame({"a": [1, None], "t": ["x", "é"]}), [{"a": 1, "t": "x"}, {"a": None, "t": "é"}]),
    (pl.LazyFrame({"when": [date(2020, 1, 2), None]}), [{"when": "2020-01-02"}, {"when": None}]),
    (pa.table({"a": [1.5, None], "f": [True, None]}), [{"a": 1.5, "f": True}, {"a": None, "f": None}]),
    (np.array([], "f4"), []),
]


@pytest.mark.parametrize(("value", "sent"), INPUTS, ids=lambda value: type(value).__name__)
def test_inputs_as_json(value, sent):
    line = programs.request_line(served("print(1)").write_input(value), 2, 7)
    assert json.loads(line) == {"input": sent, "runs": 2, "seed": 7}


ITSELF = []
ITSELF.append(ITSELF)


@pytest.mark.parametrize(
    "value",
    [b"ab", {1, 2}, 1j, [object()], {(1, 2): 3}, pd.DataFrame([[1, 2]], columns=["a", "a"]), np.array([1j]),
     np.array(1, "g"), pa.table([[1], [2]], ["a", "a"]), ITSELF],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_json_has_no_form_of_is_refused(value):
    with pytest.raises(InvalidNeighbours, match=r"cannot be sent"):
        served("print(1)")(value)


#: What a program does for a run, the error, and what is told of it.
HOSTILE = {
    "exits": ("sys.exit('the last word')", MechanismCrashed, r"exit code 1 \(the last word\) after 0 of 4"),
    "exits later": ("print(1, flush=True) if calls < 3 else sys.exit(3)", MechanismCrashed, "code 3 after 2 of 4"),
    "is killed": ("os.kill(os.getpid(), signal.SIGKILL)", MechanismCrashed, "signal 9 after 0 of 4"),
    "closes": ("os.close(0), os.close(1), time.sleep(60)", MechanismCrashed, "pipes"),
    "raises": ("1 / 0", MechanismCrashed, "exit code 1 .*ZeroDivisionError"),
    "hangs": ("time.sleep(60)", MechanismTimeout, r"0 of 4 answers, .* 0\.5 s"),
    "drips": ("[(sys.stdout.write('1'), sys.stdout.flush(), time.sleep(0.1)) for _ in range(600)]", MechanismTimeout,
              "0 of 4 answers"),
    # What is too much comes with the last line that was asked for, in one write: a later one may come after the read.
    "writes too much": ("print(1); calls == 4 and print(22)", MechanismCrashed, "4 lines .*'22'"),
    "writes a part too much": ("print(1); calls == 4 and print(22, end='')", MechanismCrashed, "4 lines .*'22'"),
    "never ends a line": ("while True: sys.stdout.write('9' * 65536)", MechanismCrashed,
                          "268,435,456 bytes for 4 answers, .*'999"),
    "never ends": ("while True: print(7)", MechanismCrashed, "4 lines .*'7|wrote '7.* before it"),
    "prints words": ("print('ready') if calls == 2 else print(1)", InvalidOutcome, "wrote 'ready'.* on run 11"),
    "no UTF-8": ("sys.stdout.buffer.write(b'\"\\xff\"\\n')", InvalidOutcome, "UTF-8.* on run 10"),
    "deep": ("print('[' * 500 + ']' * 500)", InvalidOutcome, "nested"),
    "a number of many digits": ("print('-' + '9' * 5000)", InvalidOutcome, "5,000 digits.* on run 10"),
    "controls a terminal": ("sys.exit('\\x1b[2J\\x07')", MechanismCrashed, r"code 1 \(\[2J\) after"),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_each_failure_is_one_clear_line(what):
    body, error, message = HOSTILE[what]
    hangs = error is MechanismTimeout
    mechanism = CommandMechanism(Signature.of(served(body, max_time=0.5 if hangs else 30.0, batch=1), {}))

    with pytest.raises(error, match=message) as caught:
        mechanism.outcomes([0.0], np.random.default_rng(0), 4, start=10)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert "runs from 10 on" in str(caught.value) or error is InvalidOutcome


def test_a_program_that_answers_with_its_input_is_refuted():
    assert dpw.check(dpw.command(["cat"]), **{**CHECKED, "runs": 500}).refuted


def ends(place):
    """Wait until the process whose number is in a file is gone."""
    for _ in range(200):
        if not _runs(int(place.read_text())):
            return
        time.sleep(0.05)
    pytest.fail("it still runs")


@pytest.mark.parametrize("behind", ["wait", "exit 3", "echo 1.5"])
def test_what_a_program_has_started_ends_with_it(tmp_path, behind):
    """Also where the program has exited before its child, which holds its pipes."""
    program = dpw.command(["sh", "-c", f"read _; sleep 77 & echo $! > {tmp_path / 'pid'}; {behind}"], max_time=0.5)
    if behind == "echo 1.5":
        assert program([0.0]) == 1.5
    else:
        error, message = (MechanismTimeout, "within") if behind == "wait" else (MechanismCrashed, "with exit code 3")
        with pytest.raises(error, match=message):
            program([0.0])
    del program
    ends(tmp_path / "pid")


def _runs(pid):
    """Whether a process is there, and no zombie that nobody waits for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_program_that_ended_between_requests_is_started_again():
    program = served("print(os.getpid())")
    first = program([0.0])
    assert program([0.0]) == first
    os.kill(first, signal.SIGKILL)
    while _runs(first):
        time.sleep(0.01)
    assert program([0.0]) != first


def test_an_error_is_reported_in_one_form_and_between_other_outcomes():
    rows = said("print(json.dumps({'error': 'no records'} if calls % 3 == 0 else 0.5))", n=6, errors="outcome")
    assert sorted(rows[:, 0]) == [exception_code("no records")] * 2 + [0.5] * 4
    with pytest.raises(MechanismRaised, match="no records"):
        said("print(json.dumps({'error': 'no records'}))")
    assert said("print(json.dumps({'error': 1}))").shape[1] > 1  # of another form: an outcome as any other


def test_at_the_deadline_of_a_check_the_program_is_ended(tmp_path):
    body = (
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60 * data[0]); print(rng.random())"
    )
    mechanism = as_mechanism(served(body), [0.0])
    with pytest.raises(MechanismTimeout, match="in time"):
        dpw.check(mechanism, **{**CHECKED, "search_runs": 64}, max_time=0.5)
    ends(tmp_path / "pid")


@pytest.mark.parametrize(
    ("argv", "more", "told"),
    [
        ([], {}, r"argv=\[\]"),
        ("./release --epsilon 1", {}, "argv=.*release"),
        (["no-such-program"], {}, "'no-such-program'"),
        (["cat", "a\0"], {}, "argv="),
        (["cat"], {"batch": 0}, "batch=0"),
        (["cat"], {"max_time": 0}, "max_time=0"),
        (["cat"], {"seeded": "yes"}, "seeded='yes'"),
    ],
)
def test_what_is_no_command(argv, more, told):
    with pytest.raises(InvalidParameter, match=told):
        dpw.command(argv, **more)


def test_a_file_that_cannot_be_started(tmp_path):
    (tmp_path / "program").write_text("#!/no/such/interpreter\n")
    (tmp_path / "program").chmod(0o700)
    with pytest.raises(InvalidParameter, match="cannot be started: No such file"):
        dpw.check(dpw.command([str(tmp_path / "program")]), **CHECKED)


def test_the_working_folder_is_that_of_the_beginning(tmp_path, monkeypatch):
    (tmp_path / "server.py").write_text(SERVER.format(body="print(3)"))
    monkeypatch.chdir(tmp_path)
    program = dpw.command([*PYTHON, "server.py"])
    monkeypatch.chdir("/")
    assert program([0.0]) == 3


#: Arguments of `check`, and what the line of the error names.
LINES = {
    "no target": ([], "TARGET.* --command"),
    "both": (["svt", "--command", "cat"], "--command .*TARGET"),
    "another interpreter": (["--command", "cat", "--python", "python3"], "--python"),
    "parameters": (["--command", "cat", "--set", "a=1"], "--set"),
    "seeded": (["svt", "--seeded"], "--seeded"),
    "quotes": (["--command", "cat '"], "quotation"),
    "nothing": (["--command", ""], "must be a program"),
    "ends": (["--command", "sh -c 'echo so >&2; exit 3'"], r"exit code 3 \(so\)"),
    "no JSON": (["--command", "sh -c 'while read -r x; do echo so; done'"], "wrote 'so'.* on run 0"),
}


@pytest.mark.parametrize("what", LINES)
def test_on_the_command_line_it_is_one_line_and_exit_code_2(what, capsys):
    more, message = LINES[what]
    pair = ["--epsilon", "1", "--pair", "[0]", "[1]", "--quiet", "--workers", "1"]
    assert cli.main(["check", *more, *pair]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert re.search(message, err)
    assert err.startswith("dpwitness: error: ")
    assert err.count("\n") == 1


@pytest.mark.campaign
def test_a_program_is_checked_saved_and_replayed_on_the_command_line(tmp_path, capsys, monkeypatch):
    (tmp_path / "leaky.py").write_text(SERVER.format(body=LAPLACE.format(scale=0.1)))
    monkeypatch.chdir(tmp_path)
    line = f"{sys.executable} -S leaky.py"
    common = ["--seed", "1", "--workers", "1", "--quiet"]
    given = ["--epsilon", "1", "--pair", "[0.0]", "[1.0]", "--runs", "2000", "--save", "result.json", *common]
    assert cli.main(["check", "--command", line, "--seeded", "--batch", "2", *given]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert f"VIOLATED: {line} is not 1-DP" in told
    assert f"reproduce: dpwitness check --command '{line}' --seeded --batch 2 --epsilon 1 --pair" in told
    assert cli.main(["replay", "result.json", "--command", line, *common, "--seed", "2"]) == 1
    assert "is not 1-DP" in capsys.readouterr().out
    assert cli.main(["replay", "result.json", *common]) == 2
    assert "--command PROGRAM" in capsys.readouterr().err
    assert dpw.replay("result.json", dpw.command([*PYTHON, "leaky.py"]), seed=3, workers=1).refuted


DOCS = Path(__file__).parents[2] / "docs"
#: By file: what makes a program of it, what runs that, and whether the random numbers follow from the seed.
SERVERS = {
    "server.cpp": (["c++", "-O1", "server.cpp", "-o", "release"], ["./release"], True),
    "server.rs": (["rustc", "server.rs", "-o", "release"], ["./release"], True),
    "server.go": (["go", "build", "-o", "release", "server.go"], ["./release"], False),
    "server.R": (None, ["Rscript", "server.R"], False),
    "server.sh": (None, ["sh", "server.sh"], True),
    "release.py": (None, [*PYTHON, "release.py"], True),
}


@pytest.mark.parametrize("file", SERVERS)
def test_the_servers_of_the_page_answer(file, tmp_path, monkeypatch):
    """Noise of scale ½ around the sum: the mean of 600 is near it, but for one case in 10¹⁵."""
    build, argv, seeded = SERVERS[file]
    for tool in (build or argv)[:1]:
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool} on this machine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOCACHE", str(tmp_path / "cache"))
    example, page = DOCS / "examples" / file, (DOCS / "command.md").read_text()
    shown = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
    Path(file).write_text(shown if file == "release.py" else example.read_text())
    if build is not None:
        subprocess.run(build, check=True, capture_output=True, timeout=300)
    program = dpw.command([*argv, "2"], seeded=seeded, batch=50)
    mechanism = CommandMechanism(Signature.of(program, {}))
    for data in ([1, 2.5], [-3], []):
        rows = np.stack([mechanism.outcomes(data, np.random.default_rng(5), 600) for _ in range(2)])
        assert abs(rows.mean(axis=1) - sum(data)).max() < 8 * 0.5 * math.sqrt(2 / 600)
        assert (len(np.unique(rows)) == 600) == seeded
