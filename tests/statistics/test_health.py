"""Runs that depend on each other, noise that is remembered, inputs that are ignored: found before anyone is accused."""

import platform  # noqa: F401  # loaded
import random
import secrets
import sys
import time
from dataclasses import replace
from functools import partial
from math import comb
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import dpwitness as dpw
import remembered
from dpwitness.errors import DependentRuns, DPWitnessError, InvalidNeighbours, InvalidOutcome
from dpwitness.events import Interval, event_from_json
from dpwitness.events.encoding import FALSE, NEGATIVE_ZERO, NONE, TRUE, symbol
from dpwitness.events.event import outcome_text
from dpwitness.evidence import runs_needed
from dpwitness.evidence.counts import Counts
from dpwitness.health import before_search, dependence, findings, new_process, refutation
from dpwitness.health.dependence import FurtherCalls, Series, Shards, refuse_dependent
from dpwitness.health.findings import useful_runs
from dpwitness.health.refutation import _in_time, check_pass, check_refutation
from dpwitness.mechanisms import memory
from dpwitness.mechanisms.catalog import load
from dpwitness.mechanisms.compiled.reach import constants
from dpwitness.mechanisms.libraries import opendp
from dpwitness.mechanisms.python import PythonMechanism, VectorisedMechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair, Relation
from dpwitness.problem import Effort, Statement
from dpwitness.problem import prepare as prepared
from dpwitness.results.text import at_most
from running import confirm, prepare, soon

PAIR = dpw.pairs(([0.0], [1.0]))
LIMITS = {"claim": 1.0, "neighbours": PAIR, "runs": 200_000, "search_runs": 100_000}
POSITIVE = Interval(coordinate=0, low=0.5)


def job(function, seed=1, neighbours=PAIR, outcome=None, max_time=60.0):
    return prepare(function, neighbours=neighbours, outcome=outcome, seed=seed, max_time=max_time)


def flag(p):
    """One flag a call; of its own law it is exactly 1-DP."""

    def shared(rng, data, size):
        return np.full(size, float(rng.random() < (p if data[0] > 0.5 else p / np.e)))

    return shared


