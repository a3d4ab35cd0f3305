"""`fast_noise`: samplers of `dpwitness.noise` in place of NumPy's; the laws stay, and every result says so."""

import ast
import importlib.util
import inspect
import json
import linecache
import math
import pickle
import subprocess
import sys
import textwrap
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import dpwitness as dpw
from dpwitness.cli import main
from dpwitness.cli.commands import parse, repeating
from dpwitness.mechanisms.compiled.fast_noise import SAMPLERS, _is_given, with_fast_noise
from dpwitness.mechanisms.compiled.rewriting import text_of
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.resolve import Requirements, as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair
from dpwitness.results.witness import Witness
from dpwitness.runs import Role, generator

ONE = [([0.0], [1.0])]
FEW = {"neighbours": ONE, "runs": 20_000, "search_runs": 5_000, "seed": 1, "workers": 1}
NOTE = (
    "noise of rng.laplace was drawn by dpwitness.noise, not by NumPy: this does not speak of the bits of NumPy's "
    "samplers"
)
LEVEL = 1e-9
SCALE = 2.0


def noisy(rng, data, epsilon=1.0):
    return data[0] + rng.laplace(0, 1 / epsilon)


#: Every form of a call, and its law.
LAWS = {
    "laplace()": stats.laplace(),
    "laplace(0.3, 1.7)": stats.laplace(0.3, 1.7),
    "laplace(scale=1.7, loc=-2)": stats.laplace(-2, 1.7),
    "laplace(0.3, 1.7, None)": stats.laplace(0.3, 1.7),
    "laplace(0.3, 1.7, 3)": stats.laplace(0.3, 1.7),
    "laplace(0.3, size=(2, 2))": stats.laplace(0.3),
    "gumbel(0.3, 1.7)": stats.gumbel_r(0.3, 1.7),
    "gumbel(scale=1.7)": stats.gumbel_r(0, 1.7),
    "gumbel(0.3, 1.7, size=3)": stats.gumbel_r(0.3, 1.7),
    "exponential()": stats.expon(),
    "exponential(1.7)": stats.expon(0, 1.7),
    "exponential(scale=1.7, size=3)": stats.expon(0, 1.7),
    "standard_exponential()": stats.expon(),
    "standard_exponential(3)": stats.expon(),
}


def all_forms(rng, data):
    return (
        rng.laplace(),
        rng.laplace(0.3, 1.7),
        rng.laplace(scale=1.7, loc=-2),
        rng.laplace(0.3, 1.7, None),
        rng.laplace(0.3, 1.7, 3)[2],
        rng.laplace(0.3, size=(2, 2))[1, 0],
        rng.gumbel(0.3, 1.7),
        rng.gumbel(scale=1.7),
        rng.gumbel(0.3, 1.7, size=3)[0],
        rng.exponential(),
        rng.exponential(1.7),
        rng.exponential(scale=1.7, size=3)[1],
        rng.standard_exponential(),
        rng.standard_exponential(3)[2],
    )


def check_laws(drawn):
    """Kolmogorov–Smirnov; the limit is that of Dvoretzky, Kiefer & Wolfowitz with Massart's constant."""
    limit = math.sqrt(math.log(2 / LEVEL) / (2 * len(drawn)))
    for form, own in zip(LAWS, np.asarray(drawn).T, strict=True):
        assert stats.kstest(own, LAWS[form].cdf).statistic < limit, form


def test_every_form_of_a_call_has_the_law_that_it_has_with_numpy():
    fast, methods = with_fast_noise(all_forms, "rng")
    assert methods == tuple(SAMPLERS)
    for function in (all_forms, fast):
        rng = generator(1, Role.SEARCH)
        check_laws([function(rng, None) for _ in range(2_000)])
    assert fast(generator(1, Role.SEARCH), None) != all_forms(generator(1, Role.SEARCH), None)  # the bits are others


@pytest.mark.campaign
def test_machine_code_has_the_same_laws():
    mechanism = as_mechanism(all_forms, np.zeros(1), fast_noise=True)
    assert mechanism.compiled
    check_laws(mechanism.outcomes(np.zeros(1), generator(1, Role.SEARCH), 1_000_000)[:, : len(LAWS)])


