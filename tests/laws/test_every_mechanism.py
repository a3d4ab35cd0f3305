"""The laws of every kind of mechanism: each returns its input plus uniform noise, and raises for a negative one."""

import functools
import inspect
import math
import sqlite3
import sys
import venv
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.errors import InvalidParameter, MechanismRaised
from dpwitness.events import Interval
from dpwitness.events.encoding import exception_code
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.resolve import MechanismFactory, Requirements, as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair
from elsewhere import Elsewhere, away
from programs import served
from running import runner, stream


def uniform(rng, data):
    if data[0] < 0:
        raise ValueError("no negatives")
    return data[0] + rng.random()


def many(rng, data, size):
    if data[0] < 0:
        raise ValueError("no negatives")
    return data[0] + rng.random(size)


def scaled(rng, data, scale):
    return uniform(rng, data) * scale


def writing(data):
    data[0] = data[0] + 1
    return data[0]


def itself(data):
    return data


def written_many(data, size):
    return [writing(data)] * size


def itself_many(data, size):
    return [data] * size


class Own:
    """Draws its own randomness."""

    def method(self, data):
        return uniform(np.random.default_rng(), data)

    def __call__(self, data):
        return self.method(data)


class Randomiser(Own):
    def randomise(self, value):
        return self.method([value])


def used_up_by_one_run(function):
    """A function made anew for each run, since it makes one only."""

    def make():
        left = [function]

        @functools.wraps(function)
        def once(*given, **named):
            return left.pop()(*given, **named)

        return once

    return MechanismFactory(make)


def queried():
    def noise(largest):
        return uniform(np.random.default_rng(), [largest])

    def connected():
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        connection.execute("CREATE TABLE numbers (x)")
        connection.create_function("noise", 1, noise)
        connection.commit()
        return connection

    return dpw.sql(connected, "SELECT noise(max(x)) FROM numbers", table="numbers")


