"""A learner of somebody else's: one class with one method, registered by one call, takes part in every search.

The class has 12 lines.
"""

import math

import numpy as np

from dpwitness import Interval, NotRefuted, Violation, check, pairs
from dpwitness.search.learners import Proposal, register_learner, selection
from dpwitness.search.learners.intervals import Intervals
from dpwitness.testing import check_learner


class Bands:
    """Intervals between two quantiles of a column; `Intervals` cuts continuous columns once."""

    def propose(self, sample, objective, *, thorough):
        for j, column in enumerate(sample.outcomes.T):
            cuts = np.unique(np.quantile(column, np.arange(17) / 16))
            for width in (width for width in (2, 4, 8) if width < len(cuts)):
                ends = list(zip(cuts[:-width], cuts[width:], strict=True))
                shares = [np.array([np.sum(n[(column >= a) & (column < b)]) for a, b in ends]) for n in sample.times]
                values = objective(*(share / sample.training_runs for share in shares), sample.training_runs)
                low, high = ends[int(values.argmax())]
                yield Proposal(event=Interval(coordinate=j, low=float(low), high=float(high)))


def central():
    """A function inside another one: no new process is started for it, which takes seconds."""

    def central_answer(rng, data, size):
        """Uniform on [0.1, 0.9]; for one input a fifth of the runs lies in the middle quarter instead."""
        spread = rng.uniform(-1, 1, size)
        return 0.5 + 0.4 * np.where(rng.random(size) < 0.2 * data[0], spread / 4, spread)

    return central_answer


def test_its_author_tests_it():
    check_learner(Bands())


SETTINGS = {"claim": 0.3, "neighbours": pairs(([1.0], [0.0])), "search_runs": 40_000, "runs": 100_000, "seed": 1}


def test_a_new_learner_finds_what_the_others_do_not_propose(monkeypatch):
    """The middle has 0.8/4 + 0.2 against 1/4: a loss of ln 1.6 = 0.47. By one cut it is ln 1.25 = 0.22 at most."""
    assert math.log(1.25) < SETTINGS["claim"] < math.log(1.6)
    monkeypatch.setattr(selection, "LEARNERS", [Intervals()])
    assert isinstance(check(central(), **SETTINGS), NotRefuted)
    register_learner(Bands())
    found = check(central(), **SETTINGS)
    assert isinstance(found, Violation)
    assert 0.38 < found.witness.event.low < found.witness.event.high < 0.62