def test_arrays_are_of_the_shape_that_was_asked_for_and_their_entries_differ():
    for single, several in SAMPLERS.values():
        assert isinstance(single(generator(1, Role.SEARCH)), float)
        for size in (0, 5, (2, 3)):
            drawn = several(generator(1, Role.SEARCH), size=size)
            assert drawn.shape == np.empty(size).shape
            assert len(set(drawn.flat)) == drawn.size


@pytest.mark.parametrize("scale", [-1.0, -0.0, 0.0, np.nan])
def test_a_scale_is_refused_where_numpy_refuses_it(scale):
    rng = np.random.default_rng(1)
    for name in ("laplace", "gumbel", "exponential"):
        for call in (getattr(rng, name), partial(SAMPLERS[name][0], rng), partial(SAMPLERS[name][1], rng, size=1)):
            if math.copysign(1.0, scale) < 0:
                with pytest.raises(ValueError, match="scale < 0"):
                    call(scale=scale)
            else:
                assert call(scale=scale) == pytest.approx(scale, nan_ok=True)


def test_the_noise_of_several_entries_is_never_one_number():
    for single, _ in list(SAMPLERS.values())[:3]:
        with pytest.raises((TypeError, ValueError)):
            single(generator(1, Role.SEARCH), scale=np.ones(3))


# What is replaced.


def helper(rng):
    return rng.laplace(0, 1)


def passed_on(rng, data):
    return data[0] + helper(rng)


def aliased(rng, data):
    other = rng
    return data[0] + other.laplace(0, 1)


def stored_method(rng, data):
    draw = rng.laplace
    return data[0] + draw(0, 1)


def reassigned(rng, data):
    noise = rng.laplace(0, 1)
    rng = data
    return rng[0] + noise


def loop_variable(rng, data):
    total = rng.laplace(0, 1)
    for rng in data:
        total += rng
    return total


def deleted(rng, data):
    noise = rng.laplace(0, 1)
    del rng
    return data[0] + noise


def shadowed(rng, data):
    def of(rng):
        return rng.laplace(0, 1)

    return data[0] + of(rng) + rng.laplace(0, 1)


def shadowed_in_a_comprehension(rng, data):
    return sum([rng.laplace(0, 1) for rng in [rng, rng]])


def starred(rng, data):
    scale = (0, 1)
    return data[0] + rng.laplace(*scale)


def by_mapping(rng, data):
    return data[0] + rng.laplace(**{"scale": 1})


def not_its_parameters(rng, data):
    return data[0] + rng.exponential(1, method="zig") + rng.standard_exponential(dtype=np.float64)


def another_law(rng, data):
    return data[0] + rng.geometric(0.5) + rng.normal(0, 1) + rng.integers(0, 2) + rng.random()


def of_another_generator(rng, data):
    return data.laplace(0, 1)


def made_closure():
    scale = 2.0

    def closure(rng, data):
        return data[0] + rng.laplace(0, scale)

    return closure


def made_by_exec():
    namespace = {}
    exec("def from_nowhere(rng, data):\n    return data[0] + rng.laplace(0, 1)", namespace)
    return namespace["from_nowhere"]


LEFT = (
    passed_on, aliased, stored_method, reassigned, loop_variable, deleted, shadowed, shadowed_in_a_comprehension,
    starred, by_mapping, not_its_parameters, another_law, of_another_generator, made_closure(),
    made_by_exec(), len,
)  # fmt: skip


@pytest.mark.parametrize("function", LEFT, ids=lambda function: function.__name__)
def test_what_cannot_be_read_is_left_alone(function):
    assert with_fast_noise(function, "rng") is None


