"""The time of a call as the last entry of its outcome, on a clock that stands still unless a mechanism moves it."""

import gc
import json
import os
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

import dpwitness as dpw
from dpwitness.cli import main
from dpwitness.cli.commands import parse, repeating
from dpwitness.errors import DependentRuns, InvalidParameter
from dpwitness.events import Box, Interval
from dpwitness.events.event import Noun, seconds_text
from dpwitness.mechanisms.call_times import TimedMechanism, new_each_time, on_one_core
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.resolve import MechanismFactory, Requirements, as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair
from dpwitness.results.witness import Witness
from dpwitness.runs import Role, generator, order
from running import sampled

FEW = {"max_time": 30.0, "runs": 2_000, "search_runs": 500, "seed": 1}
ONE = [([0, 5], [1, 5])]
PAIRS = 64

pytestmark = pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")  # of those that are not timed


@dataclass
class Clock:
    """Nanoseconds that pass only where a mechanism says so."""

    now: int = 0


CLOCK = Clock()


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    monkeypatch.setattr(TimedMechanism, "clock", staticmethod(lambda: CLOCK.now))


def made_here():
    """A coin, which takes as many microseconds as the first record says, and one; no new process can load it."""

    def steps(rng, data):
        CLOCK.now += 1_000 * (data[0] + 1)
        return int(rng.random() < 0.5)

    return steps


steps = made_here()


def coin(rng, data):
    """A coin, which always takes as long."""
    CLOCK.now += 1_000
    return int(rng.random() < 0.5)


def outcomes(function, pair, n=PAIRS, **options):
    """The mechanism, and rows of n paired runs by the layout that they lead to; shape (2, n, width)."""
    mechanism = as_mechanism(function, pair.data, neighbour=pair.neighbour, observe="time", **options)
    layout = mechanism.layout
    runs = PairedRuns(pair=pair, order=order(1, Role.SEARCH, runs=n), layout=layout)
    return mechanism, mechanism.settled(mechanism.pair_outcomes(runs, generator(1, Role.SEARCH)), layout)


def times(mechanism, rows):
    return rows[..., mechanism.time_at]


@pytest.mark.parametrize(
    "output",
    [
        lambda k: 3.5,
        lambda k: None,
        lambda k: "yes",
        lambda k: {"a": 1.0, "time": 7.0},
        lambda k: [1.0] * (k % 3),
        lambda k: np.arange(4.0),
        lambda k: ((1, "a"), {2}),
        lambda k: {"a": [1] * (k % 4)} if k % 2 else k,
    ],
    ids=["number", "None", "text", "dict", "ragged", "array", "nested", "mixed"],
)
def test_the_time_has_one_coordinate_whatever_the_outcome_is(output):
    calls = Counter()

    def mechanism(rng, data):
        calls["all"] += 1
        CLOCK.now += 250 + data[0]
        return output(calls["all"])

    made, rows = outcomes(mechanism, Pair([0], [100]))
    assert made.time_at == 1
    assert made.places[1] == "time in s"
    np.testing.assert_array_equal(times(made, rows), np.repeat([[250e-9], [350e-9]], PAIRS, axis=1))
    # What is behind it, and before it, is what the mechanism returned.
    plain = made.without_time(rows)
    assert np.isnan(times(made, plain)).all()
    assert np.array_equal(np.delete(plain, 1, axis=2), np.delete(rows, 1, axis=2), equal_nan=True)
    assert not np.isnan(times(made, rows)).any()  # it is a copy


def test_an_exception_has_its_time_too():
    def mechanism(rng, data):
        CLOCK.now += 1_000 * (1 + data[0])
        if rng.random() < 0.5:
            raise ValueError("no")
        return 1.0

    made, rows = outcomes(mechanism, Pair([0], [1]), errors="outcome")
    assert {made.label(code) for code in np.unique(rows[..., 0])} == {None, "raises ValueError"}
    np.testing.assert_array_equal(times(made, rows), np.repeat([[1e-6], [2e-6]], PAIRS, axis=1))


def test_what_summarises_an_output_takes_no_time():
    def summary(output):
        CLOCK.now += 77
        return output + 1

    made, rows = outcomes(coin, Pair([0], [1]), outcome=summary)
    assert set(np.unique(rows[..., 0])) == {1.0, 2.0}
    assert set(np.unique(times(made, rows))) == {1e-6}


