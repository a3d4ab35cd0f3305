"""Where runs on D and on D′ part: the right line of broken functions, nothing of right ones, nothing left behind."""

import contextlib
import inspect
import json
import math
import random
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

import broken
import dpwitness as dpw
from dpwitness.api import verdict as verdict_module
from dpwitness.claims import ApproxDP, GaussianDP
from dpwitness.errors import InvalidWitness
from dpwitness.health import explanation as health
from dpwitness.health.explanation import explain
from dpwitness.mechanisms.command import CommandMechanism
from dpwitness.neighbours import Pair
from dpwitness.noise import laplace
from dpwitness.results.witness import Explanation, Witness
from running import interpreted, runner

pytestmark = pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism", "ignore::dpwitness.CompiledDiffers")

ONE = ApproxDP(1.0)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Nothing is left out on a busy machine."""
    monkeypatch.setattr(health, "RECORDING_SECONDS", 60.0)


def runner_of(function, pair, seed=1):
    """A runner of a function as plain Python: compiling takes seconds."""
    return runner(interpreted(function, pair, epsilon=1.0), seed=seed)


def explanation(function, first, second, claim=ONE, seed=1):
    """What is said of a function on a pair, whatever a check would find."""
    pair = Pair(first, second)
    running = runner_of(function, pair, seed)
    # Twenty pairs of runs are recorded: a busy machine makes a fit look slow, of which four are.
    running.mechanism.cost = replace(running.mechanism.cost, seconds_per_run=1e-3)
    return explain(running, function, claim, pair)


def marked(thing):
    """The lines of a file that are marked within a function or class, and of the helper that it calls."""
    marks = set()
    things = [thing if inspect.isfunction(thing) else type(thing)]
    for one in things + [broken.helper] * ("helper" in str(thing)):
        lines, first = inspect.getsourcelines(one)
        marks |= {first + i for i, line in enumerate(lines) if "# the defect" in line}
    return marks


#: Of these, noise is neither added to the output nor left out in every run, or a seed does not repeat a run: nothing
#: is said rather than a wrong line.
UNNAMED = {"clipped_afterwards", "response", "report_noisy_max", "global_generator", "Holder"}


def name_of(function):
    return getattr(function, "__name__", type(function).__name__)


@pytest.mark.parametrize(
    ("function", "first", "second"), broken.BROKEN, ids=map(name_of, next(zip(*broken.BROKEN, strict=True)))
)
def test_the_line_of_the_fault_is_found(function, first, second):
    found = explanation(function, first, second)
    if name_of(function) in UNNAMED:
        assert found is None
    else:
        assert found.file.endswith("broken.py")
        assert not found.file.startswith("/")
        assert found.line in marked(function), found


def shown_if_large(rng, data, epsilon):
    """A value without noise on one side of a conditional expression."""
    noisy = sum(data) + rng.laplace(0, 5)
    return noisy if sum(data) > 4 else -1.0  # the defect


def clipped_and_too_little(rng, data, epsilon):
    """The runs part where a record is clipped, which is right; the noise covers half of the difference."""
    total = 0.0
    for value in data:
        if value > 10:
            value = 10.0
        total += value
    return total + rng.laplace(0, 1 / epsilon)  # the defect


@pytest.mark.parametrize(
    ("function", "first", "second", "said"),
    [
        (broken.scale_from_data, [1.0, 1.0], [1.0, 2.0], "scale 1 on D, 2 on D′: the scale depends on the data"),
        (broken.draw_for_each_record, [1.0, 2.0, 3.0], [1.0, 2.0], "D draws 3 times, D′ 2 times"),
        (broken.sensitivity_forgotten, [1.0, 2.0], [1.0, 9.0],
         "Laplace noise of scale 1 on both sides; without it the output differs by 7: that is ε = 7"),
        (shown_if_large, [1.0, 2.0], [1.0, 4.0], "D returns -1 in every run, D′ another value in each"),
        (clipped_and_too_little, [1.0, 20.0], [1.0, 8.0], "differs by 2"),
    ],
)  # fmt: skip
def test_what_is_said(function, first, second, said):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = explanation(function, first, second)
    assert found.line in marked(function)
    assert said in found.text


def bound_and_count(rng, data, epsilon):
    """A bound by randomised response of ε = 4 is private, and the same in twenty runs in one case of two."""
    keep = math.exp(4.0) / (1 + math.exp(4.0))
    bound = 10.0 if (max(data) > 5) == (rng.random() < keep) else 5.0
    return [sum(min(x, bound) for x in data) + rng.laplace(0, bound), len(data) + rng.laplace(0, 0.02)]  # the defect


@pytest.mark.campaign
def test_what_is_alike_by_chance_in_the_recorded_runs_is_no_fault():
    """In half of the cases it is alike in all of them."""
    found = [explanation(bound_and_count, [1.0, 9.0], [1.0], ApproxDP(7.0), seed) for seed in range(6)]
    assert {one.text for one in found} == {
        "Laplace noise of scale 0.02 on both sides; without it entry 1 differs by 1: that is ε = 50"
    }


# Right functions, of which nothing may be said.


def noisy_scale(rng, data, epsilon):
    count = max(len(data) + rng.laplace(0, 2 / epsilon), 1.0)
    return sum(data) / count + rng.laplace(0, 2 / epsilon / count)


def sampled(rng, data, epsilon):
    chosen = rng.permutation(len(data))[: len(data) // 2]
    total = sum(data[i] for i in chosen)
    return total + laplace(rng, 0.1)


def clipped(rng, data, epsilon):
    total = 0.0
    for value in data:
        if value > 1:
            value = 1.0
        total += value
    return total + laplace(rng, 1 / epsilon)


@pytest.mark.parametrize(
    ("function", "first", "second", "claim"),
    [
        *(
            (lambda rng, data, epsilon: sum(data) + rng.laplace(0, 1 / epsilon), [1.0, 2.0], other, ONE)
            for other in ([1.0, 3.0], [1.0, 2.0, 1.0], [1.0, 2.0])
        ),
        (lambda rng, data, epsilon: sum(data) + rng.normal(0, 1 / epsilon), [1.0, 2.0], [1.0, 3.0], GaussianDP(1.0)),
        (noisy_scale, [1.0, 1.0], [1.0, 1.0, 1.0], ONE),
        (lambda rng, data, epsilon: round(sum(data) + rng.laplace(0, 1 / epsilon), 3), [1.0, 2.0], [1.0, 2.9], ONE),
        (sampled, [1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0], ONE),
        (clipped, [0.5, 0.5], [0.5, 7.0], ONE),
    ],
)
def test_nothing_is_said_of_what_is_right_or_not_known_to_be_wrong(function, first, second, claim):
    assert explanation(function, first, second, claim) is None


# What it leaves behind: nothing.


def state():
    """All that a recorded run may change."""
    places = (random, np.random, broken, sys.modules[__name__])
    held = [{name: id(value) for name, value in vars(place).items()} for place in places]
    legacy = np.random.get_state()[1].tolist()  # noqa: NPY002
    return held, random.getstate(), legacy, sys.gettrace()


class Panic(BaseException):
    """As Rust's: no `Exception`."""