def blocks(p, length):
    def shared(rng, data, size):
        few = rng.random(-(-size // length)) < (p if data[0] > 0.5 else p / np.e)
        return np.repeat(few * 1.0, length)[:size]

    return shared


def whole(rng, data, size):
    return np.full(size, np.round(data[0]) + rng.geometric(1 - 1 / np.e) - rng.geometric(1 - 1 / np.e))


def rounded(rng, data, size):
    return np.full(size, np.round(data[0] + rng.laplace(), 1))


def continuous(rng, data, size):
    return np.full(size, data[0] + rng.laplace())


def threshold(rng, data, size):
    """The sparse vector technique with one noisy threshold a call."""
    return (data[0] + rng.laplace(0, 4, size) > rng.laplace(0, 2)) * 1.0


def beside_noise(rng, data, size):
    """The second value differs in every row, so that no two rows are equal."""
    return np.column_stack([flag(0.3)(rng, data, size), rng.random(size)])


def seeded_calls(data, size):
    return data[0] + np.random.default_rng(0).laplace(0, 1, size)


DEPENDENT = {
    **{f"flag {p}": flag(p) for p in (0.5, 0.1, 0.01, 0.001)},
    **{f"blocks of 16, {p}": blocks(p, 16) for p in (0.5, 0.1, 0.01, 0.001)},
    **{f"pairs, {p}": blocks(p, 2) for p in (0.5, 0.1, 0.01)},
    "whole": whole,
    "rounded": rounded,
    "continuous": continuous,
    "threshold": threshold,
    "beside noise": beside_noise,
    "seeded calls": seeded_calls,
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_runs_that_depend_on_each_other_accuse_nobody(name):
    """A rare flag may show nothing but one value: then there is nothing to test."""
    for seed in range(3):
        try:
            verdict = dpw.check(DEPENDENT[name], seed=seed, **LIMITS)
        except (DependentRuns, InvalidOutcome):
            continue
        assert isinstance(verdict, dpw.NotRefuted)


ROWS_SHOW = ("flag 0.5", "whole", "rounded", "continuous", "beside noise", "seeded calls")


@pytest.mark.parametrize(
    ("name", "more", "told"),
    [
        *((name, {}, r"are not independent: .* draw fresh noise for every run") for name in ROWS_SHOW),
        # The threshold of a call moves all of its answers; no two rows are equal for it.
        pytest.param(
            "threshold", {"search_runs": 50_000, "runs": 400_000}, "of one call's runs and in",
            marks=pytest.mark.campaign,
        ),
    ],
)  # fmt: skip
def test_what_most_calls_show_is_refused_by_name_in_check_bound_and_curve(name, more, told):
    function, limits = DEPENDENT[name], {"neighbours": PAIR, "seed": 1, **more}
    for refuse in (
        lambda: dpw.check(function, claim=1.0, **limits),
        lambda: dpw.bound(function, epsilon=1.0, **limits),
        lambda: dpw.curve(function, epsilon=[1.0], claims=[0.0 if more else 1.0], **limits),
    ):
        with pytest.raises(DependentRuns, match=told):
            refuse()


@pytest.mark.parametrize("runs", [16_384, 0])
def test_a_rare_flag_that_the_confirm_runs_happened_to_show_convicts_nobody(runs):
    """One call of all hits on D: what one draw a call of probability 0.001 shows once in a thousand checks."""
    _, ready = job(flag(0.001))
    shards = Shards()
    shards.add((Counts(n10=16_384),))
    if runs:
        shards.add((Counts(n10=16_384, n00=runs),))
    with pytest.raises(DependentRuns, match=r"happened in 0\.000% of one call's runs and in 100\.000% of another's"):
        check_refutation(ready, PAIR.given[0], [POSITIVE], shards)


@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
def test_runs_since_an_event_was_chosen_are_compared_with_runs_on_one_input_alone():
    """Of few runs that refute the last event was chosen late; the input before decides what a run returns."""
    before = []

    def after_another(rng, data):
        before.append(data[0])
        return float(before[-2:] != [data[0]] * 2) - 1e-9 * rng.random()

    _, ready = job(after_another)
    shards = Shards(chosen=((Interval(coordinate=0, low=0.4), Counts(n10=25, n11=25, n01=25, n00=25)),))
    shards.add((Counts(n11=2, n00=2),))
    with pytest.raises(DependentRuns, match=r"on D the event happened in 50 of 100 runs between runs on both .* alone"):
        check_refutation(ready, PAIR.given[0], [POSITIVE], shards)


def test_a_pass_of_dependent_runs_is_refused_too():
    shards, total = Shards(), Counts()
    for k in range(20):
        total += Counts(n10=400, n00=600) if k % 2 else Counts(n10=600, n00=400)
        shards.add((total,))
    with pytest.raises(DependentRuns, match=r"% of one call's runs and in 60\.000%"):
        check_pass(job(remembered.noisy)[1], PAIR.given[0], [POSITIVE], shards)


def test_shards_are_kept_by_their_number_and_sum_up():
    shards, total = Shards(), Counts()
    for k in range(300):
        total += Counts(n10=k, n11=1, n01=2, n00=3)
        shards.add((total,))
    assert shards.totals == (total,)
    assert 32 <= len(shards.kept) <= 64
    assert [kept for ((kept, _, _),) in shards.kept] == [k + 1 for k in range(0, 300, shards.stride)]
    assert all(others == 3 and runs == hits - 1 + 6 for ((hits, others, runs),) in shards.kept)


def coin(rng, data, size):
    return (rng.random(size) < 0.3) * 1.0


def slow_coin(rng, data):
    return float(rng.random() < 0.3)


@pytest.mark.campaign
@pytest.mark.parametrize("function", [coin, slow_coin])
def test_the_level_of_the_early_check(function, monkeypatch):
    monkeypatch.setattr(dependence, "LEVEL", 0.05)
    ready = [job(function, seed, outcome=float if function is slow_coin else None) for seed in range(60)]
    alarms = sum(before_search.stuck_generator("it", before_search.first_runs(*one)) is not None for one in ready)
    assert alarms <= stats.binom.isf(1e-9, len(ready), 0.05)


def further_calls(rows, hits, outcomes=((0.0,),)):
    """Calls on one input, and outcomes that they gave."""
    series = Series(PAIR.given[0].data, np.array(outcomes), np.arange(len(outcomes)))
    return FurtherCalls(rows=rows, hits=[hits], series=series)


@pytest.mark.campaign
def test_the_level_of_the_check_before_a_refutation(monkeypatch):
    monkeypatch.setattr(dependence, "LEVEL", 0.05)
    rng = np.random.default_rng(7)
    alarms, seeds = 0, 150
    for _ in range(seeds):
        seen = [further_calls([400] * 8, rng.binomial(400, 0.2, 8).tolist()) for _ in range(2)]
        shards, total = Shards(), Counts()
        for n10, n11, n01, n00 in rng.multinomial(1_000, (0.1, 0.1, 0.1, 0.7), 6).tolist():
            total += Counts(n10=n10, n11=n11, n01=n01, n00=n00)
            shards.add((total,))
        try:
            refuse_dependent("m", 1, shards, seen)
        except DependentRuns:
            alarms += 1
    assert alarms <= stats.binom.isf(1e-9, seeds, 0.05)


def test_consecutive_runs_of_plain_python_that_share_a_draw():
    state = []

    def shared(rng, data):
        if not state:
            state.extend([rng.laplace()] * 2)
        return data[0] + state.pop()

    with pytest.raises(DependentRuns, match="the same outcome came again 1 run later, more often than by chance"):
        dpw.check(shared, claim=1.0, neighbours=PAIR, outcome=float, seed=1, max_time=5.0)


@pytest.mark.parametrize("name", soon(["kept", "cached", "offset", "listed"], 1))
def test_noise_that_is_remembered_is_found_by_a_new_process(name):
    given = [0.0]  # it does not go to the new process
    more = {"parameters": {"memory": given}} if name == "listed" else {}
    outcome = None if name == "offset" else float  # plain Python: what is compiled remembers nothing
    limits = {"neighbours": PAIR, "outcome": outcome, "seed": 1, "search_runs": 2_000, **more}
    with pytest.raises(DependentRuns, match=rf"{name} remembers its noise or .*: on D′? .* in a new process; draw"):
        dpw.check(getattr(remembered, name), claim=1.0, **limits)
    assert given == [0.0]  # so a second check finds the same


@pytest.mark.campaign
def test_noise_that_was_compiled_in_is_found_by_a_new_process():
    with pytest.raises(DependentRuns, match="compiled_offset may remember its noise: a module-level number or array"):
        dpw.check(remembered.compiled_offset, seed=1, **LIMITS)
    assert new_process.same_constants(remembered.scaled)
    assert not new_process.same_constants(remembered.compiled_coin)  # one new process draws the same in one of two
    assert constants(remembered.scaled) not in (None, constants(remembered.compiled_offset))
    assert constants(remembered.noisy) is None


def reads_another_module(data):
    return data[0] + remembered.OFFSET


def test_constants_of_other_modules_count_and_our_own_do_not():
    assert constants(reads_another_module) is not None
    assert constants(load("subset_sum_reconstruction")) is None  # its file holds numbers: they draw nothing


@pytest.mark.campaign
def test_noise_of_numpys_global_generator_is_drawn_anew_in_a_new_process():
    """numba compiles it and draws otherwise, so a copy runs in Python; a new process is asked for the original."""
    with pytest.warns(dpw.errors.CompiledDiffers):
        verdict = dpw.check(remembered.leaks_zero, claim=1.0, neighbours=PAIR, seed=1, search_runs=2_000)
    assert isinstance(verdict, dpw.Violation)
    assert len(verdict.notes) == 1
    assert "in a new process too" in verdict.notes[0]


@pytest.mark.campaign
def test_what_rarely_varies_is_not_taken_for_remembered(monkeypatch):
    """256 runs on D are all 0 with probability 0.6, and a new process then sees a 1 in 1,024 runs with 0.87."""
    monkeypatch.setattr(dependence, "SERIES_RUNS", 256)
    limits = {"neighbours": PAIR, "outcome": float, "search_runs": 200, "runs": 2_000}
    verdicts = [dpw.check(remembered.rare, claim=1.0, seed=seed, **limits) for seed in range(5)]
    assert all(isinstance(verdict, dpw.Violation) for verdict in verdicts)


@pytest.mark.parametrize("release", [remembered.often_released, remembered.fraction_released])
def test_a_released_value_that_repeats_is_a_violation_and_not_dependence(release):
    verdict = dpw.check(release, claim=1.0, neighbours=dpw.pairs((0.123456789012345, 0.52345678901234)), seed=1)
    assert isinstance(verdict, dpw.Violation)


@pytest.mark.campaign
def test_a_generator_seeded_inside_is_a_violation_and_the_verdict_says_why():
    verdict = dpw.check(remembered.seeded, claim=1.0, neighbours=PAIR, outcome=float, seed=1, search_runs=2_000)
    assert isinstance(verdict, dpw.Violation)
    assert [note.split(" every run")[0] for note in verdict.notes] == ["on D", "on D′"]
    assert all(
        "in a new process too: it adds no noise, or draws the same noise in every run" in note for note in verdict.notes
    )
    assert verdict.to_json()["notes"] == list(verdict.notes)


def seeds_itself(rng, data):
    """Noise of a generator that begins anew in each run."""
    return data[0] + np.random.default_rng(666).laplace()


def without_noise(rng, data):
    return 2 * data[0]


class SlowAndSeeded:
    __name__ = "slow_and_seeded"

    def __call__(self, data):
        time.sleep(0.021)
        return float(data[0]) + np.random.default_rng(666).laplace()


def seeds_itself_in_each_call(data, size):
    return data[0] + np.full(size, np.random.default_rng(666).laplace())


SAME_NOISE = "it adds no noise, or draws the same noise in every run"


@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
@pytest.mark.parametrize(
    ("function", "counts", "same"),
    [
        *((function, Counts(n11=20), True) for function in (seeds_itself, seeds_itself_in_each_call, without_noise)),
        # Noise of few values is not called the same.
        *((function, Counts(n01=10, n00=10), False) for function in (coin, slow_coin, remembered.noisy)),
    ],
)
def test_a_pass_names_the_same_noise_in_every_run(function, counts, same):
    shards = Shards()
    shards.add((counts,))
    for seed in range(3 if same else 1):
        notes = check_pass(job(function, seed + (not same))[1], PAIR.given[0], [POSITIVE], shards)
        assert [SAME_NOISE in note for note in notes] == [True] * same


@pytest.mark.parametrize("seed", [2, 3])
def test_a_slow_pass_names_the_same_noise_in_every_run(seed):
    """It tells apart two pairs, and not the inputs of one."""
    neighbours = dpw.pairs(([0.0, 0.0], [0.0, 1.0]), ([1.0, 0.0], [1.0, 1.0]))
    verdict = dpw.check(SlowAndSeeded(), claim=1.0, neighbours=neighbours, alpha=0.1, runs=30, seed=seed, workers=1)
    assert isinstance(verdict, dpw.NotRefuted)
    assert [note for note in verdict.notes if SAME_NOISE in note]


def test_the_same_noise_in_every_run_is_seen_where_further_calls_take_too_long(monkeypatch):
    """What was bet on shows it: it may be noise that was drawn once, which only new processes can tell."""
    monkeypatch.setattr("dpwitness.health.refutation.further_calls", lambda *_, **__: None)
    (pair,), places = PAIR.given, np.arange(20)
    shards = Shards(series=tuple(Series(data, np.full((20, 1), float(data[0])), places) for data in pair.sides))
    shards.add((Counts(n01=20),))
    monkeypatch.setattr(remembered, "RESPONSES", {False: False, True: True})
    # A new process may draw another response, or the same by chance.
    told = r"^response (remembers its noise|returned \[0\] in every run on D and \[1\] on D′: .* of 21 new)"
    with pytest.raises(DependentRuns, match=told):
        check_refutation(job(remembered.response, outcome=float)[1], pair, [POSITIVE], shards)


@pytest.mark.parametrize(
    ("but", "number", "told"),
    [
        (7, 21, r"on D the event happened in \d+ of \d+ runs, and in .* in a new"),  # drawn alike by all but one
        (None, 1, "1 of 21 new processes answered"),  # no further one answers: nobody is accused
        (None, 20, None),  # one fails, which tells nothing
        (None, 21, None),
    ],
)
def test_what_all_new_processes_return_alike_is_a_violation(monkeypatch, but, number, told):
    """Each returns what is returned here, except for one, by its place."""
    monkeypatch.setattr(remembered, "RESPONSES", {False: False, True: True})

    def ask(question, further):
        event = event_from_json(question.events[0])
        hits = [int(event.contains(np.array([[value]]))[0]) for value in (0.0, 1.0)]
        runs = [1_024, *[further.runs] * further.processes]
        return [
            tuple(
                new_process.Answer(runs=n, hits=(n * hits[value ^ (k == but)],), always=(float(value ^ (k == but)),))
                for value in (0, 1)
            )
            for k, n in enumerate(runs[:number])
        ]

    monkeypatch.setattr(new_process, "ask", ask)
    limits = {"neighbours": PAIR, "outcome": float, "seed": 1, "search_runs": 500, "runs": 500}
    if told is not None:
        with pytest.raises(DependentRuns, match=told):
            dpw.check(remembered.response, claim=1.0, **limits)
        return
    verdict = dpw.check(remembered.response, claim=1.0, **limits)
    assert isinstance(verdict, dpw.Violation)
    assert all(f"in {number} new processes too: it adds no noise" in note for note in verdict.notes)


@pytest.mark.campaign
@pytest.mark.parametrize("function", [remembered.kept, remembered.kept_of_the_global_generator])
def test_each_new_process_draws_anew(function):
    """Forks that shared a generator would give one sample several times, and refuse independent runs."""
    first, *further = new_process.ask(requested(function, events=[POSITIVE]), FEW)
    assert [answer[0].runs for answer in further] == [5, 5]
    assert len({side.always for answer in (first, *further) for side in answer}) == 6


@pytest.mark.campaign
def test_what_is_drawn_at_import_and_varied_a_little_is_found_by_further_processes():
    """A coin that leaks all but a twentieth of what it keeps; the first new process draws the same in one of two."""
    limits = {"neighbours": dpw.pairs(([0.0], [1.0])), "outcome": int, "runs": 500, "search_runs": 500}
    for seed in range(6):
        with pytest.raises(DependentRuns, match="varied remembers its noise"):
            dpw.check(remembered.varied, claim=1.0, seed=seed, **limits)


@pytest.mark.campaign
def test_the_first_call_of_a_further_process_does_not_count():
    _, *further = new_process.ask(requested(remembered.first_is_unlike, events=[POSITIVE]), FEW)
    assert [side.always for answer in further for side in answer] == [(1.0,)] * 4


@pytest.mark.campaign
@pytest.mark.parametrize("function", [remembered.fails_in_forks, remembered.hangs_in_forks])
def test_a_further_process_that_fails_or_hangs_tells_nothing(function):
    """And is left before the result is due."""
    _, ready = job(function, outcome=float)
    due = _in_time(replace(FEW, seconds=np.inf), replace(ready, due=time.monotonic() + 3.0))
    for further in (replace(FEW, seconds=1.0), due):
        assert len(new_process.ask(requested(function, events=[POSITIVE]), further)) == 1


def test_a_violation_of_fresh_noise_needs_no_note():
    verdict = dpw.check(remembered.noisy, seed=1, **LIMITS)
    assert isinstance(verdict, dpw.Violation)
    assert verdict.notes == ()


@pytest.mark.campaign
def test_what_cannot_be_loaded_anew_is_refused_only_where_it_never_varies_and_may_remember():
    limits = {"claim": 1.0, "neighbours": PAIR, "outcome": float, "seed": 1, "search_runs": 2_000}
    noise = np.random.default_rng(1).laplace()
    with pytest.raises(DependentRuns, match=r"or remembers it: it cannot be loaded .*; put a function"):
        dpw.check(lambda data: data[0] + noise, **limits)
    verdict = dpw.check(remembered.hidden[0], **limits)
    assert isinstance(verdict, dpw.Violation)
    assert [note.split(" every run")[0] for note in verdict.notes[1:]] == ["on D", "on D′"]
    verdict = dpw.check(lambda rng, data: data[0] + rng.laplace(0, 0.2), **limits, runs=20_000)
    assert isinstance(verdict, dpw.Violation)
    assert verdict.notes[0].startswith("not compared with a new process, ")


def of_no_module(text, name):
    """What `exec` makes: its `__module__` is None."""
    space = {}
    exec(text, space)
    return space[name]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (remembered.hidden[0], "^<lambda> is a lambda, found by no name$"),
        (remembered.decorated, "noisy is another object"),
        (np.random.default_rng(0).laplace, "must be a plain function"),
        (new_process.Place, "must be a plain function"),
        (
            of_no_module("def outer():\n    def f(data): return data\n    return f\nf = outer()", "f"),
            "is defined inside another function",
        ),
        (of_no_module("def f(data): return data", "f"), "f is not in a module that can be imported"),
    ],
)
def test_only_functions_that_a_name_leads_to_are_loaded_anew(function, reason):
    with pytest.raises(new_process.CannotLoad, match=reason):
        new_process.place_of(function)


NOISE = np.random.default_rng(3).laplace()


def draws_globally(data, scale=0.5, steps=(1, 2.0), weights=np.ones(2)):  # noqa: B008  # data, as a default may be
    return data[0] + scale * random.random() + np.random.random() + secrets.randbelow(3)  # noqa: NPY002


def holds_a_list(data, memory=[]):  # noqa: B006  # what this is about
    return data[0]


def reads_a_number(data):
    return data[0] + NOISE


def calls_another(data):
    return reads_a_number(data)


def marked(data):
    return data[0]


marked.noise = 0.3


GENERATOR = np.random.default_rng(3)


def draws_from_its_own(data):
    return data[0] + GENERATOR.laplace()


@pytest.mark.parametrize(
    ("function", "noise", "generator"),
    [
        (remembered.hidden[0], False, False),
        (lambda data: np.sum(data) + len(data), False, False),
        (sum, False, False),
        (of_no_module("def f(data): return data[0]", "f"), False, False),
        (remembered.seeded, False, False),
        (draws_globally, True, False),  # a real number, as a default
        (SlowAndSeeded.__call__, False, False),
        (holds_a_list, True, False),
        (reads_a_number, True, False),
        (calls_another, True, False),
        (marked, True, False),
        ([0.5].count, True, None),
        (remembered.cached, True, None),
        (remembered.kept, True, True),
        (new_process.Place, True, None),
        (draws_from_its_own, True, True),
        (GENERATOR.laplace, True, True),
    ],
)
def test_what_may_remember_its_noise_and_what_may_hold_a_generator(function, noise, generator):
    assert memory.may_remember(function) is noise
    assert generator is None or memory.may_hold_generator(function) is generator


def test_a_file_of_the_user_s_is_not_taken_for_the_module_of_python_s_of_that_name(monkeypatch):
    own = ModuleType("platform")
    exec("KEPT = {}\ndef kept(data): return KEPT.setdefault(data[0], data[0])", vars(own))
    assert not memory.may_remember(sys.modules["platform"])
    monkeypatch.setitem(sys.modules, "platform", own)
    assert memory.may_remember(own)
    assert memory.may_remember(own.kept)
    assert memory.may_hold_generator(own.kept)
    assert not memory.may_remember(time)


def test_an_opendp_measurement_remembers_nothing_unless_a_function_of_the_users_may_be_in_it(monkeypatch):
    measurement = opendp.LIBRARY
    monkeypatch.setitem(sys.modules, "opendp.mod", SimpleNamespace(GLOBAL_FEATURES={"contrib"}))
    assert not measurement.may_remember(object())
    monkeypatch.setitem(sys.modules, "opendp.mod", SimpleNamespace(GLOBAL_FEATURES={"honest-but-curious"}))
    assert measurement.may_remember(object())


FEW = new_process.Further(processes=2, runs=5)


def requested(function, outcome=None, given=None, events=()):
    signature = replace(Signature.of(function, {}), given=given or {}, size=None)
    return new_process.request(PythonMechanism(signature, outcome), PAIR.given[0], events, seed=1)


def test_parameters_that_may_hold_memory_are_not_sent():
    requested(remembered.noisy, float, {"a": [1, (2.0, "x")], "b": np.ones(2)})
    for value in (np.random.default_rng(0), {}, [object()], [1, object()], np.array([object()])):
        with pytest.raises(new_process.CannotLoad, match=r"parameter 'a' is .*, which may hold"):
            requested(remembered.noisy, None, {"a": value})


def asked(function):
    return new_process.ask(requested(function, events=[POSITIVE]), FEW)[0]


@pytest.mark.campaign
def test_what_a_mechanism_prints_is_not_the_answer():
    left, right = asked(remembered.talkative)
    assert (left.always, right.always) == ((0.0,), (1.0,))
    assert (left.hits, right.hits) == ((0,), (right.runs,))


@pytest.mark.campaign
def test_errors_in_the_new_process_are_told_in_one_line():
    with pytest.raises(new_process.CannotLoad, match=r"^in a new process: MechanismCrashed: leaves called sys.exit"):
        asked(remembered.leaves)
    with pytest.raises(new_process.CannotLoad, match=r"^in a new process: it ended with exit code 3$"):
        asked(remembered.crashes)
    script = str(Path(__file__).parents[1] / "calls_at_import.py")
    exact = new_process.Place(module="calls_at_import", file=script, name="exact")
    question = replace(requested(remembered.leaves), function=exact)
    with pytest.raises(
        new_process.CannotLoad, match="calls dpwitness when it is imported: put the call under if __name__"
    ):
        new_process.ask(question, FEW)


def ignores(rng, data):
    return rng.random() + rng.random()


def ignores_in_python(rng, data):
    return rng.random()


def ignores_vectorised(rng, data, size):
    return rng.random(size)


@pytest.mark.parametrize("function", soon([ignores_vectorised, ignores, ignores_in_python], 1))
def test_an_ignored_input_is_noted(function):
    limits = {"neighbours": dpw.queries(2), "seed": 1, "search_runs": 500, "runs": 2_000}
    verdict = dpw.check(function, claim=1.0, outcome=float if function is ignores_in_python else None, **limits)
    (note, *_) = verdict.notes
    assert note.startswith("both inputs gave the same values in every run (")
    assert note.endswith(f"does {function.__name__} use its input?")


def rarely(rng, data):
    return rng.random() < 0.01 * data[0]


def test_an_input_that_is_used_is_not_called_ignored():
    """4,096 runs of each pair: one that makes a difference of 0.01 is missed with probability 0.99⁴⁰⁹⁶."""
    hidden = dpw.pairs(([0.0], [0.0 + 1e-300]), ([0.0], [1.0]))
    assert before_search.input_ignored(*job(rarely, neighbours=hidden)) is None


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        (Counts(n00=5), "the event never happened on either input: it says nothing"),
        (Counts(n11=5), "the event happened in every run on both inputs: it says nothing"),
        (Counts(n11=5, n01=1), None),
        (Counts(n10=5), None),
        (Counts(), None),
    ],
)
def test_an_event_that_tells_nothing_apart_is_noted(counts, told):
    assert findings.notes_on_counts(counts) == (() if told is None else (told,))