#: Bodies of functions that give the generator's name to something else, and that do not.
GIVEN_AWAY = (
    "(rng := 1)",
    "with data as rng: pass",
    "try: pass\nexcept ValueError as rng: pass",
    "match data:\n case rng: pass",
    "match data:\n case [*rng]: pass",
    "match data:\n case {**rng}: pass",
    "import rng",
    "from x import y as rng",
    "def rng(): pass",
    "class rng: pass",
    "rng += 1",
    "[0 for rng in data]",
    "def f():\n nonlocal rng\n rng = 2",
    "lambda rng: 0",
    "for a, (rng, b) in data: pass",
    "del rng",
    "def f():\n global rng\n return rng",
    "def f(*rng): pass",
    "rng: int = 3",
    "[(rng := x) for x in data]",
)
KEPT = (
    "rng.laplace()",
    "[rng.laplace() for x in data]",
    "lambda y: rng.laplace()",
    "def f(): return rng",
    "f(rng=rng)",
    "x.rng = 3",
    "rng.bit_generator",
)


def test_a_name_is_the_generators_where_nothing_else_can_have_it():
    for bodies, kept in ((GIVEN_AWAY, False), (KEPT, True)):
        for body in bodies:
            text = textwrap.indent(f"{body}\nreturn rng.laplace()", "    ")
            (definition,) = ast.parse(f"def mechanism(rng, data):\n{text}").body
            assert _is_given(definition, "rng") == kept, body


def in_parts(rng, data, *, scale=[SCALE][0]):  # the default must not be evaluated again
    """A call in every place where one may stand."""
    drawn = [x + rng.laplace(scale=rng.exponential(scale)) for x in data]
    later = lambda x: x + rng.laplace(0, scale)  # noqa: E731
    return later(drawn[0]) + helper(rng) + rng.normal(rng.laplace(), 1)


def test_calls_are_replaced_wherever_they_stand_and_nothing_else():
    fast, methods = with_fast_noise(in_parts, "rng")
    assert methods == ("exponential", "laplace")
    text = ast.unparse(text_of(fast))
    assert text.count("_dpwitness_laplace(rng") == 3
    assert text.count("_dpwitness_exponential(rng") == 1
    assert "rng.laplace" not in text
    assert "helper(rng) + rng.normal(" in text
    assert fast.__kwdefaults__ == in_parts.__kwdefaults__
    assert fast.__code__.co_filename == in_parts.__code__.co_filename
    assert fast.__code__.co_firstlineno == in_parts.__code__.co_firstlineno


# Machine code, and what it is compared with.


def svt(rng, queries, epsilon, threshold=0.5):
    answers = np.empty(len(queries))
    noisy_threshold = threshold + rng.laplace(0, 2 / epsilon)
    for i in range(len(queries)):
        answers[i] = queries[i] + rng.laplace(0, 4 / epsilon) >= noisy_threshold
        if answers[i]:
            return answers[: i + 1]
    return answers


