"""Scratch memory: a mechanism's arrays may lie in it, and nothing else about the mechanism changes."""

import importlib.util
import linecache
import warnings

import numpy as np
import pytest

from dpwitness.errors import CompiledDiffers, MechanismRaised
from dpwitness.events.encoding import NOT_A_NUMBER
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.compiled.scratch import SIZE, with_scratch
from dpwitness.mechanisms.draws import sfc64_state
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.outcomes import Row, row_of
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair
from dpwitness.runs import Role, generator

WIDE = 3 * SIZE // 4


def three_arrays(rng, data):
    first = np.full(len(data), np.nan)
    second = np.zeros(len(data))
    third = np.empty(2 * len(data))
    for i in range(len(data)):
        first[i] = data[i] + rng.standard_normal()
        third[2 * i], third[2 * i + 1] = second[i], first[i]
    second[0] = 7.0
    return first, second, third


def too_much(rng, data):
    first = np.full(WIDE, 1.0)
    second = np.full(WIDE, 2.0)
    return first[0], first[WIDE - 1], second[0], second[WIDE - 1], rng.random() + data[0]


def a_loop_of_arrays(rng, data):
    total = 0.0
    for i in range(2 * SIZE):
        part = np.zeros(10)
        part[i % 10] += 1.0
        total += part.sum()
    return total + rng.random() + data[0]


def other_shapes(rng, data):
    square = np.zeros((2, 2))
    whole = np.full(2, 3)
    flags = np.full(2, True)
    typed = np.zeros(2, np.int64)
    square[0, 0] = data[0] + rng.random()
    return square[0, 0], square[1, 1], whole, flags, typed


def reassigned(rng, data):
    noisy = np.zeros(len(data))
    noisy = noisy + data
    noisy[0] += rng.random()
    return noisy


def in_a_comprehension(rng, data):
    parts = [np.zeros(1) for _ in range(2)]
    own = np.zeros(1)
    parts[0][0] = data[0] + rng.random()
    return parts[0][0] + own[0]


LATE = (three_arrays, other_shapes, a_loop_of_arrays, reassigned, in_a_comprehension)


