"""What comes back, gathers or lies on a grid in few runs is found, and luck among all that was tried is not.

The rare outcomes come in a share of the runs on D and in a tenth of it on D′: a privacy loss of log 10 = 2.3.
"""

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.claims import ApproxDP
from dpwitness.search.learners import Scans, learn_events, selection
from dpwitness.search.learners.scans import _scanned
from dpwitness.search.objectives import GrowthAt
from dpwitness.search.samples import sample_of
from running import sampled

OBJECTIVE = GrowthAt(claim=ApproxDP(1.0))
RUNS = 80_000
PAIR = dpw.pairs(([1.0], [0.0]))


def value(rng, rows):
    rows[:, 0] = 0.25


def needle(rng, rows):
    rows[:, 0] = 0.3 + 0.001 * rng.random(len(rows))


def rounded(rng, rows):
    rows[:, 0] = np.round(rows[:, 0], 2)


def rounded_to_a_power_of_two(rng, rows):
    rows[:, 0] = np.floor(rows[:, 0] * 128) / 128


def moved_grid(rng, rows):
    rows[:, 0] = np.round(rows[:, 0]) + 1 / 3


#: What is done to the rare outcomes, how many entries they have, and how often they come on D.
RARE = [
    (value, 1, 2e-3), (needle, 1, 5e-3), (rounded, 1, 0.01), (rounded_to_a_power_of_two, 1, 0.01),
    (moved_grid, 1, 0.01), (value, 6, 2e-3), (needle, 6, 5e-3),
]  # fmt: skip


def outcomes(rng, change, width, runs, share):
    """Laplace noise, and in a share of the runs what `change` makes of it."""
    rows = rng.laplace(0, 10, (runs, width))
    rare = rng.random(runs) < share
    part = rows[rare]
    change(rng, part)
    rows[rare] = part
    return rows


@pytest.mark.parametrize(("change", "width", "share"), RARE, ids=lambda part: getattr(part, "__name__", str(part)))
def test_what_few_runs_show_is_found(change, width, share, monkeypatch):
    rng = np.random.default_rng(1)
    x, y = (outcomes(rng, change, width, RUNS, part) for part in (share, share / 10))
    best = learn_events(x, y, OBJECTIVE)[0]
    assert best.value > 0
    assert not best.swapped
    assert best.event.contains(outcomes(rng, change, width, 1_000, 1.0)).mean() > 0.5
    assert best.event.contains(outcomes(rng, change, width, 20_000, 0.0)).mean() < share / 10
    monkeypatch.setattr(selection, "LEARNERS", [one for one in selection.LEARNERS if not isinstance(one, Scans)])
    assert learn_events(x, y, OBJECTIVE)[0].value <= 0


#: So many standard errors more than √(2 log N) the luckiest of N ≥ 100 has with probability 4·10⁻⁴ at most.
MORE = 1.5


@pytest.mark.parametrize("digits", [None, 2])
def test_the_luckiest_of_all_that_was_tried_is_luck(digits):
    """At a privacy loss of exactly the claim no set is better than it by much more than the luckiest should be.

    N(1 − Φ(z)) ≤ exp(−MORE·√(2 log N) − MORE²/2)/√(4π log N) for z = √(2 log N) + MORE; 23 lengths and two directions.
    """
    beyond = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x, y = (rng.laplace(mean, 1, (8_000, 1)) for mean in (0.0, 1.0))
        if digits is not None:
            x, y = np.round(x, digits), np.round(y, digits)
        found = (sample := sample_of(x, y)).once(_scanned, True)
        for p, q in (found.p, found.q), (found.q, found.p):
            beyond += int(np.any(OBJECTIVE(p, q, sample.training_runs, found.errors + MORE) > 0))
    assert beyond <= 4  # 0.4 are to be expected: P < 10⁻⁴


def leaks_slowly(rng, data):
    return 0.25 if rng.random() < (0.01 if data[0] > 0.5 else 0.001) else rng.laplace(0.0, 20.0)


def in_one_of_five(rng, data):
    """Only the third of five pairs of inputs shows anything: a value that comes back."""
    rare = 0.01 if data[0] == 2.5 else 0.001
    return 0.25 if rng.random() < rare else rng.laplace(0.0, 20.0)


FIVE_PAIRS = dpw.pairs(*(([k + 0.5], [k + 1.0]) for k in range(5)))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", sampled(range(8), 3))
@pytest.mark.parametrize(
    ("mechanism", "inputs", "settings"),
    [
        (leaks_slowly, PAIR, {}),
        # In epochs: 2·10⁻³ nats a run and more, so 14 nats and the learning take less than half of the runs.
        (leaks_slowly, PAIR, {"search_runs": 0, "runs": 20_000}),
        (in_one_of_five, FIVE_PAIRS, {"runs": 4_000_000}),
    ],
    ids=["a value", "a value, in epochs", "one pair of five"],
)
def test_what_few_runs_show_refutes_the_claim_with_any_seed(mechanism, inputs, settings, seed):
    assert isinstance(dpw.check(mechanism, claim=1.0, neighbours=inputs, seed=seed, **settings), dpw.Violation)
