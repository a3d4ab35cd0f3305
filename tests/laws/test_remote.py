"""Mechanisms that another interpreter runs: one with NumPy, and one that has nothing but its standard library."""

import ast
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import venv
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpwitness as dpw
from dpwitness import cli
from dpwitness.errors import InvalidOutcome, InvalidParameter, MechanismCrashed, MechanismRaised, UnknownTarget
from dpwitness.events.encoding import exception_code
from dpwitness.mechanisms import server
from dpwitness.mechanisms.catalog import load_code
from dpwitness.mechanisms.columns import OutputTraits
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.outcomes import RowWriter
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.remote import RemoteMechanism
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair
from dpwitness.values import value_from_json, value_to_json

THERE = '''
import functools
import os
import random
import sys
import time

CALLS = []
ANSWERS = 4

drawn = lambda rng, data: rng.random()
kept = functools.lru_cache(maxsize=None)(lambda data: data[0])
spawned = lambda rng, data: rng.spawn(1)[0].random()
kind = lambda rng, data: [type(rng).__name__, type(data).__name__]
given = lambda data, which=None: data
paths = lambda data: sys.path
unknown = lambda data: object()
fit = lambda data: Model()

def noisy(rng, data, epsilon, scale=1.0, kept=len):
    """Laplace noise, with or without NumPy."""
    assert kept is len
    return data[0] + scale / epsilon * (rng.choice([-1, 1]) * -__import__("math").log(1 - rng.random()))

def looking_at_the_input(function):
    @functools.wraps(function)
    def wrapper(*given, **named):
        rng, data = given
        return function(rng, data, **named)
    return wrapper

@looking_at_the_input
def wrapped(rng, data, scale=2.0):
    return data[0] * scale

def flags_of(data):
    arrays = [item[0] if isinstance(item, list) else item for item in data]
    return [[a.flags.writeable, str(a.dtype)] for a in arrays]

def starts_another(data):
    if os.fork():
        time.sleep(60)
    os.write(ANSWERS, b"%d\\n" % os.getpid())
    time.sleep(60)

def counts(data):
    CALLS.append(1)
    return len(CALLS)

def loud(data):
    print("said")
    print("written", file=sys.stderr)
    os.write(1, bytes(8))
    return sys.stdin.read() + "x"

def raises(data):
    if CALLS.append(1) or len(CALLS) % 3 == 0:
        raise KeyError("no such record")
    return 0.5

def leaves(data):
    sys.exit("enough")

class Stop(BaseException):
    pass

def stops(data):
    if data[0] < 0 and len(CALLS) > 2:
        raise Stop("no further")
    CALLS.append(1)
    return 0.5

def dies(data):
    print("the last word", file=sys.stderr, flush=True)
    os._exit(3)

def hangs(data):
    time.sleep(60 if data[0] else 0)
    return random.random()

class Model:
    def __init__(self):
        self.coef_, self.intercept_ = [1.0, 2.0], 3.0

    def __repr__(self):
        return "<a model\\n    of two lines>"

'''


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """The file of the functions, and an interpreter without NumPy."""
    folder = tmp_path_factory.mktemp("there")
    (folder / "there.py").write_text(THERE)
    venv.create(folder / "bare", symlinks=True)
    return folder


@pytest.fixture(scope="module")
def at(there):
    """A function of that file, in the interpreter without NumPy or in ours."""
    return lambda name, python=None, **more: dpw.remote(
        python or there / "bare" / "bin" / "python", f"{there / 'there.py'}:{name}", **more
    )


DATA = np.array([1, 2])


def rows_of(function, data=DATA, n=4, seed=0, **more):
    mechanism = as_mechanism(function, data, **more)
    assert isinstance(mechanism, RemoteMechanism)
    return mechanism.outcomes(data, np.random.default_rng(seed), n)


