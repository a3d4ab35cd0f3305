"""Exit 1 means a violation, exit 0 that none was found, and nothing else does: 2, 70 and 130 are all the rest."""

import contextlib
import io
import itertools
import json
import math
import os
import shlex
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from command_lines import refusal, run

import dpwitness as dpw
from conftest import without_processes
from dpwitness.cli import console, main
from dpwitness.cli import output as results_of_commands
from dpwitness.mechanisms.catalog import load

#: What mechanisms do in a run, by the name of the mechanism.
DOES = {
    "noisy": "return data[0] + rng.laplace(0, 1 / epsilon)",
    "leaves": "sys.exit(0)",
    "leaves_in_a_run": "CALLS.append(None); return rng.random() if len(CALLS) <= 30 else sys.exit(0)",
    "ends": "raise GeneratorExit('no luck')",
    "panics": "raise Panic('no luck')",
    "stops": "os.kill(os.getpid(), signal.SIGINT); return 1.0",
    "is_ended": "os.kill(os.getpid(), signal.SIGTERM); return 1.0",
    "swallows": """
        try:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                pass
        except BaseException:
            raise ValueError("something else") from None""",
}
MINE = """
import os, signal, sys
CALLS = []
class Panic(BaseException): ...
""" + "\n".join(f"def {name}(rng, data, epsilon):\n        {does}" for name, does in DOES.items())


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def results():
    """One of each kind, from few runs; a curve and a bound too."""
    given = {"epsilon": 1.0, "seed": 1, "runs": 20_000}
    laplace = load("laplace_mechanism")
    with without_processes():
        violation = dpw.check(laplace, claim=0.1, **given)
        passed = dpw.check(laplace, **given)
        bound = dpw.bound(laplace, **given)
        curve = dpw.curve(laplace, **given | {"epsilon": [1.0]}, claims=[0.5, 1.5])
        profile = dpw.profile(laplace, claim=0.1, **given)
    assert isinstance(violation, dpw.Violation)
    assert isinstance(passed, dpw.NotRefuted)
    return {"violated": violation, "passed": passed, "bound": bound, "curve": curve, "profile": profile}


@pytest.fixture
def give(results, monkeypatch):
    """Let the commands get a result without a run; returns the arguments that ask for it."""

    def arrange(kind, **changes):
        result = replace(results[kind], **changes)
        name = kind if kind in ("bound", "curve", "profile") else "check"
        monkeypatch.setattr(dpw, name, lambda *_, **__: result)
        return [name, "laplace_mechanism", "--epsilon", "1", *(["--claims", "0.5,1.5"] if name == "curve" else [])]

    return arrange


def run_on(monkeypatch, capsys, stream, *arguments):
    """Run with another standard output."""
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        code = main([*map(str, arguments)])
    return code, capsys.readouterr().err


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


EXPECTED = {"violated": 1, "passed": 0, "bound": 0, "curve": 0, "profile": 1}


def broken_pipe():
    """As of `dpwitness … | head -1`."""
    read, write = os.pipe()
    os.close(read)
    return os.fdopen(write, "w")


#: Standard outputs, and whether a command can say all that it found on them; a reader who has enough does not mind.
STREAMS = {
    "whole": (io.StringIO, True),
    "broken pipe": (broken_pipe, True),
    "none": (lambda: None, False),
    "closed": (closed, False),
    "full": (partial(Path.open, Path("/dev/full"), "w"), False),
}


@pytest.mark.parametrize("kind", EXPECTED)
@pytest.mark.parametrize("stream", STREAMS)
def test_no_standard_output_hides_a_violation_or_invents_one(give, monkeypatch, capsys, kind, stream):
    made, whole = STREAMS[stream]
    if stream == "full" and not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        out = made()
        if stream in ("broken pipe", "full"):
            stack.enter_context(out)
        code, err = run_on(monkeypatch, capsys, out, *give(kind))
        assert stream != "whole" or out.getvalue()
    assert code == (EXPECTED[kind] if whole else EXPECTED[kind] or 70)
    assert (err == "") == whole
    if not whole:
        assert err.startswith("dpwitness: error: the result could not be printed: ")
        assert err.count("\n") == 1


#: How runs end, and the code of a result that neither refutes nor has what was asked for.
ENDED = {"interrupted": 130, "failed": 2, "time": 0, "cluster lost": 70}


