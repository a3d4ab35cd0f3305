"""Runs that depend on each other, noise that is remembered, inputs that are ignored: found before anyone is accused."""

import functools
import platform  # noqa: F401  # loaded
import random
import secrets
import sys
import time
from dataclasses import replace
from itertools import accumulate, count
from math import comb
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import dpwitness as dpw
import imports_a_library
import remembered
from dpwitness.errors import DependentRuns, DPWitnessError, InvalidNeighbours, InvalidOutcome
from dpwitness.events import Interval
from dpwitness.evidence import runs_needed
from dpwitness.evidence.counts import Counts
from dpwitness.health import before_search, dependence, findings, new_process, refutation
from dpwitness.health.dependence import FurtherCalls, Series, Shards, refuse_dependent
from dpwitness.health.findings import useful_runs
from dpwitness.health.refutation import check_pass, check_refutation, require_new_draws
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
from running import confirm, keeps_level, prepare, soon

PAIR = dpw.pairs(([0.0], [1.0]))
GIVEN = PAIR.given[0]
LIMITS = {"claim": 1.0, "neighbours": PAIR, "runs": 200_000, "search_runs": 100_000}
#: Of plain Python: a summary is not compiled.
SLOW = {"claim": 1.0, "neighbours": PAIR, "outcome": float, "seed": 1, "search_runs": 2_000}
POSITIVE = Interval(coordinate=0, low=0.5)


def job(function, seed=1, neighbours=PAIR, outcome=None, max_time=60.0):
    return prepare(function, neighbours=neighbours, outcome=outcome, seed=seed, max_time=max_time)


def shards_of(*counts, **more):
    """Shards of confirm runs with these counts each."""
    shards = Shards(**more)
    for total in accumulate(counts):
        shards.add((total,))
    return shards


def first_of(*sides):
    """First runs of shape (runs, 1) on either side."""
    return tuple(Series(data, rows, np.arange(len(rows))) for data, rows in zip(GIVEN.sides, sides, strict=True))


