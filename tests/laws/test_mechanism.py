import inspect
import re
import sys
import warnings
from dataclasses import dataclass, field
from types import SimpleNamespace

import numba
import numpy as np
import pandas as pd
import pytest

import dpwitness as dpw
from dpwitness.errors import CompiledDiffers, InvalidOutcome, InvalidParameter, MechanismRaised, SlowMechanism
from dpwitness.events.encoding import FALSE, NEGATIVE_ZERO, NONE, NOT_A_NUMBER, TRUE
from dpwitness.events.encoding import nested as length_of
from dpwitness.health import before_search
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.compiled.rows import place
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.python import PythonMechanism, VectorisedMechanism
from dpwitness.mechanisms.resolve import Requirements, as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair, as_finite_numbers
from dpwitness.noise import exponential, gaussian, geometric, laplace
from running import soon

DATA = as_finite_numbers([1.0, 2.0])


def rows_of(function, n=3, width=8, data=DATA, **settings):
    mechanism = as_mechanism(function, data, **settings)
    rows = np.empty((n, width))
    length = mechanism.fill(data, np.random.Generator(np.random.SFC64(0)), rows, 0)
    return mechanism, rows, length


def flag(rng, data):
    return data[0] < 5


def number(rng, data):
    return 3


def pair(rng, data):
    return (True, 2.5)


def nested(rng, data):
    return (1, data, [4.0, 5.0])


def listed(rng, data):
    out = []
    for x in data:
        out.append(x > 1)  # noqa: PERF401  # as users write it
    return out


def array(rng, data):
    return data * 2


def nothing(rng, data):
    return None


def perhaps(rng, data):
    if data[0] > 100:
        return 1.0
    return None


def lists_of_any_length(rng, data):
    return data[:1], data


def no_entries(rng, data):
    return data[:0]


def special(rng, data):
    zero = data[0] - 1.0
    return np.array([zero / (zero * 1.0 + 0.0) if zero > 0 else np.nan, -zero, np.inf, -np.inf, zero])


def large(rng, data):
    return 2**53 + 1, -(2**53) - 1


OUTPUTS = [
    (flag, [TRUE]),
    (number, [3]),
    (pair, [TRUE, 2.5]),
    (nested, [1, length_of(2), 1, 2, length_of(2), 4, 5]),
    (listed, [FALSE, TRUE]),
    (array, [2, 4]),
    (nothing, [NONE]),
    (no_entries, []),
    (perhaps, [NONE]),
    (lists_of_any_length, [length_of(1), 1, length_of(2), 1, 2]),
    (special, [NOT_A_NUMBER, NEGATIVE_ZERO, np.inf, -np.inf, 0]),
    (large, [2.0**53, 1, -(2.0**53) - 2**11, 2047]),
]
#: Each is a compilation: in the suite, alone, the one of most parts; below all of them in one.
THROUGHOUT = (nested,)


@pytest.mark.parametrize(
    ("function", "expected"),
    [pytest.param(*case, marks=() if case[0] in THROUGHOUT else pytest.mark.campaign) for case in OUTPUTS],
)
def test_outputs_become_rows_compiled_and_in_python_alike(function, expected):
    mechanism, rows, length = rows_of(function)
    assert isinstance(mechanism, CompiledMechanism)
    assert length == len(expected)
    expected = [*expected, *[np.nan] * (8 - len(expected))]
    assert np.array_equal(rows, [expected] * 3, equal_nan=True)
    plain = PythonMechanism(Signature.of(function, {}))
    plain.begin(None, by_position=True)
    plain.fill(DATA, np.random.Generator(np.random.SFC64(0)), rows, 0)
    assert np.array_equal(rows, [expected] * 3, equal_nan=True)


