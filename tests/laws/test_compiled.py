"""What is compiled is what was given, its runs are independent of each other, and nobody else's code is executed."""

import importlib
import math
import os
import subprocess
import sys
import types
from collections import namedtuple
from contextlib import nullcontext
from itertools import count

import numba
import numpy as np
import pytest
from numba import objmode

from dpwitness import NotRefuted, Violation, Witness, bound, check, machine, pairs, profile, replay
from dpwitness.api.loop import require_agreement
from dpwitness.errors import CompiledDiffers, CompiledDisagrees, MechanismRaised, SlowMechanism
from dpwitness.events import Interval
from dpwitness.events.encoding import FALSE, NEGATIVE_ZERO, NOT_A_NUMBER, TRUE
from dpwitness.evidence.counts import Counts
from dpwitness.health import refutation
from dpwitness.machine import cache_folder, is_user_owned, private_folder
from dpwitness.mechanisms.compiled import driver
from dpwitness.mechanisms.compiled.compare import Agreement, difference_in_event, difference_in_many, differing
from dpwitness.mechanisms.compiled.driver import fingerprint
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.compiled.reach import constants, digest, rebuilt
from dpwitness.mechanisms.draws import sfc64_state
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair
from dpwitness.runs import Role, Runner, generator, order
from running import sample, sampled, stream
from samplers import SAMPLERS, coin_or_number, geometric_or_coins, thousands_on_one_input

PAIR = pairs(([0], [1])).given[0]


def compiled(function, pair=PAIR, **settings):
    """The mechanism of a function, which is machine code after the first runs."""
    mechanism = as_mechanism(function, pair.data, neighbour=pair.neighbour, **settings)
    assert isinstance(mechanism, CompiledMechanism)
    return mechanism


def value_of(mechanism, data=1):
    """The number that one run returns."""
    return mechanism.outcomes(np.array([data]), stream(0), 1)[0, 0]


#: Each takes seconds to compile: in the suite two, of which one was wrong once: half words.
SOON = [geometric_or_coins, coin_or_number]
LATE = sampled([sampler for sampler in SAMPLERS if sampler not in SOON], 4)


@pytest.mark.parametrize("sampler", [*SOON, *(pytest.param(sampler, marks=pytest.mark.campaign) for sampler in LATE)])
def test_coupled_runs_do_not_depend_on_each_other(sampler):
    """Lag-1 correlation of X within 4 standard errors of 0, of a run's sides with the next run's too."""
    runs = 20_000 if sampler is thousands_on_one_input else 200_000
    least = 2 if sampler is geometric_or_coins else 1
    left, right = (rows[:, 0] >= least for rows in sample(compiled(sampler), PAIR, runs, seed=3, key=(0,)))
    assert max(abs(side.mean() - 0.5) for side in (left, right)) < 5 * 0.5 / math.sqrt(runs)
    x = left.astype(float) - right
    for a, b in ((x, x), (left, left), (right, right), (left, right), (right, left)):
        a, b = (v - v.mean() for v in (a.astype(float), b.astype(float)))
        scale = math.sqrt(float((a**2).mean() * (b**2).mean()))
        if scale > 0:
            assert abs(float((a[:-1] * b[1:]).mean())) / scale < 4.5 / math.sqrt(runs)


@pytest.mark.parametrize("sampler", SOON)
@pytest.mark.parametrize("seed", range(2))
def test_an_exactly_private_sampler_is_not_accused(sampler, seed):
    """These two were convicted for nearly every seed: the half of a word that one side had used came again."""
    limits = {"seed": seed, "search_runs": 20_000, "runs": 200_000, "alpha": 1e-6}
    assert isinstance(check(sampler, claim=0.5, neighbours=pairs(([0], [1])), **limits), NotRefuted)


