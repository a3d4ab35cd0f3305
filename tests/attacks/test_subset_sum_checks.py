import json

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.algorithms.subset_sum import binomial_subset_sums, bounded_subset_sums
from dpwitness.claims import ApproxDP
from dpwitness.cli import main
from dpwitness.errors import InvalidParameter, MechanismRaised
from dpwitness.health import before_search, new_process
from dpwitness.reconstruction.subset_sum.candidates import flipped_bit
from dpwitness.reconstruction.subset_sum.mechanism import subset_sum_reconstruction
from running import soon


@pytest.mark.campaign
@pytest.mark.parametrize("law", ["uniform", "rounding"])
def test_bounded_sums_are_refuted(law):
    verdict = dpw.check(
        bounded_subset_sums, epsilon=1, claim=1, parameters={"law": law}, seed=1, workers=1, search_runs=2_000
    )
    assert isinstance(verdict, dpw.Violation)
    assert verdict.witness.counts.runs >= 44  # 13.8 nats at log(1 + 1/e) a run, which nothing can beat


@pytest.mark.campaign
def test_binomial_sums_with_little_noise_are_refuted():
    parameters = {"fair_bits": 4, "queries": 8}
    verdict = dpw.check(
        binomial_subset_sums, epsilon=1, claim=1, parameters=parameters, seed=1, workers=1, search_runs=2_000
    )
    assert isinstance(verdict, dpw.Violation)


@pytest.mark.campaign
def test_binomial_sums_with_much_noise_are_not_refuted():
    # One answer with R = 4096 has ε ≤ log((R/2 + w + 1)/(R/2 − w)), 0.19 for w = 3√R, but for 2e-8 of the answers.
    parameters = {"fair_bits": 4096, "queries": 1}
    verdict = dpw.check(
        binomial_subset_sums, epsilon=1, claim=1, parameters=parameters, seed=1, workers=1, runs=100_000
    )
    assert isinstance(verdict, dpw.NotRefuted)
    assert verdict.epsilon_lower_bound < 1


@pytest.mark.parametrize("outcome", soon([list, None], 1))  # to compile it takes seconds
def test_a_bad_parameter_of_a_target_is_a_named_error(outcome):
    with pytest.raises(MechanismRaised, match="error must be a finite number"):
        dpw.check(bounded_subset_sums, epsilon=1, parameters={"error": -2.0}, seed=1, outcome=outcome)


@pytest.mark.campaign
def test_the_slow_reconstruction_is_refuted_after_tens_of_runs(monkeypatch):
    for check in (before_search, new_process):
        monkeypatch.setattr(check, "CHECK_SECONDS", 0.2)  # each takes all of its time where runs are slow
    data = np.arange(10) % 2
    verdict = dpw.check(
        subset_sum_reconstruction,
        epsilon=1,
        claim=1,
        data=data,
        parameters={"error": 1.0},
        outcome=float,  # numba is not asked: it takes seconds to refuse this
        seed=1,
        workers=1,
        search_runs=32,
        max_time=300,
    )
    assert isinstance(verdict, dpw.Violation)
    assert verdict.witness.counts.runs <= 96  # shards of 32; 44 runs are the least that could do


def test_the_attack_proposes_the_bit_that_the_mechanism_returns():
    (candidate,) = flipped_bit({"position": 3}, np.zeros(6, np.int64), ApproxDP(epsilon=1.0), 100)
    assert candidate.pair.data.tolist() == [0, 0, 0, 1, 0, 0]
    assert candidate.pair.neighbour.tolist() == [0, 0, 0, 0, 0, 0]
    assert candidate.event.contains(np.array([[1.0], [0.0]])).tolist() == [True, False]
    with pytest.raises(InvalidParameter, match="position=6 must be one of the 6 bits"):
        list(flipped_bit({"position": 6}, np.zeros(6, np.int64), ApproxDP(epsilon=1.0), 100))


def test_exact_sums_return_the_very_bit():
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 2, 10)
    assert [subset_sum_reconstruction(rng, bits, 0.0, i) for i in range(10)] == bits.tolist()


def attack(capsys, *arguments):
    code = main(["attack", "subset_sum", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_attack_reports_what_it_recovered(capsys):
    code, out, _ = attack(capsys, "--size", "32", "--error", "1", "--seed", "1")
    assert code == 0
    assert out.startswith("RECOVERED ")
    assert "424 random subsets" in out  # ⌈32·ln²32⌉ = 385, and 39 to check
    assert "seed 1" in out


@pytest.mark.parametrize("law", ["uniform", "adversarial", "rounding", "binomial", "gaussian"])
def test_attack_prints_json_alone_and_a_seed_repeats_it(capsys, law):
    arguments = ("--size", "24", "--error", "1", "--law", law, "--seed", "5", "--json")
    results = [json.loads(attack(capsys, *arguments)[1]) for _ in range(2)]
    for result in results:
        assert result.pop("seconds") >= 0
    assert results[0] == results[1]
    assert results[0]["right"] > 12
    assert results[0]["seed"] == 5


def test_attack_by_all_subsets(capsys):
    code, out, _ = attack(capsys, "--size", "10", "--error", "0.25", "--adversary", "exponential", "--json")
    result = json.loads(out)
    assert (code, result["queries"], result["right"]) == (0, 1024, 10)  # 4·E = 1, and parity cannot hide one bit
    assert result["largest_residual"] <= 0.25


def test_attack_draws(capsys, tmp_path):
    path = tmp_path / "bits.svg"
    code, _, _ = attack(capsys, "--size", "16", "--error", "1", "--seed", "1", "--plot", str(path))
    assert code == 0
    assert path.read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--size", "25", "--adversary", "exponential"), "at most 24 people fit"),
        (("--size", "0"), "size=0 must be at least 1 person"),
        (("--size", "5000"), "at most 4096 people fit"),
        (("--error", "-1"), "error=-1.0 must be a finite number of at least 0"),
        (("--error", "nan"), "must be a finite number"),
        (("--queries", "0"), "queries=0 must be at least 1"),
        (("--queries", "100000000"), "are too many: at most"),
        (("--law", "gauss"), "'gauss' is not one of "),
        (("--seed", "-1"), "--seed -1 must be at least 0"),
        (("--plot", "x.txt"), "must end in .svg, .png or .pdf"),
        (("--plot", "missing/x.svg"), "there is no folder missing"),
        (("--size", "8", "--adversary", "exponential", "--law", "binomial"), "needs a bound of the error"),
        (("--size", "8", "--adversary", "exponential", "--queries", "9"), "leave out --queries"),
    ],
)
def test_bad_input_is_one_clear_line(capsys, arguments, message):
    code, out, err = attack(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1
