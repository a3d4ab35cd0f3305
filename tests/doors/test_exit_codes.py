"""Exit 1 means a violation, exit 0 that none was found, and nothing else does: 2, 70 and 130 are all the rest."""

import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from command_lines import commands

import dpwitness as dpw
from dpwitness.cli import console, main
from dpwitness.cli import output as results_of_commands
from dpwitness.cli.command import FileType
from dpwitness.mechanisms.catalog import load

FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")

MINE = """
import os, signal, sys, tempfile, warnings

def noisy(rng, data, epsilon):
    return data[0] + rng.laplace(0, 1 / epsilon)

def leaves(rng, data, epsilon):
    sys.exit(0)

def leaves_in_a_run(rng, data, epsilon, calls=[]):
    calls.append(None)
    if len(calls) > 30:
        sys.exit(0)
    return rng.random()

def goes_elsewhere(rng, data, epsilon):
    os.chdir(os.path.join(os.path.dirname(__file__), "elsewhere"))
    return data[0] + rng.laplace(0, 0.1)

def removes_its_folder(rng, data, epsilon):
    if os.path.isdir("../here"):
        os.rmdir("../here")
    return data[0] + rng.laplace(0, 0.1)

def leaves_for_a_folder_that_is_removed(rng, data, epsilon):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
    return data[0] + rng.laplace(0, 0.1)

def ends(rng, data, epsilon):
    raise GeneratorExit("no luck")

class Panic(BaseException):
    pass

def panics(rng, data, epsilon):
    raise Panic("no luck")

def stops(rng, data, epsilon):
    os.kill(os.getpid(), signal.SIGINT)
    return 1.0

def is_ended(rng, data, epsilon):
    os.kill(os.getpid(), signal.SIGTERM)
    return 1.0

def swallows(rng, data, epsilon):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass
    except BaseException:
        raise ValueError("something else") from None

def leaks_at_times(rng, data, share=0.0, size=1):
    import numpy as np
    return np.where(rng.random(size) < share, data[0], -1.0)

class Wrapped:
    def __init__(self, value):
        self.value = value

def wrapped(rng, data, epsilon):
    return Wrapped(data[0] + rng.laplace(0, 1 / epsilon))

def unwrap(outcome):
    return outcome.value
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def results():
    """One of each kind, from few runs; a curve and a bound too."""
    given = {"epsilon": 1.0, "seed": 1, "runs": 20_000}
    violation = dpw.check(load("laplace_mechanism"), claim=0.1, **given)
    passed = dpw.check(load("laplace_mechanism"), **given)
    bound = dpw.bound(load("laplace_mechanism"), epsilon=1.0, runs=20_000, seed=1)
    curve = dpw.curve(load("laplace_mechanism"), epsilon=[1.0], claims=[0.5, 1.5], runs=20_000, seed=1)
    profile = dpw.profile(load("laplace_mechanism"), epsilon=1.0, claim=0.1, runs=20_000, seed=1)
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


def run(capsys, *arguments):
    code = main([*map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def run_on(monkeypatch, capsys, stream, *arguments):
    """Run with another standard output."""
    monkeypatch.setattr(sys, "stdout", stream)
    code = main([*map(str, arguments)])
    monkeypatch.undo()
    return code, capsys.readouterr().err


EXPECTED = {"violated": 1, "passed": 0, "bound": 0, "curve": 0, "profile": 1}


@pytest.mark.campaign
@pytest.mark.parametrize("kind", EXPECTED)
def test_a_result_and_its_code(give, capsys, kind):
    code, out, err = run(capsys, *give(kind))
    assert code == EXPECTED[kind]
    assert out
    assert err == ""


@pytest.mark.parametrize("kind", ["violated", "passed", "bound", "profile"])
def test_an_interrupted_result_is_printed_and_exits_130(give, capsys, kind):
    code, out, _ = run(capsys, *give(kind, ended="interrupted"))
    assert code == 130
    assert "stopped early" in out
    assert "runs: " in out


@FULL
@pytest.mark.parametrize("kind", EXPECTED)
def test_a_full_disk_hides_no_violation_and_invents_none(give, monkeypatch, capsys, kind):
    with open("/dev/full", "w") as full:
        code, err = run_on(monkeypatch, capsys, full, *give(kind))
    assert code == (EXPECTED[kind] or 70)
    assert err == "dpwitness: error: the result could not be printed: No space left on device\n"


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_reader_who_has_enough_is_no_error(give, monkeypatch, capsys, kind):
    """`dpwitness … | head -1`."""
    read, write = os.pipe()
    os.close(read)
    with contextlib.suppress(BrokenPipeError), os.fdopen(write, "w") as pipe:
        code, err = run_on(monkeypatch, capsys, pipe, *give(kind))
    assert (code, err) == (EXPECTED[kind], "")


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_closed_standard_output(give, monkeypatch, capsys, kind):
    for stream in (None, closed()):
        code, err = run_on(monkeypatch, capsys, stream, *give(kind))
        assert code == (EXPECTED[kind] or 70)
        assert err.startswith("dpwitness: error: the result could not be printed: ")
        assert err.count("\n") == 1


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_closed_standard_error_changes_no_code(give, monkeypatch, capsys, kind):
    for stream in (None, closed()):
        monkeypatch.setattr(sys, "stderr", stream)
        assert main(give(kind)) == EXPECTED[kind]
        assert main(["check", "nothing", "--epsilon", "1"]) == 2
    monkeypatch.undo()
    assert capsys.readouterr().out


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_result_is_printed_before_its_file_fails(give, capsys, tmp_path, monkeypatch, kind):
    place = tmp_path / "result.json"
    arguments = give(kind)
    monkeypatch.setattr("dpwitness.cli.output.check_writable", lambda path: place.mkdir())  # after the check, meanwhile
    code, out, err = run(capsys, *arguments, "--save", place)
    assert code == (EXPECTED[kind] or 2)
    assert out
    assert err == f"dpwitness: error: cannot write {place}: it is a folder; give the name of a file\n"


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_report_that_fails_hides_no_violation(give, results, capsys, tmp_path, monkeypatch, kind):
    arguments = give(kind)
    broken = "__str__" if kind in ("bound", "curve", "profile") else "report"
    monkeypatch.setattr(type(results[kind]), broken, lambda *_, **__: 1 / 0)
    code, out, err = run(capsys, *arguments, "--save", tmp_path / "result.json")
    assert code == (EXPECTED[kind] or 70)
    assert out == ""
    assert err == "dpwitness: error: unexpected ZeroDivisionError: division by zero; --traceback shows where\n"
    assert json.loads((tmp_path / "result.json").read_text())


def test_a_plot_that_fails_comes_after_the_report(give, capsys, tmp_path, monkeypatch):
    arguments = give("curve")
    monkeypatch.setattr("dpwitness.report.plots.plot_curve", lambda *_: 1 / 0)
    code, out, err = run(capsys, *arguments, "--plot", tmp_path / "curve.svg", "--save", tmp_path / "curve.json")
    assert code == 70
    assert out.startswith("p-values of ")
    assert err.count("\n") == 1
    assert (tmp_path / "curve.json").exists()


@pytest.mark.parametrize("option", ["--save", "--plot"])
@pytest.mark.parametrize(
    "command",
    [
        "check",
        "bound",
        "profile",
        "curve",
        "replay",
        "threshold_testing",
        "subset_sum",
        "table_builder",
    ],
)
def test_places_are_checked_before_anything_runs(capsys, mine, option, command):
    """The mechanism's file leaves a mark when it is loaded."""
    (mine / "marks.py").write_text("open('mark', 'w').close()\ndef f(rng, data): return 0.0\n")
    commands = {
        "check": ["check", "marks.py:f", "--epsilon", "1"],
        "bound": ["bound", "marks.py:f", "--epsilon", "1"],
        "profile": ["profile", "marks.py:f", "--epsilon", "1"],
        "curve": ["curve", "marks.py:f", "--epsilon", "1", "--claims", "1"],
        "replay": ["replay", "mine.py", "--mechanism", "marks.py:f"],
        "threshold_testing": ["attack", "threshold_testing", "--epsilon", "1"],
        "subset_sum": ["attack", "subset_sum"],
        "table_builder": ["attack", "table_builder"],
    }
    if option == "--plot" and command not in ("curve", "profile") and commands[command][0] != "attack":
        return
    for place in ("no/such/place.svg", "folder.svg"):
        Path("folder.svg").mkdir(exist_ok=True)
        code, out, err = run(capsys, *commands[command], option, place)
        assert code == 2
        assert out == ""
        assert err.startswith(f"dpwitness: error: cannot write {place}: ")
        assert not Path("mark").exists()