@pytest.mark.parametrize("draws", [(0, 3), (3, 0), (2, 2), (1, 4), (4, 1), (1, 3), (3, 1)])
def test_the_next_run_starts_behind_both_sides_with_no_half_word(draws):
    counts = np.array(draws)

    def drawing(rng, data):
        total = 0
        for _ in range(data[0]):
            total += rng.integers(0, 1 << 31)
        return total

    rng = generator(9, Role.SEARCH)
    state = sfc64_state(rng)
    start = int(state[3])
    runs = PairedRuns.d_first(Pair(counts[:1], counts[1:]), 1, coupled=True)
    as_mechanism(drawing, counts[:1]).fill_pair(runs, rng, np.empty((2, 1, 2)))
    # A word serves two draws of 31 bits.
    assert int(state[3]) == start + (max(draws) + 1) // 2
    assert int(state[4]) == 0
    # The words are those of the stream that this generator gives by itself: nothing is skipped, nothing comes twice.
    fresh = generator(9, Role.SEARCH)
    fresh.integers(0, 1 << 63, (max(draws) + 1) // 2)
    assert fresh.bit_generator.state["state"]["state"].tolist() == state[:4].tolist()


# The code tested is the code given.


#: A constant of a helper that numba keeps on disk by itself, and what a new process makes of it.
HELPER = "import numba\nimport consts\n@numba.njit(cache=True)\ndef noise(x):\n    return x + consts.SCALE\n"
GIVEN = "import helpers\ndef mechanism(rng, data):\n    return helpers.noise(data[0] * 1.0)\n"
READ = """
import numpy as np
from dpwitness.mechanisms.resolve import as_mechanism
from given import mechanism
data = np.array([1])
made = as_mechanism(mechanism, data)
print(type(made).__name__, made.outcomes(data, np.random.Generator(np.random.SFC64(0)), 1)[0, 0])
"""


@pytest.mark.campaign
def test_edited_code_is_compiled_anew_in_this_process_and_in_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("DPWITNESS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "helpers.py").write_text(HELPER)
    (tmp_path / "given.py").write_text(GIVEN)
    here, there = [], []
    for scale in (1, 2, 1):
        for name in ("consts", "helpers", "given"):
            sys.modules.pop(name, None)
        (tmp_path / "consts.py").write_text(f"SCALE = {scale}\n")
        for cached in tmp_path.glob("__pycache__/*.pyc"):
            cached.unlink()  # two edits within one second have one time stamp
        importlib.invalidate_caches()
        here.append(value_of(compiled(importlib.import_module("given").mechanism)))  # kept on disk by this process
        run = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, cwd=tmp_path, check=True)
        there.append(run.stdout.strip())
    assert here == [2, 3, 2]
    assert there == [f"CompiledMechanism {value}" for value in here]


@pytest.mark.campaign
def test_a_value_changed_in_this_process_is_the_one_that_is_tested():
    config = types.ModuleType("config")

    @numba.njit
    def helper(x):
        return x + config.SCALE

    def mechanism(rng, data):
        return helper(data[0]) + config.SCALE

    answers = []
    for scale in (1.0, 3.0):
        config.SCALE = scale
        answers.append(value_of(compiled(mechanism, Pair(np.zeros(1), np.zeros(1))), 0.0))
        assert helper(0.0) == 1.0  # it holds the first value ever since: neither it nor what was kept may be used
    assert answers == [2, 6]


def test_an_array_that_is_changed_in_place_is_another_function():
    scales = np.array([0.5, 1.5])
    mechanism = lambda rng, data: data[0] + scales[0]  # noqa: E731
    (first, complete), before = digest(mechanism), constants(mechanism)
    assert complete
    scales[1] = 2.5
    assert digest(mechanism)[0] != first
    assert constants(mechanism) != before


def executed(text, **names):
    """What a text defines, by name."""
    space = {"__name__": __name__, **names}
    exec(text, space)
    return space


def with_scale(scale, **more):
    """A module with a constant."""
    module = types.ModuleType("consts")
    vars(module).update(SCALE=scale, **more)
    return module


def of_constant(scale):
    consts = with_scale(scale)
    return lambda rng, data: data[0] + consts.SCALE


def of_the_constant_of_a_helper(scale):
    consts = with_scale(scale)
    helpers = with_scale(0.0, noise=numba.njit(lambda x: x + consts.SCALE))
    return lambda rng, data: helpers.noise(data[0])


def of_a_plain_helper(scale):
    helpers = with_scale(0.0, noise=lambda x: x + scale)
    return lambda rng, data: helpers.noise(data[0])


def of_named_tuple(fields):
    noise = namedtuple("Noise", fields)(1.0, 3.0)
    return lambda rng, data: data[0] + noise.scale * rng.random()


def of_free_variable(inner):
    return lambda rng, data: [x + math.pi for x in data] + [y * inner for y in data]


def of_try(rest):
    """From Python 3.11 on the instructions of both are the same."""
    first = "    try:\n        a = 1 / data[0]\n"
    return executed(f"def mechanism(rng, data):\n{first}{rest}    return a + b\n")["mechanism"]


def of_module(name):
    return types.FunctionType((lambda rng, data: data).__code__, {"__name__": name})


#: Names of files with an ä, where the locale is ASCII.
UNREADABLE = "\udcc3\udca4", "\udcc3\udca5"
REFUSED = "    except Exception:\n        return -1.0\n"


@pytest.mark.parametrize(
    ("make", "one", "other"),
    [
        (of_constant, 1, 2),
        (of_constant, np.zeros(1), np.zeros(1, np.float32)),
        (of_the_constant_of_a_helper, 1, 2),
        (of_a_plain_helper, 1, 2),
        (of_named_tuple, "scale shift", "shift scale"),
        (of_free_variable, 3.0, 4.0),
        (of_try, f"        b = 1 / data[1]\n{REFUSED}", f"{REFUSED}    else:\n        b = 1 / data[1]\n"),
        (of_module, *UNREADABLE),
    ],
)
def test_functions_that_differ_in_one_thing_are_told_apart(make, one, other, monkeypatch):
    for name in UNREADABLE:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    first, second, again = (fingerprint(make(given), "rng, given") for given in (one, other, one))
    assert first[0] != second[0]  # machine code is used again under the same name only
    assert first == again
    assert first[1]
    assert second[1]


SCALE = 1.0


def recursive(rng, n):
    return 0.0 if n <= 0 else rng.laplace(0.0, 1.0) + walks(rng, n - 1)


walks = numba.njit(recursive)


def calls_a_recursive_function(rng, data):
    return data[0] + walks(rng, 3)


def test_what_cannot_be_told_is_not_kept(own_cache):
    class Settings:
        scale = 1.0

    settings, whole = Settings(), types.ModuleType("whole")
    # With signatures given it is compiled at once, and does not see that SCALE changes.
    released = numba.njit("float64(float64)")(lambda value: value * SCALE)
    for function in (
        lambda rng, data: settings.scale,
        lambda rng, data: whole,
        lambda rng, data: released(data[0]),
        calls_a_recursive_function,  # numba's cache crashes a second process that loads it (numba 0.68)
    ):
        assert not digest(function)[1]
    compiled(calls_a_recursive_function)
    assert not [*own_cache.rglob("*.nbc")]


@numba.njit
def helper_through_objmode(rng):
    with objmode(noise="f8"):
        noise = rng.random()
    return 2 * noise


def calling_through_objmode(rng, data):
    return data[0] + helper_through_objmode(rng)


#: Compiled for its types at once.
compiled_through_objmode = numba.njit(numba.float64(numba.types.npy_rng))(helper_through_objmode.py_func)


def calling_compiled(rng, data):
    return data[0] + compiled_through_objmode(rng)


@pytest.mark.parametrize("function", [calling_through_objmode, calling_compiled])
def test_what_python_would_draw_in_objmode_is_left_to_python(function):
    with pytest.warns(SlowMechanism, match="objmode"):
        mechanism = as_mechanism(function, np.array([0.0]))
    assert not mechanism.compiled
    runs, rng = PairedRuns.d_first(Pair(np.array([0.0]), np.array([1.0])), 3, coupled=False), stream(3)
    assert len({x for _ in range(4) for x in mechanism.pair_outcomes(runs, rng)[0, :, 0]}) == 12


def test_the_interpreted_copy_calls_no_compiled_code():
    @numba.njit
    def inner(x):
        return inner(x - 1) + 1 if x > 0 else 0

    @numba.njit
    def outer(x):
        return inner(x) * 2

    def mechanism(rng, data):
        return outer(data[0])

    plain = rebuilt(mechanism, lambda copy, options: copy)
    assert plain(None, [3]) == 6
    assert not inner.signatures
    assert not outer.signatures


# Lists in outcomes: entries have names, and an outcome of other lengths is no row of the same entries.


def at_times_longer(rng, data):
    x = data[0] + rng.random()
    return [np.ones(2), np.full(3 if x < 0.001 else 2, x)]


def always_other_lengths(rng, data):
    return [np.ones(2), np.full(2 + int(8 * rng.random()), data[0] + 0.5)]


@pytest.mark.campaign
def test_entries_of_lists_of_other_lengths_are_named_by_their_places():
    runs = PairedRuns.d_first(PAIR, 16_384, coupled=False)
    for function, width in ((always_other_lengths, 13), (at_times_longer, 7)):
        mechanism = compiled(function)
        assert mechanism.pair_outcomes(runs, stream(1)).shape == (2, 16_384, width)
        assert mechanism.places[4] == "entry 5 of the flat outcome"


@pytest.mark.campaign
def test_a_witness_of_lists_is_replayed_in_the_same_words(tmp_path):
    verdict = check(always_other_lengths, claim=0.5, neighbours=pairs(([0.0], [1.0])), seed=1, workers=1, runs=20_000)
    assert isinstance(verdict, Violation)
    said = verdict.witness.description
    verdict.witness.save(tmp_path / "w.json")
    again = replay(Witness.load(tmp_path / "w.json"), always_other_lengths, seed=2, workers=1, runs=2_000)
    assert isinstance(again, Violation)
    assert again.witness.description == said


# Compiled code is compared with Python.


def wraps(rng, data):
    x = int(data[0]) << 62
    return x + x + x + x + int(rng.integers(0, 2))


def true_or_one(rng, data):
    return True if data[0] > 0 else 1


def last_seen(rng, times, epsilon, latest=2e18):
    """In milliseconds, with whole noise of nanoseconds: 1764·10¹⁵ and a few more of them are one number to numba."""
    return (min(max(times), latest) + int(rng.integers(-100, 101))) / 1e6


def clipped(rng, values):
    """1 / 0 is infinite for a number of NumPy's, and an error for numba."""
    return float(np.sum(values)) * min(1.0, 1.0 / np.sqrt(np.sum(values**2))) + rng.laplace(0, 1)


def draws_itself(data):
    return data[0] + np.random.standard_normal()  # noqa: NPY002  # as users write it


LATE_TIMES = [1_764_000_000_000_000_000 // 256 * 256 + 127, 5]


@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value) encountered")
@pytest.mark.parametrize(
    ("function", "data", "neighbour", "told"),
    [
        (wraps, np.array([1]), np.array([1]), r"run 0 on the input \[1\]"),
        (true_or_one, np.array([0]), np.array([1]), ""),
        (last_seen, LATE_TIMES, LATE_TIMES, r"gave \(1764\d+\), in Python: \(1764\d+\.\d+\)"),
        (clipped, np.array([1.0, 0.0]), np.zeros(2), ""),
        (draws_itself, np.array([1.0]), np.array([1.0]), "randomness"),
    ],
)
def test_what_numba_changes_runs_as_python_with_one_warning(function, data, neighbour, told):
    with pytest.warns(CompiledDiffers, match=f"{function.__name__} .*{told}"):
        mechanism = as_mechanism(function, data, neighbour=neighbour, epsilon=1.0)
    assert isinstance(mechanism, PythonMechanism)
    assert mechanism.reproducible is (function is not draws_itself)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ([1.0, 2.5], [1.0, 2.5 * (1 + 1e-12)], True),
        ([1.0, 2.5], [1.0, 2.5 * (1 + 1e-8)], False),
        ([2.0**40], [2.0**40 + 1], False),  # counts are compared exactly
        ([TRUE], [1.0], False),
        ([FALSE], [0.0], False),
        ([NEGATIVE_ZERO], [0.0], False),
        ([np.nan], [NOT_A_NUMBER], False),
        ([np.nan, np.inf], [np.nan, np.inf], True),
        ([np.inf], [1e300], False),
    ],
)
def test_compiled_and_interpreted_outcomes_are_compared(a, b, same):
    a, b = np.array([a]), np.array([b])
    assert differing(a, b, a).tolist() == differing(b, a, b).tolist() == [not same]