@pytest.mark.campaign
def test_all_outputs_are_placed_by_compiled_code_as_by_python():
    """All of them in one compilation."""
    functions = [numba.njit(function) for function, _ in OUTPUTS]
    calls = "".join(f"    lengths[{i}] = place(rows, {i}, 0, f{i}(None, data))\n" for i in range(len(functions)))
    scope = {"place": place, **{f"f{i}": function for i, function in enumerate(functions)}}
    exec(f"def placed(rows, lengths, data):\n{calls}", scope)
    rows, lengths = np.full((len(functions), 8), np.nan), np.zeros(len(functions), np.int64)
    numba.njit(scope["placed"])(rows, lengths, DATA)
    for (function, expected), row, length in zip(OUTPUTS, rows, lengths, strict=True):
        assert length == len(expected)
        assert np.array_equal(row[:length], expected, equal_nan=True)
        assert np.isnan(row[length:]).all()
        plain = np.empty((1, 8))
        mechanism = PythonMechanism(Signature.of(function, {}))
        mechanism.begin(None, by_position=True)  # as a compiled function's twin
        mechanism.fill(DATA, np.random.Generator(np.random.SFC64(0)), plain, 0)
        assert np.array_equal(plain[0], row, equal_nan=True)


def test_parameters_are_recognised_by_name():
    def statdp_style(prng, queries, epsilon, sensitivity=1):
        return epsilon * sensitivity

    def own_order(data, scale, rng):
        return scale

    assert rows_of(statdp_style, epsilon=0.7)[1][0, 0] == 0.7
    assert rows_of(statdp_style, epsilon=0.7, parameters={"sensitivity": 3})[1][0, 0] == pytest.approx(2.1)
    assert rows_of(own_order, parameters={"scale": 4.0})[1][0, 0] == 4
    with pytest.raises(InvalidParameter, match="no parameter 'cutof'; it takes: epsilon, sensitivity"):
        rows_of(statdp_style, epsilon=0.7, parameters={"cutof": 1})
    with pytest.raises(InvalidParameter, match="needs a value for 'scale'"):
        rows_of(own_order)
    with pytest.raises(InvalidParameter, match="takes no data"):
        rows_of(lambda rng: 1.0)


@pytest.mark.parametrize("interpreted", [True, False])
def test_the_input_may_come_behind_epsilon_and_delta(interpreted):
    def paper_order(eps, delta, data, prng):
        return data[0] * 100 + eps * 10 + delta

    given = {"epsilon": 0.5, "delta": 0.25, "requirements": Requirements(interpreted=interpreted)}
    assert rows_of(paper_order, **given)[1][0, 0] == DATA[0] * 100 + 5.25
    with pytest.raises(InvalidParameter, match="takes no data: its first parameter besides the generator, ε and δ is"):
        rows_of(lambda rng, epsilon: rng.laplace(0, 1 / epsilon), epsilon=1.0)


def test_what_is_taken_for_the_input_is_named_where_a_value_is_missing():
    class Counter:
        def release(self, rng, data):
            return data[0]

    with pytest.raises(InvalidParameter, match=r"'data'.*its input is 'self'.* as Counter\(…\)\.release$"):
        rows_of(Counter.release)
    with pytest.raises(
        InvalidParameter, match=r"'xs'.*its input is 'gen', and it takes no generator, which is called rng"
    ):
        rows_of(lambda gen, xs, eps: 1.0, epsilon=1.0)


class Held:
    """A dataset that releases something of itself."""

    count = 3

    def release(self, rng):
        return self.count


def test_an_input_may_be_what_has_the_method():
    assert rows_of(Held.release, data=Held())[1][0, 0] == 3


def test_vectorised_runs_that_no_seed_repeats_fill_wider_rows_as_they_were():
    drawn = np.random.default_rng(0).random((4, 20))
    mechanism = VectorisedMechanism(Signature.of(lambda data, size: drawn[:size], {}))
    rows = mechanism.outcomes(np.zeros(1), np.random.Generator(np.random.SFC64(0)), 4)
    assert np.array_equal(rows, drawn)


def test_vectorised_mechanisms_take_the_number_of_runs():
    def dp_sniper_style(a, n_samples):
        return np.arange(n_samples) + a[0]

    def wrong(a, n_samples):
        return np.arange(n_samples + 1)

    mechanism, rows, length = rows_of(dp_sniper_style)
    assert rows[:, 0].tolist() == [1, 2, 3]
    assert length == 1
    assert not mechanism.reproducible
    with pytest.raises(InvalidOutcome, match="return one row for each run"):
        rows_of(wrong)