def test_an_object_that_is_made_for_each_run_is_made_before_the_clock_is_read():
    class Once:
        def __init__(self):
            self.used = False
            CLOCK.now += 5_000

        def __call__(self, rng, data):
            assert not self.used
            self.used = True
            CLOCK.now += 40
            return 0

    made, rows = outcomes(MechanismFactory(Once), Pair([0], [1]))
    assert set(np.unique(times(made, rows))) == {40e-9}


def test_attributes_are_read_by_name():
    class Model:
        coef_ = (1.0, 2.0)

    made, rows = outcomes(lambda rng, data: Model(), Pair([0], [1]), outcome="coef_")
    assert [made.places[c] for c in range(2, rows.shape[2])] != []
    assert all("attribute 'coef_'" in made.places[c] for c in range(2, rows.shape[2]))


def test_every_call_gets_an_input_that_is_new_throughout():
    seen = []

    def mechanism(rng, data):
        seen.append((data, data["b"], data["b"][0]))
        data["b"].append(rng.random())  # nothing of it reaches another run
        return len(data["b"])

    _, rows = outcomes(mechanism, Pair({"a": "x" * 30, "b": [1.5]}, {"a": "x" * 30, "b": [2.5]}))
    assert set(np.unique(rows[..., 0])) == {2.0}
    for number, objects in enumerate(zip(*seen, strict=True)):
        assert len(set(map(id, objects))) == len(seen), number  # all are kept, so that no address comes twice


@pytest.mark.parametrize(
    "data",
    [
        [1, 2.5, True, None, "text", b"bytes"],
        {"a": [1.0, 1.0], ("b", 1): {3, 4}},
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.ones((2, 3))),
        np.array(2.5),
        np.array(7),
        [np.float64(1.5), np.arange(2)],
        "text",
        (1.5, (2, -0.0)),
    ],
    ids=repr,
)
def test_a_new_input_is_what_the_input_is(data):
    source = new_each_time(TimedMechanism(Signature.of(coin, {})).conversion, data)
    made, usual = source(), dpw.mechanisms.mechanism.copier(data)()
    assert repr(made) == repr(usual)
    assert type(made) is type(usual)
    if isinstance(made, np.ndarray):
        assert (made.flags.f_contiguous, made.flags.writeable) == (usual.flags.f_contiguous, usual.flags.writeable)


def test_equal_texts_are_objects_of_their_own():
    text = "a text of some length"
    made = new_each_time(TimedMechanism(Signature.of(coin, {})).conversion, [text, text])()
    assert made[0] == made[1]
    assert made[0] is not made[1]


def test_before_each_timed_call_stands_one_on_an_input_drawn_by_a_coin():
    calls = []

    def mechanism(rng, data):
        calls.append(data[0])
        return 0

    made = as_mechanism(mechanism, [0], neighbour=[1], observe="time")
    n = 2_000
    drawn = order(1, Role.SEARCH, runs=n)
    calls.clear()
    runs = PairedRuns(pair=Pair([0], [1]), order=drawn, layout=made.layout)
    made.pair_outcomes(runs, generator(1, Role.SEARCH))
    untimed, timed = np.array(calls).reshape(n, 2, 2)[..., 0], np.array(calls).reshape(n, 2, 2)[..., 1]
    np.testing.assert_array_equal(timed, np.stack([drawn, 1 - drawn], axis=1))
    for same in ((untimed == timed).sum(), untimed.sum()):  # which of the two follows from nothing
        assert binom.isf(1 - 1e-9, 2 * n, 0.5) <= same <= binom.isf(1e-9, 2 * n, 0.5)