def test_numbers_that_differ_by_rounding_are_one_outcome_where_noise_is_wider():
    rng = stream(1)
    large = 1e9 + rng.normal(0, 10, (100, 1))
    assert not differing(large, np.nextafter(large, np.inf), large).any()
    assert differing(large, large + 1e-3, large).all()  # 10⁻¹² of the number, and 10⁻⁴ of the noise
    wide = np.where(rng.random((100, 1)) < 0.5, large, rng.normal(0, 1e9, (100, 1)))
    near = np.abs(wide[:, 0] - 1e9) < 100
    assert near.any()
    assert differing(wide, wide + 1e-3, wide)[near].all()
    constant = np.full((100, 1), 0.1)
    assert differing(constant, constant * (1 + 1e-15), constant).all()


def ratio(rng, values):
    """1 / 0 in one run of a thousand."""
    share = np.sum(values) / np.float64(rng.integers(0, 1000))
    return float(share) if share < 8.0 else 0.0


def log_of_length(rng, data):
    """−∞ for numba where there is no record, an error in Python."""
    return max(math.log(len(data)), 0.0) + rng.laplace(0, 1)


@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value) encountered")
def test_what_machine_code_alone_raises_is_no_error_of_the_mechanism():
    runs = PairedRuns.d_first(Pair(np.ones(2), np.zeros(2)), 10_000, coupled=True)
    with pytest.raises(CompiledDisagrees, match="ratio"):
        compiled(ratio, Pair(np.ones(2), np.ones(2))).pair_outcomes(runs, stream(0))