def many(make):
    """The rows of a function that makes many runs a call."""
    return rows_of(lambda a, n_samples: make(np.arange(n_samples) + a[0], n_samples))[1]


def test_what_lies_under_a_mask_is_no_outcome_of_many_runs():
    rows = many(lambda x, n: np.ma.array(np.column_stack([x, x]), mask=np.tile([True, False], (n, 1))))
    assert np.array_equal(rows[:, :2], [[NONE, 1], [NONE, 2], [NONE, 3]])


def test_many_runs_of_pandas_are_read_by_their_places():
    assert many(lambda x, n: pd.Series(x, index=range(5, 5 + n)))[:, 0].tolist() == [1, 2, 3]
    frames = [many(lambda x, n, i=i: pd.DataFrame({"a": x}, index=range(i, i + n))) for i in (0, 5)]
    assert np.array_equal(*frames, equal_nan=True)


@pytest.mark.parametrize("outputs", [lambda x, n: dict(enumerate(x)), lambda x, n: set(x), lambda x, n: iter(x)])
def test_many_runs_come_in_an_order(outputs):
    with pytest.raises(InvalidOutcome, match="return an array or a list of one outcome for each"):
        many(outputs)


@pytest.mark.parametrize("errors", ["raise", "outcome"])
def test_an_array_without_an_axis_is_not_many_runs(errors):
    with pytest.raises(InvalidOutcome, match="return"):
        rows_of(lambda a, n_samples: np.array(1.0), errors=errors)


def test_an_outcome_that_cannot_be_read_is_an_error_of_one_line():
    @dataclass
    class Release:
        total: float
        mean: float = field(init=False)

    with pytest.raises(InvalidOutcome, match="a Release on run 0 that cannot be read: AttributeError: 'Release'"):
        rows_of(lambda rng, data: Release(1.0))


@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
def test_parameters_stay_what_the_caller_gave():
    weights, options = [3.0, 1.0], {"calls": [0]}

    def changing(rng, data, weights, options):
        weights.reverse()
        options["calls"].append(1)
        return data[0] + rng.random()

    given = {"parameters": {"weights": weights, "options": options}, "neighbours": dpw.pairs(([1.0], [2.0]))}
    verdict = dpw.check(changing, claim=1.0, runs=64, search_runs=64, seed=1, workers=1, **given)
    assert (weights, options) == ([3.0, 1.0], {"calls": [0]})
    assert verdict.witness.parameters == {"weights": weights, "options": options}


def test_a_jitted_function_stays_what_its_author_made_of_it():
    @numba.njit
    def jitted(rng, data, k=2):
        return data[0] + k

    mechanism, rows, _ = rows_of(jitted)
    assert isinstance(mechanism, CompiledMechanism)
    assert rows[0, 0] == 3


def test_numba_refusing_is_one_clear_warning():
    def dictionary(rng, data):
        return sorted({"a": 1, "b": data[0]}.items(), key=str)[0][1]

    with pytest.warns(SlowMechanism) as caught:
        mechanism, rows, _ = rows_of(dictionary)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "\n" not in message
    assert "dictionary runs as plain Python" in message
    assert "µs a run" in message
    assert isinstance(mechanism, PythonMechanism)
    assert rows[0, 0] == 1


def plain(function, n=40):
    mechanism = PythonMechanism(Signature.of(function, {}))
    rows = np.empty((n, 4))
    mechanism.fill(DATA, np.random.Generator(np.random.SFC64(0)), rows, 100)
    return mechanism, rows


def test_texts_are_outcomes_and_keep_their_label():
    mechanism, rows = plain(lambda rng, data: "yes" if rng.random() < 0.5 else "no")
    assert {mechanism.label(x) for x in rows[:, 0]} == {"yes", "no"}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda rng, data: {"a": object()}, r"returned \{'a': <object .* on run 100: return a number"),
        (lambda rng, data: iter([1]), r"return list\(…\) of it"),
    ],
)
def test_wrong_outputs_are_named_with_run_and_value(function, message):
    with pytest.raises(InvalidOutcome, match=message):
        plain(function)