def rows_of(mechanism, data, seed=3):
    runs = PairedRuns.d_first(Pair(data, data + 1), 20, coupled=False)
    return mechanism.pair_outcomes(runs, generator(seed, Role.SEARCH))


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module that has `svt`, and its file."""
    file = tmp_path / "fast_mine.py"
    file.write_text(f"import numpy as np\n\n\n{inspect.getsource(svt)}")
    spec = importlib.util.spec_from_file_location("fast_mine", file)
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fast_mine", made)
    spec.loader.exec_module(made)
    return made


def removed(module):
    """As on another machine."""
    Path(module.__file__).unlink()
    linecache.clearcache()


QUERIES = np.array([0.0, 1.0, 2.0])


def test_the_text_goes_along_to_another_process(module):
    given = Signature.of(module.svt, {"epsilon": 1.0})
    fast = given.with_fast_noise()
    sent = pickle.dumps([fast, fast.interpreted(), given.interpreted()])
    expected = [one.call(QUERIES, generator(1, Role.SEARCH)).tolist() for one in (fast, fast, given)]
    removed(module)
    for copy, outcome, methods in zip(pickle.loads(sent), expected, [("laplace",), ("laplace",), ()], strict=True):
        assert copy.fast_noise == methods
        assert copy.given_function is module.svt
        assert copy.call(QUERIES, generator(1, Role.SEARCH)).tolist() == outcome
    assert Signature.of(module.svt, {"epsilon": 1.0}).as_given().given_function is module.svt


@pytest.mark.campaign
def test_machine_code_and_plain_python_draw_the_same_in_a_copy_too(module):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mechanism = as_mechanism(module.svt, QUERIES, epsilon=1.0, fast_noise=True)
    assert mechanism.compiled
    assert mechanism.signature.fast_noise == ("laplace",)
    assert mechanism._redirected  # into scratch memory, too
    expected = rows_of(mechanism, QUERIES)
    given = as_mechanism(module.svt, QUERIES, epsilon=1.0)
    assert not np.array_equal(rows_of(given, QUERIES), expected, equal_nan=True)  # NumPy's own draw something else
    sent = pickle.dumps([mechanism, mechanism.plain])
    removed(module)
    for copy in (mechanism.plain, *pickle.loads(sent)):
        assert copy.notes == (NOTE,)
        np.testing.assert_array_equal(rows_of(copy, QUERIES), expected)


def size_that_is_none(rng, data):
    none = None
    return data[0] + rng.laplace(0, 1, none)


@pytest.mark.campaign
def test_what_numba_refuses_with_fast_noise_is_compiled_as_it_was_given():
    mechanism = as_mechanism(size_that_is_none, np.zeros(1), fast_noise=True)
    assert mechanism.compiled
    assert not mechanism.signature.fast_noise


# What results say.


@pytest.fixture(scope="module")
def violation():
    return dpw.check(noisy, epsilon=1.0, claim=0.3, fast_noise=True, **FEW)


def test_the_report_says_it_in_one_line_and_speaks_of_no_bits(violation):
    assert violation.refuted
    assert violation.notes == (NOTE,)  # and nothing was left uncompared
    assert f"  note: {NOTE}\n" in violation.report()
    passed = dpw.check(noisy, epsilon=1.0, fast_noise=True, **FEW)
    assert NOTE in passed.notes
    assert passed.floating_point is None
    given = dpw.check(noisy, epsilon=1.0, **FEW)
    assert NOTE not in given.notes
    assert given.floating_point is not None  # of NumPy's sampler the bits are looked at
    assert passed.alpha == given.alpha


def test_strict_bits_of_other_bits_are_refused():
    with pytest.raises(dpw.InvalidParameter, match=r"fast_noise=True changes the last bits.*leave out one of the two"):
        dpw.check(noisy, epsilon=1.0, fast_noise=True, bits="strict", **FEW)
    with pytest.raises(dpw.InvalidParameter, match="fast_noise='yes' must be True or False"):
        dpw.check(noisy, epsilon=1.0, fast_noise="yes", **FEW)


@pytest.mark.campaign
def test_bounds_curves_and_profiles_say_it_too():
    assert NOTE in dpw.bound(noisy, epsilon=1.0, fast_noise=True, **FEW).notes
    assert NOTE in dpw.profile(noisy, epsilon=1.0, fast_noise=True, **FEW).notes
    curve = dpw.curve(noisy, epsilon=[0.5, 1.0], claims=[0.5], fast_noise=True, **FEW)
    assert curve.notes.count(NOTE) == 1


def test_a_witness_keeps_it_and_replay_needs_no_option(violation, tmp_path):
    place = tmp_path / "w.json"
    violation.witness.save(place)
    assert json.loads(place.read_text())["fast_noise"] is True
    assert Witness.load(place).to_json() == violation.witness.to_json()
    again = dpw.replay(place, noisy, runs=20_000, seed=2, workers=1)
    assert (again.refuted, again.witness.fast_noise, again.notes) == (True, True, (NOTE,))
    given = dpw.replay(place, noisy, fast_noise=False, runs=20_000, seed=2, workers=1)  # by NumPy's own samplers
    assert (given.refuted, given.witness.fast_noise, given.notes) == (True, False, ())
    assert "fast_noise" not in given.witness.to_json()
    small = dpw.shrink(violation, noisy, runs=20_000, workers=1, max_time="2s")
    assert small.witness.fast_noise


@pytest.mark.parametrize(
    ("function", "options", "why"),
    [
        (noisy, {"outcome": float}, "it does not run as machine code"),
        (noisy, {"errors": "outcome"}, "it does not run as machine code"),
        (aliased, {}, "no call of its generator's laplace, gumbel, exponential, standard_exponential in it can be "
         "replaced"),
        (made_closure(), {}, "it uses variables of the function that it is defined in"),
        (made_by_exec(), {}, "its source cannot be read"),
    ],
    ids=["outcome", "errors", "aliased", "closure", "exec"],
)  # fmt: skip
def test_an_option_without_effect_says_so_in_one_line(function, options, why):
    few = {**FEW, "runs": 2_000, "search_runs": 200}
    with pytest.warns(dpw.FastNoiseUnused) as caught:
        verdict = dpw.check(function, claim=1.0, fast_noise=True, **options, **few)
    assert [str(one.message) for one in caught] == [f"fast_noise has no effect on {function.__name__}: {why}"]
    assert caught[0].filename == __file__
    assert NOTE not in verdict.notes
    assert not verdict.witness.fast_noise


@pytest.mark.campaign
def test_another_interpreter_draws_as_it_was_given(folder):
    few = {**FEW, "runs": 2_000, "search_runs": 200}
    with pytest.warns(dpw.FastNoiseUnused, match="on noisy: it does not run as machine code"):
        verdict = dpw.check(dpw.remote(sys.executable, "mine.py:noisy"), epsilon=1.0, fast_noise=True, **few)
    assert not verdict.witness.fast_noise


def test_plain_python_runs_as_it_was_given():
    data = np.zeros(1)
    plain = as_mechanism(noisy, data, fast_noise=True, requirements=Requirements(interpreted=True))
    assert not plain.compiled
    assert not plain.signature.fast_noise
    np.testing.assert_array_equal(
        rows_of(plain, data), rows_of(as_mechanism(noisy, data, requirements=Requirements(interpreted=True)), data)
    )


# Doors.

LINE = ["check", "mine.py:noisy", "--epsilon", "1", "--pair", "[0]", "[1]"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def noisy(rng, data, epsilon):\n    return data[0] + rng.laplace(0, 1 / epsilon)\n")
    return tmp_path


def test_the_command_line_has_the_option_and_repeats_it():
    for given in (["--fast-noise"], ["--no-fast-noise"], []):
        assert repeating(parse([*LINE, *given]))[5:] == [*given, "--pair", "[0]", "[1]"]


@pytest.mark.campaign
def test_the_command_line_takes_it_from_the_project_or_from_the_option(folder, capsys):
    few = ["--runs", "2e4", "--workers", "1", "--claim", "0.3", "--json", "--save", "w.json"]

    def notes(*given):
        assert main([*LINE, *few, *given]) == 1
        return json.loads(capsys.readouterr().out)["notes"]

    assert NOTE in notes("--fast-noise")
    assert NOTE not in notes()
    Path("pyproject.toml").write_text("[tool.dpwitness]\nfast-noise = true\n")
    assert NOTE in notes()
    assert NOTE not in notes("--no-fast-noise")
    replayed = ["replay", "w.json", "--mechanism", "mine.py:noisy", "--json", "--workers", "1"]
    assert main(replayed) == 1  # the witness decides, not the project
    assert NOTE not in json.loads(capsys.readouterr().out)["notes"]


@pytest.mark.campaign
def test_a_new_process_replays_it(folder):
    command = [sys.executable, "-m", "dpwitness"]
    few = ["--runs", "2e4", "--workers", "1", "--claim", "0.3", "--fast-noise", "--save", "w.json"]
    assert subprocess.run([*command, *LINE, *few], capture_output=True, check=False).returncode == 1
    again = [*command, "replay", "w.json", "--mechanism", "mine.py:noisy", "--json"]
    done = subprocess.run(again, capture_output=True, check=False, text=True)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert (found["notes"], found["witness"]["fast_noise"]) == ([NOTE], True)


@pytest.mark.campaign
def test_other_processes_draw_the_same(folder):
    here = dpw.check(noisy, epsilon=1.0, claim=0.3, fast_noise=True, **FEW)
    few = {name: value for name, value in FEW.items() if name != "workers"} | {"max_time": 120}
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        there = dpw.check(noisy, epsilon=1.0, claim=0.3, fast_noise=True, executor=executor, **few)
    assert there.counts == here.counts
    assert NOTE in there.notes