def test_from_the_same_words_a_run_draws_what_it_draws_here(at, there):
    """Coupled runs, of which each begins from random words of its own, the same on both sides."""
    runs = PairedRuns.d_first(Pair(DATA, DATA + 1), 8, coupled=True)
    here = PythonMechanism(Signature.of(load_code(f"{there / 'there.py'}:drawn"), {}))
    afar = RemoteMechanism(Signature.of(at("drawn", sys.executable), {}))
    x, y = (mechanism.pair_outcomes(runs, np.random.default_rng(3)) for mechanism in (here, afar))
    assert np.array_equal(x, y)
    assert np.array_equal(x[0], x[1])
    assert len(np.unique(x)) == 8


@pytest.mark.parametrize("name", ["spawned", "hangs"])
def test_a_seed_repeats_what_children_of_the_generator_and_global_generators_draw(at, name):
    """Though the same process has made runs before."""
    mechanism = RemoteMechanism(Signature.of(at(name, sys.executable), {}))
    mechanism.draws_globally = name == "hangs"
    first, other, again = (mechanism.outcomes(np.array([0]), np.random.default_rng(seed), 6) for seed in (1, 2, 1))
    assert np.array_equal(first, again)
    assert len(np.unique([first, other])) == 12


def row(value):
    return RowWriter(None, OutputTraits()).write(value)


@pytest.mark.parametrize(
    ("name", "python", "data", "expected"),
    [
        ("wrapped", None, [1.5], [3.0]),
        ("kept", None, (1.5,), [1.5]),
        ("loud", None, [1.5], row("x")),  # what is printed is no outcome
        ("kind", None, np.array([1, 2]), row(["Random", "list"])),
        ("kind", sys.executable, np.array([1, 2]), row(["Generator", "ndarray"])),
        ("flags_of", sys.executable, [np.zeros((3, 2)), [np.zeros(20_000)]], row([[True, "float64"]] * 2)),
        ("flags_of", sys.executable, (np.zeros((2, 3), "f4"),), row([[True, "float32"]])),
    ],
)
def test_functions_are_called_as_here(at, name, python, data, expected):
    """Wrapped or not, with arrays that may be written to, of their types, where there is NumPy."""
    assert np.unique(rows_of(at(name, python), data), axis=0).tolist() == [expected]


def test_this_package_is_not_on_the_path_of_the_function(at):
    assert not any("dpwitness" in folder for folder in at("paths", sys.executable)(0))


def test_the_traceback_of_an_exception_is_told(at):
    mechanism = RemoteMechanism(Signature.of(at("raises"), {}))
    with pytest.raises(MechanismRaised, match="on run 12, on the input") as caught:
        mechanism.outcomes(DATA, np.random.default_rng(0), 4, start=10)
    assert "there.py" in caught.value.__cause__.__notes__[0]


def test_an_exception_of_any_class_is_told_or_an_outcome(at):
    """Also one that is no `Exception`."""
    mechanism = RemoteMechanism(Signature.of(at("stops"), {}))
    runs = replace(PairedRuns.d_first(Pair([1], [-1]), 4, coupled=False), start=10)
    with pytest.raises(MechanismRaised, match=r"raised Stop \(no further\) on run 11, on the input \[-1\]"):
        mechanism.pair_outcomes(runs, np.random.default_rng(0))
    rows = rows_of(at("stops"), [-1], n=9, errors="outcome")
    assert rows[-1, 0] == exception_code("Stop")


def test_an_attribute_has_one_place_whether_a_message_holds_exceptions_or_none(at):
    mechanism = as_mechanism(at("raises"), DATA, outcome="real", errors="outcome")
    portions = [mechanism.outcomes(DATA, np.random.default_rng(0), n, least=16) for n in (9, *[1] * 9)]
    rows = np.concatenate(portions)
    places = np.argwhere(rows == 0.5)
    assert len(places) == 12
    assert len({*places[:, 1]}) == 1


def test_a_function_that_ends_its_interpreter_is_named(at):
    for errors in ("raise", "outcome"):
        with pytest.raises(MechanismCrashed, match=r"^leaves .*sys\.exit\('enough'\)"):
            rows_of(at("leaves"), errors=errors)
    with pytest.raises(MechanismCrashed, match=r"^dies .*exit code 3 \(the last word\)"):
        rows_of(at("dies"))


def test_a_new_process_is_a_new_interpreter(at):
    counts = at("counts")
    assert [counts([0]), counts([0])] == [1, 2]
    assert [counts.anew()([0]), counts([0])] == [1, 3]