class Same(Relation):
    """Pairs of a zero and these numbers."""

    noun = "value"

    def __init__(self, *others):
        self.others = others

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        yield from (Pair(np.zeros(1), np.array([other])) for other in self.others)

    def variations(self, pair, *, scale=1.0):
        return iter(())


@pytest.mark.parametrize(("others", "refused"), [((0.0, 0.0), True), ((0.0, 1.0), False), ((1.0, 0.0), False)])
def test_a_relation_is_refused_where_both_inputs_of_every_pair_are_equal(others, refused):
    finding = before_search.identical_inputs(job(coin, neighbours=Same(*others))[0])
    assert (finding and finding.name) == ("identical_inputs" if refused else None)
    if refused:
        with pytest.raises(InvalidNeighbours, match="both inputs of every pair"):
            dpw.check(coin, claim=1.0, neighbours=Same(*others))


def test_compiled_code_is_not_asked_but_its_constants_are_noted():
    def exact(rng, data):
        return data[0]

    _, ready = job(exact)
    shards = Shards()
    for totals in confirm(ready.mechanism, PAIR.given[0], [POSITIVE], seed=1, runs=100):
        shards.add(totals)
    notes = check_refutation(ready, PAIR.given[0], [POSITIVE], shards)
    assert [note.split(": ")[0] for note in notes] == [
        "on D every one of 256 runs returned [0]",
        "on D′ every one of 256 runs returned [1]",
    ]


