"""What is compiled is what was given, its runs are independent of each other, and nobody else's code is executed."""

import enum
import importlib
import math
import os
import re
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

from dpwitness import NotRefuted, Violation, Witness, bound, check, machine, noise, pairs, profile, replay
from dpwitness.api.loop import require_agreement, work_on
from dpwitness.errors import CompiledDiffers, CompiledDisagrees, MechanismRaised, SlowMechanism
from dpwitness.events import Interval
from dpwitness.events.encoding import FALSE, NEGATIVE_ZERO, NOT_A_NUMBER, TRUE
from dpwitness.evidence.counts import Counts
from dpwitness.health import refutation
from dpwitness.jit import kernel
from dpwitness.machine import cache_folder, is_user_owned, private_folder
from dpwitness.mechanisms.columns import OutputTraits
from dpwitness.mechanisms.compiled import driver
from dpwitness.mechanisms.compiled.compare import Agreement, difference_in_event, difference_in_many, differing
from dpwitness.mechanisms.compiled.driver import fingerprint
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.compiled.reach import constants, digest, names, rebuilt
from dpwitness.mechanisms.draws import sfc64_state
from dpwitness.mechanisms.mechanism import Mechanism, PairedRuns
from dpwitness.mechanisms.outcomes import FlatRow, FlatShape
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.resolve import Requirements, as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair
from dpwitness.noise import laplace
from dpwitness.problem import Effort, Statement
from dpwitness.runs import Role, Runner, generator, order
from running import confirm, sample, sampled
from samplers import SAMPLERS, coin_or_number, geometric_or_coins, thousands_on_one_input

PAIR = pairs(([0], [1])).given[0]


#: Each takes seconds to compile: in the suite two, of which one was wrong once: half words.
SOON = [geometric_or_coins, coin_or_number]
LATE = [sampler for sampler in SAMPLERS if sampler not in SOON]


@pytest.mark.parametrize("sampler", [*SOON, *(pytest.param(sampler, marks=pytest.mark.campaign) for sampler in LATE)])
def test_coupled_runs_do_not_depend_on_each_other(sampler):
    """Lag-1 correlation of X within 4 standard errors of 0, of a run's sides with the next run's too."""
    mechanism = as_mechanism(sampler, PAIR.data)
    assert isinstance(mechanism, CompiledMechanism)
    runs = 20_000 if sampler is thousands_on_one_input else 200_000
    least = 2 if sampler is geometric_or_coins else 1
    left, right = (rows[:, 0] >= least for rows in sample(mechanism, PAIR, runs, seed=3, key=(0,)))
    assert abs(left.mean() - 0.5) < 5 * 0.5 / math.sqrt(runs)
    assert abs(right.mean() - 0.5) < 5 * 0.5 / math.sqrt(runs)
    x = left.astype(float) - right
    for a, b in ((x, x), (left, left), (right, right), (left, right), (right, left)):
        a, b = (v - v.mean() for v in (a.astype(float), b.astype(float)))
        scale = math.sqrt(float((a**2).mean() * (b**2).mean()))
        if scale > 0:
            assert abs(float((a[:-1] * b[1:]).mean())) / scale < 4.5 / math.sqrt(runs)


@pytest.mark.parametrize("sampler", [geometric_or_coins, coin_or_number])
def test_an_exactly_private_sampler_is_not_accused(sampler):
    """These two were convicted for nearly every seed: the half of a word that one side had used came again."""
    for seed in range(2):
        settings = {"neighbours": pairs(([0], [1])), "seed": seed, "search_runs": 20_000}
        verdict = check(sampler, claim=0.5, runs=200_000, alpha=1e-6, **settings)
        assert isinstance(verdict, NotRefuted)


@pytest.mark.campaign
def test_a_sampler_without_privacy_loss_has_no_lower_bound():
    found = bound(geometric_or_coins, epsilon=0.5, neighbours=pairs(([0], [1])), runs=200_000, seed=1, alpha=1e-6)
    assert found.epsilon_lower_bound == 0