class Stops:
    """Ends its runs in some way, once it is recorded."""

    def __init__(self, how):
        self.how = how

    def __call__(self, rng, data, epsilon):
        noisy = data[0] + rng.laplace()
        if sys.gettrace() is not None and inspect.currentframe().f_trace is not None:
            if isinstance(self.how, BaseException):
                raise self.how
            self.how(rng)
        return noisy


def draw_for_ever(rng):
    while True:
        rng.random()


def run_for_ever(rng):
    while True:
        pass


def swallow(rng):
    while True:
        with contextlib.suppress(Exception):  # as careless code does
            draw_for_ever(rng)


@pytest.mark.parametrize(
    "how",
    [SystemExit(3), Panic(), pytest.fail.Exception("Timeout (>30s)"), KeyboardInterrupt(), run_for_ever, swallow],
    ids=lambda how: getattr(how, "__name__", type(how).__name__),
)  # fmt: skip
def test_a_run_that_ends_otherwise_says_nothing_and_leaves_nothing(how, monkeypatch):
    monkeypatch.setattr(health, "RECORDING_SECONDS", 0.2)
    pair = Pair([1.0], [2.0])
    running = runner_of(Stops(how), pair)
    before, began = state(), time.monotonic()
    with pytest.raises(KeyboardInterrupt) if isinstance(how, KeyboardInterrupt) else contextlib.nullcontext():
        assert explain(running, Stops(how), ONE, pair) is None
    assert state() == before
    assert time.monotonic() - began < 60  # it ends


def test_remote_mechanisms_and_slow_ones_are_left_alone():
    pair = Pair([1.0, 1.0], [1.0, 2.0])
    running = runner_of(broken.scale_from_data, pair)
    for seconds, in_process in ((5.0, True), (0.0, True), (0.0, CommandMechanism.in_process)):
        running.mechanism.cost = replace(running.mechanism.cost, seconds_per_run=seconds)
        running.mechanism.in_process = in_process
        found = explain(running, broken.scale_from_data, ONE, pair)
        assert (found is not None) == ((seconds, in_process) == (0.0, True))


# In results.


FOUND = Explanation(
    cause="scale", file="mean.py", line=14, text="scale 0.5 on D, 0.33 on D′", on_data="scale 0.5",
    on_neighbour="scale 0.33", pairs=20,
)  # fmt: skip


def leaking_scale():
    return dpw.check(
        broken.scale_from_data, epsilon=1.0, neighbours=dpw.pairs(([1.0, 1.0], [1.0, 40.0])), runs=20_000, seed=1
    )


@pytest.fixture(scope="module")
def verdict():
    return leaking_scale()


def test_a_violation_says_where(verdict):
    found = verdict.witness.explanation
    assert verdict.refuted
    assert found.line in marked(broken.scale_from_data)
    assert f"{found} ({found.basis})" in " ".join(str(verdict).split())
    assert max(map(len, str(verdict).splitlines()[1:])) <= 80
    assert found.basis.endswith("no evidence")


def test_it_changes_nothing_else(verdict, monkeypatch):
    monkeypatch.setattr(verdict_module, "explain", lambda *_: None)
    without = leaking_scale()
    assert "where  " not in str(without)
    assert without.witness.to_json() == replace(verdict.witness, explanation=None).to_json()
    assert (without.log_e_value, without.lower_bound) == (verdict.log_e_value, verdict.lower_bound)


def test_an_interruption_keeps_the_verdict(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(verdict_module, "explain", interrupted)
    verdict = leaking_scale()
    assert verdict.refuted
    assert verdict.ended == "interrupted"


def test_a_saved_witness_keeps_it(verdict, tmp_path):
    for explained in (FOUND, None):
        replace(verdict.witness, explanation=explained).save(tmp_path / "witness.json")
        assert Witness.load(tmp_path / "witness.json").explanation == explained
        assert ("explanation" in json.loads((tmp_path / "witness.json").read_text())) == (explained is not None)
    written = replace(verdict.witness, explanation=FOUND).to_json()
    for key, value in (("line", 0), ("cause", "magic"), ("text", 3), ("pairs", -1)):
        with pytest.raises(InvalidWitness, match=key):
            Witness.from_json({**written, "explanation": {**written["explanation"], key: value}})