@pytest.mark.parametrize("ended", ENDED)
@pytest.mark.parametrize("kind", ["violated", "passed", "bound", "profile", "curve"])
def test_the_code_of_a_result_whose_runs_ended_early(give, capsys, kind, ended):
    """A violation stays one but for an interrupt; a curve without all of its lines is no result."""
    code, out, _ = run(capsys, *give(kind, ended=ended))
    lines_lack = kind == "curve" and ended == "time"
    assert code == (130 if ended == "interrupted" else EXPECTED[kind] or (2 if lines_lack else ENDED[ended]))
    assert "stopped early" in out


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_result_is_printed_before_its_file_fails_and_saved_where_its_report_does(
    give, results, capsys, tmp_path, monkeypatch, kind
):
    arguments, place, folder = give(kind), tmp_path / "result.json", tmp_path / "folder"
    with monkeypatch.context() as patched:  # the folder is made after the check of places
        patched.setattr("dpwitness.cli.output.show", lambda *text, **how: (folder.mkdir(), console.show(*text, **how)))
        code, out, err = run(capsys, *arguments, "--save", folder)
    assert code == (EXPECTED[kind] or 2)
    assert out
    assert err == f"dpwitness: error: cannot write {folder}: it is a folder; give the name of a file\n"
    broken = "__str__" if kind in ("bound", "curve", "profile") else "report"
    monkeypatch.setattr(type(results[kind]), broken, lambda *_, **__: 1 / 0)
    code, out, err = run(capsys, *arguments, "--save", place)
    assert (code, out) == (EXPECTED[kind] or 70, "")
    assert err.startswith("dpwitness: error: unexpected ZeroDivisionError")
    assert err.count("\n") == 1
    assert json.loads(place.read_text())


LINES = {
    "check": "check marks.py:f --epsilon 1",
    "bound": "bound marks.py:f --epsilon 1",
    "profile": "profile marks.py:f --epsilon 1",
    "curve": "curve marks.py:f --epsilon 1 --claims 1",
    "replay": "replay mine.py --mechanism marks.py:f",
    "threshold_testing": "attack threshold_testing --epsilon 1",
    "subset_sum": "attack subset_sum",
    "table_builder": "attack table_builder",
}


@pytest.mark.parametrize("command", LINES)
def test_places_are_checked_before_anything_runs(capsys, mine, command):
    """The mechanism's file leaves a mark when it is loaded."""
    (mine / "marks.py").write_text("open('mark', 'w').close()\ndef f(rng, data): return 0.0\n")
    (mine / "folder.svg").mkdir()
    options = ["--save"] if command in ("check", "bound", "replay") else ["--save", "--plot"]
    for option, place in itertools.product(options, ("no/such/place.svg", "folder.svg")):
        assert refusal(capsys, *LINES[command].split(), option, place).startswith(f"cannot write {place}: ")
        assert not (mine / "mark").exists()


@pytest.mark.parametrize(
    ("arguments", "option", "other"),
    [
        ("check mine.py:noisy --epsilon 1 --records people.csv --save people.csv", "--save people.csv", "--records"),
        ("check mine.py:noisy --epsilon 1 --queries 1 --save mine.py", "--save mine.py", "TARGET"),
        ("check svt --epsilon 1 --claim profile:saved.json --save link", "--save link", "--claim"),
        ("check --claim 1 --command 'python3 mine.py' --save mine.py", "--save mine.py", "--command"),
        ("profile svt --epsilon 1 --save new.svg --plot ./new.svg", "--save new.svg", "--plot"),
        ("replay saved.json --save link", "--save link", "WITNESS.json"),
        ("compare people.csv saved.json --save saved.json", "--save saved.json", "NEW.json"),
        ("sweep mine.py --output s.jsonl --save s.jsonl", "--save s.jsonl", "--output"),
    ],
)
def test_no_output_is_an_input_or_another_output(capsys, mine, arguments, option, other):
    """Nothing is run or written; a link is what it points to."""
    (mine / "people.csv").write_text("age\n30\n")
    (mine / "saved.json").write_text("[]")
    (mine / "link").symlink_to("saved.json")
    before = {path: path.read_bytes() for path in mine.iterdir()}
    said = refusal(capsys, *shlex.split(arguments))
    assert said == f"{option} would overwrite the file of {other}: give another name"
    assert {path: path.read_bytes() for path in mine.iterdir()} == before


def test_what_is_appended_to_may_be_named_twice_and_standard_input_is_no_output(capsys, give):
    check = give("violated")
    assert run(capsys, *check, "--save", os.devnull, "--keep", os.devnull)[0] == 1
    assert "cannot write -, which is standard input" in refusal(capsys, *check, "--save", "-")


@pytest.mark.parametrize(
    ("command", "function", "line"),
    [
        ("check", "mine.py:leaves", "leaves called sys.exit(0): "),
        ("curve", "mine.py:leaves", "leaves called sys.exit(0): "),
        ("check", "mine.py:leaves_in_a_run", "leaves_in_a_run called sys.exit(0): "),
        ("check", "mine.py:ends", "unexpected GeneratorExit: no luck; --traceback shows where"),
        ("check", "mine.py:panics", "panics raised Panic (no luck) on run 0, on the input [0.]"),
        ("check", "exits.py:f", "exits.py:f called sys.exit(None): "),
    ],
)
@pytest.mark.filterwarnings("default")
def test_a_mechanism_that_leaves_is_no_pass(capsys, mine, command, function, line):
    Path("exits.py").write_text("import sys\nsys.exit()\n")
    more = ["--claims", "1"] if command == "curve" else []
    code = 70 if function == "mine.py:ends" else 2
    assert refusal(capsys, command, function, "--epsilon", 1, "--queries", 1, *more, code=code).startswith(line)


