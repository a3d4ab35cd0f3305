"""Plain Python is coupled: both sides of a run draw the same, runs do not; so do functions of the global generators."""

import random
import secrets
import time

import numpy as np
import pytest
from scipy.stats import kstest

from dpwitness.errors import SlowMechanism
from dpwitness.mechanisms.draws import Draws
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import as_finite_numbers
from dpwitness.neighbours.pair import Pair
from running import stream

PAIR = Pair(as_finite_numbers([0.0]), as_finite_numbers([1.0]))


def draws_more_on_one_side(rng, data):
    """Draws of 32 bits and of 64, and more of them on D′."""
    for _ in range(3 * int(data[0])):
        rng.integers(0, 7, dtype=np.uint32)
    rng.integers(0, 7, dtype=np.uint32)
    return rng.random()


def test_children_of_the_generator_are_others_in_every_batch():
    """A batch of slow runs has few: one that drew what those before it did would show nothing new."""
    mechanism = PythonMechanism(Signature.of(lambda rng, data: rng.spawn(1)[0].random(), {}))
    runs, rng = PairedRuns.d_first(PAIR, 50, coupled=True), stream()
    drawn = np.concatenate([mechanism.pair_outcomes(runs, rng).ravel() for _ in range(4)])
    assert len(set(drawn.tolist())) == 400


def test_draws_are_uniform_and_runs_independent_where_one_side_draws_more():
    mechanism = PythonMechanism(Signature.of(draws_more_on_one_side, {}))
    x, y = mechanism.pair_outcomes(PairedRuns.d_first(PAIR, 2_000, coupled=True), stream())[:, :, 0]
    for side in (x, y):
        assert len(set(side.tolist())) == len(side)
        assert kstest(side, "uniform").pvalue > 1e-6
        assert abs(np.corrcoef(side[:-1], side[1:])[0, 1]) < 4 / np.sqrt(len(side))
    assert not set(x[1:].tolist()) & set(y[:-1].tolist())


def test_a_coupled_run_begins_from_bits_of_its_own_whatever_the_run_before_it_left():
    draws = Draws(stream(), 3, own_streams=True, global_too=False)
    first = [draws.of_run(run).random() for run in range(3)]
    draws.of_run(0).integers(0, 7, dtype=np.uint32)  # half a word stays behind
    assert [draws.of_run(run).random() for run in range(3)] == first


def slow(function):
    def mechanism(data):
        time.sleep(0.001)
        return function(data)

    return mechanism


@pytest.mark.parametrize(
    "draw",
    [lambda data: random.gauss(data[0], 1), lambda data: data[0] + np.random.laplace()],  # noqa: NPY002
    ids=["random", "numpy.random"],
)
def test_functions_of_the_global_generators_repeat_by_seed_and_are_coupled(draw):
    with pytest.warns(SlowMechanism):
        mechanism = as_mechanism(slow(draw), PAIR.data, neighbour=PAIR.neighbour)
    assert mechanism.reproducible
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    x, y = mechanism.pair_outcomes(PairedRuns.d_first(PAIR, 20, coupled=True), stream())[:, :, 0]
    again, _ = mechanism.pair_outcomes(PairedRuns.d_first(PAIR, 20, coupled=True), stream())[:, :, 0]
    assert x.tolist() == again.tolist()
    assert y == pytest.approx(x + 1)
    assert len(set(x.tolist())) == 20
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002  # the user's own are kept


def draws_from_the_system(data):
    return data[0] + secrets.randbelow(1 << 50)


def seeds_itself(data):
    random.seed(3)
    return data[0] + random.random()


def draws_now_and_then(data):
    """Globally, and from a generator of its own."""
    return random.random() + OWN.random()


OWN = np.random.default_rng(0)


@pytest.mark.parametrize("function", [draws_from_the_system, seeds_itself, draws_now_and_then, lambda data: data[0]])
def test_where_seeding_is_not_enough_nothing_is_seeded(function):
    with pytest.warns(SlowMechanism):
        mechanism = as_mechanism(slow(function), PAIR.data, neighbour=PAIR.neighbour)
    assert not mechanism.reproducible
    assert not mechanism.draws_globally