def test_calls_that_are_not_timed_draw_from_other_numbers():
    draws = []

    def mechanism(rng, data):
        draws.append(rng.random())
        return draws[-1]

    made, rows = outcomes(mechanism, Pair([0], [1]))
    np.testing.assert_array_equal(rows[0, :, 0], rows[1, :, 0])  # coupled: both sides share their draws
    again, same = outcomes(mechanism, Pair([0], [1]))
    np.testing.assert_array_equal(rows[:, :, 0], same[:, :, 0])  # and a seed repeats them
    assert made.reproducible
    assert not made.repeatable
    assert again is not made


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system lets no thread choose its cores")
@pytest.mark.parametrize("fails", [False, True])
def test_calls_stay_on_one_core_and_in_the_end_all_are_back(fails):
    before, seen = os.sched_getaffinity(0), []

    def mechanism(rng, data):
        seen.append((os.sched_getaffinity(0), gc.isenabled()))
        if fails and len(seen) > 20:
            raise ValueError("enough")
        return 0

    if fails:
        with pytest.raises(dpw.DPWitnessError, match="enough"):
            outcomes(mechanism, Pair([0], [1]))
    else:
        outcomes(mechanism, Pair([0], [1]))
    seen = seen[:20]  # behind an error it is asked whether something is used up
    cores = {frozenset(one) for one, _ in seen}
    assert len(cores) == 1
    assert [len(one) for one in cores] == [1]
    assert not any(collecting for _, collecting in seen)
    assert os.sched_getaffinity(0) == before
    assert gc.isenabled()


def test_the_garbage_collector_stays_off_where_it_was():
    gc.disable()
    try:
        outcomes(coin, Pair([0], [1]))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_without_a_call_for_it_runs_stay_on_all_cores(monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    with on_one_core():
        pass


def test_a_function_runs_as_it_is_given():
    numba = pytest.importorskip("numba")

    def noisy(rng, data):
        return data[0] + rng.laplace(0, 1.0)

    mechanism = as_mechanism(noisy, np.array([0.0]), observe="time")
    assert type(mechanism) is TimedMechanism
    assert mechanism.signature.function is noisy
    jitted = numba.njit(noisy)
    compiled = as_mechanism(jitted, np.array([0.0]), observe="time")
    assert compiled.signature.function is jitted
    assert compiled.outcomes(np.array([0.0]), generator(1, Role.SEARCH), 3).shape == (3, 2)


def vectorised(rng, data, size):
    return rng.random(size)


@pytest.mark.parametrize(
    ("mechanism", "options", "message"),
    [
        (vectorised, {}, r"vectorised cannot be timed run by run: one call makes many runs \(size=\)"),
        (dpw.command(["true"]), {}, "cannot be timed run by run: it runs in a process of its own"),
        (coin, {"cluster": "local"}, "measures on one core of this process: leave out cluster="),
        (coin, {"observe": "memory"}, "observe='memory' must be 'time' or None"),
        (coin, {"observe": 3}, "observe=3 must be 'time' or None"),
    ],
    ids=["vectorised", "command", "cluster", "memory", "number"],
)
def test_what_cannot_be_timed_is_refused_in_one_line(mechanism, options, message):
    with pytest.raises(InvalidParameter, match=message) as error:
        dpw.check(mechanism, claim=1.0, neighbours=ONE, **{"observe": "time", **options})
    assert "\n" not in str(error.value)


def test_a_mechanism_that_was_made_ready_without_its_time_is_refused():
    made = as_mechanism(coin, [0, 5], requirements=Requirements(interpreted=True))
    with pytest.raises(InvalidParameter, match="coin was made ready without its time: give the function itself"):
        dpw.check(made, claim=1.0, neighbours=ONE, observe="time")


def test_a_query_of_a_database_cannot_be_timed():
    import sqlite3

    query = dpw.sql(lambda: sqlite3.connect(":memory:"), "SELECT count(*) FROM t", table="t")
    with pytest.raises(InvalidParameter, match="cannot be timed run by run: its runs are queries of a database"):
        dpw.check(query, claim=1.0, neighbours=[([{"a": 1}], [{"a": 2}])], observe="time")


@pytest.fixture(scope="module")
def violation():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TimedMechanism, "clock", staticmethod(lambda: CLOCK.now))
        return dpw.check(steps, claim=1.0, neighbours=ONE, observe="time", **FEW)


@pytest.mark.campaign
def test_a_time_that_follows_from_the_input_refutes_a_claim_and_one_that_does_not_does_not(violation):
    assert isinstance(violation, dpw.Violation)
    assert violation.counts.hits == violation.counts.runs
    assert violation.counts.neighbour_hits == 0
    passed = dpw.check(coin, claim=1.0, neighbours=ONE, observe="time", **FEW)
    assert isinstance(passed, dpw.NotRefuted)
    assert isinstance(dpw.check(steps, claim=1.0, neighbours=ONE, **FEW), dpw.NotRefuted)  # not looked at