@pytest.mark.parametrize(
    ("arguments", "option", "other"),
    [
        ("check mine.py:noisy --epsilon 1 --records people.csv --save people.csv", "--save people.csv", "--records"),
        ("check mine.py:noisy --epsilon 1 --queries 1 --save ./mine.py", "--save ./mine.py", "TARGET"),
        ("check mine:noisy --epsilon 1 --queries 1 --save mine.py", "--save mine.py", "TARGET"),
        ("check svt --epsilon 1 --outcome mine.py:f --save mine.py", "--save mine.py", "--outcome"),
        ("check svt --epsilon 1 --claim profile:saved.json --save link", "--save link", "--claim"),
        ("check --claim 1 --command 'python3 mine.py' --save mine.py", "--save mine.py", "--command"),
        ("check svt --epsilon 1 --save new.json --sarif ./new.json", "--save new.json", "--sarif"),
        ("curve svt --epsilon 1 --claims 1 --plot c.svg --save c.svg", "--save c.svg", "--plot"),
        ("replay saved.json --save link", "--save link", "WITNESS.json"),
        ("compare people.csv saved.json --save saved.json", "--save saved.json", "NEW.json"),
        ("report people.csv saved.json -o saved.json", "--output saved.json", "RESULT.json"),
        ("sweep mine.py --output s.jsonl --save s.jsonl", "--save s.jsonl", "--output"),
        ("sweep mine --save mine.py", "--save mine.py", "MODULE"),
        ("init mine.py:noisy --force --output mine.py", "--output mine.py", "FILE.py:FUNCTION"),
        ("attack subset_sum --size 8 --ask q.csv --save q.csv", "--save q.csv", "--ask"),
        ("attack table_builder --ask q --values age=@people.csv --save people.csv", "--save people.csv", "--values"),
    ],
)
def test_no_output_is_an_input_or_another_output(capsys, mine, arguments, option, other):
    """Nothing is run or written; a link is what it points to."""
    (mine / "people.csv").write_text("age\n30\n")
    (mine / "saved.json").write_text("[]")
    (mine / "link").symlink_to("saved.json")
    before = {path: path.read_bytes() for path in mine.iterdir()}
    code, out, err = run(capsys, *shlex.split(arguments))
    assert (code, out) == (2, "")
    assert err == f"dpwitness: error: {option} would overwrite the file of {other}: give another name\n"
    assert {path: path.read_bytes() for path in mine.iterdir()} == before