@pytest.mark.parametrize("first", [0, 1])
def test_runs_that_share_noise_with_the_next_one_are_seen(first):
    """Pairs of runs that begin at even ones, and at odd ones."""
    noise = np.random.default_rng(1).random((2, 249, 1))
    noise[:, first + 1 : 248 : 2] = noise[:, first:247:2]
    assert before_search.stuck_generator("it", first_of(*noise[:, :248])).name == "stuck_generator"


def first_of(*sides):
    """First runs of shape (runs, 1) on either side."""
    return tuple(
        Series(data, rows, np.arange(len(rows))) for data, rows in zip(PAIR.given[0].sides, sides, strict=True)
    )


@pytest.mark.parametrize("side", [0, 1])
def test_runs_that_are_dependent_or_vary_on_one_side_alone(side):
    noise = np.random.default_rng(2).random((2, 248, 1))
    seen = noise.copy()
    seen[side, 1::2] = seen[side, 0::2]
    assert before_search.stuck_generator("it", first_of(*seen)).name == "stuck_generator"
    constant = np.zeros_like(noise)
    assert before_search.deterministic_output("it", first_of(*constant)).name == "deterministic_output"
    constant[side] = noise[side]
    assert before_search.deterministic_output("it", first_of(*constant)) is None


def test_outcomes_that_varied_once_are_not_constant():
    rows = np.array([[1.0, np.nan], [1.0, np.nan], [1.0, np.nan]])
    assert findings.only_outcome(rows) == (1.0,)
    rows[1] = [1.0, 2.0]
    assert findings.only_outcome(rows) is findings.only_outcome(rows[:0]) is None