def test_what_python_raises_on_some_pair_is_not_hidden_by_machine_code():
    inputs = pairs(([1.0, 2.0], [1.0]), ([1.0], []))
    with (
        pytest.warns(CompiledDiffers, match=r"log_of_length .* on the input \[\] gave"),
        pytest.raises(MechanismRaised, match="math domain error"),
    ):
        check(log_of_length, claim=2.0, neighbours=inputs, runs=2_000, search_runs=2_000, seed=1, bits=False)


def test_pairs_are_compared_with_python_on_a_busy_machine_too(monkeypatch):
    """Seconds that other processes take are not those of a comparison."""
    clock = count(0.0, 1.0)
    monkeypatch.setattr("dpwitness.mechanisms.compiled.compare.time.perf_counter", lambda: next(clock))
    mechanism, agreement = as_mechanism(log_of_length, np.ones(2)), Agreement()
    agreement.require(mechanism, Pair(np.ones(2), np.ones(1)))
    with pytest.raises(CompiledDisagrees, match=r"on the input \[\] gave"):
        agreement.require(mechanism, Pair(np.ones(1), np.ones(0)))


@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
@pytest.mark.parametrize("missing", [[0.0, None], ["a", "b"], [{"a": 1.0}]])
def test_an_input_that_machine_code_does_not_take_has_the_check_run_as_python(missing):
    def count(rng, data):
        return len(data) + rng.laplace(0, 0.2)

    inputs = pairs(([0.0], [1.0]), (missing, [1.0, 2.0]))
    with pytest.warns(CompiledDiffers, match="count runs as plain Python"):
        verdict = check(count, claim=6.0, neighbours=inputs, runs=6_000, seed=1, bits=False)
    assert not verdict.refuted