def test_a_verdict_speaks_of_time_and_of_this_machine(violation):
    text = violation.report(reproduce=["dpwitness", "check", "--observe", "time", "--seed", "1"])
    assert "  event        time " in text
    assert " µs" in violation.witness.description
    assert "the time is part of the outcome: this speaks of this machine" in text
    assert "times are measured anew: a seed cannot reproduce these counts" in text
    assert "reproduce: dpwitness check --observe time --seed 1" in text
    assert not violation.reproducible
    assert violation.witness.explanation is None


def test_a_page_says_it_too(violation, tmp_path):
    from dpwitness.report.files import report

    path = tmp_path / "result.json"
    path.write_text(json.dumps(violation.to_json()))
    page = report([str(path)])
    assert "this speaks of this machine" in page
    assert "Times are measured anew" in page


@pytest.mark.campaign
def test_a_witness_is_replayed_with_the_time(violation, tmp_path):
    path = tmp_path / "witness.json"
    violation.witness.save(path)
    assert json.loads(path.read_text())["observe"] == "time"
    again = dpw.replay(path, steps, neighbours=ONE, runs=1_000, seed=2)
    assert isinstance(again, dpw.Violation)
    assert again.witness.observe == "time"
    assert isinstance(dpw.replay(path, steps, observe="time", neighbours=ONE, runs=1_000), dpw.Violation)
    assert isinstance(dpw.replay(path, coin, neighbours=ONE, runs=1_000), dpw.NotRefuted)


def test_a_witness_of_the_time_can_be_shrunk(violation):
    small = dpw.shrink(violation, steps, runs=5_000, max_time=5.0)
    assert small.witness.observe == "time"


def test_a_witness_found_without_the_time_is_not_replayed_with_it(tmp_path):
    found = dpw.check(lambda rng, data: data[0], claim=1.0, neighbours=ONE, errors="outcome", **FEW)
    written = found.witness.to_json()
    assert "observe" not in written  # as in files of before there was such a thing
    assert Witness.from_json(written).observe is None
    with pytest.raises(InvalidParameter, match="this witness was found without it"):
        dpw.replay(found, lambda rng, data: data[0], neighbours=ONE, observe="time")


@pytest.mark.campaign
def test_a_witness_whose_event_is_of_the_outcome_alone_is_replayed(tmp_path):
    def tells(rng, data):
        CLOCK.now += 1_000
        return int(rng.random() < (0.95 if data[0] else 0.05))

    found = dpw.check(tells, claim=1.0, neighbours=ONE, observe="time", **FEW)
    assert isinstance(found, dpw.Violation)
    assert isinstance(dpw.replay(found.witness.to_json(), tells, neighbours=ONE, runs=1_000), dpw.Violation)


@pytest.mark.campaign
def test_times_that_depend_on_each_other_are_no_remembered_noise():
    state = {"level": 0}

    def drifting(rng, data):  # as a clock rate that goes up and down
        state["level"] += 1
        CLOCK.now += 1_000 + 500 * ((state["level"] >> 9) % 2) + 100 * data[0]
        return int(rng.random() < 0.5)

    assert isinstance(dpw.check(drifting, claim=1.0, neighbours=ONE, observe="time", **FEW), dpw.Violation)

    def drifting_alike(rng, data):
        state["level"] += 1
        CLOCK.now += 1_000 + 500 * ((state["level"] >> 9) % 2)
        return int(rng.random() < 0.5)

    assert isinstance(dpw.check(drifting_alike, claim=1.0, neighbours=ONE, observe="time", **FEW), dpw.NotRefuted)


def test_noise_that_is_remembered_is_refused_though_times_vary():
    kept = {}

    def stuck(rng, data):
        CLOCK.now += int(rng.integers(1_000, 2_000))
        kept["calls"] = kept.get("calls", 0) + 1
        if kept["calls"] % 64 == 1:
            kept["noise"] = rng.random()
        return kept["noise"] + data[0]

    with pytest.raises(DependentRuns):
        dpw.check(stuck, claim=1.0, neighbours=ONE, observe="time", **FEW)


@pytest.mark.campaign
def test_the_last_bits_of_times_are_not_looked_at():
    def grid(rng, data):  # of D all times are on a coarse grid, and of D′ none
        CLOCK.now += int(rng.integers(1, 1 << 20)) * 2_000 + 1_000 * data[0]
        return int(rng.random() < 0.5)

    verdict = dpw.check(grid, claim=1.0, neighbours=ONE, observe="time", **FEW)
    assert verdict.refuted or verdict.floating_point is None