def flags(p, length=None):
    """One flag for so many runs of a call, or for all; of its own law it is exactly 1-DP."""

    def shared(rng, data, size):
        few = rng.random(-(-size // (length or size))) < (p if data[0] > 0.5 else p / np.e)
        return np.repeat(few * 1.0, length or size)[:size]

    return shared


def whole(rng, data, size):
    return np.full(size, np.round(data[0]) + rng.geometric(1 - 1 / np.e) - rng.geometric(1 - 1 / np.e))


def threshold(rng, data, size):
    """The sparse vector technique with one noisy threshold a call."""
    return (data[0] + rng.laplace(0, 4, size) > rng.laplace(0, 2)) * 1.0


def seeded_calls(data, size):
    return data[0] + np.random.default_rng(0).laplace(0, 1, size)


#: What most calls show: equal rows, or a flag. Of "beside noise" no two rows are equal.
SHOWN = {
    "flag 0.5": flags(0.5),
    "whole": whole,
    "rounded": lambda rng, data, size: np.full(size, np.round(data[0] + rng.laplace(), 1)),
    "continuous": lambda rng, data, size: np.full(size, data[0] + rng.laplace()),
    "beside noise": lambda rng, data, size: np.column_stack([flags(0.3)(rng, data, size), rng.random(size)]),
    "seeded calls": seeded_calls,
}
DEPENDENT = {
    **SHOWN,
    **{f"flag {p}": flags(p) for p in (0.1, 0.01, 0.001)},
    **{f"blocks of 16, {p}": flags(p, 16) for p in (0.5, 0.1, 0.01, 0.001)},
    **{f"pairs, {p}": flags(p, 2) for p in (0.5, 0.1, 0.01)},
    "threshold": threshold,
}


@pytest.mark.parametrize("name", [name for name in DEPENDENT if name not in SHOWN])
def test_runs_that_depend_on_each_other_accuse_nobody(name):
    """What most calls show is refused, see below; a rare flag may show one value alone: there is nothing to test."""
    for seed in range(3):
        try:
            verdict = dpw.check(DEPENDENT[name], seed=seed, **LIMITS)
        except (DependentRuns, InvalidOutcome):
            continue
        assert isinstance(verdict, dpw.NotRefuted)


@pytest.mark.parametrize(
    ("name", "more", "told"),
    [
        *((name, {}, "are not independent") for name in SHOWN),
        # The threshold of a call moves all of its answers; no two rows are equal for it.
        pytest.param(
            "threshold", {"search_runs": 50_000, "runs": 400_000}, "of one call's runs and in",
            marks=pytest.mark.campaign,
        ),
    ],
)  # fmt: skip
def test_what_most_calls_show_is_refused_in_check_bound_and_curve(name, more, told):
    function, limits = DEPENDENT[name], {"neighbours": PAIR, "seed": 1, **more}
    for refuse in (
        lambda: dpw.check(function, claim=1.0, **limits),
        lambda: dpw.bound(function, epsilon=1.0, **limits),
        lambda: dpw.curve(function, epsilon=[1.0], claims=[0.0 if more else 1.0], **limits),
    ):
        with pytest.raises(DependentRuns, match=told):
            refuse()


@pytest.mark.parametrize(
    ("check", "function", "counts", "told"),
    [
        # One call of all hits on D: what one draw a call of probability 0.001 shows once in a thousand checks.
        (check_refutation, flags(0.001), [Counts(n10=16_384)], r"0\.000% of one .* 100\.000% of another"),
        (check_refutation, flags(0.001), [Counts(n10=16_384), Counts(n00=16_384)], r"0\.000% .* 100\.000%"),
        (check_pass, remembered.noisy, [Counts(n10=n, n00=1000 - n) for n in [600, 400] * 10], r"60\.000%"),
    ],
)
def test_shards_that_differ_more_than_by_chance_convict_nobody_and_pass_nobody(check, function, counts, told):
    with pytest.raises(DependentRuns, match=told):
        check(job(function)[1], GIVEN, [POSITIVE], shards_of(*counts))


@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
def test_runs_since_an_event_was_chosen_are_compared_with_runs_on_one_input_alone():
    """Of few runs that refute the last event was chosen late; the input before decides what a run returns."""
    before = []

    def after_another(rng, data):
        before.append(data[0])
        return float(before[-2:] != [data[0]] * 2) - 1e-9 * rng.random()

    chosen = ((Interval(coordinate=0, low=0.4), Counts(n10=25, n11=25, n01=25, n00=25)),)
    with pytest.raises(DependentRuns, match=r"on D the event happened in 50 of 100 runs between runs on both .* alone"):
        check_refutation(job(after_another)[1], GIVEN, [POSITIVE], shards_of(Counts(n11=2, n00=2), chosen=chosen))


def coin(rng, data, size):
    return (rng.random(size) < 0.3) * 1.0


def slow_coin(rng, data):
    return float(rng.random() < 0.3)


@pytest.mark.campaign
@pytest.mark.parametrize("function", [coin, slow_coin])
def test_the_level_of_the_early_check(function, monkeypatch):
    monkeypatch.setattr(dependence, "DEPENDENCE_LEVEL", 0.05)
    ready = (job(function, seed, outcome=float if function is slow_coin else None) for seed in count())
    found = ([before_search.stuck_generator("it", before_search.first_runs(*one)) is not None] for one in ready)
    assert keeps_level(found, 0.05, times=4)


def further_calls(rows, hits, outcomes=((0.0,),)):
    """Calls on one input, and outcomes that they gave."""
    series = Series(GIVEN.data, np.array(outcomes), np.arange(len(outcomes)))
    return FurtherCalls(rows=rows, hits=[hits], series=series)


@pytest.mark.campaign
def test_the_level_of_the_check_before_a_refutation(monkeypatch):
    monkeypatch.setattr(dependence, "DEPENDENCE_LEVEL", 0.05)
    rng = np.random.default_rng(7)
    alarms, seeds = 0, 150
    for _ in range(seeds):
        seen = [further_calls([400] * 8, rng.binomial(400, 0.2, 8).tolist()) for _ in range(2)]
        cells = rng.multinomial(1_000, (0.1, 0.1, 0.1, 0.7), 6).tolist()
        shards = shards_of(*(Counts(n10=n10, n11=n11, n01=n01, n00=n00) for n10, n11, n01, n00 in cells))
        try:
            refuse_dependent("m", 1, shards, seen)
        except DependentRuns:
            alarms += 1
    assert alarms <= stats.binom.isf(1e-9, seeds, 0.05)


MEMORY, DRAWN_ONCE = [0.0], np.random.default_rng(1).laplace()
NEW_PROCESS = r"remembers its noise or .*: on D′? .* in a new process"


@pytest.mark.parametrize(
    ("function", "settings", "told"),
    soon(
        [
            (remembered.kept, SLOW, NEW_PROCESS),
            (remembered.cached, SLOW, NEW_PROCESS),
            (remembered.offset, {**SLOW, "outcome": None}, NEW_PROCESS),
            (remembered.listed, {**SLOW, "parameters": {"memory": MEMORY}}, NEW_PROCESS),
            (remembered.compiled_offset, {**LIMITS, "seed": 1}, "may remember its noise"),
            (lambda data: data[0] + DRAWN_ONCE, SLOW, "or remembers it: it cannot be loaded"),
            # A coin that leaks all but a twentieth of what it keeps; one new process draws the same in one of two.
            *(
                (
                    remembered.varied,
                    {**SLOW, "outcome": int, "seed": seed, "runs": 500, "search_runs": 500},
                    "its noise",
                )
                for seed in range(6)
            ),
        ],
        1,
    ),
)
def test_noise_that_is_remembered_is_found_by_a_new_process(function, settings, told):
    with pytest.raises(DependentRuns, match=told):
        dpw.check(function, **settings)
    assert MEMORY == [0.0]  # it does not go to the new process, so a second check finds the same


SAME_NOISE = "it adds no noise, or draws the same noise in every run"
ALIKE_THERE, UNLOADED = f"in a new process too: {SAME_NOISE}", "not compared with a new process, "
#: Fractions that whole noise leaves as they are.
RELEASED = {**LIMITS, "neighbours": dpw.pairs((0.123456789012345, 0.52345678901234)), "seed": 1}


@pytest.mark.parametrize(
    ("function", "settings", "notes"),
    soon(
        [
            (remembered.noisy, {**LIMITS, "seed": 1}, []),
            (remembered.often_released, RELEASED, None),
            (remembered.fraction_released, RELEASED, None),
            (remembered.seeded, SLOW, [ALIKE_THERE] * 2),
            # numba compiles NumPy's global generator and draws otherwise, so a new process is asked for the original.
            (remembered.leaks_zero, {**SLOW, "outcome": None}, [ALIKE_THERE]),
            (remembered.hidden[0], SLOW, [UNLOADED, "on D every run", "on D′ every run"]),
            (lambda rng, data: data[0] + rng.laplace(0, 0.2), {**SLOW, "runs": 20_000}, [UNLOADED]),
        ],
        2,
    ),
)
@pytest.mark.filterwarnings("ignore::dpwitness.errors.CompiledDiffers")
def test_a_violation_stays_one_and_its_notes_say_what_its_noise_was_compared_with(function, settings, notes):
    verdict = dpw.check(function, **settings)
    assert isinstance(verdict, dpw.Violation)
    if notes is not None:
        assert len(verdict.notes) == len(notes)
        assert all(part in note for part, note in zip(notes, verdict.notes, strict=True))


def reads_another_module(data):
    return data[0] + remembered.OFFSET


def test_constants_of_other_modules_count_and_our_own_do_not():
    assert constants(reads_another_module) is not None
    assert constants(remembered.scaled) not in (None, constants(remembered.compiled_offset))
    assert constants(remembered.noisy) is None
    assert constants(load("subset_sum_reconstruction")) is None  # its file holds numbers: they draw nothing


def seeds_itself(rng, data):
    """Noise of a generator that begins anew in each run."""
    return data[0] + np.random.default_rng(666).laplace()


def seeds_itself_in_each_call(data, size):
    return data[0] + np.full(size, np.random.default_rng(666).laplace())


def without_noise(rng, data):
    return 2 * data[0]


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
    for seed in range(3 if same else 1):
        notes = check_pass(job(function, seed + (not same))[1], GIVEN, [POSITIVE], shards_of(counts))
        assert [SAME_NOISE in note for note in notes] == [True] * same


@pytest.fixture
def judged(monkeypatch):
    """What a refutation says of outcomes of both sides in this process, and of the answers of new processes."""
    monkeypatch.setattr(refutation, "further_calls", lambda *_, **__: None)  # they take too long

    def judge(ready, outcomes, counts, answers):
        def ask(question, further):
            if isinstance(answers, str):
                raise new_process.CannotLoad(answers)
            return answers

        monkeypatch.setattr(new_process, "ask", ask)
        rows = [np.array(of_input, np.float64)[:, None] for of_input in outcomes]
        shards = shards_of(counts, series=first_of(*rows))
        return check_refutation(ready, GIVEN, [POSITIVE], shards)[1:]

    return judge


def answered(runs, hits, always=None, outcomes=()):
    return new_process.InputAnswer(runs=runs, hits=(hits,), always=always, outcomes=outcomes)


def always(value, runs):
    return answered(runs, int(value * runs), (float(value),))


ZEROS, VARIED = [0.0] * 20, [0.0] * 19 + [1.0]
#: What a first new process and twenty others say that return 0 on D and 1 on D′.
ALIKE = [(always(0, 1_024), always(1, 1_024)), *[(always(0, 32), always(1, 32))] * 20]


@pytest.mark.parametrize(
    ("function", "outcomes", "counts", "answers", "told"),
    [
        (remembered.kept, (ZEROS, ZEROS), Counts(n10=9), "none", None),
        (remembered.kept, (ZEROS, ZEROS), Counts(n01=9), "none", None),
        (remembered.kept, (ZEROS, ZEROS), Counts(n10=9, n00=1), "none", ["none", "on D′ every"]),
        (remembered.kept, (ZEROS, VARIED), Counts(n10=9), "none", ["none", "on D every run"]),
        (remembered.hidden[0], (ZEROS, ZEROS), Counts(n10=9), "none", ["loaded", "on D every", "on D′ every"]),
        # All alike; one of the further ones fails; one has drawn otherwise; no further one answers.
        (remembered.kept, (ZEROS, [1.0] * 20), Counts(n01=20), ALIKE, ["in 21 new", "in 21 new"]),
        (remembered.kept, (ZEROS, [1.0] * 20), Counts(n01=20), ALIKE[:20], ["in 20 new", "in 20 new"]),
        (remembered.kept, (ZEROS, [1.0] * 20), Counts(n01=20), [*ALIKE[:20], ALIKE[20][::-1]], None),
        (remembered.kept, (ZEROS, [1.0] * 20), Counts(n01=20), ALIKE[:1], None),
        # What varies in a new process alone is rare.
        (remembered.rare, (ZEROS, ZEROS), Counts(n11=20), [(answered(1_000, 990),) * 2], ["are rare", "are rare"]),
    ],
)
def test_what_never_varies_is_refused_where_new_processes_differ_or_are_missing(
    judged, function, outcomes, counts, answers, told
):
    ready = job(function, outcome=float)[1]
    if told is None:
        with pytest.raises(DependentRuns):
            judged(ready, outcomes, counts, answers)
    else:
        notes = judged(ready, outcomes, counts, answers)
        assert len(notes) == len(told)
        assert all(part in note for part, note in zip(told, notes, strict=True))


@pytest.mark.parametrize(("here", "there"), [(30, 30), (20, 20), (40, 3), (32, 1_024), (1_000, 4), (1_000, 3), (7, 9)])
def test_constants_differ_where_independent_runs_hardly_ever_fall_so(judged, here, there):
    """All of one kind here, all of another there: so few of all orders of these outcomes put them so."""
    ready = job(remembered.rare, outcome=float)[1]
    # Two inputs, two answers, three counts.
    likely = 2 / comb(here + there, there) >= dependence.DEPENDENCE_LEVEL / (
        2 * 2 * 3
    )  # two inputs, two answers, three counts
    answers = [(always(1, there), always(1, there))]
    if likely:
        judged(ready, [[0.0] * here] * 2, Counts(n11=here), answers)
    else:
        with pytest.raises(DependentRuns, match="the same outcome came in"):
            judged(ready, [[0.0] * here] * 2, Counts(n11=here), answers)


def test_repeats_are_looked_for_in_other_runs_than_those_that_define_them(judged):
    """A thousand values as likely: in the runs that define them repeats are those that came twice there."""
    rng, ready = np.random.default_rng(1), job(remembered.rare, outcome=float)[1]

    def told(low):
        here, new = rng.integers(0, 1_000, (2, 2_000)), rng.integers(low, low + 1_000, (2, 1_000, 1)).astype(float)
        sides = tuple(answered(1_000, 500, outcomes=tuple(findings.outcome_keys(rows))) for rows in new)
        return judged(ready, here, Counts(n10=5, n00=5, n11=5), [sides])

    assert told(0) == ()
    with pytest.raises(DependentRuns, match=r"an outcome came that had come twice before in .* and in 0 of 1000"):
        told(1_000)


@pytest.mark.campaign
def test_the_level_of_the_comparison_with_new_processes(monkeypatch, judged):
    monkeypatch.setattr(refutation, "DEPENDENCE_LEVEL", 0.05)
    rng, alarms, seeds = np.random.default_rng(3), 0, 100
    ready = job(remembered.rare, outcome=float)[1]

    def answer(runs):
        rows = rng.integers(0, 40, (runs, 1)).astype(float)
        kept = rows if runs > 100 else rows[:0]
        return answered(runs, int((rows < 12).sum()), outcomes=tuple(findings.outcome_keys(kept)))

    for _ in range(seeds):
        hits = rng.binomial(400, 0.3)
        answers = [(there, there) for there in map(answer, [1_000, *[32] * 20])]
        try:
            judged(ready, [rng.integers(0, 40, 200)] * 2, Counts(n11=hits, n00=400 - hits), answers)
        except DependentRuns:
            alarms += 1
    assert alarms <= stats.binom.isf(1e-9, seeds, 0.05)


FEW = new_process.Further(processes=2, runs=5)


def requested(function, outcome=None, given=None, events=()):
    signature = replace(Signature.of(function, {}), given=given or {}, size=None)
    return new_process.request(PythonMechanism(signature, outcome), GIVEN, events, seed=1)


def asked(function, further=FEW):
    return new_process.ask(requested(function, events=[POSITIVE]), further)


@pytest.mark.campaign
@pytest.mark.parametrize("function", [remembered.kept, remembered.kept_of_the_global_generator])
def test_each_new_process_draws_anew(function):
    """Forks that shared a generator would give one sample several times, and refuse independent runs."""
    first, *further = asked(function)
    assert [answer[0].runs for answer in further] == [5, 5]
    assert len({side.always for answer in (first, *further) for side in answer}) == 6


@pytest.mark.campaign
def test_further_processes_inherit_a_library_and_share_no_draws():
    """Twenty imports of scikit-learn took so long that too few processes answered."""
    further = new_process.Further(processes=3, runs=5, seconds=60.0)
    first, *others = asked(imports_a_library.inherited, further)
    assert [answer[0].always for answer in (first, *others)] == [(0.0,), (1.0,), (1.0,), (1.0,)]
    for function in (imports_a_library.noise_of_scipy, imports_a_library.noise_of_numpy):
        assert len({side.always for answer in asked(function, further) for side in answer}) == 8


@pytest.mark.campaign
def test_the_first_call_of_a_further_process_does_not_count():
    _, *further = asked(remembered.first_is_unlike)
    assert [side.always for answer in further for side in answer] == [(1.0,)] * 4


@pytest.mark.campaign
@pytest.mark.parametrize("function", [remembered.fails_in_forks, remembered.hangs_in_forks])
def test_a_further_process_that_fails_or_hangs_tells_nothing_and_is_left_in_time(function):
    begin = time.monotonic()
    assert len(asked(function, replace(FEW, seconds=1.0))) == 1
    assert time.monotonic() < begin + 20.0


def test_only_functions_that_a_name_leads_to_are_loaded_anew():
    exec("def of_no_module(data): return data", space := {})
    decorated = functools.wraps(remembered.noisy)(lambda rng, data, size: data)
    others = (remembered.hidden[0], decorated, np.random.default_rng(0).laplace, new_process.FunctionPlace)
    for function in (*others, lambda data: data, space["of_no_module"]):
        with pytest.raises(new_process.CannotLoad):
            new_process.place_of(function)


NOISE = np.random.default_rng(3).laplace()
GENERATOR = np.random.default_rng(3)


def draws_globally(data, scale=0.5, steps=(1, 2.0), weights=np.ones(2)):  # noqa: B008  # data, as a default may be
    return data[0] + scale * random.random() + np.random.random() + secrets.randbelow(3)  # noqa: NPY002


def holds_a_list(data, memory=[]):  # noqa: B006  # what this is about
    return data[0]


def reads_a_number(data):
    return data[0] + NOISE


def calls_another(data):
    return reads_a_number(data)


def draws_from_its_own(data):
    return data[0] + GENERATOR.laplace()


@pytest.mark.parametrize(
    ("function", "remembers"),
    [
        (lambda data: np.sum(data) + len(data), False),
        (remembered.seeded, False),
        (draws_globally, True),  # a real number, as a default
        (holds_a_list, True),
        (reads_a_number, True),
        (calls_another, True),
        (remembered.cached, True),
        (remembered.kept, True),
        (draws_from_its_own, True),
        (GENERATOR.laplace, True),
    ],
)
def test_what_may_remember_its_noise(function, remembers):
    assert memory.may_remember(function) is remembers


def test_a_file_of_the_user_s_is_not_taken_for_the_module_of_python_s_of_that_name(monkeypatch):
    own = ModuleType("platform")
    exec("KEPT = {}\ndef kept(data): return KEPT.setdefault(data[0], data[0])", vars(own))
    assert not memory.may_remember(sys.modules["platform"])
    monkeypatch.setitem(sys.modules, "platform", own)
    assert memory.may_remember(own)
    assert memory.may_remember(own.kept)
    assert not memory.may_remember(time)


@pytest.mark.parametrize(("feature", "remembers"), [("contrib", False), ("honest-but-curious", True)])
def test_an_opendp_measurement_remembers_only_where_a_function_of_the_users_may_be_in_it(
    monkeypatch, feature, remembers
):
    monkeypatch.setitem(sys.modules, "opendp.mod", SimpleNamespace(GLOBAL_FEATURES={feature}))
    assert opendp.LIBRARY.may_remember(object()) is remembers


def test_parameters_that_may_hold_memory_are_not_sent():
    requested(remembered.noisy, float, {"a": [1, (2.0, "x")], "b": np.ones(2)})
    for value in (np.random.default_rng(0), {}, [object()], [1, object()], np.array([object()])):
        with pytest.raises(new_process.CannotLoad, match="'a'"):
            requested(remembered.noisy, None, {"a": value})


@pytest.mark.campaign
def test_what_a_mechanism_prints_is_not_the_answer():
    left, right = asked(remembered.talkative)[0]
    assert (left.always, right.always) == ((0.0,), (1.0,))
    assert (left.hits, right.hits) == ((0,), (right.runs,))


def test_a_file_that_is_loaded_in_a_new_process_may_not_call_dpwitness(monkeypatch):
    new_process.refuse_inside()
    monkeypatch.setenv(new_process.INSIDE_VARIABLE, "1")
    with pytest.raises(DPWitnessError, match="when it is imported"):
        new_process.refuse_inside()


def test_a_new_process_says_how_many_runs_it_counted_hits_in():
    question = replace(requested(remembered.noisy, events=[Interval(coordinate=0)]), kind=VectorisedMechanism)
    for one in new_process.answer(question, replace(FEW, runs=2_048, runs_seconds=60.0)):
        assert (one["runs"], one["hits"]) == (2_048, (2_048,))


def ignores(rng, data):
    return rng.random() + rng.random()


def ignores_in_python(rng, data):
    return rng.random()


def ignores_vectorised(rng, data, size):
    return rng.random(size)


IGNORES = "both inputs gave the same values in every run"


@pytest.mark.parametrize("function", soon([ignores_vectorised, ignores, ignores_in_python], 1))
def test_an_ignored_input_is_noted(function):
    limits = {"neighbours": dpw.queries(2), "seed": 1, "search_runs": 500, "runs": 2_000}
    verdict = dpw.check(function, claim=1.0, outcome=float if function is ignores_in_python else None, **limits)
    assert verdict.notes[0].startswith(IGNORES)
    assert function.__name__ in verdict.notes[0]


def rarely(rng, data):
    return rng.random() < 0.01 * data[0]


def test_an_input_that_is_used_is_not_called_ignored():
    """4,096 runs of each pair: one that makes a difference of 0.01 is missed with probability 0.99⁴⁰⁹⁶."""
    hidden = dpw.pairs(([0.0], [0.0 + 1e-300]), ([0.0], [1.0]))
    assert before_search.input_ignored(*job(rarely, neighbours=hidden)) is None


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        (Counts(n00=5), "never happened on either input"),
        (Counts(n11=5), "happened in every run on both inputs"),
        (Counts(n11=5, n01=1), None),
        (Counts(n10=5), None),
        (Counts(), None),
    ],
)
def test_an_event_that_tells_nothing_apart_is_noted(counts, told):
    assert [told in note for note in findings.notes_on_counts(counts)] == [True] * (told is not None)


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
    for totals in confirm(ready.mechanism, GIVEN, [POSITIVE], seed=1, runs=100):
        shards.add(totals)
    notes = check_refutation(ready, GIVEN, [POSITIVE], shards)
    assert [note.split(": ")[0] for note in notes] == [
        "on D every one of 256 runs returned [0]",
        "on D′ every one of 256 runs returned [1]",
    ]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("sides", [[0], [1], [0, 1]])