def test_what_is_appended_to_may_be_named_twice_and_standard_input_is_no_output(capsys, mine):
    check = ("check", "isvt3", "--epsilon", 0.7, "--seed", 3, "--quiet")
    assert run(capsys, *check, "--save", os.devnull, "--sarif", os.devnull)[0] == 1
    code, _, err = run(capsys, *check, "--save", "-")
    assert code == 2
    assert "cannot write -, which is standard input" in err


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
def test_files_are_written_where_they_were_asked_for_whatever_folder_a_mechanism_goes_to(capsys, mine):
    (mine / "elsewhere").mkdir()
    pair = ("--epsilon", 1, "--pair", "[0]", "[1]", "--runs", 2000, "--workers", 1)
    code, _, err = run(capsys, "check", "mine.py:goes_elsewhere", *pair, "--save", "w.json", "--sarif", "w.sarif")
    assert code == 1, err
    assert not list((mine / "elsewhere").iterdir())
    assert all((mine / name).is_file() for name in ("w.json", "w.sarif"))


@pytest.mark.filterwarnings("ignore::dpwitness.SlowMechanism")
@pytest.mark.parametrize("target", ["removes_its_folder", "leaves_for_a_folder_that_is_removed"])
def test_a_result_stays_where_a_mechanism_removes_folders(mine, capsys, monkeypatch, target):
    (mine / "here").mkdir()
    monkeypatch.chdir(mine / "here")
    options = ["--pair", "[0]", "[100]", "--claim", "1", "--set", "epsilon=1", "--runs", "1000", "--max-time", "20s"]
    code, out, err = run(capsys, "check", f"../mine.py:{target}", *options, "--save", "w.json")
    removed = target == "removes_its_folder"
    assert code == 1, err
    assert out.startswith("VIOLATED")
    assert (mine / "here").exists() is not removed
    assert (mine / "here" / "w.json").exists() is not removed
    assert err == "dpwitness: error: cannot write w.json: No such file or directory; choose another place\n" * removed