def off_by_one(rng, data):
    total = 0.0
    for i in range(len(data)):
        total += data[i + 1]
    return total + rng.laplace()


def test_an_index_out_of_bounds_is_an_error_not_the_neighbours_data():
    with pytest.raises(MechanismRaised, match="off_by_one raised IndexError"):
        as_mechanism(off_by_one, np.array([1.0, 2.0]))


def remembers_in_a_parameter(rng, data, kept=np.zeros(2)):  # noqa: B008  # the default is what is tested
    if kept[0] == 0.0:
        kept[0], kept[1] = 1.0, rng.laplace(0.0, 1.0)
    return data[0] + kept[1]


@pytest.mark.parametrize("parameters", [{}, {"kept": np.zeros(2)}])
def test_no_run_of_compiled_code_can_leave_anything_in_a_parameter(parameters):
    with pytest.raises(MechanismRaised, match="read-only"):
        check(remembers_in_a_parameter, claim=1.0, neighbours=pairs(([0], [1])), parameters=parameters, seed=1)


def rarely_wrong(rng, data):
    """Numba's whole numbers wrap; Python's do not. In one run of 500."""
    u = rng.random()
    if u < 0.002:
        x = int(data[0]) << 62
        return x + x + x + x + 0.0
    return u


def higher(rng, data):
    return 1 + rng.random()


NEVER = Interval(coordinate=0, low=5.0, high=6.0)


def unchecked():
    """Machine code that is wrong in few runs, which no first runs have shown."""
    mechanism = CompiledMechanism(Signature.of(rarely_wrong, {}))
    value_of(mechanism, 0)
    mechanism.plain, mechanism.shard = PythonMechanism(mechanism.signature), 16
    return mechanism