def test_runs_that_share_noise_with_the_next_one_are_seen(first, sides):
    """Pairs of runs that begin at even ones, and at odd ones; on either side, or on both."""
    noise = np.random.default_rng(1).random((2, 249, 1))
    noise[sides, first + 1 : 248 : 2] = noise[sides, first:247:2]
    assert before_search.stuck_generator("it", first_of(*noise[:, :248])).name == "stuck_generator"


@pytest.mark.parametrize("side", [0, 1])
def test_runs_that_vary_on_one_side_alone_are_not_deterministic(side):
    rows = np.zeros((2, 248, 1))
    assert before_search.deterministic_output("it", first_of(*rows)).name == "deterministic_output"
    rows[side] = np.random.default_rng(2).random((248, 1))
    assert before_search.deterministic_output("it", first_of(*rows)) is None


def test_an_outcome_is_the_same_with_and_without_what_is_absent_behind_it():
    rows = np.array([[1.0, np.nan, np.nan], [1.0, np.nan, 2.0], [np.nan] * 3])
    assert findings.outcome_keys(rows[:1]) == findings.outcome_keys(rows[:1, :1])
    assert [len(key) for key in findings.outcome_keys(rows)] == [8, 24, 0]
    assert findings.only_outcome(rows[[0, 0]]) == (1.0,)
    assert findings.only_outcome(rows[:2]) is findings.only_outcome(rows[:0]) is None