@pytest.mark.parametrize("draws", [(0, 3), (3, 0), (2, 2), (1, 4), (4, 1), (1, 3), (3, 1)])
def test_the_next_run_starts_behind_both_sides_with_no_half_word(draws):
    counts = np.array(draws)

    def drawing(rng, data):
        total = 0
        for _ in range(data[0]):
            total += rng.integers(0, 1 << 31)
        return total

    mechanism = as_mechanism(drawing, counts[:1])
    rng, state = generator(9, Role.SEARCH), None
    state = sfc64_state(rng)
    start = int(state[3])
    rows = np.empty((2, 1, 2))
    mechanism.fill_pair(PairedRuns.d_first(Pair(counts[:1], counts[1:]), rows.shape[1], coupled=True), rng, rows)
    # A word serves two draws of 31 bits.
    assert int(state[3]) == start + (max(draws) + 1) // 2
    assert int(state[4]) == 0
    # The words are those of the stream that this generator gives by itself: nothing is skipped, nothing comes twice.
    fresh = generator(9, Role.SEARCH)
    fresh.integers(0, 1 << 63, (max(draws) + 1) // 2)
    assert fresh.bit_generator.state["state"]["state"].tolist() == state[:4].tolist()


def odd_halves(rng, data):
    """Three draws of 31 bits: one and a half words, so that a half word is left behind each side."""
    return rng.integers(0, 1 << 31), rng.integers(0, 1 << 31), rng.integers(0, 1 << 31)


def test_both_sides_of_a_coupled_run_make_the_same_draws():
    """A mechanism that ignores its input returns the same on both sides, in every run; and never the same again."""
    mechanism = as_mechanism(odd_halves, PAIR.data)
    assert isinstance(mechanism, CompiledMechanism)
    left, right = sample(mechanism, PAIR, 2_000, seed=3, key=(0,))
    assert np.array_equal(left, right)
    assert len(np.unique(left[:, 0])) == 2_000  # 2,000 of 2^31 numbers: two are equal with probability 10⁻³, seed fixed
    apart = np.empty((2, 2_000, 3))
    mechanism.fill_pair(PairedRuns.d_first(PAIR, apart.shape[1], coupled=False), generator(3, Role.SEARCH), apart)
    assert len(np.unique(apart[:, :, 0])) == 4_000


# Helpers, and imports inside a function.


def twice(rng, scale):
    return 2 * laplace(rng, scale)


def with_helpers(rng, data):
    return data[0] + twice(rng, 0.5) + noise.exponential(rng, 2.0)


def test_plain_helpers_and_samplers_are_compiled_along():
    mechanism = as_mechanism(with_helpers, np.array([0.5]))  # compared with the function as it was given
    assert isinstance(mechanism, CompiledMechanism)
    assert isinstance(twice, types.FunctionType)
    assert digest(with_helpers)[1]


def import_inside(rng, data):
    import math

    return math.exp(data[0]) + rng.normal()


def test_a_function_that_imports_runs_as_python_and_says_why():
    with pytest.warns(SlowMechanism, match=r"IMPORT_NAME.* docs/refused\.md says what to do"):
        assert not as_mechanism(import_inside, np.array([0.5])).compiled


# The code tested is the code given.


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes modules of a package and imports them anew."""
    monkeypatch.setenv("DPWITNESS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "given_package"
    folder.mkdir()

    def write(**files):
        for name in [name for name in sys.modules if name.startswith("given_package")]:
            del sys.modules[name]
        for name, text in files.items():
            (folder / f"{name}.py").write_text(text)
        for cached in folder.glob("__pycache__/*"):
            cached.unlink()  # two edits within one second have one time stamp
        (folder / "__init__.py").touch()
        importlib.invalidate_caches()
        return importlib.import_module("given_package.mechanism").mechanism

    return write


HELPER = (
    "import numba\nfrom given_package import consts\n@numba.njit{cache}\ndef noise(x):\n    return x + consts.SCALE\n"
)
STALE = {
    "a constant of a module": {
        "consts": "SCALE = {scale}\n",
        "mechanism": "from given_package import consts\ndef mechanism(rng, data):\n    return data[0] + consts.SCALE\n",
    },
    "a constant of a helper's module": {
        "consts": "SCALE = {scale}\n",
        "helpers": HELPER.replace("{cache}", ""),
        "mechanism": "from given_package import helpers\n"
        "def mechanism(rng, data):\n    return helpers.noise(data[0] * 1.0)\n",
    },
    "a constant of a helper that numba keeps": {
        "consts": "SCALE = {scale}\n",
        "helpers": HELPER.replace("{cache}", "(cache=True)"),
        "mechanism": "from given_package.helpers import noise\n"
        "def mechanism(rng, data):\n    return noise(data[0] * 1.0)\n",
    },
    "a package with a version": {
        "__init__": "__version__ = '1.0'\nSCALE = {scale}\n",
        "mechanism": "import given_package\ndef mechanism(rng, data):\n    return data[0] + given_package.SCALE\n",
    },
    "a re-export": {
        "inner": "import numba\n@numba.njit\ndef noise(x):\n    return x + {scale}\n",
        "helpers": "from given_package.inner import noise\n",
        "mechanism": "from given_package import helpers\n"
        "def mechanism(rng, data):\n    return helpers.noise(data[0] * 1.0)\n",
    },
    "an enumeration": {
        "mechanism": "import enum\nclass Scale(enum.IntEnum):\n    NOISE = {scale}\n"
        "def mechanism(rng, data):\n    return data[0] + Scale.NOISE\n",
    },
    "the environment": {
        "consts": "import os\nSCALE = int(os.environ['GIVEN_SCALE'])\n",
        "mechanism": "from given_package import consts\ndef mechanism(rng, data):\n    return data[0] + consts.SCALE\n",
    },
}
READ = (
    "import numpy as np\nfrom dpwitness.mechanisms.resolve import as_mechanism\n"
    "from given_package.mechanism import mechanism\n"
    "data = np.array([1])\nrows = np.empty((1, 1))\nmade = as_mechanism(mechanism, data)\n"
    "made.fill(data, np.random.Generator(np.random.SFC64(0)), rows, 0)\nprint(type(made).__name__, rows[0, 0])\n"
)


HARDEST = "a constant of a helper that numba keeps"
#: An edit of the hardest case in the suite; every case, edited and edited back, with the campaigns.
EDITS = [(HARDEST, (1, 2)), *(pytest.param(case, (1, 2, 1), marks=pytest.mark.campaign) for case in STALE)]


@pytest.mark.parametrize("case", STALE)
def test_edited_code_has_a_name_of_its_own_in_the_cache(case, package, monkeypatch):
    """Machine code is used again under the same name only."""
    first, second, again = (
        fingerprint(edited(case, scale, package, monkeypatch), "rng, given")[0] for scale in (1, 2, 1)
    )
    assert first != second
    assert first == again


@pytest.mark.campaign
@pytest.mark.parametrize(("case", "scales"), EDITS)
def test_edited_code_is_compiled_anew_in_this_process(case, scales, package, monkeypatch):
    answers = []
    for scale in scales:
        function = edited(case, scale, package, monkeypatch)
        data, rows = np.array([1]), np.empty((1, 1))
        mechanism = as_mechanism(function, data)
        assert isinstance(mechanism, CompiledMechanism)
        mechanism.fill(data, np.random.Generator(np.random.SFC64(0)), rows, 0)
        answers.append(rows[0, 0])
    assert answers == [scale + 1 for scale in scales]


@pytest.mark.campaign
@pytest.mark.parametrize(("case", "scales"), sampled(EDITS, 4))
def test_edited_code_is_compiled_anew_in_the_next_process(case, scales, package, tmp_path, monkeypatch):
    answers = []
    for scale in scales:
        as_mechanism(edited(case, scale, package, monkeypatch), np.array([1]))  # kept on disk by this process
        run = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, cwd=tmp_path, check=True)
        answers.append(run.stdout.strip())
    assert answers == [f"CompiledMechanism {scale + 1}.0" for scale in scales]


def edited(case, scale, package, monkeypatch):
    """The mechanism of a case, written anew for a scale."""
    monkeypatch.setenv("GIVEN_SCALE", str(scale))
    return package(**{name: text.replace("{scale}", str(scale)) for name, text in STALE[case].items()})


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
        made = as_mechanism(mechanism, np.array([0.0]))
        assert isinstance(made, CompiledMechanism)
        rows = np.empty((1, 1))
        made.fill(np.array([0.0]), np.random.Generator(np.random.SFC64(0)), rows, 0)
        answers.append(rows[0, 0])
        assert helper(0.0) == 1.0  # it holds the first value ever since: neither it nor what was kept may be used
    assert answers == [2, 6]


def two_lists(rng, data):
    x = data[0] + rng.random()
    return [[1.0, 1.0], [x, x]]


def number_and_array(rng, data):
    return 1.0, np.full(2, data[0] + rng.random())


def at_times_longer(rng, data):
    x = data[0] + rng.random()
    return [np.ones(2), np.full(3 if x < 0.001 else 2, x)]


def always_other_lengths(rng, data):
    return [np.ones(2), np.full(2 + int(8 * rng.random()), data[0] + 0.5)]


PARTS = {0: "value 1", 1: "value 1, value 1", 2: "value 1, value 2", 3: "value 2", 4: "value 2, value 1"}


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (number_and_array, {0: "value 1", 1: "value 2", 2: "value 2, value 1", 3: "value 2, value 2"}),
        pytest.param(two_lists, {**PARTS, 5: "value 2, value 2"}, marks=pytest.mark.campaign),
    ],
)
def test_entries_of_compiled_outcomes_have_the_names_that_they_have_in_python(function, names):
    mechanism = as_mechanism(function, PAIR.data)
    assert isinstance(mechanism, CompiledMechanism)
    assert mechanism.places == names


def flat(*outcomes):
    """Outcomes as rows of both sides, the shape of the first."""
    written = [FlatRow(OutputTraits()).write(outcome) for outcome in outcomes]
    width = max(map(len, written))
    rows = np.array([row + [np.nan] * (width - len(row)) for row in written])
    return FlatShape.of(outcomes[0]), np.stack([rows, rows])


def test_a_shape_tells_outcomes_of_other_lengths():
    first = [[1.0, 1.0], [2.0, 2.0]]
    shape, rows = flat(first, [[3.0, 4.0], [5.0, 6.0]])
    assert dict(enumerate(shape.names)) == {**PARTS, 5: "value 2, value 2"}
    assert shape.fits(rows)
    assert shape.fits(rows[:, :, :4])
    for other in (
        [[1.0], [1.0, 2.0, 3.0]],
        [[1.0, 1.0], [2.0]],
        [[1.0, 1.0], [2.0] * 3],
        [[1.0, 1.0]],
        [*first, [1.0]],
    ):
        assert not flat(first, other)[0].fits(flat(first, other)[1])
    shape, rows = flat((1.0, [2**60, 5]), (1.0, [2**60, 6]))
    assert shape.names[2:] == ("value 2, value 1", "value 2, value 1 (part 2)", "value 2, value 2")
    assert shape.fits(rows)


@pytest.mark.campaign
def test_compiled_lists_of_other_lengths_run_as_python_by_their_places():
    with pytest.warns(CompiledDiffers, match="have different lengths"):
        mechanism = as_mechanism(always_other_lengths, PAIR.data)
    assert not mechanism.compiled
    kept = as_mechanism(always_other_lengths, PAIR.data, requirements=Requirements(by_position=True))
    assert kept.compiled
    assert kept.places[4] == "entry 5 of the flat outcome"


@pytest.mark.campaign
def test_a_rare_other_length_ends_the_compiled_runs():
    mechanism = as_mechanism(at_times_longer, PAIR.data)
    assert mechanism.compiled
    assert mechanism.places == {**PARTS, 5: "value 2, value 2"}
    rng = np.random.Generator(np.random.SFC64(1))
    runs = PairedRuns.d_first(PAIR, 16_384, coupled=False)
    with pytest.raises(CompiledDisagrees, match="have different lengths"):
        mechanism.pair_outcomes(runs, rng)
    # Counted alone, where rows are no wider than events ask.
    with pytest.raises(CompiledDisagrees, match="have different lengths"):
        mechanism.fill_pair(runs, rng, np.empty((2, len(runs), 6)))
    by_file = as_mechanism(at_times_longer, PAIR.data, requirements=Requirements(by_position=True))
    assert by_file.pair_outcomes(runs, rng).shape == (2, 16_384, 7)
    assert by_file.places[4] == "entry 5 of the flat outcome"


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore::dpwitness.errors.CompiledDiffers")
@pytest.mark.parametrize("function", [two_lists, always_other_lengths, at_times_longer])
def test_a_witness_of_lists_is_replayed_in_the_same_words(function, tmp_path):
    verdict = check(function, claim=0.5, neighbours=pairs(([0.0], [1.0])), seed=1, workers=1, runs=20_000)
    assert isinstance(verdict, Violation)
    said = verdict.witness.description
    assert "value 2, value" in said
    assert "flat" not in said
    verdict.witness.save(tmp_path / "w.json")
    again = replay(Witness.load(tmp_path / "w.json"), function, seed=2, workers=1, runs=2_000)
    assert isinstance(again, Violation)
    assert again.witness.description == said


def test_what_cannot_be_told_is_not_kept():
    class Settings:
        scale = 1.0

    settings = Settings()
    whole = types.ModuleType("whole")

    def unknown_object(rng, data):
        return settings.scale

    def module_as_a_whole(rng, data):
        return whole

    def known(rng, data):
        return math.exp(np.float64(data[0])) + len(data)

    class Refusal(ValueError):
        """Numba knows an exception by its name."""

    def raising(rng, data):
        if data[0] < 0:
            raise Refusal
        return data[0]

    def unknown_class(rng, data):
        return Settings

    assert digest(raising)[1]
    assert not digest(unknown_class)[1]
    assert not digest(unknown_object)[1]
    assert not digest(module_as_a_whole)[1]
    assert digest(known) == digest(known)
    assert digest(known)[1]


def test_names_are_read_with_their_attributes():
    config = types.SimpleNamespace(inner=types.SimpleNamespace(scale=1))

    def function(x):
        return config.inner.scale + np.exp(x) + sum(math.pi * y for y in range(3))

    found = set(names(function.__code__))
    assert {("config", "inner", "scale"), ("np", "exp"), ("math", "pi")} <= found


def test_local_variables_that_a_comprehension_reads_are_no_globals():
    """A script may have a generator of the same name, which cannot be told: nothing would be kept on disk."""
    space = {"rng": np.random.default_rng(1), "__name__": __name__, "scale": 2.0}
    exec("def noisy(rng, data): return [x + scale * rng.random() for x in data]", space)
    exec("def of_a_global(data): return [x + rng.random() for x in data]", space)
    assert ("rng",) not in {path[:1] for path in names(space["noisy"].__code__)}
    assert ("scale",) in set(names(space["noisy"].__code__))
    assert digest(space["noisy"])[1]
    assert not digest(space["of_a_global"])[1]

    def free(data):
        return [x + math.pi for x in data] + [y * inner for y in data]

    inner = 3.0
    assert {("inner",), ("math", "pi")} <= set(names(free.__code__))


def test_what_stands_in_try_and_in_its_else_are_told_apart():
    """From Python 3.11 on their instructions are the same."""
    texts = (
        "try:\n        a = 1 / data[0]\n        b = 1 / data[1]\n    except Exception:\n        return -1.0",
        "try:\n        a = 1 / data[0]\n    except Exception:\n        return -1.0\n    else:\n        b = 1 / data[1]",
    )
    made = []
    for text in texts:
        space = {"__name__": __name__}
        exec(f"def mechanism(rng, data):\n    {text}\n    return a + b", space)
        made.append(space["mechanism"])
    assert made[0].__code__.co_code == made[1].__code__.co_code
    assert digest(made[0])[0] != digest(made[1])[0]


def test_two_variables_of_one_name_are_not_told():
    """`x` is a variable of `make` and, for `inner`, a global one."""
    space = {"__name__": __name__, "x": 1.0}
    exec(
        "def make(x):\n"
        "    def both(data):\n"
        "        def inner():\n"
        "            global x\n"
        "            return x\n"
        "        return x + inner()\n"
        "    def one(data):\n"
        "        return x\n"
        "    return both, one\n",
        space,
    )
    both, one = space["make"](0.5)
    assert not digest(both)[1]
    assert digest(one)[1]


def through_objmode(rng, data):
    with numba.objmode(noise="f8"):
        noise = rng.random()
    return data[0] + noise


@numba.njit
def helper_through_objmode(rng):
    with objmode(noise="f8"):
        noise = rng.random()
    return 2 * noise


def calling_through_objmode(rng, data):
    return data[0] + helper_through_objmode(rng)


@numba.njit(numba.float64(numba.types.npy_rng))
def compiled_through_objmode(rng):
    with objmode(noise="f8"):
        noise = rng.random()
    return 2 * noise


def calling_compiled(rng, data):
    return data[0] + compiled_through_objmode(rng)


@pytest.mark.parametrize("function", [through_objmode, calling_through_objmode, calling_compiled])
def test_what_python_would_draw_in_objmode_is_left_to_python(function):
    with pytest.warns(SlowMechanism, match="it enters objmode"):
        mechanism = as_mechanism(function, np.array([0.0]))
    assert not mechanism.compiled
    rng, first = generator(3, Role.SEARCH), set()
    for _ in range(4):
        rows = np.empty((2, 3, 1))
        mechanism.fill_pair(PairedRuns.d_first(Pair(np.array([0.0]), np.array([1.0])), 3, coupled=False), rng, rows)
        first |= set(rows[0, :, 0])
    assert len(first) == 12


def test_enumerations_are_hashed_by_their_members():
    def of(value):
        class Scale(enum.IntEnum):
            NOISE = value

        def mechanism(rng, data):
            return Scale.NOISE

        return mechanism

    assert digest(of(1))[0] != digest(of(2))[0]


def test_named_tuples_are_hashed_by_the_names_of_their_fields():
    def of(noise):
        return lambda rng, data: data[0] + noise.scale * rng.random()

    one, other = (namedtuple("Noise", fields)(1.0, 3.0) for fields in ("scale shift", "shift scale"))
    assert digest(of(one))[0] != digest(of(other))[0]


def test_a_name_that_the_locale_cannot_read_has_a_hash(monkeypatch):
    """As of a module whose file has an ä in its name, where the locale is ASCII."""
    found = set()
    for name in ("\udcc3\udca4", "\udcc3\udca5"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        found.add(digest(types.FunctionType((lambda rng, data: data).__code__, {"__name__": name})))
    assert len(found) == 2
    assert all(complete for _, complete in found)


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


# Compiled code is compared with Python.


def wraps(rng, data):
    x = int(data[0]) << 62
    return x + x + x + x + int(rng.integers(0, 2))


def true_or_one(rng, data):
    return True if data[0] > 0 else 1


def off_by_one(rng, data):
    total = 0.0
    for i in range(len(data)):
        total += data[i + 1]
    return total + rng.laplace()


def rarely_wrong(rng, data):
    """Numba's whole numbers wrap; Python's do not."""
    u = rng.random()
    if u < 0.002:
        x = int(data[0]) << 62
        return x + x + x + x + 0.0
    return u


def last_seen(rng, times, epsilon, latest=2e18):
    """In milliseconds, with whole noise of nanoseconds: 1764·10¹⁵ and a few more of them are one number to numba."""
    return (min(max(times), latest) + int(rng.integers(-100, 101))) / 1e6


def clipped(rng, values):
    """1 / 0 is infinite for a number of NumPy's, and an error for numba."""
    return float(np.sum(values)) * min(1.0, 1.0 / np.sqrt(np.sum(values**2))) + rng.laplace(0, 1)


def ratio(rng, values):
    """The same in one run of a thousand."""
    share = np.sum(values) / np.float64(rng.integers(0, 1000))
    return float(share) if share < 8.0 else 0.0


def log_of_length(rng, data):
    """−∞ for numba where there is no record, an error in Python."""
    return max(math.log(len(data)), 0.0) + rng.laplace(0, 1)


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
    rng = np.random.Generator(np.random.SFC64(1))
    large = 1e9 + rng.normal(0, 10, (100, 1))
    assert not differing(large, np.nextafter(large, np.inf), large).any()
    assert differing(large, large + 1e-3, large).all()  # 10⁻¹² of the number, and 10⁻⁴ of the noise
    wide = np.where(rng.random((100, 1)) < 0.5, large, rng.normal(0, 1e9, (100, 1)))
    near = np.abs(wide[:, 0] - 1e9) < 100
    assert near.any()
    assert differing(wide, wide + 1e-3, wide)[near].all()
    constant = np.full((100, 1), 0.1)
    assert differing(constant, constant * (1 + 1e-15), constant).all()


def test_last_digits_that_differ_by_more_than_the_noise_are_another_outcome():
    times = 1_764_000_000_000_000_000 // 256 * 256
    with pytest.warns(CompiledDiffers, match=r"gave \(1764\d+\), in Python: \(1764\d+\.\d+\)"):
        assert isinstance(as_mechanism(last_seen, [times + 127, 5], epsilon=1.0), PythonMechanism)


@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value) encountered")
def test_what_machine_code_alone_raises_is_no_error_of_the_mechanism():
    inputs = Pair(np.array([1.0, 0.0]), np.zeros(2))
    with pytest.warns(CompiledDiffers, match="clipped runs as plain Python: on arrays, compiled, it raises"):
        assert isinstance(as_mechanism(clipped, inputs.data, neighbour=inputs.neighbour), PythonMechanism)
    mechanism = as_mechanism(ratio, np.ones(2))
    assert isinstance(mechanism, CompiledMechanism)
    runs = PairedRuns.d_first(Pair(np.ones(2), np.zeros(2)), 10_000, coupled=True)
    with pytest.raises(CompiledDisagrees, match="ratio runs as plain Python, which does not raise: compiled, ratio"):
        mechanism.pair_outcomes(runs, np.random.Generator(np.random.SFC64(0)))