def test_an_outcome_is_the_same_with_and_without_what_is_absent_behind_it():
    rows = np.array([[1.0, np.nan, np.nan], [1.0, np.nan, 2.0], [np.nan] * 3])
    assert findings.outcome_keys(rows[:1]) == findings.outcome_keys(rows[:1, :1])
    assert [len(key) for key in findings.outcome_keys(rows)] == [8, 24, 0]


@pytest.mark.parametrize(("width", "ignored"), [(1, True), (2, False)])
def test_an_input_that_decides_how_many_values_are_returned_is_used(width, ignored):
    """Blocks are as wide as the longest outcome so far, so the one on D′ may be wider."""
    asked, ready = job(slow_coin, outcome=float)
    rows = {0.0: np.array([[1.0]]), 1.0: np.array([[1.0, 2.0][:width]])}
    slow = SimpleNamespace(
        name="it", cost=ready.mechanism.cost, width=1, reproducible=True, outcomes=lambda data, *_: rows[data[0]]
    )
    assert (before_search.input_ignored(asked, replace(ready, mechanism=slow)) is not None) is ignored


def test_a_note_on_an_ignored_input_needs_every_pair_to_give_the_same():
    mechanism, same, other = job(coin)[1].mechanism, np.zeros((5, 1)), np.ones((5, 1))
    assert len(before_search.ignored_throughout(mechanism, [(same, same), (other, other)])) == 1
    assert before_search.ignored_throughout(mechanism, [(same, same), (same, other)]) == ()