def test_a_module_is_found_in_the_folder_of_the_beginning_and_by_the_users_path(there, tmp_path, monkeypatch):
    monkeypatch.chdir(there)
    function = dpw.remote(there / "bare" / "bin" / "python", "there:counts")
    monkeypatch.chdir(tmp_path)
    assert function.anew()([0]) == 1
    assert pickle.loads(pickle.dumps(function))([0]) == 1
    monkeypatch.setenv("PYTHONSAFEPATH", "1")  # with it, Python adds no folder of its own
    monkeypatch.setenv("PYTHONPATH", str(there))
    assert dpw.remote(sys.executable, "there:counts")([0]) == 1


def test_attributes_are_read_over_there(at):
    assert rows_of(at("fit"), outcome="coef_,intercept_")[0, 1:].tolist() == [2, 1.0, 2.0, 3.0]
    with pytest.raises(InvalidOutcome, match="outcome='weights_': 'Model' object has no attribute 'weights_'"):
        rows_of(at("fit"), outcome="weights_")
    for name, shown in (("fit", "<a model of two lines>"), ("unknown", "<object object .*>")):
        with pytest.raises(InvalidOutcome, match=f"^{name} returned {shown}"):
            rows_of(at(name))


@pytest.mark.parametrize(
    ("python", "target", "error", "told"),
    [
        ("no-such-python", "there.py:noisy", InvalidParameter, "no-such-python"),
        ("false", "there.py:noisy", InvalidParameter, "exit code 1"),
        (sys.executable, "nowhere.py:noisy", UnknownTarget, "nowhere.py"),
        (sys.executable, "there.py:nothing", UnknownTarget, "AttributeError: .*'nothing'"),
        (sys.executable, "broken.py:f", UnknownTarget, "ZeroDivisionError"),
        (sys.executable, None, UnknownTarget, "target=None"),
    ],
)
def test_what_cannot_be_loaded_is_named(there, monkeypatch, python, target, error, told):
    monkeypatch.chdir(there)
    Path("broken.py").write_text("1 / 0\n")
    with pytest.raises(error, match=told):
        dpw.remote(python, target)


@pytest.mark.parametrize("limit", [0, "long", math.nan])
def test_the_limit_is_checked(at, limit):
    with pytest.raises(InvalidParameter, match="max_time="):
        at("drawn", max_time=limit)


def test_what_cannot_be_sent_is_named(at):
    with pytest.raises(InvalidParameter, match=r"holds pyarrow.Table a: int64 .*, which cannot be sent"):
        at("given")(pa.table({"a": [1]}))
    with pytest.raises(InvalidParameter, match="parameter of given holds <object"):
        rows_of(at("given"), parameters={"which": object()})


@pytest.mark.campaign
def test_the_command_line_takes_another_interpreter(there, capsys):
    arguments = ["check", f"{there / 'there.py'}:noisy", "--python", sys.executable, "--epsilon", "1", "--seed", "1"]
    code = cli.main([*arguments, "--claim", "0.3", "--queries", "1", "--runs", "2000", "--quiet"])
    said = capsys.readouterr().out
    assert code == 1
    assert f"--python {sys.executable}" in said
    assert "VIOLATED: noisy" in said


data = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.floats(), st.integers(), st.integers(-(2**70), 2**70), st.text(), st.binary(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(), inner, max_size=3),
    ),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.campaign
@given(data)
@settings(max_examples=50)
def test_values_survive_a_message(value):
    arrived = server.of_json(json.loads(json.dumps(value_to_json(value))))
    assert repr(value_from_json(json.loads(json.dumps(server.to_json(arrived))))) == repr(value)  # NaN and types, too


class Hue(Enum):
    RED = 1


@pytest.mark.parametrize(
    "value", [1j, datetime(2020, 1, 1), Decimal("0.1"), Hue.RED, object(), np.array([1j]), {"a": [len]}, pl.DataFrame()]
)
def test_outcomes_that_json_cannot_carry_are_refused(value):
    with pytest.raises(server.Unsendable, match="a value of the type"):
        server.to_json(value)