def test_a_command_in_a_folder_that_was_removed_is_one_line(mine, capsys, monkeypatch):
    (mine / "here").mkdir()
    monkeypatch.chdir(mine / "here")
    (mine / "here").rmdir()
    code, out, err = run(capsys, "check", "laplace_mechanism", "--epsilon", "1", "--runs", "1000")
    assert (code, out) == (2, "")
    assert err == (
        "dpwitness: error: the working folder cannot be read: No such file or directory; change to one that exists\n"
    )


def test_every_argument_that_names_a_file_says_what_becomes_of_it():
    for words, command in commands():
        for parameter in command.params:
            if re.search(r"FILE|\.json|TARGET|MODULE|WHAT|PROGRAM|PATH", str(parameter.metavar)):
                assert isinstance(parameter.type, FileType), (words, parameter.name)


@pytest.mark.parametrize(
    ("function", "line"),
    [
        ("leaves", "leaves called sys.exit(0): take that out, it ends the check"),
        ("leaves_in_a_run", "leaves_in_a_run called sys.exit(0): take that out, it ends the check"),
        ("ends", "unexpected GeneratorExit: no luck; --traceback shows where"),
        ("panics", "panics raised Panic (no luck) on run 0, on the input [0.]"),
    ],
)
@pytest.mark.parametrize("command", ["check", "bound", "profile", "curve"])
@pytest.mark.filterwarnings("default")
def test_a_mechanism_that_leaves_is_no_pass(capsys, mine, command, function, line):
    more = ["--claims", "1"] if command == "curve" else []
    code, out, err = run(capsys, command, f"mine.py:{function}", "--epsilon", 1, "--queries", 1, *more)
    assert (code, out) == (70 if function == "ends" else 2, "")
    assert [text for text in err.splitlines() if "warning: " not in text] == [f"dpwitness: error: {line}"]


def test_a_file_that_leaves_when_it_is_loaded(capsys, mine):
    Path("exits.py").write_text("import sys\nsys.exit()\n")
    code, out, err = run(capsys, "check", "exits.py:f", "--epsilon", 1)
    assert (code, out) == (2, "")
    assert err == "dpwitness: error: exits.py:f called sys.exit(None): take that out, it ends the check\n"


@pytest.mark.parametrize("place", [[], ["first"], ["last"]])
def test_the_traceback_is_shown_when_asked_for(capsys, mine, place):
    command = ["check", "mine.py:ends", "--epsilon", "1", "--queries", "1"]
    if place:
        command = ["--traceback", *command] if place == ["first"] else [*command, "--traceback"]
    code, _, err = run(capsys, *command)
    assert code == 70
    assert ("Traceback" in err) == bool(place)
    assert err.splitlines()[-1] == "dpwitness: error: unexpected GeneratorExit: no luck; --traceback shows where"