@pytest.mark.parametrize(("counts", "compared"), [((1, 0), True), ((0, 1), True), ((0, 0), False)])
def test_an_event_is_compared_with_python_where_it_happened_on_either_input(counts, compared):
    seen = Counts(n10=counts[0], n01=counts[1], n00=15)
    with pytest.raises(CompiledDisagrees, match="no run with the event was found") if compared else nullcontext():
        require_agreement(Runner(mechanism=unchecked(), seed=1), PAIR, NEVER, seen)


@pytest.mark.parametrize("same", [True, False])
def test_a_pass_of_compiled_code_is_compared_with_python(same):
    mechanism = unchecked()
    mechanism.plain = mechanism if same else PythonMechanism(Signature.of(higher, {}))
    with nullcontext() if same else pytest.raises(CompiledDisagrees, match=r"run 0 on the input \[.\] gave"):
        refutation.require_same_in_python(Runner(mechanism=mechanism, seed=1), PAIR)


def numbered(wrong):
    """Returns one of four numbers, and one of four others on D′; one of the eight is wrong."""

    def number(rng, data):
        value = rng.integers(0, 4) + 10.0 * data[0]
        return value + 0.25 if value == wrong else value

    return Signature.of(number, {})


@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize(("wrong", "low"), [(3.0, 2.5), (12.0, 11.5)])
def test_each_kind_of_run_in_the_event_is_compared(wrong, low, coupled):
    """With D in it and D′ not, and the other way round: half of them would hide the runs that are evidence."""
    mechanism, plain = CompiledMechanism(numbered(wrong)), PythonMechanism(numbered(-1.0))
    value_of(mechanism, 0)
    event = Interval(coordinate=0, low=low, high=low + 1)
    streams = [(generator(1, Role.CONFIRM, k), order(1, Role.CONFIRM, k, runs=16_384)) for k in range(2)]
    found = difference_in_event(mechanism, plain, PAIR, event.contains, streams, coupled=coupled)
    assert f"gave ({wrong + 0.25:g})" in found
    if coupled:  # else the wrong number comes on the other side of a run that is in the event
        right = Interval(coordinate=0, low=0.5, high=1.5)
        assert difference_in_event(mechanism, plain, PAIR, right.contains, streams, coupled=True) is None


def leaks_in_python_alone(rng, data, epsilon):
    """In one run of 2,000 the data itself: where a product is larger than numba's whole numbers, which wrap."""
    if int(rng.integers(0, 2_000)) * (1 << 53) > 1.8e19:
        return data[0]
    return data[0] + rng.laplace(0, 1 / epsilon)


@pytest.mark.campaign
@pytest.mark.parametrize("work", [check, bound, profile])
def test_a_leak_of_python_alone_is_not_passed_by_machine_code(work, monkeypatch):
    def in_half_a_minute(*compared):  # it ends at the first difference
        return difference_in_many(*compared[:-1], 30.0)

    monkeypatch.setattr(refutation, "difference_in_many", in_half_a_minute)
    few = {"runs": 2_000, "search_runs": 2_000, "seed": 1, "neighbours": pairs(([1.0, 0.0], [0.0, 0.0]))}
    with pytest.warns(CompiledDiffers, match="leaks_in_python_alone"):
        work(leaks_in_python_alone, epsilon=1.0, **few)


def wrong_where_it_matters(rng, data):
    """Compiled, whole numbers wrap in one run of 200 on D′ alone; in Python both inputs have one law."""
    u = rng.random()
    if u < 0.005:
        x = int(data[0]) << 62
        return 1.0 if float(x + x) < 0 else 0.0
    return 0.0 if u < 0.5 else 0.5


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore::dpwitness.errors.CompiledDiffers")
@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
def test_nobody_is_accused_of_what_numba_made_of_a_rare_path():
    """What the first runs do not show is seen in the runs that are evidence; then plain Python is checked."""
    compiled(wrong_where_it_matters)  # the first runs do not show it
    limits = {"seed": 3, "search_runs": 20_000, "runs": 20_000, "alpha": 1e-3}
    with pytest.warns(CompiledDiffers, match="wrong_where_it_matters"):
        verdict = check(wrong_where_it_matters, claim=0.5, neighbours=pairs(([0], [1])), **limits)
    assert isinstance(verdict, NotRefuted)


# Nobody else's code is executed.