@pytest.mark.campaign
def test_a_bound_a_profile_and_a_curve_look_at_the_time_too():
    few = {"neighbours": ONE, "observe": "time", "runs": 500, "search_runs": 200, "seed": 1, "max_time": 20.0}
    bound = dpw.bound(steps, claim=1.0, **few)
    assert bound.epsilon_lower_bound > 3
    assert any("this machine" in note for note in bound.notes)
    profile = dpw.profile(steps, claim=1.0, **few)
    assert any("time" in event.description for event in profile.events)
    assert not profile.reproducible
    curve = dpw.curve(steps, epsilon=1.0, claims=[0.5, 1.0], **few)
    assert not curve.reproducible


FILE = """
import time

def waits(rng, data):
    if data[0]:
        time.sleep(0.001)
    return int(rng.random() < 0.5)
"""


def test_the_command_line_repeats_the_option():
    line = ["check", "waits.py:waits", "--claim", "1", "--pair", "[0]", "[1]", "--observe", "time"]
    assert " ".join(repeating(parse(line))).startswith("dpwitness check waits.py:waits --claim 1 --observe time")


@pytest.mark.campaign
def test_the_command_line_has_the_option_and_says_how_to_do_it_again(tmp_path, capsys, monkeypatch):
    monkeypatch.undo()  # the clock of the machine: a millisecond is clear on any
    (tmp_path / "waits.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    arguments = ["--pair", "[0]", "[1]", "--max-time", "30s", "--quiet"]
    found = ["check", "waits.py:waits", "--claim", "1", "--observe", "time", "--save", "found.json"]
    assert main([*found, *arguments, "--seed", "3"]) == 1
    out = capsys.readouterr().out
    assert "--observe time" in out
    assert "event        time " in out
    again = ["replay", "found.json", "--mechanism", "waits.py:waits", "--runs", "200"]
    assert main([*again, *arguments]) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.23e-05, "12.3 µs"), (2.0, "2 s"), (1e-3, "1 ms"), (5.9e-07, "590 ns"), (0.0, "0 ns"), (1.312e-06, "1.312 µs")],
)
def test_seconds_are_written_in_their_unit(value, text):
    assert seconds_text(value) == text


def test_an_event_of_the_time_is_in_words():
    noun = Noun("value", {0: "outcome", 1: "time in s"}, seconds_at=1)
    assert Interval(coordinate=1, low=1.23e-05).describe(noun) == "time at least 12.3 µs"
    assert Interval(coordinate=1, high=0.002).describe(noun) == "time below 2 ms"
    both = Box((Interval(coordinate=0, low=1.0), Interval(coordinate=1, low=1e-6, high=2e-6)))
    assert both.describe(noun) == "outcome at least 1 and time from 1 µs to below 2 µs"


@pytest.mark.campaign
@pytest.mark.parametrize(
    "pair",
    sampled(
        [
            ([0], [1]),
            ([1.5] * 70, [1.5] * 71),
            ({"a": 1.5, "b": "x"}, {"a": 2.5, "b": "y" * 9}),
            (np.zeros(99), np.ones(100)),
        ],
        2,
    ),
)
def test_on_the_clock_of_the_machine_a_function_that_ignores_its_input_is_not_refuted(pair, monkeypatch):
    monkeypatch.undo()

    def ignoring(rng, data):
        return rng.random() < 0.5

    verdict = dpw.check(ignoring, claim=0.1, neighbours=[pair], observe="time", runs=50_000, max_time="5m", seed=1)
    assert isinstance(verdict, dpw.NotRefuted)  # wrong with probability α = 10⁻⁶


@pytest.mark.campaign
def test_on_the_clock_of_the_machine_an_early_exit_is_refuted(monkeypatch):
    monkeypatch.undo()

    def any_above(rng, data):
        truth = any(record > 10 for record in data)
        return truth if rng.random() < 0.73 else not truth

    pair = [20.0] + [1.5] * 200, [2.0] + [1.5] * 200
    verdict = dpw.check(any_above, claim=1.0, neighbours=[pair], observe="time", runs=20_000, max_time="5m", seed=1)
    assert isinstance(verdict, dpw.Violation)