def test_what_python_raises_on_some_pair_is_not_hidden_by_machine_code():
    inputs = pairs(([1.0, 2.0], [1.0]), ([1.0], []))
    with (
        pytest.warns(CompiledDiffers, match=r"log_of_length runs as plain Python: .* on the input \[\] gave"),
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


@pytest.mark.parametrize(("counts", "compared"), [((1, 0), True), ((0, 1), True), ((0, 0), False)])
def test_an_event_is_compared_with_python_where_it_happened_on_either_input(counts, compared):
    mechanism = CompiledMechanism(Signature.of(rarely_wrong, {}))
    mechanism.fill(PAIR.data, np.random.Generator(np.random.SFC64(0)), np.empty((1, 1)), 0)
    mechanism.plain, mechanism.shard = PythonMechanism(mechanism.signature), 16
    seen = Counts(n10=counts[0], n01=counts[1], n00=15)
    never, runner = Interval(coordinate=0, low=5.0, high=6.0), Runner(mechanism=mechanism, seed=1)
    with pytest.raises(CompiledDisagrees, match="no run with the event was found") if compared else nullcontext():
        require_agreement(runner, PAIR, never, seen)


@pytest.mark.campaign
def test_a_rare_event_is_looked_for_until_a_run_with_it_is_compared(monkeypatch):
    """One in 500: mostly not in the first 64 runs."""
    mechanism = CompiledMechanism(Signature.of(rarely_wrong, {}))
    mechanism.fill(PAIR.data, np.random.Generator(np.random.SFC64(0)), np.empty((1, 1)), 0)
    mechanism.plain, mechanism.shard = PythonMechanism(mechanism.signature), 16
    runner, event = Runner(mechanism=mechanism, seed=1), Interval(coordinate=0, low=-1e30, high=0.002)
    *_, (counts,) = runner.confirm(PAIR, [event], 16_384)
    with pytest.raises(CompiledDisagrees, match="rarely_wrong runs as plain Python: compiled by numba"):
        require_agreement(runner, PAIR, event, counts)
    never = Interval(coordinate=0, low=5.0, high=6.0)
    require_agreement(runner, PAIR, never, Counts(n00=16_384))
    with pytest.raises(CompiledDisagrees, match="no run with the event was found again"):
        require_agreement(runner, PAIR, never, Counts(n10=1, n00=16_383))


def higher(rng, data):
    return 1 + rng.random()


@pytest.mark.parametrize("same", [True, False])
def test_a_pass_of_compiled_code_is_compared_with_python(same):
    mechanism = CompiledMechanism(Signature.of(rarely_wrong, {}))
    mechanism.fill(PAIR.data, np.random.Generator(np.random.SFC64(0)), np.empty((1, 1)), 0)
    mechanism.plain = mechanism if same else PythonMechanism(Signature.of(higher, {}))
    with nullcontext() if same else pytest.raises(CompiledDisagrees, match=r"run 0 on the input \[.\] gave"):
        refutation.require_same_in_python(Runner(mechanism=mechanism, seed=1), PAIR)


def leaks_in_python_alone(rng, data, epsilon):
    """In one run of 2,000 the data itself: where a product is larger than numba's whole numbers, which wrap."""
    if int(rng.integers(0, 2_000)) * (1 << 53) > 1.8e19:
        return data[0]
    return data[0] + rng.laplace(0, 1 / epsilon)


def raises_in_python_alone(rng, data):
    """In one run of 2,000 log 0, −∞ for numba."""
    return max(math.log(rng.integers(0, 2_000)), 0.0) + data[0]


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore:divide by zero encountered")
def test_many_runs_are_compared_for_what_python_alone_does_in_few_of_them():
    def difference(function, **parameters):
        made = as_mechanism(function, PAIR.data, neighbour=PAIR.neighbour, **parameters)
        assert isinstance(made, CompiledMechanism)
        return difference_in_many(made, made.plain, PAIR, np.random.Generator(np.random.SFC64(1)), seconds=30.0)

    where = r"run \d{2,} on the input \[.*\] gave .*, in Python: "
    assert re.search(where + r"\(0\)", difference(leaks_in_python_alone, epsilon=1.0))
    assert re.search(where + ".*domain error", difference(raises_in_python_alone))


@pytest.mark.campaign
@pytest.mark.parametrize("work", [check, bound, profile])
def test_a_leak_of_python_alone_is_not_passed_by_machine_code(work, monkeypatch):
    def in_half_a_minute(*compared):  # it ends at the first difference
        return difference_in_many(*compared[:-1], 30.0)

    monkeypatch.setattr(refutation, "difference_in_many", in_half_a_minute)
    few = {"runs": 2_000, "search_runs": 2_000, "seed": 1, "neighbours": pairs(([1.0, 0.0], [0.0, 0.0]))}
    with pytest.warns(CompiledDiffers, match="leaks_in_python_alone runs as plain Python: compiled by numba, run"):
        work(leaks_in_python_alone, epsilon=1.0, **few)


def test_what_numba_changes_runs_as_python_with_one_warning():
    with pytest.warns(
        CompiledDiffers, match=r"wraps runs as plain Python: compiled by numba, run 0 on the input \[1\]"
    ):
        mechanism = as_mechanism(wraps, np.array([1]))
    assert isinstance(mechanism, PythonMechanism)
    with pytest.warns(CompiledDiffers, match="true_or_one"):
        as_mechanism(true_or_one, np.array([0]), neighbour=np.array([1]))


@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
@pytest.mark.parametrize("missing", [[0.0, None], ["a", "b"], [{"a": 1.0}]])
def test_an_input_that_machine_code_does_not_take_has_the_check_run_as_python(missing):
    def count(rng, data):
        return len(data) + rng.laplace(0, 0.2)

    inputs = pairs(([0.0], [1.0]), (missing, [1.0, 2.0]))
    with pytest.warns(CompiledDiffers, match="count runs as plain Python: machine code does not take all inputs"):
        verdict = check(count, claim=6.0, neighbours=inputs, runs=6_000, seed=1, bits=False)
    assert not verdict.refuted


def test_an_index_out_of_bounds_is_an_error_not_the_neighbours_data():
    with pytest.raises(MechanismRaised, match="off_by_one raised IndexError"):
        as_mechanism(off_by_one, np.array([1.0, 2.0]))


@pytest.mark.parametrize("coupled", [True, False])
def test_a_difference_in_the_runs_that_are_evidence_is_found(coupled):
    mechanism = CompiledMechanism(Signature.of(rarely_wrong, {}))
    mechanism.fill(PAIR.data, np.random.Generator(np.random.SFC64(0)), np.empty((1, 1)), 0)
    plain = PythonMechanism(mechanism.signature)
    streams = ((generator(1, Role.CONFIRM, k), order(1, Role.CONFIRM, k, runs=16_384)) for k in range(4))
    event = Interval(coordinate=0, low=-1e30, high=0.002)
    difference = difference_in_event(mechanism, plain, PAIR, event.contains, streams, coupled=coupled)
    assert "rarely_wrong runs as plain Python" in difference
    agreed = Interval(coordinate=0, low=0.5, high=0.502)
    streams = ((generator(1, Role.CONFIRM, k), order(1, Role.CONFIRM, k, runs=16_384)) for k in range(4))
    assert difference_in_event(mechanism, plain, PAIR, agreed.contains, streams, coupled=coupled) is None


class Recorded(Mechanism):
    """Returns the number of the run, and one more on the second input; wrong in some runs of one of them."""

    threads = True

    def __init__(self, wrong=()):
        super().__init__(Signature.of(lambda data: 0, {}))
        self.shard, self.wrong, self.made = 64, set(wrong), 0

    def fill(self, data, rng, rows, start):
        rows[:, 0] = [self._value(data, int(rng.integers(1 << 62))) for _ in rows]
        return 1

    def fill_pair(self, runs, rng, rows):
        for i in range(rows.shape[1]):
            state = rng.bit_generator.state
            for side in (1, 0) if runs.order[i] else (0, 1):
                if runs.coupled:
                    rng.bit_generator.state = state
                self.fill(runs.pair.sides[side], rng, rows[side, i : i + 1], runs.start)
        return 1

    def _value(self, data, draw):
        value = float(draw % 4) + 10 * float(data[0])
        return value + (0.25 if (value in self.wrong) else 0.0)


@pytest.mark.parametrize(("wrong", "low"), [(3.0, 2.5), (12.0, 11.5)])
def test_each_kind_of_run_in_the_event_is_compared(wrong, low):
    """With D in it and D′ not, and the other way round: half of them would hide the runs that are evidence."""
    shifted, event = Pair(np.array([0]), np.array([1])), Interval(coordinate=0, low=low, high=low + 1)
    streams = [(generator(1, Role.CONFIRM, k), order(1, Role.CONFIRM, k, runs=16_384)) for k in range(2)]
    for coupled in (True, False):
        found = difference_in_event(Recorded([wrong]), Recorded(), shifted, event.contains, streams, coupled=coupled)
        assert f"gave ({wrong + 0.25:g})" in found


@pytest.mark.parametrize("samplers", [SOON, pytest.param(LATE, marks=pytest.mark.campaign)])
def test_numpys_generator_and_numbas_agree_so_compiled_code_is_used(samplers):
    for sampler in samplers:
        assert isinstance(as_mechanism(sampler, PAIR.data, neighbour=PAIR.neighbour), CompiledMechanism)


# Nobody else's code is executed.


def test_a_cache_folder_that_others_can_write_to_is_not_used(tmp_path, monkeypatch):
    good = tmp_path / "good"
    monkeypatch.setenv("DPWITNESS_CACHE_DIR", str(good))
    if is_user_owned(tmp_path):
        assert cache_folder() == good
        assert good.stat().st_mode & 0o077 == 0
    bad = tmp_path / "bad"
    bad.mkdir()
    bad.chmod(0o777)
    link = tmp_path / "link"
    link.symlink_to(bad)
    usual = tmp_path / "home"
    monkeypatch.setattr(machine, "user_cache_path", lambda *_, **__: usual)
    for given in (bad, bad / "inner", link):
        monkeypatch.setenv("DPWITNESS_CACHE_DIR", str(given))
        with pytest.warns(
            UserWarning, match=r"^DPWITNESS_CACHE_DIR=.* is not used: others can write to it.*chmod go-w"
        ):
            assert cache_folder() == usual
        assert cache_folder() == usual  # said once
    assert private_folder().stat().st_mode & 0o077 == 0


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a folder away")
def test_a_cache_folder_of_another_user_is_not_used(tmp_path, monkeypatch):
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 12345, 12345)
    monkeypatch.setenv("DPWITNESS_CACHE_DIR", str(theirs))
    with pytest.warns(UserWarning, match="is not used"):
        assert cache_folder() != theirs


