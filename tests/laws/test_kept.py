"""Runs that no seed repeats are made once: rows that were too narrow are filled anew from the same outputs."""

import numpy as np
import pytest

from dpwitness.events import Interval, OutcomeSet
from dpwitness.mechanisms.python import PythonMechanism, VectorisedMechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import as_finite_numbers
from dpwitness.neighbours.pair import Pair
from dpwitness.runs import Role
from running import runner

PAIR = Pair(as_finite_numbers([0.0]), as_finite_numbers([1.0]))


def made(kind, errors="raise"):
    """A mechanism with a generator of its own that counts its runs; one in eight outcomes is longer than all before."""
    own, calls = np.random.default_rng(3), []

    def output():
        calls.append(1)
        return [float(own.random())] * (1 + len(calls) // 8 if len(calls) % 8 == 0 else 1)

    def one_by_one(data):
        return output()

    def in_calls(data, size):
        return [output() for _ in range(size)]

    function = in_calls if kind is VectorisedMechanism else one_by_one
    mechanism = kind(Signature.of(function, {}), errors=errors)
    mechanism.shard = 16
    return mechanism, calls


@pytest.mark.parametrize("errors", ["raise", "outcome"])
@pytest.mark.parametrize("kind", [PythonMechanism, VectorisedMechanism])
def test_no_run_that_counts_is_made_twice_for_longer_outcomes(kind, errors):
    mechanism, calls = made(kind, errors)
    x, y = runner(mechanism).sample(PAIR, 64, Role.SEARCH)
    assert x.shape[1] == y.shape[1] == 17  # the sample is drawn once more, with columns for what was seen in it
    before = len(calls)
    events = [Interval(coordinate=0, low=0.0), OutcomeSet([[0.5]])]
    *_, (any_value, _) = runner(mechanism).confirm(PAIR, events, 64)
    assert len(calls) == before + 2 * 64
    assert any_value.runs == any_value.n11 == 64