def test_old_pythons_read_what_runs_there():
    """Syntax of 3.8, and nothing imported at the top but the standard library."""
    tree = ast.parse(Path(server.__file__).read_text(), feature_version=(3, 8))
    for node in tree.body:
        if isinstance(node, ast.Import):
            assert {name.name.partition(".")[0] for name in node.names} <= sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom):
            assert node.module.partition(".")[0] in sys.stdlib_module_names


@pytest.mark.parametrize("own_session", [True, False])
def test_an_interpreter_ends_with_whoever_started_it(there, own_session):
    """Though its function hangs; and with it what that has started, in a session that is theirs alone."""
    run = {
        "inputs": ["[]"], "parameters": '{"dict": {}}', "data": "data", "generator": None, "order": "0", "words": [""],
        "attributes": [], "errors": False, "seed_globals": False,
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, server.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=own_session
    )
    for request in ({"load": [str(there / "there.py"), "starts_another"]}, run):
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
    assert b"parameters" in process.stdout.readline()
    started = int(process.stdout.readline())  # which has the pipe of answers, too
    process.stdin.close()
    assert process.wait(timeout=30) == (-signal.SIGKILL if own_session else 0)
    if own_session:
        assert process.stdout.read() == b""  # the other one has ended
    else:
        os.kill(started, signal.SIGKILL)
    process.stdout.close()


# The other end of the pipe is anybody's program.


LIES = """#!{python}
import sys
sys.stdin.readline()
print('{{"parameters": [["rng", "POSITIONAL_OR_KEYWORD", []], ["data", "POSITIONAL_OR_KEYWORD", []]]}}', flush=True)
for line in sys.stdin:
    print({answer!r}, flush=True)
"""
ANSWERS = [
    "so", "[" * 500 + "]" * 500, '{"other": 1}',
    '{"outcomes": [[], []], "raises": []}',
    '{"outcomes": [[1], [2], [3]], "raises": []}',
    '{"outcomes": [[{"class": "os.system"}], [1]], "raises": []}',
    '{"outcomes": [[{"array": [1], "dtype": "O"}], [1]], "raises": []}',
    '{"outcomes": [[1], [1]], "raises": [[0, 9, "KeyError"]]}',
    '{"raised": [0, 7, "KeyError", "", ""]}',
]  # fmt: skip


def program(folder, text):
    """A program of a text."""
    file = folder / "liar"
    file.write_text(text)
    file.chmod(0o700)
    return file


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_that_is_none_is_named(tmp_path, answer):
    liar = program(tmp_path, LIES.format(python=sys.executable, answer=answer))
    mechanism = RemoteMechanism(Signature.of(dpw.remote(liar, "mine:f"), {}))
    with pytest.raises(MechanismCrashed, match=r"liar (answered|wrote)"):
        mechanism.pair_outcomes(PairedRuns.d_first(Pair([0.0], [1.0]), 1, coupled=False), np.random.default_rng(0))


TWICE = '["data", "POSITIONAL_OR_KEYWORD", []], ["data", "POSITIONAL_OR_KEYWORD", []]'
DISORDER = '["rng", "KEYWORD_ONLY", []], ["data", "POSITIONAL_ONLY", []]'


@pytest.mark.parametrize("parameters", [TWICE, DISORDER, '["rng", "ANY", []]', '["1 x", "POSITIONAL_ONLY", []]', "1"])
def test_parameters_of_no_function_are_refused(tmp_path, parameters):
    answer = f'{{"parameters": [{parameters}]}}'
    with pytest.raises(InvalidParameter, match="liar"):
        dpw.remote(program(tmp_path, f"#!{sys.executable}\ninput()\nprint({answer!r}, flush=True)\n"), "mine:f")


@pytest.mark.campaign
def test_parameters_without_a_name_over_there(tmp_path):
    (tmp_path / "there.py").write_text("def f(rng, data, /, scale=0.1):\n    return data[0] + rng.laplace(0, scale)\n")
    there = dpw.remote(sys.executable, f"{tmp_path / 'there.py'}:f", max_time="60s")
    assert dpw.check(there, claim=1.0, neighbours=[([0.0], [1.0])], seed=1, workers=1, runs=1_000).refuted
