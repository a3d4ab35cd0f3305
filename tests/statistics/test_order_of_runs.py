"""Which side of a paired run comes first tells nothing, and what a state gives away is not held against the claim."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import dpwitness as dpw
import remembered
from dpwitness.errors import DependentRuns
from dpwitness.events import Interval
from dpwitness.evidence import Counts, log_e_value
from dpwitness.health.dependence import refuse_series, series_of
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.python import PythonMechanism, VectorisedMechanism
from dpwitness.mechanisms.remote import RemoteMechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.runs import Role, generator, order
from elsewhere import away
from running import runner

PAIR = dpw.pairs(([0.0], [1.0])).given[0]
RUNS = 512
#: As plain Python, since a summary is not compiled.
EPOCHS = {"neighbours": dpw.pairs(([0.0], [1.0])), "search_runs": 0, "outcome": float, "seed": 1}
#: Bits of which each is fair: how many of so many may be ones.
FAIR = [int(stats.binom(RUNS, 0.5).ppf(p)) for p in (1e-9, 1 - 1e-9)]


def counted(calls):
    """A function that returns the number of its call."""

    def call(rng, data):
        return float(next(calls))

    return call


def numbered(rng, data, size):
    """The numbers of calls, where one call makes many runs."""
    remembered.KEPT["calls"] = remembered.KEPT.get("calls", 0) + 1
    return np.full(size, float(remembered.KEPT["calls"]))


def follow_each_other(x, y):
    """Outcomes are numbers of calls: those of a run are neighbours, and either side comes first as often."""
    first = np.minimum(x, y)[:, 0]
    assert np.array_equal(np.abs(x - y), np.ones((RUNS, 1)))
    assert np.array_equal(first - first[0], 2.0 * np.arange(RUNS))
    assert FAIR[0] <= np.sum(x < y) <= FAIR[1]


@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize("where", [runner, away], ids=["here", "elsewhere"])
def test_the_sides_of_every_run_follow_each_other_in_a_random_order(coupled, where):
    mechanism = PythonMechanism(Signature.of(counted(itertools.count()), {}))
    follow_each_other(*where(mechanism).sample(PAIR, RUNS, Role.SEARCH, coupled=coupled))


@pytest.mark.parametrize("first", [0, 1], ids=["D first", "D′ first"])
def test_turns_are_the_numbers_of_the_runs_of_each_side(first):
    calls = itertools.count()

    def many(rng, data, size):
        return np.array([float(next(calls)) for _ in range(size)])

    for kind, function in ((PythonMechanism, counted(calls)), (VectorisedMechanism, many)):
        mechanism = kind(Signature.of(function, {}))
        runs = PairedRuns(pair=PAIR, order=np.full(3, first, np.uint8), coupled=False)
        for _ in range(2):
            before = next(calls) + 1 - mechanism.run_count
            _, rows = mechanism.pair_rows(runs, generator(1, Role.SEARCH), 1)
            assert np.array_equal(rows[:, :, 0], before + mechanism.turns(runs.order)[1:])


def test_of_another_interpreter_too(tmp_path):
    (tmp_path / "there.py").write_text(
        "CALLS = []\n\ndef call(data):\n    CALLS.append(0)\n    return float(len(CALLS))\n"
    )
    mechanism = RemoteMechanism(Signature.of(dpw.remote("python3", str(tmp_path / "there.py:call")), {}))
    follow_each_other(*runner(mechanism).sample(PAIR, RUNS, Role.SEARCH))


def test_where_one_call_makes_many_runs_the_order_of_the_calls_is_random():
    mechanism = VectorisedMechanism(Signature.of(numbered, {}))
    follow_each_other(*runner(mechanism).sample(PAIR, RUNS, Role.SEARCH, size=1))


def test_compiled_sides_draw_in_the_order_of_the_runs():
    mechanism = CompiledMechanism(Signature.of(lambda rng, data: rng.random(), {}))
    turns = order(1, Role.SEARCH, runs=RUNS)
    none = np.zeros(RUNS, np.uint8)
    both = [
        mechanism.pair_outcomes(PairedRuns(pair=PAIR, order=given, coupled=False), generator(1, Role.SEARCH))
        for given in (none, turns, 1 - turns)
    ]
    plain, turned, other = (rows[..., 0] for rows in both)
    assert np.array_equal(np.where(turns, plain[::-1], plain), turned)
    assert np.array_equal(turned[::-1], other)


def test_an_order_hangs_on_its_stream_alone():
    assert np.array_equal(order(1, Role.CONFIRM, 3, runs=1000)[:77], order(1, Role.CONFIRM, 3, runs=77))
    found = {
        order(*key, runs=256).tobytes()
        for key in [(1, Role.CONFIRM, 3), (1, Role.CONFIRM, 4), (1, Role.EPOCH, 3), (2, Role.CONFIRM, 3)]
    }
    assert len(found) == 4


def periodic(length, share):
    """Laplace noise, of scale 1 or more: each call is 1-DP in whatever state it is."""
    calls, rng = itertools.count(), np.random.default_rng(length)

    def release(data):
        return data[0] + rng.laplace(0, 3.0 if next(calls) % length < share * length else 1.0)

    return release


@pytest.mark.campaign
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_no_period_convicts(share):
    """The wealth on a tail, where the claim is tight: Ville's inequality holds for periods from 2 to 64."""
    claim, alpha = dpw.PureDP(1.0), 0.05
    refuted, tested = 0, 0
    for length in (*range(2, 12), 16, 31, 32, 33, 63, 64):
        running = runner(PythonMechanism(Signature.of(periodic(length, share), {})), seed=length)
        for event in (Interval(coordinate=0, low=2.0), Interval(coordinate=0, high=-2.0)):
            counts = Counts()
            pair = PAIR.swapped() if event.low == 2.0 else PAIR
            for epoch in range(12):
                counts += running.epoch(pair, [event], 16, tested, epoch)[0].of(0)
            refuted += log_e_value(counts, claim) >= math.log(1 / alpha)
            tested += 1
    assert refuted <= stats.binom.isf(1e-9, tested, alpha)