def test_without_a_home_there_is_a_folder_among_the_temporary_files_and_else_it_is_said(tmp_path, monkeypatch):
    closed = tmp_path / "closed"
    closed.write_text("a file: no folder can be made below it")
    monkeypatch.delenv("DPWITNESS_CACHE_DIR", raising=False)
    monkeypatch.setattr(machine, "user_cache_path", lambda *_, **__: closed / "dpwitness")
    monkeypatch.setattr(machine.tempfile, "gettempdir", lambda: str(tmp_path))
    kept = cache_folder()
    assert kept.parent == tmp_path
    assert kept == cache_folder()
    assert kept.stat().st_mode & 0o077 == 0
    kept.rmdir()
    (tmp_path / "elsewhere").mkdir()
    kept.symlink_to(tmp_path / "elsewhere")  # as anybody may who can write to the folder of temporary files
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

    def mechanism(rng, data):
        return data[0] + 17.0

    def half_more(x):
        return x + 0.5

    as_mechanism(mechanism, np.array([1.0]))
    assert [*own_cache.rglob("*.nbc")]
    assert kernel(half_more)(1) == 1.5
    assert [*own_cache.rglob("test_compiled*half_more*.nbc")]
    assert not [*(tmp_path / "shared").iterdir()]


@pytest.mark.parametrize("damage", [b"", b"\377", b"\x80\x04N.\x80\x04N."])
def test_a_damaged_file_of_the_cache_is_written_anew(own_cache, monkeypatch, damage):
    def mechanism(rng, data):
        return data[0] + 18.0

    def kept():
        return [file for file in own_cache.rglob("*") if file.suffix in (".py", ".nbi", ".nbc")]

    as_mechanism(mechanism, np.array([1.0]))
    for file in kept():
        file.write_bytes(damage)
    for loads in (0, 1):
        monkeypatch.setattr(driver, "DRIVERS", {})
        again = as_mechanism(mechanism, np.array([1.0]))
        assert isinstance(again, CompiledMechanism)
        assert again._fill.stats.cache_hits.total() == loads
    assert damage not in [file.read_bytes() for file in kept()]