def with_cost(seconds, max_time, claim=1.0):
    """A job whose mechanism is said to take so many seconds a run."""
    statement = Statement(mechanism=slow_coin, claim=claim, neighbours=PAIR, outcome=float)
    asked, ready = prepared(statement, Effort(seed=1, workers=1, max_time=max_time))
    ready.mechanism.cost = replace(ready.mechanism.cost, seconds_per_run=seconds)
    return asked, ready


def test_too_slow_for_alpha_is_told_before_the_runs():
    needed = runs_needed(dpw.PureDP(1.0), 1e-6)
    asked, ready = with_cost(2.0, max_time=60.0)
    found = before_search.time_needed(asked, ready, 1e-6)
    assert found.name == "too_slow"
    advised = at_most(1.3 * 4 * useful_runs(asked.claim, 1e-6))
    for said in (f"needs {needed} runs on each input", f"{4 * needed} s with 1 core", f"max_time={advised} "):
        assert said in found.text
    told = []
    before_search.report_time_needed(asked, replace(ready, progress=lambda *report: told.append(report)), 1e-6)
    assert told == [("search", 0, needed, found.text)]


def test_the_time_that_is_needed_is_that_of_runs_on_both_inputs_and_never_zero():
    needed = 2 * runs_needed(dpw.PureDP(1.0), 1e-6)
    for share, alpha, too_slow in ((1.01, 1e-6, True), (0.99, 1e-6, False), (1.01, 0.5, False)):
        found = before_search.time_needed(*with_cost(share * 60.0 / needed, max_time=60.0), alpha)
        assert (found is not None) is too_slow
    found = before_search.time_needed(*with_cost(1e-6, max_time=1e-9), 1e-6)
    advised = at_most(1.3 * 2e-6 * useful_runs(dpw.PureDP(1.0), 1e-6))
    assert f"{1e-6 * needed:.4g} s with 1 core" in found.text
    assert f"max_time={advised} " in found.text