def program(**more):
    body = "print(json.dumps({'error': 'no negatives'} if data[0] < 0 else data[0] + rng.random()))"
    return served(body, **more)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of mechanisms."""

    #: The mechanism; `at` gives a function of a file to another interpreter.
    noisy: Callable[[Any], object]
    #: Whether a seed repeats its runs, and both sides of a coupled run draw the same.
    repeats: bool = True
    #: What is raised for negative inputs, and the exception that is an outcome.
    raised: str = "ValueError"
    outcome: str = "ValueError"
    #: D, D′, and a negative input.
    inputs: tuple[object, object, object] = (np.array([0.0]), np.array([1.0]), np.array([-1.0]))
    settings: dict[str, object] | None = None
    #: What returns its input, and what writes to it and returns it; None where inputs are numbers that stay.
    itself: Callable[[Any], object] | None = None
    writing: Callable[[Any], object] | None = None


INTERPRETED = {"requirements": Requirements(interpreted=True)}
RECORDS = [(0.0,)], [(1.0,)], [(-1.0,)]
KINDS = {
    "compiled": Kind(noisy=lambda at: uniform),
    "jitted": Kind(noisy=lambda at: numba.njit(uniform)),
    "Python": Kind(
        noisy=lambda at: uniform, itself=lambda at: itself, writing=lambda at: writing, settings=INTERPRETED
    ),
    "many runs a call": Kind(noisy=lambda at: many, itself=lambda at: itself_many, writing=lambda at: written_many),
    "partial": Kind(noisy=lambda at: functools.partial(scaled, scale=1.0)),
    "bound method": Kind(noisy=lambda at: Own().method, repeats=False),
    "callable object": Kind(noisy=lambda at: Own(), repeats=False),
    "randomiser": Kind(noisy=lambda at: Randomiser(), repeats=False, inputs=(0.0, 1.0, -1.0)),
    "made for each run": Kind(
        noisy=lambda at: used_up_by_one_run(uniform),
        itself=lambda at: used_up_by_one_run(itself),
        writing=lambda at: used_up_by_one_run(writing),
    ),
    "another interpreter": Kind(
        noisy=lambda at: at("uniform", sys.executable),
        itself=lambda at: at("itself", sys.executable),
        writing=lambda at: at("writing", sys.executable),
    ),
    "one without NumPy": Kind(
        noisy=lambda at: at("uniform"), itself=lambda at: at("itself"), writing=lambda at: at("writing")
    ),
    "seeded program": Kind(
        noisy=lambda at: program(seeded=True), raised="ReportedError", outcome="no negatives",
        itself=lambda at: served("print(json.dumps(data))"),
    ),
    "program": Kind(noisy=lambda at: program(), repeats=False, raised="ReportedError", outcome="no negatives"),
    "query": Kind(
        noisy=lambda at: queried(), repeats=False, raised="OperationalError", outcome="OperationalError", inputs=RECORDS
    ),
}  # fmt: skip
TAKING_ANYTHING = [name for name, kind in KINDS.items() if kind.itself is not None]
WRITING = [name for name, kind in KINDS.items() if kind.writing is not None]


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    """A function of this file, in an interpreter without NumPy or in a given one."""
    folder = tmp_path_factory.mktemp("there")
    (folder / "there.py").write_text("\n".join(map(inspect.getsource, (uniform, itself, writing))))
    venv.create(folder / "bare", symlinks=True)
    return lambda name, python=folder / "bare" / "bin" / "python": dpw.remote(python, f"{folder / 'there.py'}:{name}")


def made(kind, at, **settings):
    """The mechanism of a kind, in shards of 32 runs."""
    data, neighbour, _ = kind.inputs
    mechanism = as_mechanism(kind.noisy(at), data, neighbour=neighbour, **(kind.settings or {}), **settings)
    mechanism.shard = 32
    return mechanism


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
class TestMechanismContract:
    """What a mechanism owes to whoever runs it."""

    def test_a_seed_repeats_its_runs_or_it_says_that_none_does(self, kind, at):
        mechanism = made(kind, at)
        first, again, other = (mechanism.outcomes(kind.inputs[1], stream(seed), 20)[:, 0] for seed in (1, 1, 2))
        assert mechanism.reproducible is kind.repeats
        assert np.array_equal(first, again) is kind.repeats
        assert len({*first, *other}) == 40
        assert 1 <= min(first) <= max(first) < 2

    @pytest.mark.parametrize("coupled", [True, False])
    def test_sides_of_a_coupled_run_draw_the_same_and_no_two_runs_do(self, kind, at, coupled):
        data, neighbour, _ = kind.inputs
        mechanism, rng = made(kind, at), stream()
        runs = PairedRuns(pair=Pair(data, neighbour), order=rng.integers(0, 2, 50).astype(np.uint8), coupled=coupled)
        batches = [mechanism.pair_outcomes(runs, rng)[:, :, 0] - [[0.0], [1.0]] for _ in range(2)]
        x, y = np.round(np.hstack(batches), 12)
        shared = coupled and kind.repeats
        assert np.array_equal(x, y) is shared
        assert len({*x, *y}) == (100 if shared else 200)

    def test_counts_do_not_depend_on_workers(self, kind, at):
        mechanism, pair = made(kind, at), Pair(*kind.inputs[:2])
        there = runner(mechanism, workers=3) if mechanism.threads else away(mechanism, Elsewhere(workers=2))
        events = [Interval(coordinate=0, low=0.5)]
        one, several = ([*running.confirm(pair, events, 200)] for running in (runner(mechanism), there))
        assert one[-1][0].runs == several[-1][0].runs == 200
        assert (one == several) or not kind.repeats
        assert there.notes == ()

    def test_an_exception_is_told_with_its_run_and_its_input(self, kind, at):
        data, _, negative = kind.inputs
        mechanism, runs = made(kind, at), Pair(data, negative)
        told = rf"raised {kind.raised} .* on run 10, on the input \D*-1"
        with pytest.raises(MechanismRaised, match=told) as caught:
            mechanism.outcomes(negative, stream(), 4, start=10)
        assert "\n" not in str(caught.value)
        runs = PairedRuns(pair=runs, order=np.array([0, 1, 0], np.uint8), start=10)
        with pytest.raises(MechanismRaised, match=f"{told}.*a difference between neighbours"):
            mechanism.pair_outcomes(runs, stream())

    def test_an_exception_may_be_an_outcome(self, kind, at):
        if kind is KINDS["many runs a call"]:
            with pytest.raises(InvalidParameter, match="tests single runs"):
                made(kind, at, errors="outcome")
            return
        rows = made(kind, at, errors="outcome").outcomes(kind.inputs[2], stream(), 3)
        assert rows[:, 0].tolist() == [exception_code(kind.outcome)] * 3

    def test_a_summary_of_the_output_is_the_outcome(self, kind, at):
        rows = made(kind, at, outcome=lambda output: output // 1).outcomes(kind.inputs[1], stream(), 3)
        assert rows.tolist() == [[1.0]] * 3


def test_the_kinds_are_what_they_are_called(at):
    """Else a function that numba refuses would be tested as plain Python, twice."""
    for name, kind in KINDS.items():
        assert isinstance(made(kind, at), CompiledMechanism) is (name in ("compiled", "jitted"))


VALUES = [
    3, -0.5e-3, True, "é\n", [0.0, -0.0], [1, 2.5, None, False, "x", -(2**80)], [math.nan, math.inf, -math.inf], [],
    {"a": [1, {"b": "x"}], "c": None}, [[1.0], [2.0, 3.0]],
]  # fmt: skip


@pytest.mark.parametrize("kind", TAKING_ANYTHING)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_of_any_type_go_in_and_come_out_as_in_python(kind, value, at):
    kind = KINDS[kind]
    mechanism = as_mechanism(kind.itself(at), value, **(kind.settings or {}))
    here = PythonMechanism(Signature.of(itself, {})).outcomes(value, stream(), 3)
    assert np.array_equal(mechanism.outcomes(value, stream(), 3), here, equal_nan=True)


@pytest.mark.parametrize("kind", WRITING)
@pytest.mark.parametrize("entries", [1, 8_192, 8_193, 20_000])  # small inputs are copied, large ones when they must be
def test_what_a_run_writes_to_its_input_the_next_one_does_not_see(kind, entries, at):
    data = np.zeros(entries)
    data.flags.writeable = False
    mechanism = as_mechanism(KINDS[kind].writing(at), data, **(KINDS[kind].settings or {}))
    assert mechanism.outcomes(data, stream(), 40)[:, 0].tolist() == [1.0] * 40
    assert not data.any()
