"""What the last bits of floating-point outcomes show, beside the verdict: what leaks, what does not, and the levels."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import dpwitness as dpw
from dpwitness import problem as problem_module
from dpwitness.api import check as check_module
from dpwitness.api import floating_point
from dpwitness.api.floating_point import best_bits, drawn_for_bits, leak_of_bits, unless_proved, with_leak
from dpwitness.claims import PureDP
from dpwitness.errors import ClusterLost, CompiledDisagrees, DependentRuns, InvalidParameter
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import as_finite_numbers, make_pair
from dpwitness.problem import Effort, Statement, prepare
from dpwitness.results.verdict import verdict_from_json
from running import scaled, soon

FEW = {"runs": 10_000, "search_runs": 1_000, "workers": 1}
ONE = [([0.0], [1.0])]


def laplace(rng, data, size):
    return data[0] + rng.laplace(0, 1, size)


def inverse(rng, data, size):
    u = rng.random(size) - 0.5
    return data[0] - np.sign(u) * np.log(1 - 2 * np.abs(u))


def box_muller(rng, data, size):
    radius = np.sqrt(-2 * np.log(1 - rng.random(size)))
    return data[0] + 4 * radius * np.cos(2 * np.pi * rng.random(size))


LEAKING = {
    "laplace": laplace,
    "inverse": inverse,
    "box_muller": box_muller,
    "noise cast to float32": lambda rng, data, size: data[0] + rng.laplace(0, 1, size).astype(np.float32),
    "sum in float32": lambda rng, data, size: np.float32(data[0]) + rng.laplace(0, 1, size).astype(np.float32),
    "second of two": lambda rng, data, size: np.column_stack([rng.random(size), laplace(rng, data, size)]),
}


def snapped(rng, data, size):
    """Mironov 2012, section 5.2, with Λ = 1 and B = 64: the answer is rounded to a multiple of Λ."""
    signs = np.where(rng.random(size) < 0.5, -1.0, 1.0)
    noisy = np.clip(data[0], -64, 64) + signs * np.log(1 - rng.random(size))
    return np.clip(np.round(noisy), -64, 64)


def fine_geometric(rng, data, size):
    """Discrete Laplace noise on multiples of 2^-30, on which the data are: no bit tells more than the sum."""
    p = -math.expm1(-(2.0**-30))
    steps = rng.geometric(p, size) - rng.geometric(p, size)
    return (data[0] * 2.0**30 + steps) * 2.0**-30


def cast_to_float32(rng, data, size):
    """What is cast is the sum: the cast hides its last bits."""
    return laplace(rng, data, size).astype(np.float32)


SOUND = [snapped, fine_geometric, cast_to_float32]


def one_in_three(rng, data, size):
    """Randomised response with odds of 2, told by the bits of a number alone; exactly ln 2-DP."""
    told = np.where(rng.random(size) < 2 / 3, data[0] > 0, data[0] <= 0)
    number = 1 + rng.random(size)
    return np.where(told, number.astype(np.float32), number)


@pytest.mark.parametrize("name", LEAKING)
def test_a_leak_by_rounding_is_said_beside_the_verdict(name):
    verdict = dpw.check(LEAKING[name], claim=1.0, neighbours=ONE, seed=1, **FEW)
    found = verdict.floating_point
    assert isinstance(verdict, dpw.NotRefuted)
    assert isinstance(found, dpw.Violation)
    assert found.by_bits
    assert found.alpha == pytest.approx(1e-9)
    assert found.log_e_value >= math.log(1e9)
    assert found.lower_bound > 3
    assert f"last bits, so {found.exceeded} with confidence 99.9999999 %" in str(verdict)


@pytest.mark.parametrize("mechanism", SOUND)
@pytest.mark.parametrize("seeds", soon([2, max(scaled(200), 20)], 1))
def test_what_leaks_nothing_by_rounding_is_not_accused(mechanism, seeds):
    for seed in range(seeds):
        assert dpw.check(mechanism, claim=1.0, neighbours=ONE, seed=seed, **FEW).floating_point is None


@pytest.mark.parametrize("seeds", soon([2, max(scaled(200), 20)], 1))
@pytest.mark.parametrize("epsilon", [3.0, 1.0])
def test_bits_do_not_accuse_the_bundled_snapping_mechanism(epsilon, seeds):
    """Its grid is 2 at ε = 1 and 1/2 at ε = 3."""
    effort = Effort(runs=10_000, workers=1)
    problem, runner = prepare(Statement(mechanism="snapping_mechanism", epsilon=epsilon), effort)
    for own in (replace(runner, seed=seed) for seed in range(seeds)):
        assert leak_of_bits(problem, own, effort, drawn_for_bits(problem, own), effort.runs) is None


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is what a verdict says
def test_strict_makes_it_a_violation_which_says_what_it_speaks_of():
    verdict = dpw.check(laplace, claim=1.0, neighbours=ONE, seed=1, bits="strict", **FEW)
    assert isinstance(verdict, dpw.Violation)
    assert verdict.by_bits
    assert verdict.alpha == pytest.approx(1e-9)
    assert "this implementation alone" in str(verdict)
    assert any("the claim is not refuted" in note for note in verdict.notes)
    assert isinstance(dpw.check(snapped, claim=1.0, neighbours=ONE, seed=1, bits="strict", **FEW), dpw.NotRefuted)
    # A violation needs no bits.
    verdict = dpw.check(laplace, claim=0.5, neighbours=ONE, seed=1, bits="strict", **FEW)
    assert (verdict.refuted, verdict.by_bits, verdict.floating_point) == (True, False, None)


def test_they_can_be_left_out_and_then_all_of_alpha_is_the_verdicts():
    verdict = dpw.check(laplace, claim=1.0, neighbours=ONE, seed=1, bits=False, **FEW)
    assert verdict.floating_point is None
    assert "floating_point" not in verdict.to_json()
    assert Effort(alpha=0.01, bits=False).level == 0.01
    with pytest.raises(InvalidParameter, match="bits='all'"):
        dpw.check(laplace, claim=1.0, neighbours=ONE, bits="all")


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is what is kept
def test_it_reads_back_and_its_witness_is_the_one_that_is_replayed(tmp_path):
    verdict = dpw.check(laplace, claim=1.0, neighbours=ONE, seed=1, **FEW)
    written = json.loads(json.dumps(verdict.to_json(), allow_nan=False))
    assert verdict_from_json(written).to_json() == written
    place = tmp_path / "result.json"
    place.write_text(json.dumps(written))
    for given in (verdict, place):
        again = dpw.replay(given, laplace, seed=2, workers=1, runs=5_000)
        assert isinstance(again, dpw.Violation)
        assert again.by_bits
        assert again.witness.event == verdict.floating_point.witness.event
        assert again.alpha == verdict.floating_point.alpha


@pytest.mark.campaign
def test_under_each_adjacency_the_levels_are_shares_of_that_adjacency():
    def count(rng, records, size):
        return len(records) + rng.laplace(0, 1, size)

    relation = dpw.records(dpw.numbers(0, 1), adjacency=None, size=(0, 1))
    verdict = dpw.check(count, claim=1.0, neighbours=relation, seed=1, **FEW)
    found = [one.floating_point for one in (verdict, *verdict.others)]
    assert [one.alpha for one in found if one is not None] == pytest.approx([5e-10])


@pytest.mark.parametrize("alpha", [1e-6, 0.01, 0.5])
def test_both_levels_add_up_to_alpha(alpha):
    effort = Effort(alpha=alpha)
    assert 0 < effort.level_of_bits < effort.level < alpha
    assert effort.level + effort.level_of_bits <= alpha


def leaks(mechanism, claim, seeds, alpha):
    """How often bits accuse at level α/2: the share of bits is set to a half, so that there is something to count."""
    effort = Effort(alpha=alpha, runs=2_000, workers=1)
    problem, runner = prepare(Statement(mechanism=mechanism, claim=claim, neighbours=ONE), effort)
    found = 0
    for seed in range(seeds):
        own = replace(runner, seed=seed)
        found += leak_of_bits(problem, own, effort, drawn_for_bits(problem, own), 40_000) is not None
    return found


@pytest.mark.campaign
def test_at_the_boundary_bits_accuse_no_more_often_than_their_level(monkeypatch):
    monkeypatch.setattr(problem_module, "BITS_SHARE", 0.5)
    # In a claim that is a little smaller there is something to find, and it is found.
    assert leaks(one_in_three, PureDP(0.3 * math.log(2)), 5, 0.2) == 5
    assert leaks(one_in_three, PureDP(math.log(2)), 100, 0.2) <= binom.isf(1e-9, 100, 0.1)


def test_evidence_of_bits_below_their_level_is_no_leak(monkeypatch):
    """The bits show ε = ln 2; a hundred runs are some evidence against half of it, but far from a proof at 10⁻⁹."""
    effort = Effort(alpha=1e-6, runs=100, workers=1, seed=1)
    problem, runner = prepare(
        Statement(mechanism=one_in_three, claim=PureDP(0.5 * math.log(2)), neighbours=ONE), effort
    )
    chosen = best_bits(drawn_for_bits(problem, runner), problem.claim, 0.1, 2_000)
    assert chosen is not None
    monkeypatch.setattr(floating_point, "best_bits", lambda *arguments: chosen)
    found = [leak_of_bits(problem, replace(runner, seed=seed), effort, (), 2_000) for seed in range(30)]
    assert found == [None] * 30


def test_compiled_code_alone_is_not_accused():
    """Python must show the same bits: here it returns numbers without the last twelve."""

    def without_last_bits(rng, queries, epsilon, sensitivity=1.0):
        answers = np.asarray(queries, float) + rng.laplace(0, sensitivity / epsilon, len(queries))
        return (answers.view(np.int64) & ~0xFFF).view(np.float64)

    effort = Effort(runs=40_000, workers=1, seed=1)
    problem, runner = prepare(Statement(mechanism="laplace_mechanism", epsilon=1.0), effort)
    assert problem.mechanism.plain is not None
    assert leak_of_bits(problem, runner, effort, drawn_for_bits(problem, runner), 40_000) is not None
    pair = problem.first
    problem.mechanism.plain = as_mechanism(
        without_last_bits, pair.data, neighbour=pair.neighbour, parameters={}, epsilon=1.0, errors="outcome"
    )
    assert leak_of_bits(problem, runner, effort, drawn_for_bits(problem, runner), 40_000) is None


def test_a_grid_of_last_bits_on_one_side_is_found():
    rng = np.random.default_rng(1)
    x, y = rng.laplace(0, 1, (2, 512, 1))
    pair = make_pair(as_finite_numbers([0.0]), as_finite_numbers([1.0]), "one")
    assert best_bits([(pair, x, y)], PureDP(1.0), 1e-9, 1_000) is None
    assert best_bits([(pair, x, np.round(2.0**30 * y) / 2**30)], PureDP(1.0), 1e-9, 1_000) is not None


@pytest.mark.parametrize(
    ("stage", "error", "ended"),
    [
        ("confirm", KeyboardInterrupt(), "interrupted"),  # no bits are looked at afterwards
        ("bits", KeyboardInterrupt(), "interrupted"),
        ("bits", ClusterLost("the cluster is gone"), "cluster lost"),
    ],
)
def test_a_verdict_is_not_lost_to_what_ends_it_or_the_look_at_bits(monkeypatch, stage, error, ended):
    def progress(now, *_):
        if now == stage:
            raise error

    monkeypatch.setattr(check_module, "_promises_most", lambda *_: True)  # whatever the search found
    monkeypatch.setattr(check_module, "leak_of_bits", lambda *_: progress("bits") or pytest.fail("it went on"))
    verdict = dpw.check(laplace, epsilon=1.0, neighbours=ONE, seed=1, progress=progress, **FEW)
    assert (verdict.refuted, verdict.ended) == (False, ended)


def test_a_strict_violation_says_that_the_check_was_interrupted():
    """So that no other adjacency is checked after Ctrl-C."""
    passed = dpw.check(laplace, epsilon=1.0, neighbours=ONE, seed=1, **FEW)
    assert with_leak(passed, passed.floating_point, Effort(bits="strict")).refuted
    stopped = replace(passed, floating_point=None, ended="interrupted")
    assert with_leak(stopped, passed.floating_point, Effort(bits="strict")).ended == "interrupted"


@pytest.mark.parametrize("error", [DependentRuns("no evidence"), CompiledDisagrees("other outcomes")])
def test_a_violation_by_bits_is_lost_with_the_runs_that_it_is_of(error):
    def verdict():
        raise error

    with pytest.raises(type(error)):
        unless_proved(verdict, object(), Effort(bits="strict"))