def slow(weight):
    """A mechanism that numba does not see, and that takes its time."""

    def slow(rng, data):
        time.sleep(0.021)
        return weight * data[0] + rng.laplace()

    return slow


def test_a_check_without_the_time_says_so_before_and_after_its_runs():
    told = []
    effort = {"max_time": 0.4, "workers": 1, "seed": 1, "progress": lambda *report: told.append(report)}
    verdict = dpw.check(slow(1), claim=1.0, neighbours=PAIR, outcome=float, **effort)
    assert isinstance(verdict, dpw.NotRefuted)
    assert told[0][3].startswith("slow takes ")
    assert any("at least" in note and "are needed" in note for note in verdict.notes)


IGNORES = "both inputs gave the same values in every run"


@pytest.mark.campaign
@pytest.mark.parametrize("weight", [0, 9])
def test_a_slow_mechanism_that_ignores_its_input_is_noted_after_its_runs(weight):
    limits = {"claim": 1.0, "neighbours": PAIR, "alpha": 0.1, "runs": 30, "seed": 1, "workers": 1, "outcome": float}
    verdict = dpw.check(slow(weight), **limits)
    assert any(IGNORES in note for note in verdict.notes) == (weight == 0)


@pytest.mark.parametrize(
    ("function", "ignored"),
    [
        (lambda data: np.random.normal(), True),  # noqa: NPY002  # the global generator is the subject
        (lambda data: random.gauss(0, 1), True),
        (lambda data: data[0] + random.gauss(0, 1), False),
        (lambda data: random.SystemRandom().gauss(0, 1), False),  # no seed repeats it: nothing can be said
    ],
)
def test_functions_of_the_global_generators_that_ignore_their_input(function, ignored):
    asked, ready = job(partial(function))
    assert not asked.mechanism.reproducible
    assert (before_search.input_ignored(asked, ready) is not None) == ignored
    assert not asked.mechanism.draws_globally


def in_this_process(outcomes, counts, side=0):
    """What is known of D (or D′) from further calls that gave some outcomes, and from counts of the confirm runs."""
    shards = Shards()
    shards.add((counts,))
    calls = [further_calls([1], [0], outcomes)] * 2
    return refutation._Side.of(side, PAIR.given[0], shards, calls)


@pytest.mark.parametrize(("here", "there"), [(30, 30), (20, 20), (40, 3), (32, 1_024), (1_000, 4), (1_000, 3), (7, 9)])
def test_constants_differ_where_independent_runs_hardly_ever_fall_so(here, there):
    """All of one kind here, all of another there: so few of all orders of these outcomes put them so."""
    known = in_this_process([[0.0]] * here, Counts(n11=here))
    other = new_process.Answer(runs=there, hits=(there,), always=(1.0,))
    likely = 2 / comb(here + there, there) >= dependence.LEVEL / (2 * 22 * 3)
    assert (known.other_share(other, "in a new process", tests=22) is None) is likely


def test_repeats_are_looked_for_in_other_runs_than_those_that_define_them():
    """A thousand values as likely: in the runs that define them repeats are those that came twice there."""
    rng = np.random.default_rng(1)
    here = in_this_process(rng.integers(0, 1_000, (2_000, 1)).astype(float), Counts(n10=5, n00=5))
    for low, remembered_too in ((0, False), (1_000, True)):
        new = rng.integers(low, low + 1_000, (1_000, 1)).astype(float)
        there = new_process.Answer(runs=1_000, hits=(), always=None, outcomes=tuple(findings.outcome_keys(new)))
        found = here.other_share(there, "in a new process")
        assert ("an outcome came that had come twice before in" in (found or "")) is remembered_too
        assert not found or found.endswith("and in 0 of 1000 in a new process")