def recursive(rng, n):
    return 0.0 if n <= 0 else rng.laplace(0.0, 1.0) + walks(rng, n - 1)


walks = numba.njit(recursive)


def calls_a_recursive_function(rng, data):
    return data[0] + walks(rng, 3)


def test_machine_code_of_recursive_functions_is_not_kept(own_cache):
    """Numba's cache crashes a second process that loads it (numba 0.68)."""
    assert not digest(calls_a_recursive_function)[1]
    assert isinstance(as_mechanism(calls_a_recursive_function, np.array([1.0])), CompiledMechanism)
    assert not [*own_cache.rglob("*.nbc")]


def test_the_private_folder_is_removed_at_the_end(tmp_path):
    code = "from dpwitness.machine import private_folder; print(private_folder())"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert run.stdout.startswith(str(tmp_path))
    assert not list(tmp_path.glob("dpwitness-*"))


@pytest.mark.campaign
def test_a_planted_module_is_not_executed(tmp_path, monkeypatch):
    """A driver module that says something else than ours is written anew, whoever wrote it."""
    monkeypatch.setenv("DPWITNESS_CACHE_DIR", str(tmp_path / "cache"))

    def mechanism(rng, data):
        return data[0] + 18.0

    as_mechanism(mechanism, np.array([1.0]))
    for file in cache_folder().glob("_dpwitness_driver_*.py"):
        file.write_text("raise SystemExit('planted')\n")
    monkeypatch.setattr(driver, "DRIVERS", {})
    assert isinstance(as_mechanism(mechanism, np.array([1.0])), CompiledMechanism)