def with_cost(seconds, max_time):
    """A job whose mechanism is said to take so many seconds a run."""
    statement = Statement(mechanism=slow_coin, claim=1.0, neighbours=PAIR, outcome=float)
    problem, ready = prepared(statement, Effort(seed=1, workers=1, max_time=max_time))
    ready.mechanism.cost = replace(ready.mechanism.cost, seconds_per_run=seconds)
    return problem, ready


def test_too_slow_for_alpha_is_told_before_the_runs():
    """By the time of runs on both inputs, and with a max_time that is never zero."""
    claim = dpw.PureDP(1.0)
    needed = runs_needed(claim, 1e-6)
    for share, alpha, too_slow in ((1.01, 1e-6, True), (0.99, 1e-6, False), (1.01, 0.5, False)):
        found = before_search.time_needed(*with_cost(share * 60.0 / (2 * needed), max_time=60.0), alpha)
        assert (found and found.name) == ("too_slow" if too_slow else None)
    problem, ready = with_cost(2.0, max_time=60.0)
    found = before_search.time_needed(problem, ready, 1e-6)
    advised = at_most(1.3 * 2 * 2.0 * useful_runs(claim, 1e-6))
    for said in (f"{needed} runs", f"{2 * 2.0 * needed:.4g} s", f"max_time={advised} "):
        assert said in found.text