@pytest.mark.parametrize(
    "function",
    [too_much, *(pytest.param(function, marks=pytest.mark.campaign) for function in LATE)],
)
def test_outcomes_are_those_of_plain_python(function):
    data = np.array([1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numba must not refuse
        mechanism = as_mechanism(function, data)
    assert with_scratch(function)
    rows = np.empty((2, 5, 16))
    runs = PairedRuns.d_first(Pair(data, data + 1), rows.shape[1], coupled=False)
    length = mechanism.fill_pair(runs, generator(3, Role.SEARCH), rows)
    rng = generator(3, Role.SEARCH)
    for i in range(5):
        for side in range(2):
            out = function(rng, data + side)
            row = Row()
            row_of(out, row)
            assert len(row.entries) == length
            assert rows[side, i, :length].tolist() == row.entries


@pytest.mark.campaign
def test_each_run_takes_the_memory_that_the_run_before_it_took():
    """So much of it is taken in the end as by one run: 2, 2 and 4 numbers, each of them eight."""
    runs, data = 7, np.array([1.0, 2.0])
    mechanism = CompiledMechanism(Signature.of(three_arrays, {}))
    rng, position, memory = generator(3, Role.SEARCH), np.array([-1, SIZE]), np.full(SIZE, 5.0)
    order, rows = np.zeros(runs, np.uint8), np.empty((2 * runs, 12))
    mechanism._fill(rng, sfc64_state(rng), True, order, data, data, (), rows, position, memory)
    assert position.tolist() == [2 * runs - 1, 24]  # the number of the last run: those of D′ follow those of D
    assert np.all(memory[:24] != 5)
    assert np.all(memory[24:] == 5)


def two_lengths(rng, data, first, second):
    one, other = np.full(first, 1.0), np.full(second, 2.0)
    return one.sum() + rng.random() * 0, other.sum(), len(one), len(other)


@pytest.mark.parametrize("first", [0, 1, 7, 8, 9, 15, 16, SIZE - 8, SIZE - 7, SIZE - 1, SIZE])
def test_arrays_of_all_lengths_lie_beside_each_other(first):
    """They are written eight numbers at a time, which must reach neither another array nor what is behind them all."""
    for second in (0, 1, 7, 8, 9, SIZE):
        mechanism = CompiledMechanism(Signature.of(two_lengths, {"first": first, "second": second}))
        runs = PairedRuns.d_first(Pair(np.zeros(1), np.zeros(1)), 2, coupled=False)
        rows = np.empty((2, 2, 4))
        mechanism.fill_pair(runs, generator(1, Role.SEARCH), rows)
        assert (rows == [first, 2 * second, first, second]).all()


def test_an_index_behind_an_array_is_an_error_though_memory_lies_there():
    def behind(rng, data):
        part = np.zeros(len(data))
        part[int(data[0])] = rng.random()
        return part

    mechanism = as_mechanism(behind, np.array([2.0, 0.0, 0.0]))
    assert isinstance(mechanism, CompiledMechanism)
    outside = PairedRuns.d_first(Pair(np.array([3.0, 0.0, 0.0]), np.array([-3.0, 0.0, 0.0])), 2, coupled=False)
    with pytest.raises(MechanismRaised, match="index"):
        mechanism.fill_pair(outside, generator(1, Role.SEARCH), np.empty((2, 2, 4)))


def unwritten(rng, data):
    part = np.empty(len(data))
    part[0] = rng.random()
    return part


def test_what_a_run_leaves_unwritten_is_not_what_another_wrote():
    """Else runs would depend on each other, and the e-value's bet on them would be void."""
    data = np.zeros(3)
    with pytest.warns(CompiledDiffers, match="unwritten runs as plain Python: compiled by numba, run 0"):
        as_mechanism(unwritten, data)  # in Python there is something in such an array, so Python is what is tested
    mechanism = CompiledMechanism(Signature.of(unwritten, {}))
    rows = np.empty((2, 50, 3))
    full_first = as_mechanism(three_arrays, data)
    runs = PairedRuns.d_first(Pair(data, data), 50, coupled=False)
    full_first.fill_pair(runs, generator(1, Role.SEARCH), np.empty((2, 50, 16)))
    mechanism.fill_pair(runs, generator(1, Role.SEARCH), rows)
    assert (rows[:, :, 1:] == NOT_A_NUMBER).all()
    assert (rows[:, :, 0] >= 0).all()


def test_an_array_of_impossible_length_is_still_an_error():
    def negative(rng, data):
        return np.empty(int(data[0]))

    with pytest.raises(Exception, match="negative"):
        as_mechanism(negative, np.array([-1.0]))


def test_defaults_are_taken_over_as_they_are():
    assert with_scratch(with_default).__defaults__ == with_default.__defaults__
    assert with_scratch(with_default).__kwdefaults__ == with_default.__kwdefaults__


def with_default(rng, data, width=[3][0], *, height=2):  # an expression must not be evaluated again
    return np.zeros(width)


def test_nothing_is_redirected_where_nothing_is_to_gain_or_to_know():
    free = 1.0
    namespace = {"np": np}
    exec("def from_nowhere(rng, data):\n    return np.zeros(3)", namespace)

    def closure(rng, data):
        return np.zeros(3) + free

    def no_array(rng, data):
        return data[0]

    def own_np(rng, data, np):
        return np.zeros(3)

    for function in (namespace["from_nowhere"], closure, no_array, own_np, len):
        assert with_scratch(function) is None


def test_a_file_that_changed_since_it_was_loaded_is_left_alone(tmp_path):
    """What is tested is the code in memory, never what its file says now."""
    file = tmp_path / "mine.py"
    file.write_text("import numpy as np\n\ndef mine(rng, data):\n    out = np.zeros(1)\n    return out + 1\n")
    spec = importlib.util.spec_from_file_location("mine", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert with_scratch(module.mine)
    linecache.clearcache()
    file.write_text("import numpy as np\n\ndef mine(rng, data):\n    out = np.zeros(1)\n    return out + 22\n")
    assert with_scratch(module.mine) is None


def test_what_numba_refuses_with_scratch_memory_is_tried_without(monkeypatch):
    def refused(scratch, rng, data):
        return object()

    def plain(rng, data):
        return data[0] + rng.random()

    monkeypatch.setattr("dpwitness.mechanisms.compiled.scratch.with_scratch", lambda function: refused)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(as_mechanism(plain, np.zeros(1)), CompiledMechanism)