@pytest.mark.campaign
def test_a_violation_is_still_found_with_all_of_these_guards():
    def leaks(rng, data):
        return data[0] + rng.laplace(0, 0.5)

    verdict = check(leaks, claim=1.0, neighbours=pairs(([0.0], [1.0])), seed=1, search_runs=20_000, runs=100_000)
    assert isinstance(verdict, Violation)
    *_, (counts,) = confirm(
        as_mechanism(leaks, np.array([0.0])), verdict.witness.pair, [verdict.witness.event], seed=2, runs=50_000
    )
    assert counts.n10 > counts.n01


@pytest.mark.campaign
def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    """A folder that vanishes behind our back, as one that is cleaned while a check runs."""
    monkeypatch.setenv("DPWITNESS_CACHE_DIR", str(tmp_path / "cache"))

    def mechanism(rng, data):
        return data[0] + 19.0

    made = CompiledMechanism(Signature.of(mechanism, {}))
    for file in sorted((tmp_path / "cache").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    (tmp_path / "cache").rmdir()
    (tmp_path / "cache").touch()  # a file: no folder can be made here, not even by root
    rows = np.empty((1, 1))
    made.fill(np.array([1.0]), np.random.Generator(np.random.SFC64(0)), rows, 0)
    assert rows[0, 0] == 20


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
    settings = {"neighbours": pairs(([0], [1])), "seed": 3, "search_runs": 20_000, "runs": 20_000}
    mechanism = as_mechanism(wrong_where_it_matters, PAIR.data, neighbour=PAIR.neighbour)
    assert isinstance(mechanism, CompiledMechanism)  # the first runs do not show it
    with pytest.warns(CompiledDiffers, match="wrong_where_it_matters runs as plain Python"):
        verdict = check(wrong_where_it_matters, claim=0.5, alpha=1e-3, **settings)
    assert isinstance(verdict, NotRefuted)


def test_a_given_mechanism_runs_as_python_where_its_code_disagrees():
    def noisy(rng, data):
        return data[0] + rng.laplace(0.0, 1.0)

    tried = []

    def work(problem, runner):
        tried.append(problem.mechanism)
        if problem.mechanism.compiled and len(tried) < 3:
            raise CompiledDisagrees("noisy runs as plain Python")
        return problem.mechanism.cost

    given = as_mechanism(noisy, PAIR.data)
    statement = Statement(mechanism=given, claim=1.0, neighbours=pairs(([0.0], [1.0])))
    with pytest.warns(CompiledDiffers):
        cost = work_on(statement, Effort(workers=1), work)
    assert tried == [given, given.plain]
    assert cost.seconds_per_run > 0


def test_own_randomness_is_not_what_numba_draws():
    def draws(data):
        return data[0] + np.random.standard_normal()  # noqa: NPY002  # as users write it

    with pytest.warns(CompiledDiffers, match="it draws its own randomness"):
        mechanism = as_mechanism(draws, np.array([1.0]))
    assert isinstance(mechanism, PythonMechanism)
    assert not mechanism.reproducible


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
    mechanism = as_mechanism(function, PAIR.data)
    assert isinstance(mechanism, CompiledMechanism)
    rows = np.empty((2, 1))
    numba.core.runtime.rtsys.initialize(numba.core.registry.cpu_target.target_context)
    numba.core.runtime.nrt._nrt.memsys_enable_stats()
    for seed in range(50):
        before = numba.core.runtime.rtsys.get_allocation_stats()
        mechanism.fill(PAIR.data, generator(seed, Role.SEARCH), rows, 0)
        after = numba.core.runtime.rtsys.get_allocation_stats()
        assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free


def remembers_in_a_parameter(rng, data, kept=np.zeros(2)):  # noqa: B008  # the default is what is tested
    if kept[0] == 0.0:
        kept[0], kept[1] = 1.0, rng.laplace(0.0, 1.0)
    return data[0] + kept[1]


@pytest.mark.parametrize("parameters", [{}, {"kept": np.zeros(2)}])
def test_no_run_of_compiled_code_can_leave_anything_in_a_parameter(parameters):
    with pytest.raises(MechanismRaised, match="assignment destination is read-only"):
        check(remembers_in_a_parameter, claim=1.0, neighbours=pairs(([0], [1])), parameters=parameters, seed=1)


SCALE = 1.0


def test_a_function_compiled_for_earlier_globals_is_not_kept():
    """With signatures given it is compiled at once, and does not see that SCALE changes."""
    scaled = numba.njit("float64(float64)")(lambda value: value * SCALE)

    def released(rng, data):
        return scaled(data[0])

    lazy = numba.njit(scaled.py_func)

    def compiled_later(rng, data):
        return lazy(data[0])

    assert not digest(released)[1]
    assert digest(compiled_later)[1]


NOISE = np.array([0.5, 1.5])


def adds_from_an_array(rng, data):
    return data[0] + NOISE[int(rng.random() < 0.5)]


def test_an_array_that_is_changed_in_place_is_another_function(monkeypatch):
    first, complete = digest(adds_from_an_array)
    assert complete
    before = constants(adds_from_an_array)
    monkeypatch.setattr(f"{__name__}.NOISE", NOISE.copy())
    assert digest(adds_from_an_array)[0] == first
    NOISE[1] = 2.5  # the copy
    assert digest(adds_from_an_array)[0] != first
    assert constants(adds_from_an_array) != before
    monkeypatch.setattr(f"{__name__}.NOISE", NOISE.astype(np.float32))
    assert digest(adds_from_an_array)[0] != first