def test_the_traceback_of_bad_input_too(capsys):
    code, _, err = run(capsys, "check", "svt", "--epsilon", "0", "--traceback")
    assert code == 2
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("dpwitness: error: epsilon=0.0 ")


def test_a_warning_turned_into_an_error_is_no_violation(capsys, mine, monkeypatch):
    monkeypatch.setattr(dpw, "check", lambda *_, **__: warnings.warn("look out", UserWarning, stacklevel=1))
    code, out, err = run(capsys, "check", "svt", "--epsilon", 1)
    assert (code, out) == (70, "")
    assert err == "dpwitness: error: unexpected UserWarning: look out; --traceback shows where\n"


@pytest.mark.parametrize(("error", "text"), [(MemoryError(), "MemoryError;"), (ImportError("x"), "ImportError: x;")])
def test_other_unexpected_errors(capsys, monkeypatch, error, text):
    def check(*_, **__):
        raise error

    monkeypatch.setattr(dpw, "check", check)
    code, out, err = run(capsys, "check", "svt", "--epsilon", 1)
    assert (code, out) == (70, "")
    assert err == f"dpwitness: error: unexpected {text} --traceback shows where\n"


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


@pytest.mark.parametrize("ended", ["failed", "time", "cluster lost", "interrupted"])
def test_a_curve_without_all_of_its_lines(give, capsys, ended):
    code, out, _ = run(capsys, *give("curve", ended=ended, notes=("no line for ε = 2: why",)))
    assert code == {"failed": 2, "time": 2, "cluster lost": 70, "interrupted": 130}[ended]
    assert "note: no line for ε = 2: why" in out


@pytest.mark.parametrize(("kind", "code"), [("bound", 2), ("passed", 2), ("violated", 1), ("profile", 1)])
def test_runs_that_failed_behind_what_was_counted(give, capsys, kind, code):
    assert run(capsys, *give(kind, ended="failed"))[0] == code


def test_the_second_signal_ends_the_process_but_not_one_that_is_sent_twice(monkeypatch):
    """`timeout` sends SIGTERM to a process, and at once to its group."""
    ended, now = [], [100.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(console.os, "_exit", ended.append)
    session = console.Session()
    with session.signals():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        now[0] += console.SIGNAL_SECONDS / 2
        signal.raise_signal(signal.SIGTERM)
        assert not ended
        now[0] += console.SIGNAL_SECONDS
        signal.raise_signal(signal.SIGINT)
        assert (ended, session.signal) == ([143], signal.SIGTERM)


def test_a_handler_of_the_user_s_own_stays():
    came = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    try:
        session = console.Session()
        with session.signals():
            signal.raise_signal(signal.SIGTERM)
        assert (came, session.signal) == ([signal.SIGTERM], None)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_another_thread_may_run_a_command(capsys):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main(["check", "nothing", "--epsilon", "1"])))
    thread.start()
    thread.join()
    assert codes == [2]


def test_warnings_and_streams_are_left_as_they_were(capsys):
    before = warnings.showwarning, warnings.filters[:], sys.stdout.encoding, sys.stdout.errors
    run(capsys, "check", "nothing", "--epsilon", 1)
    assert (warnings.showwarning, warnings.filters[:], sys.stdout.encoding, sys.stdout.errors) == before


INTERRUPTED_IMPORT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000):
                    pass
            except KeyboardInterrupt:
                if sys.argv[2] == "hidden":  # as C code of NumPy does
                    raise ImportError("a part is missing") from None
                raise