def test_an_output_of_too_many_values_is_named_with_its_run():
    with pytest.raises(InvalidOutcome, match="20000 values on a run from 100 on"):
        plain(lambda rng, data: [0.0] * 20_000, n=2)


def test_an_exception_is_named_with_run_and_input():
    with pytest.raises(MechanismRaised, match=r"raised ZeroDivisionError .* on run 100, on the input \[1., 2.\]"):
        plain(lambda rng, data: 1 // 0)


@pytest.mark.parametrize("entries", [2, 20_000])  # small inputs are copied for each run, large ones when it must be
def test_what_a_mechanism_writes_to_its_input_is_gone_with_the_next_run(entries):
    def counts_up(rng, data):
        globals()  # no machine code does that
        data[0] += 1.0
        return data[0]

    data = as_finite_numbers(np.zeros(entries))
    with pytest.warns(SlowMechanism):
        _, rows, _ = rows_of(counts_up, data=data)
    assert rows[:, 0].tolist() == [1.0] * 3
    assert not data.any()


@pytest.mark.campaign
def test_the_cache_notices_a_changed_helper(tmp_path, monkeypatch):
    """numba's own cache would return the old answer."""
    monkeypatch.setenv("DPWITNESS_CACHE_DIR", str(tmp_path / "cache"))
    answers = []
    for constant in (1.0, 2.0):
        scope = {}
        exec(f"import numba\n@numba.njit\ndef helper(x):\n    return x + {constant}\n", scope)
        exec("def mechanism(rng, data):\n    return helper(data[0])\n", scope)
        answers.append(rows_of(scope["mechanism"])[1][0, 0])
    assert answers == [2.0, 3.0]


@pytest.mark.parametrize(
    ("sampler", "mean", "variance"),
    soon(
        [
            (laplace, 0.0, 2 * 4.0),
            (exponential, 2.0, 4.0),
            (gaussian, 0.0, 4.0),
            # Two-sided geometric with ratio a = e^(−1/2): variance 2a/(1−a)².
            (geometric, 0.0, 2 * np.exp(-0.5) / (1 - np.exp(-0.5)) ** 2),
        ],
        1,
    ),
)
def test_noise_has_its_mean_and_variance(sampler, mean, variance):
    rng = np.random.default_rng(3)
    n = 10_000
    draws = np.array([sampler(rng, 2.0) for _ in range(n)])
    assert abs(draws.mean() - mean) < 5 * np.sqrt(variance / n)
    fourth = np.mean((draws - mean) ** 4)
    assert abs(np.mean((draws - mean) ** 2) - variance) < 5 * np.sqrt(fourth / n)


def test_a_parameter_of_lists_of_different_lengths_runs_as_python():
    def longest(rng, data, weights):
        return data[0] + max(len(row) for row in weights)

    with pytest.warns(SlowMechanism, match="the parameter weights holds lists of different lengths"):
        mechanism = as_mechanism(longest, np.array([1.0]), parameters={"weights": [[1], [1, 2]]})
    rows = np.empty((1, 1))
    mechanism.fill(np.array([1.0]), np.random.Generator(np.random.SFC64(0)), rows, 0)
    assert rows[0, 0] == 3.0


def repeated(rng, data, size=20):
    """`size` noisy copies of one answer, in one outcome or in so many runs: only its author knows."""
    return data[0] + rng.laplace(0, 1, size)


def test_a_size_with_a_default_of_its_own_is_asked_for():
    with pytest.raises(InvalidParameter, match=r"repeated: size=20 may be the number of runs or a setting of its own"):
        Signature.of(repeated, {})
    signature = Signature.of(repeated, {"size": 3})
    assert signature.size is None
    assert np.shape(signature.call([0.0], np.random.default_rng(1))) == (3,)
    for default in (None, 1):

        def many(rng, data, size=default):
            return data[0] + rng.laplace(0, 1, size)

        assert Signature.of(many, {}).size == "size"


@pytest.mark.campaign
def test_what_only_arrays_raise_is_no_error_of_a_mechanism_of_lists():
    def total(rng, data):
        if data:
            return sum(data) + rng.laplace(0, 1)
        return rng.laplace(0, 1)

    with pytest.warns(CompiledDiffers, match="total runs as plain Python: on arrays, compiled, it raises"):
        mechanism = as_mechanism(total, [1, 1], neighbour=[2, 1])
    assert isinstance(mechanism, PythonMechanism)
    with pytest.raises(MechanismRaised, match="truth value"):
        as_mechanism(total, np.ones(2), neighbour=np.zeros(2))


@pytest.mark.parametrize("vectorised", [False, True])
def test_what_a_run_sets_for_numpy_ends_with_the_runs(vectorised):
    """A run that had overflows raise ended the check, in the search, as an unexpected error of this package."""

    def one(data, rng):
        np.seterr(all="raise")
        return rng.random()

    def many(data, rng, size):
        return np.full(size, one(data, rng))

    mechanism = (VectorisedMechanism if vectorised else PythonMechanism)(Signature.of(many if vectorised else one, {}))
    before = np.geterr()
    pair = Pair(data=np.array([0.0]), neighbour=np.array([1.0]))
    try:
        mechanism.outcomes(pair.data, np.random.default_rng(1), 2)
        mechanism.pair_outcomes(PairedRuns.d_first(pair, 2, coupled=False), np.random.default_rng(1))
        assert np.geterr() == before
    finally:
        np.seterr(**before)


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
def test_what_a_recorded_run_sets_for_numpy_ends_with_it():
    """An explanation is made before the lower bound, in which numbers underflow."""

    def strict(data, rng):
        np.seterr(all="raise")
        return data[0] + rng.laplace(0, 0.3)

    verdict = dpw.check(strict, claim=1.0, neighbours=dpw.pairs(([0.0], [1.0])), workers=1, seed=1)
    assert isinstance(verdict, dpw.Violation)


def test_a_recursion_limit_that_a_run_lowers_is_raised_again():
    def lowers(data, rng):
        sys.setrecursionlimit(len(inspect.stack(0)) + 60)
        return rng.random()

    before = sys.getrecursionlimit()
    try:
        as_mechanism(lowers, [1], errors="outcome")
        assert sys.getrecursionlimit() == before
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize("users", ["default", "ignore", "error"])
def test_our_warnings_go_by_the_filters_from_before_a_mechanism_ran(users):
    """A run that turned warnings into errors ended the check by one of ours; whom they are errors for gets an error."""

    def strict(data, rng):
        warnings.simplefilter("error")
        return data[0] + rng.laplace()

    few = {"neighbours": [([0.0], [1.0])], "runs": 3_000, "search_runs": 500, "seed": 1, "workers": 1}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(users)
        if users == "error":
            with pytest.raises(SlowMechanism):
                dpw.check(strict, claim=5.0, **few)
            return
        dpw.check(strict, claim=5.0, **few)
    assert [one.category for one in caught] == ([SlowMechanism] if users == "default" else [])


def test_an_exception_in_the_first_runs_says_what_counts_exceptions():
    def stops(data, rng):
        if rng.random() < 0.2:
            raise StopIteration(3)
        return rng.random()

    pair = Pair(data=np.array([0.0]), neighbour=np.array([1.0]))
    asked = SimpleNamespace(mechanism=PythonMechanism(Signature.of(stops, {})), max_time=60, seed=1)
    with pytest.raises(MechanismRaised, match=r"StopIteration \(3\) on run .*errors='outcome'"):
        before_search._draw_series(asked, pair, 1.0)


def silent(first=None, *more, **others):
    raise ValueError


@pytest.mark.parametrize(
    "given",
    [
        {"outcome": silent},
        {"make": silent, "mechanism": None},
        {"progress": silent},
        {"attack": silent},
        {"mechanism": lambda rng, data: silent()},
    ],
    ids=lambda given: next(iter(given)),
)
def test_an_exception_without_a_text_is_told_by_its_class_alone(given):
    checked = {"mechanism": lambda rng, data: data[0] + rng.normal(), "claim": 1.0} | given
    with pytest.raises(dpw.DPWitnessError, match=r"raised ValueError") as caught:
        dpw.check(neighbours=[([0.0], [1.0])], runs=100, search_runs=64, **checked)
    assert not re.search(r"\(\)|: *$|: :", str(caught.value)), caught.value