@pytest.mark.campaign
def test_the_level_of_the_comparison_with_new_processes(monkeypatch):
    monkeypatch.setattr(refutation, "LEVEL", 0.05)
    rng, alarms, seeds = np.random.default_rng(3), 0, 100

    def answered(runs):
        rows = rng.integers(0, 40, (runs, 1)).astype(float)
        outcomes = tuple(findings.outcome_keys(rows)) if runs > 100 else ()
        return new_process.Answer(runs=runs, hits=(int((rows < 12).sum()),), always=None, outcomes=outcomes)

    for _ in range(seeds):
        hits = rng.binomial(400, 0.3)
        known = in_this_process(rng.integers(0, 40, (200, 1)).astype(float), Counts(n11=hits, n00=400 - hits))
        answers = [(there, there) for there in map(answered, [1_000, *[32] * 20])]
        try:
            refutation._refuse_other_processes("it", [known, known], answers)
        except DependentRuns:
            alarms += 1
    assert alarms <= stats.binom.isf(1e-9, seeds, 0.05)


ALWAYS, VARIED = [[0.0]] * 20, [[0.0]] * 19 + [[1.0]]


@pytest.mark.parametrize(
    ("function", "outcomes", "counts", "refused"),
    [
        (remembered.kept, (ALWAYS, ALWAYS), Counts(n10=9), True),
        (remembered.kept, (ALWAYS, ALWAYS), Counts(n01=9), True),
        (remembered.kept, (ALWAYS, ALWAYS), Counts(n10=9, n00=1), False),
        (remembered.kept, (ALWAYS, VARIED), Counts(n10=9), False),
        (remembered.hidden[0], (ALWAYS, ALWAYS), Counts(n10=9), False),
    ],
)
def test_without_a_new_process_what_never_varied_and_may_remember_is_refused(function, outcomes, counts, refused):
    sides = [in_this_process(of_input, counts, side) for side, of_input in enumerate(outcomes)]
    _, ready = job(function, outcome=float)
    if refused:
        with pytest.raises(DependentRuns, match="or remembers it: none answered"):
            refutation._notes_without_processes(ready, "none answered", sides)
    else:
        assert refutation._notes_without_processes(ready, "none answered", sides)[0].endswith(": none answered")


def test_what_varies_in_a_new_process_alone_is_rare():
    sides = [in_this_process(ALWAYS, Counts(n11=20), side) for side in range(2)]
    there = new_process.Answer(runs=1_000, hits=(990,), always=None)
    notes = refutation._compare_processes(job(remembered.rare, outcome=float)[1], "", [(there, there)], sides)
    assert notes == tuple(f"on {side} 20 runs all returned [0]: other outcomes are rare" for side in ("D", "D′"))


def test_compiled_constants_are_the_same_only_where_all_new_processes_have_them(monkeypatch):
    here = constants(remembered.compiled_coin)
    for told, same in (([here, here], True), ([here, None], False), ([None, here], False)):
        monkeypatch.setattr(new_process, "_ask_processes", lambda *_, told=told: told)
        assert new_process.same_constants(remembered.compiled_coin) is same

    def cannot(*_):
        raise new_process.CannotLoad("no process")

    monkeypatch.setattr(new_process, "_ask_processes", cannot)  # then nobody is accused
    (note,) = check_refutation(job(remembered.compiled_coin)[1], PAIR.given[0], [POSITIVE], Shards())
    assert note.endswith("no process")


def test_a_file_that_is_loaded_in_a_new_process_may_not_call_dpwitness(monkeypatch):
    new_process.refuse_inside()
    monkeypatch.setenv(new_process.INSIDE_VARIABLE, "1")
    with pytest.raises(DPWitnessError, match="calls dpwitness when it is imported"):
        new_process.refuse_inside()


def test_a_new_process_says_how_many_runs_it_counted_hits_in():
    question = replace(requested(remembered.noisy, events=[Interval(coordinate=0)]), kind=VectorisedMechanism)
    for one in new_process.answer(question, replace(FEW, runs=2_048, runs_seconds=60.0)):
        assert one["runs"] == 2_048
        assert one["hits"] == (2_048,)


def test_an_outcome_is_named_by_what_it_is():
    a_dict, order, text = symbol("mapping"), symbol("mapping", "[]"), symbol("enum", "red")
    names = {a_dict: "a dict", order: "none", text: "red"}.get
    assert outcome_text((a_dict, order), names) == "[a dict, none]"
    assert outcome_text((text, 0.5), names) == "[red, 0.5]"
    assert outcome_text((text,), {}.get) == "[another kind of value]"
    assert outcome_text((TRUE, FALSE, NEGATIVE_ZERO, 2.5, NONE), {}.get) == "[True, False, -0.0, 2.5, None]"


def test_tests_run_the_health_check_that_users_run():
    """Unless they ask for another one by name, see `asked_here` in tests/conftest.py."""
    assert new_process._ask_processes.__module__ == "dpwitness.health.new_process"
    assert dependence.SERIES_RUNS == 1 << 15
