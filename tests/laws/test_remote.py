"""Mechanisms that another interpreter runs: one with NumPy, and one that has nothing but its standard library."""

import ast
import json
import pickle
import subprocess
import sys
import venv
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpwitness as dpw
from dpwitness import cli
from dpwitness.errors import (
    InvalidOutcome,
    InvalidParameter,
    MechanismCrashed,
    MechanismRaised,
    MechanismTimeout,
    UnknownTarget,
)
from dpwitness.events.encoding import exception_code
from dpwitness.mechanisms.catalog import load_code
from dpwitness.mechanisms.handing import Handing
from dpwitness.mechanisms.outcomes import Row, row_of
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.remote import RemoteMechanism, connection, function, server, wire
from dpwitness.mechanisms.remote.function import Call
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.mechanisms.vectorised import VectorisedMechanism
from dpwitness.neighbours import Pair

THERE = '''
import os
import random
import sys
import time

CALLS = []

def noisy(rng, data, epsilon, scale=1.0, kept=len):
    """Laplace noise, with or without NumPy."""
    assert kept is len
    return data[0] + scale / epsilon * (rng.choice([-1, 1]) * -__import__("math").log(1 - rng.random()))

def drawn(rng, data):
    return rng.random()

def kind(rng, data):
    return [type(rng).__name__, type(data).__name__]

def given(data, which=None):
    return data

def spoils(data):
    data.append(len(data))
    return data

def overwrites(data):
    data[0] += 1
    return data[0]

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

def dies(data):
    print("the last word", file=sys.stderr, flush=True)
    os._exit(3)

def hangs(data):
    time.sleep(60 if data[0] else 0)
    return random.random()

def many(data, size):
    return [data[0] + random.random() for _ in range(size)]

def unknown(data):
    return object()

class Model:
    def __init__(self):
        self.coef_, self.intercept_ = [1.0, 2.0], 3.0

def fit(data):
    return Model()

def frame(data):
    return data.assign(b=1)
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
    rows = np.empty((n, 16))
    length = mechanism.fill(data, np.random.default_rng(seed), rows, 0)
    return mechanism.settled(rows[None, :, :length].repeat(2, axis=0), None)[0]


def test_it_is_checked_as_any_other_function(at):
    """Laplace noise of scale 1 / ε."""
    settings = {"epsilon": 1.0, "neighbours": dpw.queries(1), "seed": 3, "search_runs": 400}
    noisy = at("noisy", sys.executable)
    passed = dpw.check(noisy, **settings, max_runs=1_000)
    assert isinstance(passed, dpw.NotRefuted)
    assert passed.reproducible
    assert passed.mechanism == "noisy"
    assert json.loads(json.dumps(passed.to_json()))["parameters"] == {"epsilon": 1.0, "scale": 1.0, "kept": "its own"}
    again = dpw.check(pickle.loads(pickle.dumps(noisy)), **settings, max_runs=1_000)
    assert again.counts == passed.counts
    wrong = dpw.check(noisy, **settings, parameters={"scale": 0.2}, max_runs=1_000)
    assert isinstance(wrong, dpw.Violation)


def test_without_numpy_the_generator_is_the_standard_librarys(at):
    rows = rows_of(at("kind"))
    assert rows[0].tolist() == row(["Random", "list"])
    assert rows_of(at("kind", sys.executable))[0].tolist() == row(["Generator", "ndarray"])


@pytest.mark.parametrize("bare", [False, True])
def test_the_same_seed_gives_the_same_runs(at, bare):
    drawn = at("drawn", None if bare else sys.executable)
    first, second = rows_of(drawn, n=8, seed=1), rows_of(drawn, n=8, seed=1)
    assert np.array_equal(first, second)
    assert len(np.unique(first)) == 8
    assert not np.array_equal(first, rows_of(drawn, n=8, seed=2))


def here(there, name):
    return load_code(f"{there / 'there.py'}:{name}")


def test_from_the_same_words_a_run_draws_what_it_draws_here(at, there):
    """Coupled runs, of which each begins from random words of its own, the same on both sides."""
    both = []
    for kind, made in ((RemoteMechanism, at("drawn", sys.executable)), (PythonMechanism, here(there, "drawn"))):
        rows = np.empty((2, 8, 1))
        kind(Signature.of(made, {})).fill_pair(Pair(DATA, DATA + 1), np.random.default_rng(3), rows, 0, coupled=True)
        both.append(rows)
    assert np.array_equal(both[0], both[1])
    assert np.array_equal(both[0][0], both[0][1])
    assert len(np.unique(both[0])) == 8


def test_generators_of_the_other_interpreter_are_seeded(at):
    mechanism = RemoteMechanism(Signature.of(at("hangs"), {}))
    mechanism.draws_globally = True
    rows = np.empty((2, 6, 1))
    for row in rows:
        mechanism.fill(np.array([0]), np.random.default_rng(1), row, 0)
    assert np.array_equal(rows[0], rows[1])
    assert len(np.unique(rows)) == 6


@pytest.mark.parametrize(
    ("size", "writes", "changed"), [(3, False, True), (10_000, False, False), (10_000, True, True)]
)
def test_arrays_are_written_to_as_here(at, size, writes, changed):
    """Small ones are copied for each run; large ones are read-only, unless the mechanism needs to write."""
    mechanism = RemoteMechanism(Signature.of(at("overwrites", sys.executable), {}), errors="outcome")
    mechanism.handing = Handing(writeable=writes)
    rows = np.empty((3, 1))
    mechanism.fill(np.zeros(size), np.random.default_rng(0), rows, 0)
    assert rows[:, 0].tolist() == [1.0 if changed else exception_code("ValueError")] * 3


def row(value):
    made = Row()
    row_of(value, made)
    return made.entries


VALUES = {
    "numbers": [1, 2.5, -(2**80), True, None, float("nan"), -0.0],
    "texts": ["a", b"b", "\ud800"],
    "containers": {"a": [(1, 2)], 3: frozenset({"x"})},
    "complex": 1 - 2j,
    "whole": 3,
    "nothing": None,
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_inputs_and_outcomes_of_any_kind_pass_unchanged(at, value):
    function = at("given")
    assert row(function(value)) == row(value)
    assert type(function(value)) is type(value)
    assert row(function(0, which=value)) == row(0)


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize(
    "array", [np.arange(6).reshape(2, 3), np.zeros((0, 2)), np.array([True, False]), np.array(2.5)], ids=str
)
def test_arrays_pass_with_and_without_numpy(at, array, bare):
    passed = at("given", None if bare else sys.executable)(array)
    assert row(passed) == row(array.tolist())


def test_tables_pass(at):
    frame = pd.DataFrame({"a": [1, 2], "t": ["x", "y"]}, index=["r", "s"])
    passed = at("frame", sys.executable)(frame)
    assert passed.to_dict() == {**frame.to_dict(), "b": {"r": 1, "s": 1}}
    counted = pd.DataFrame({"a": range(5)})
    for rows in (counted[::2], counted[2:], counted):
        assert at("frame", sys.executable)(rows)["a"].to_dict() == rows["a"].to_dict()
    named = connection.unpacked(wire.packed(counted.rename_axis("id")))
    assert row(named) != row(connection.unpacked(wire.packed(counted)))


def test_each_run_has_an_input_of_its_own(at):
    function = at("spoils")
    call = Call(data=wire.packed([5]), parameters=wire.packed({}), names=("data", None), runs=3, words=bytes(32))
    with function.connection() as connection:
        assert function.asked(connection, call) == [[5, 1]] * 3


def test_what_is_printed_is_no_outcome(at):
    assert rows_of(at("loud")).tolist() == [row("x")] * 4


def test_an_exception_is_told_with_its_run_and_its_traceback(at):
    mechanism = RemoteMechanism(Signature.of(at("raises"), {}))
    with pytest.raises(
        MechanismRaised, match=r"raises raised KeyError \('no such record'\) on run 12, on the input \[1"
    ) as caught:
        mechanism.fill(DATA, np.random.default_rng(0), np.empty((4, 2)), 10)
    assert "there.py" in caught.value.__cause__.__notes__[0]


def test_floats_are_summarised_here(at):
    assert rows_of(at("drawn"), outcome=lambda value: 0).tolist() == [[0.0]] * 4


def test_exceptions_can_be_outcomes(at):
    rows = rows_of(at("raises"), n=9, errors="outcome")
    assert sorted(rows[:, 0]) == [exception_code("KeyError")] * 3 + [0.5] * 6


def test_a_function_that_ends_its_interpreter_is_named(at):
    with pytest.raises(MechanismRaised, match="leaves raised SystemExit"):
        rows_of(at("leaves"))
    with pytest.raises(MechanismCrashed, match=r"dies on runs from 0 on: .* ended with exit code 3 \(the last word\)"):
        rows_of(at("dies"))


def test_what_takes_too_long_is_ended(at):
    function = at("hangs", max_time=0.2)
    with pytest.raises(
        MechanismTimeout, match=r"hangs on runs from 0 on: .* did not answer within 0\.2 s and was ended"
    ):
        rows_of(function)
    assert rows_of(function, np.array([0])).shape == (4, 1)  # in a new one


def test_at_the_deadline_of_a_check_the_interpreter_is_ended(at):
    function = at("hangs")
    mechanism = as_mechanism(function, np.array([0]))
    with function.connection() as connection:
        ends = [connection.end]
    with pytest.raises(MechanismTimeout, match="in time"):
        dpw.check(mechanism, claim=1.0, neighbours=dpw.pairs(([0], [1])), max_time=0.5, search_runs=64)
    assert not ends[0].alive


def test_runs_that_begin_too_late_are_not_begun(at, monkeypatch):
    """The time may be over while an interpreter is started."""
    mechanism = RemoteMechanism(Signature.of(at("drawn"), {}))
    begun = function.Remote.connection

    def late(remote):
        mechanism.release()
        return begun(remote)

    monkeypatch.setattr(function.Remote, "connection", late)
    with pytest.raises(MechanismTimeout, match="the time was over before they began"):
        mechanism.fill(DATA, np.random.default_rng(0), np.empty((1, 1)), 0)


def test_a_new_process_is_a_new_interpreter(at):
    counts = at("counts")
    assert [counts([0]), counts([0])] == [1, 2]
    assert [counts.anew()([0]), counts([0])] == [1, 3]


def test_many_runs_a_call(at):
    mechanism = as_mechanism(at("many"), DATA)
    assert isinstance(mechanism, VectorisedMechanism)
    rows = np.empty((6, 1))
    mechanism.fill(DATA, np.random.default_rng(0), rows, 0)
    assert ((rows >= 1) & (rows < 2)).all()
    assert len(np.unique(rows)) == 6


def test_attributes_are_read_over_there(at):
    assert rows_of(at("fit"), outcome="coef_,intercept_")[0, 2:].tolist() == [2, 1.0, 2.0, 3.0]
    with pytest.raises(InvalidOutcome, match="outcome='weights_': 'Model' object has no attribute 'weights_'"):
        rows_of(at("fit"), outcome="weights_")
    for name in ("fit", "unknown"):
        with pytest.raises(InvalidOutcome, match=f"{name} returned <.*nothing that can be sent: .* outcome='coef_,"):
            rows_of(at(name))


@pytest.mark.parametrize(
    ("python", "target", "error", "message"),
    [
        ("no-such-python", "there.py:noisy", InvalidParameter, "python='no-such-python' is no program"),
        ("false", "there.py:noisy", InvalidParameter, "must be a Python of 3.8 or later: .* ended with exit code 1"),
        (sys.executable, "nowhere.py:noisy", UnknownTarget, "there is no file .*nowhere.py"),
        (sys.executable, "there.py", UnknownTarget, "must be path/file.py:FUNCTION"),
        (sys.executable, "there.py:nothing", UnknownTarget, "cannot be loaded by .*: AttributeError: .*'nothing'"),
        (sys.executable, "broken.py:f", UnknownTarget, "cannot be loaded by .*: ZeroDivisionError"),
        (sys.executable, "no_such_module:f", UnknownTarget, "cannot be loaded by .*: ModuleNotFoundError"),
        (sys.executable, None, UnknownTarget, "None must be path/file.py:FUNCTION"),
    ],
)
def test_what_cannot_be_loaded_is_named(there, monkeypatch, python, target, error, message):
    monkeypatch.chdir(there)
    Path("broken.py").write_text("1 / 0\n")
    with pytest.raises(error, match=message):
        dpw.remote(python, target)


@pytest.mark.parametrize("limit", [0, -1, "long", float("nan")])
def test_the_limit_is_checked(at, limit):
    with pytest.raises(InvalidParameter, match="max_time="):
        at("drawn", max_time=limit)


def test_a_parameter_that_is_no_data_is_refused(at):
    with pytest.raises(InvalidParameter, match=r"the parameter which=<object .* of given cannot be sent"):
        rows_of(at("given"), parameters={"which": object()})


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
        st.complex_numbers(allow_nan=False),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(), inner, max_size=3),
    ),
    max_leaves=8,
)  # fmt: skip


@given(data)
@settings(max_examples=50)
def test_values_survive_a_message(value):
    again = connection.unpacked(wire.packed(value))
    assert repr(again) == repr(value)  # NaN included, and types


@pytest.mark.parametrize("kind", [np.longdouble, np.clongdouble])
def test_numbers_that_no_float_holds_are_told_apart(kind):
    third, nearest = kind(1) / 3, kind(float(np.longdouble(1) / 3))
    rows = [row(connection.unpacked(wire.packed(value))) for value in (third, nearest, third, np.array([third])[0])]
    assert rows[0] == rows[2] == rows[3]
    assert (rows[0] != rows[1]) == (third != nearest)  # on some machines it is a float
    assert len(connection.unpacked(wire.packed(np.array([third, nearest])))) == 2


@given(st.binary(max_size=40), data)
@settings(max_examples=100)
def test_a_damaged_message_is_named(noise, value):
    held = wire.packed([value, np.arange(3)])
    for damaged in (noise, held[: len(held) // 2], noise + held, held[:9] + noise):
        with suppress(MechanismCrashed):  # and nothing else is raised
            connection.unpacked(damaged)


@pytest.mark.parametrize("dtype", ["O", "<U3", "V8", "M8[s]", "<f8,<i4"])
def test_arrays_of_a_message_hold_numbers_alone(dtype):
    damaged = b"A" + wire.packed([dtype, [1], bytes(8)])
    with pytest.raises(MechanismCrashed, match="is no type of numbers"):
        connection.unpacked(damaged)


@pytest.mark.parametrize("module", [server, wire], ids=lambda module: module.__name__)
def test_old_pythons_read_what_runs_there(module):
    """Syntax of 3.8, and nothing imported at the top but the standard library."""
    tree = ast.parse(Path(module.__file__).read_text(), feature_version=(3, 8))
    for node in tree.body:
        if isinstance(node, ast.Import):
            assert {name.name.partition(".")[0] for name in node.names} <= sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom):
            assert node.module.partition(".")[0] in sys.stdlib_module_names


def test_an_interpreter_ends_with_whoever_started_it(there):
    """Though its function hangs: nothing is left running."""
    process = subprocess.Popen([sys.executable, server.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    wire.send(process.stdin, wire.packed({"do": "load", "place": str(there / "there.py"), "name": "hangs"}))
    assert wire.receive(process.stdout)
    run = {
        "do": "run", "forget": [], "store": [(1, wire.packed({})), (2, wire.packed([1]))], "parameters": 1, "input": 2,
        "data": "data", "generator": None, "runs": 1, "words": bytes(32), "writes": False, "seed_globals": False,
        "outcome": (), "errors": False,
    }  # fmt: skip
    wire.send(process.stdin, wire.packed(run))
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    process.stdout.close()