def test_a_cache_folder_of_others_or_that_they_can_write_to_is_not_used(tmp_path, monkeypatch):
    good, bad, link, usual, theirs = (tmp_path / name for name in ("good", "bad", "link", "home", "theirs"))
    monkeypatch.setattr(machine, "user_cache_path", lambda *_, **__: usual)
    monkeypatch.setenv("DPWITNESS_CACHE_DIR", str(good))
    if is_user_owned(tmp_path):
        assert cache_folder() == good
        assert good.stat().st_mode & 0o077 == 0
    bad.mkdir()
    bad.chmod(0o777)
    link.symlink_to(bad)
    theirs.mkdir(mode=0o700)
    root = hasattr(os, "getuid") and os.getuid() == 0  # who alone can give a folder away
    if root:
        os.chown(theirs, 12345, 12345)
    for given in (bad, bad / "inner", link, *([theirs] if root else [])):
        monkeypatch.setenv("DPWITNESS_CACHE_DIR", str(given))
        with pytest.warns(UserWarning, match=r"^DPWITNESS_CACHE_DIR=.* is not used"):
            assert cache_folder() == usual
        assert cache_folder() == usual  # said once
    assert private_folder().stat().st_mode & 0o077 == 0


def test_without_a_home_each_process_compiles_anew_and_says_so(tmp_path, monkeypatch):
    closed = tmp_path / "closed"
    closed.write_text("a file: no folder can be made below it")
    monkeypatch.delenv("DPWITNESS_CACHE_DIR", raising=False)
    monkeypatch.setattr(machine, "user_cache_path", lambda *_, **__: closed / "dpwitness")
    with pytest.warns(UserWarning, match="every process compiles anew, .* set DPWITNESS_CACHE_DIR"):
        assert cache_folder() == private_folder()


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty folder for machine code."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("DPWITNESS_CACHE_DIR", str(folder))
    monkeypatch.setattr(driver, "DRIVERS", {})  # as in a new process
    return folder


def test_machine_code_is_kept_in_our_folder_alone(own_cache, tmp_path, monkeypatch):
    (tmp_path / "shared").mkdir(mode=0o777)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "shared"))
    compiled(lambda rng, data: data[0] + 17.0)
    assert [*own_cache.rglob("*.nbc")]
    assert not [*(tmp_path / "shared").iterdir()]


PLANTED = b"raise SystemExit('planted')\n"


@pytest.mark.parametrize("damage", [b"", b"\377", b"\x80\x04N.\x80\x04N.", PLANTED])
def test_a_damaged_or_planted_file_of_the_cache_is_written_anew(own_cache, monkeypatch, damage):
    def mechanism(rng, data):
        return data[0] + 18.0

    def kept():
        return [file for file in own_cache.rglob("*") if file.suffix in (".py", ".nbi", ".nbc")]

    compiled(mechanism)
    for file in kept():
        file.write_bytes(damage)
    for loads in (0, 1):
        monkeypatch.setattr(driver, "DRIVERS", {})
        assert compiled(mechanism)._fill.stats.cache_hits.total() == loads
    assert damage not in [file.read_bytes() for file in kept()]


@pytest.mark.campaign
def test_a_cache_that_cannot_be_written_is_done_without(own_cache):
    """A folder that vanishes behind our back, as one that is cleaned while a check runs."""

    def mechanism(rng, data):
        return data[0] + 19.0

    made = CompiledMechanism(Signature.of(mechanism, {}))
    for file in sorted(own_cache.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    own_cache.rmdir()
    own_cache.touch()  # a file: no folder can be made here, not even by root
    assert value_of(made) == 20


def list_or_nothing(rng, data):
    value = data[0] + rng.laplace(0.0, 1.0)
    if value < 0:
        return None
    return [value, 1.0]


def array_or_nothing(rng, data):
    value = data[0] + rng.laplace(0.0, 1.0)
    if value < 0:
        return None
    both = np.zeros(2)
    both[0] = value
    return both


@pytest.mark.parametrize("function", [pytest.param(list_or_nothing, marks=pytest.mark.campaign), array_or_nothing])
def test_memory_of_an_outcome_that_may_be_missing_is_freed_once(function):
    mechanism = compiled(function)
    numba.core.runtime.rtsys.initialize(numba.core.registry.cpu_target.target_context)
    numba.core.runtime.nrt._nrt.memsys_enable_stats()
    for seed in range(50):
        before = numba.core.runtime.rtsys.get_allocation_stats()
        mechanism.outcomes(PAIR.data, stream(seed), 2)
        after = numba.core.runtime.rtsys.get_allocation_stats()
        assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free