def test_compiled_constants_are_the_same_only_where_all_new_processes_have_them(monkeypatch):
    here = constants(remembered.compiled_coin)
    for told, same in (([here, here], True), ([here, None], False), ([None, here], False)):
        monkeypatch.setattr(new_process, "_ask_processes", lambda *_, told=told: told)
        assert new_process.same_constants(remembered.compiled_coin) is same

    def cannot(*_):
        raise new_process.CannotLoad("no process")

    monkeypatch.setattr(new_process, "_ask_processes", cannot)  # then nobody is accused
    (note,) = check_refutation(job(remembered.compiled_coin)[1], GIVEN, [POSITIVE], Shards())
    assert note.endswith("no process")


def test_tests_run_the_health_check_that_users_run():
    """Unless they ask for another one by name, see `asked_here` in tests/conftest.py."""
    assert new_process._ask_processes.__module__ == "dpwitness.health.new_process"
    assert dependence.MOST_SERIES_RUNS == 1 << 15


def test_what_never_varies_is_no_noise_that_every_process_draws(asked_here):
    assert require_new_draws(job(remembered.noiseless, outcome=float)[1], GIVEN, (POSITIVE,)) == ()


@pytest.mark.campaign
def test_a_generator_that_every_process_seeds_alike_gives_each_session_the_same_draws():
    """Their luck would be multiplied as if the draws were new; a check of one session has no such trouble."""

    def notes(function):
        return require_new_draws(job(function)[1], GIVEN, (POSITIVE,))

    with pytest.raises(DependentRuns, match="seeded_alike draws the same noise in every new process"):
        notes(remembered.seeded_alike)
    assert notes(remembered.seeded_anew) == ()
    assert notes(remembered.offset) == ()  # each session has a seed of its own
    (note,) = notes(lambda data, size: np.random.default_rng().random(size))
    assert note.startswith("not known whether new processes draw the same noise: ")


def test_shards_are_kept_by_their_number_and_sum_up():
    shards = shards_of(*(Counts(n10=k, n11=1, n01=2, n00=3) for k in range(300)))
    assert shards.totals == (Counts(n10=sum(range(300)), n11=300, n01=600, n00=900),)
    assert 32 <= len(shards.kept) <= 64
    assert shards.kept == [((k + 1, 3, k + 6),) for k in range(0, 300, shards.stride)]