def cycled(size):
    calls, noise = itertools.count(), np.random.default_rng().laplace(size=size)
    return lambda data: float(data[0]) + noise[next(calls) % size]


def by_the_clock(length):
    """A new noise after so many calls, as of a generator that is seeded by the time."""
    calls, state = itertools.count(), {}

    def release(data):
        if next(calls) % length == 0:
            state["noise"] = float(np.random.default_rng().laplace())
        return float(data[0]) + state["noise"]

    return release


def series(function, runs):
    """The runs of an epoch in the order of time."""
    mechanism = PythonMechanism(Signature.of(function, {}))
    mechanism.outcomes(PAIR.data, np.random.default_rng(0), 1)  # which gives the column of an epoch
    _, x, y, turns = runner(mechanism).epoch(PAIR, [], runs, 0)
    return series_of([(PAIR, x, y, turns)])


@pytest.mark.parametrize("release", [cycled(150), by_the_clock(40)], ids=["pool", "clock"])
def test_noise_that_comes_again_is_named_from_the_runs_of_epochs(release):
    """65 runs of a slow mechanism are enough for a clock, whose noise stays for 40 calls."""
    with pytest.raises(DependentRuns, match=r"on \[\d\.0\] the same outcome came again \d+ runs? later"):
        refuse_series("release", [], series(release, 400))


def test_independent_runs_of_epochs_are_believed():
    rng = np.random.default_rng(3)
    for noise in (rng.laplace, lambda: float(rng.integers(0, 3)), lambda: math.inf, lambda: float(rng.random() < 0.01)):
        refuse_series("release", [Interval(coordinate=0, low=0.5)], series(lambda data, noise=noise: noise(), 400))


@pytest.mark.campaign
@pytest.mark.parametrize("release", [cycled(150), by_the_clock(40)], ids=["pool", "clock"])
def test_noise_that_comes_again_accuses_nobody(release):
    with pytest.raises(DependentRuns, match="are not independent"):
        dpw.check(release, claim=1.0, **EPOCHS, runs=3_000)


@pytest.mark.campaign
def test_a_pool_that_is_drawn_from_at_random_is_named_by_a_new_process():
    with pytest.raises(DependentRuns, match=r"remembers its noise or a setting: on D.* of \d+ in a new process"):
        dpw.check(remembered.pooled, claim=1.0, **EPOCHS, runs=20_000)


def antithetic():
    calls, state = itertools.count(), {}

    def release(rng, data):
        state["noise"] = rng.laplace() if next(calls) % 2 == 0 else -state["noise"]
        return float(data[0]) + state["noise"]

    return release


def repeated_rows(rng, data, size):
    return data[0] + np.repeat(rng.laplace(size=-(-size // 3)), 3)[:size]


@pytest.mark.parametrize("release", [antithetic(), repeated_rows], ids=["antithetic", "rows"])
@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
def test_a_pass_of_dependent_runs_says_so(release):
    with pytest.raises(DependentRuns):
        dpw.check(release, claim=1.5, **{**EPOCHS, "search_runs": 4_000, "outcome": None}, runs=20_000)


@pytest.mark.campaign
@pytest.mark.parametrize("release", [remembered.leaks_zero, remembered.on_a_grid])
def test_what_repeats_by_its_law_is_believed(release):
    """Atoms and few values: repeats are no dependence."""
    assert isinstance(dpw.check(release, claim=0.3, **EPOCHS, runs=5_000), dpw.Violation)