sys.meta_path.insert(0, Finder())
from dpwitness.cli import main
sys.exit(main(["list"]))
"""


#: A signal that comes while a text is compiled or run.
INTERRUPTED_TEXT = """
exec("import os, signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)")
def noisy(rng, data): pass
"""


@pytest.mark.campaign
def test_as_processes(tmp_path):
    """Signals in imports and in texts of code; what is left in a broken stream when Python ends."""
    (tmp_path / "mine.py").write_text(INTERRUPTED_TEXT)
    script = [sys.executable, "-c", INTERRUPTED_IMPORT]
    module = [sys.executable, "-m", "dpwitness"]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    cases = [
        ([*script, "dpwitness.cli.values", "seen"], 130, "dpwitness: interrupted before there was a result"),
        ([*script, "numpy", "hidden"], 130, "dpwitness: interrupted before there was a result"),
        (
            ["sh", "-c", f"{' '.join(module)} >&-"],
            70,
            "the result could not be printed: standard output is closed",
        ),
    ]
    text = [*module, "check", f"{tmp_path / 'mine.py'}:noisy", "--claim", "1", "--queries", "1"]
    cases.append((text, 143, "dpwitness: interrupted before there was a result"))
    if Path("/dev/full").exists():
        cases.append((["sh", "-c", f"{' '.join(module)} --help >/dev/full"], 70, "No space left on device"))
        cases.append((["sh", "-c", f"{' '.join(module)} >/dev/full 2>/dev/full"], 70, ""))
    started = [(subprocess.Popen(command, **pipes), code, message) for command, code, message in cases]
    for process, code, message in started:
        out, err = process.communicate(timeout=120)
        assert process.returncode == code, (process.args, out, err)
        assert message in err
        assert err.count("\n") == bool(message), (process.args, err)


def test_help_is_printed_whole(capsys):
    for command in (["--help"], ["check", "--help"], ["attack", "threshold_testing", "--help"]):
        code, out, _ = run(capsys, *command)
        assert code == 0
        assert out.startswith("Usage: dpwitness")
        assert "--traceback" in out


def test_texts_of_files_cannot_drive_the_terminal(capsys):
    console.show("a\x1b[2J\x9b\ud800\nb")
    assert capsys.readouterr().out == "a\\u001b[2J\\u009b\\ud800\nb\n"
    assert json.loads(f'"{console.printable(chr(0x9B) + chr(0xE0001))}"') == chr(0x9B) + chr(0xE0001)
    console.say("long " * 1000 + "\x1b")
    line = capsys.readouterr().err
    assert len(line) < 1100
    assert line.endswith("\\u001b\n")


def test_arguments_that_are_no_text(capsys):
    code, _, err = run(capsys, "check", "\udcff", "--epsilon", 1)
    assert code == 2
    assert err == "dpwitness: error: unknown target '\\udcff': `dpwitness list` shows the bundled ones.\n"


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are UTF-8 here")
@pytest.mark.filterwarnings("error")
def test_a_file_whose_name_the_locale_cannot_read(capsys, mine):
    """It is compiled, and its witness is read back."""
    Path("\udce9.py").write_text(MINE)
    check = ("check", "\udce9.py:noisy", "--epsilon", 1, "--pair", "[1]", "[5]", "--seed", 1, "--runs", 20_000)
    assert run(capsys, *check, "--save", "w.json")[::2] == (1, "")
    assert json.loads(Path("w.json").read_text())["witness"]["mechanism"] == r"\xe9.py:noisy"
    assert run(capsys, "replay", "w.json", "--mechanism", "\udce9.py:noisy")[0] == 1


# What the options mean.


DELTA = {
    "check": (["--claim", 1], lambda value: value["claim"]["delta"]),
    "bound": ([], lambda value: value["delta"]),
    "curve": (["--claims", "1"], lambda value: value["delta"]),
}


@pytest.mark.usefixtures("asked_here")  # the subject is the claim
@pytest.mark.parametrize("command", DELTA)
def test_delta_reaches_the_claim(capsys, mine, command):
    """An input given away with probability 0.02 shows at δ = 0, and not at δ = 0.05."""
    more, told = DELTA[command]
    found = {}
    for delta in (None, 0.05):
        given = [] if delta is None else ["--delta", delta]
        arguments = [
            command,
            "mine.py:leaks_at_times",
            "--epsilon",
            1,
            "--set",
            "share=0.02",
            *more,
            *given,
            "--runs",
            "2e4",
        ]
        code, out, _ = run(capsys, *arguments, "--pair", "[1]", "[2]", "--seed", 1, "--json")
        value = json.loads(out)
        assert told(value) == (delta or 0.0)
        found[delta] = {
            "check": lambda value=value, code=code: code == 1,
            "bound": lambda value=value: value["epsilon_lower_bound"] > 1,
            "curve": lambda value=value: value["lines"][0]["tests"][0]["p_value"] < 1e-6,
        }[command]()
    assert found == {None: True, 0.05: False}


@pytest.mark.parametrize("command", ["check", "bound", "curve"])
def test_delta_is_given_only_where_it_was(give, monkeypatch, command):
    """An object may carry a δ of its own, and the default must not hide it."""
    seen = []
    arguments = give({"check": "passed"}.get(command, command))
    home = dpw
    result = getattr(home, command)()
    monkeypatch.setattr(home, command, lambda *_, **given: seen.append(given) or result)
    main(arguments)
    main([*arguments, "--delta", "0.25"])
    assert "delta" not in seen[0]
    assert seen[1]["delta"] == 0.25


def test_claim_alone_leaves_the_mechanisms_epsilon_to_the_pipeline(give, monkeypatch):
    seen = []
    give("passed")
    result = dpw.check()
    monkeypatch.setattr(dpw, "check", lambda *_, **given: seen.append(given) or result)
    main(["check", "laplace_mechanism", "--claim", "0.5"])
    assert (seen[0].get("epsilon"), seen[0]["claim"]) == (None, 0.5)


@pytest.mark.campaign
@pytest.mark.filterwarnings("default")
def test_outcome_turns_outputs_into_numbers(capsys, mine):
    arguments = ["check", "mine.py:wrapped", "--epsilon", 1, "--queries", 1, "--runs", 200, "--seed", 1]
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert "outcome" in err
    code, out, _ = run(capsys, *arguments, "--outcome", "mine.py:unwrap", "--json")
    assert code == 0
    assert json.loads(out)["seed"] == 1
    code, _, err = run(capsys, *arguments, "--outcome", "unwrap")
    assert code == 2
    assert "outcome= raised AttributeError" in err


@pytest.mark.parametrize("command", ["check", "bound", "profile", "curve"])
def test_outcome_is_passed_on_by_every_command(give, mine, monkeypatch, command):
    seen = []
    arguments = give({"check": "passed"}.get(command, command))
    home = dpw
    result = getattr(home, command)()
    monkeypatch.setattr(home, command, lambda *_, **given: seen.append(given["outcome"]) or result)
    main([*arguments, "--outcome", "mine.py:unwrap"])
    assert [function.__name__ for function in seen] == ["unwrap"]


def test_the_printed_command_has_all_digits_and_limits(give, capsys):
    arguments = [*give("passed")[:2], "--epsilon", "0.12345678901234567", "--alpha", "1.2345678e-7"]
    limits = ["--max-time", "2m", "--delta", "0.0123456789", "--runs", "1234567"]
    _, out, _ = run(capsys, *arguments, *limits, "--outcome", __file__ + ":closed")
    command = out.partition("reproduce: ")[2]
    for part in (
        f"--epsilon {0.12345678901234567!r}",
        "--alpha 1.2345678e-07",
        "--max-time 120.0",
        "--delta 0.0123456789",
        "--runs 1234567",
        f"--outcome {__file__}:closed",
    ):
        assert part in command
    _, out, _ = run(capsys, *give("passed"), "--max-time", "60s")
    assert "--max-time 60.0" in out  # a limit that is given counts as one, though it is the usual one
    assert "--max-time" not in run(capsys, *give("passed"))[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", 'x={"a": 1}'], "an object must be a number, a text"),
        (["--set", 'x=[[{"a": 1}]]'], "an object must be"),
        (["--set", "x=NaN"], "NaN is no JSON number"),
        (["--set", "x=[NaN]"], "NaN is no JSON number"),
        (["--set", "x=1e999"], "1e999 is too large"),
        (["--set", "x=" + "[" * 100_000], "nested deeper than 32 levels"),
        (["--set", "x=" + "[" * 33 + "]" * 33], "nested deeper than 32 levels"),
        (["--pair", '"a"', '"b"'], "svt raised TypeError"),
        (["--pair", "NaN", "1"], "NaN is no JSON number"),
        (["--pair", "[1e999]", "[1]"], "1e999 is too large"),
        (["--pair", "[" * 100_000, "1"], "nested deeper than 32 levels"),
        (["--pair", str(2**63), "1"], "does not fit into 64 bits"),
        (["--pair", str(-(2**63) - 1), "1"], "does not fit into 64 bits"),
        (["--pair", "[1]", "[2]", "--queries", "0"], "leave out"),
        (["--workers", "0"], "'0' must be from 1 to 1024"),
        (["--workers", "1e9"], "must be from 1 to 1024"),
        (["--max-time", "1e10"], "must be a positive time of at most 1e+09 s"),
        (["--max-time=-1s"], "must be a positive time"),
        (["--max-time", "1e308h"], "must be a positive time"),
        (["--outcome", "x:y"], "x"),
        (["--outcome", "1x"], "names of its attributes"),
        (["--save", ""], "give the name of a file"),
        (["--errors=--"], "Invalid value for '--errors': '--' is not one of 'raise', 'outcome'"),
        (["--set=--"], "--set '--' must be NAME=VALUE"),
    ],
)
def test_values_of_the_wrong_kind(capsys, options, message):
    code, out, err = run(capsys, "check", "svt", "--epsilon", 1, *options)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize("claims", ["-1e308:1e308:1", "0:1e308:1e-308", "0:1:1e-9"])
def test_too_many_test_values(capsys, claims):
    code, _, err = run(capsys, "curve", "svt", "--epsilon", 1, f"--claims={claims}")
    assert code == 2
    assert "makes more than 10000 values" in err


def test_infinite_parameters_are_texts(give, monkeypatch):
    seen = []
    give("passed")
    result = dpw.check()
    monkeypatch.setattr(dpw, "check", lambda *_, **given: seen.append(given["parameters"]) or result)
    main(["check", "svt", "--epsilon", "1", "--set", "a=inf", "--set", "b=-Infinity", "--set", "c=[1, null, true]"])
    assert seen == [{"a": float("inf"), "b": float("-inf"), "c": [1, None, True]}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seed", -1], "--seed -1 must be at least 0"),
        (["--epsilon", "1e-19"], "--epsilon 1e-19 must be at least 1e-12"),
        (
            ["--epsilon2", "1e-320"],
            "--epsilon2 9.99989e-321 must be at least 1e-12, or inf for no noise on the queries",
        ),
    ],
)
def test_the_attack_on_thresholds_refuses_what_it_cannot_compute(capsys, options, message):
    code, _, err = run(capsys, "attack", "threshold_testing", "--epsilon", 1, *options)
    assert code == 2
    assert err == f"dpwitness: error: {message}\n"


def test_inputs_of_two_dimensions_are_shown(capsys, mine):
    Path("sums.py").write_text("def total(rng, data, epsilon):\n    return data.sum() + rng.laplace(0, 1 / epsilon)\n")
    arguments = ["check", "sums.py:total", "--epsilon", 1, "--runs", 20_000, "--seed", 1]
    code, out, err = run(capsys, *arguments, "--pair", "[[1,2],[3,4]]", "[[1,2],[3,9]]")
    assert (code, err) == (1, "")
    assert "[[1, 2], [3, 9]]" in out
    large = [[10**15 + i] * 7 for i in range(2)]
    other = [large[0], [*large[1][:6], large[1][6] + 9]]
    code, out, err = run(capsys, *arguments, "--pair", json.dumps(large), json.dumps(other))
    assert (code, err) == (1, "")
    assert "2 records: D but for record 2: [1" in out
    assert "1000000000000010]\n" in out