@pytest.mark.parametrize("error", [MemoryError(), ImportError("x"), UserWarning("a warning as an error")])
def test_an_unexpected_error_is_no_verdict(capsys, monkeypatch, error):
    def check(*_, **__):
        raise error

    monkeypatch.setattr(dpw, "check", check)
    assert refusal(capsys, "check", "svt", "--epsilon", 1, code=70).startswith(f"unexpected {type(error).__name__}")


def test_ctrl_c_that_an_import_turns_into_another_error_is_130(capsys, monkeypatch):
    def check(*_, **__):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("x") from None

    monkeypatch.setattr(dpw, "check", check)
    code, out, err = run(capsys, "check", "svt", "--epsilon", 1)
    assert (code, out, err) == (130, "", "dpwitness: interrupted before there was a result\n")


@pytest.mark.filterwarnings("default")
def test_ctrl_c_in_the_users_code_is_130(capsys, mine):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    for function, expected in (("stops", 130), ("swallows", 130), ("is_ended", 143)):
        code, out, err = run(capsys, "check", f"mine.py:{function}", "--epsilon", 1, "--queries", 1)
        assert (code, out) == (expected, "")
        assert err.splitlines()[-1] == "dpwitness: interrupted before there was a result"
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("step", ["show", "write_json"])
def test_a_signal_while_a_result_is_written_waits_until_it_is(give, capsys, tmp_path, monkeypatch, number, step):
    arguments, place = give("passed"), f"dpwitness.cli.output.{step}"
    made = getattr(results_of_commands, step)

    def signalled(*given, **more):
        signal.raise_signal(number)
        return made(*given, **more)

    monkeypatch.setattr(place, signalled)
    code, out, err = run(capsys, *arguments, "--save", tmp_path / "result.json")
    assert code == 128 + number
    assert out.startswith("NOT REFUTED")
    assert err == ""
    assert json.loads((tmp_path / "result.json").read_text())["verdict"] == "not-refuted"


def test_the_second_signal_ends_the_process_but_not_one_that_is_sent_twice(monkeypatch):
    """`timeout` sends SIGTERM to a process, and at once to its group."""
    ended, now = [], [100.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(console.os, "_exit", ended.append)
    session = console.CommandRun()
    with session.signals():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        now[0] += console.SIGNAL_SECONDS / 2
        signal.raise_signal(signal.SIGTERM)
        assert not ended
        now[0] += console.SIGNAL_SECONDS
        signal.raise_signal(signal.SIGINT)
        assert (ended, session.signal) == ([143], signal.SIGTERM)


def test_texts_of_files_cannot_drive_the_terminal(capsys):
    console.show("a\x1b[2J\x9b\ud800\nb")
    assert capsys.readouterr().out == "a\\u001b[2J\\u009b\\ud800\nb\n"
    assert json.loads(f'"{console.printable(chr(0x9B) + chr(0xE0001))}"') == chr(0x9B) + chr(0xE0001)
    console.say("long " * 1000 + "\x1b")
    line = capsys.readouterr().err
    assert len(line) < 1100
    assert line.endswith("\\u001b\n")


#: Words of a command line, and what the function of the command gets; a mechanism may carry what was not given.
HANDED_OVER = [
    ("", {"claim": None, "outcome": None}),
    ("--delta 0.25 --claim 0.5", {"delta": 0.25, "claim": 0.5}),
    ("--set a=inf --set 'c=[1, null]'", {"parameters": {"a": math.inf, "c": [1, None]}}),
    ("--max-time 2m --runs 1e5 --alpha 1.2345678e-7", {"max_time": 120.0, "runs": 100_000, "alpha": 1.2345678e-7}),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["passed", "bound", "profile", "curve"])
def test_what_a_line_says_reaches_the_function_and_nothing_else(give, mine, monkeypatch, capsys, kind):
    arguments, seen = give(kind), []
    result = getattr(dpw, arguments[0])()
    monkeypatch.setattr(dpw, arguments[0], lambda *_, **given: seen.append(given) or result)
    for words, expected in HANDED_OVER:
        if kind == "curve" and "alpha" in expected:
            continue  # its p-values need no level
        code, _, err = run(capsys, *arguments, *shlex.split(words))
        assert code == EXPECTED[kind], err
        assert {name: seen[-1].get(name) for name in expected} == expected
        assert ("delta" in seen[-1]) == ("delta" in expected)
