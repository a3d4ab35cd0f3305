"""What an attack on subset sums claims without the truth: true of systems that keep its assumptions, and of others."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import subset_sum_calibration as calibration
from dpwitness.reconstruction.questions import Asking, system_of
from dpwitness.reconstruction.report import LEVEL
from dpwitness.reconstruction.subset_sum.attack import Plan, question_counts, reconstruct
from dpwitness.reconstruction.subset_sum.confidence import (
    DOUBTFUL_P_VALUE,
    claims_of_fit,
    equal_ones_p_value,
    held_out_scale,
    pairs_add_more,
)
from dpwitness.reconstruction.subset_sum.linear_decoding import (
    Reconstruction,
    Subsets,
    least_squares_adversary,
    polynomial_adversary,
)
from dpwitness.reconstruction.subset_sum.oracle import FORM, query_count
from running import sampled, scaled, soon

SIZE = 40


def attacked(answers, seed, adversary="least-squares"):
    """The reconstruction from a system, whose answers are made of a subset, the bits and a generator; and the bits."""
    rng = np.random.default_rng([SIZE, seed])
    bits = rng.integers(0, 2, SIZE)
    used, fresh = question_counts(SIZE, None, None)
    asking = Asking(FORM, system_of(lambda subset: float(answers(subset, bits, rng)), FORM, seed=1))
    return reconstruct(asking, seed, Plan(size=SIZE, used=used, fresh=fresh, adversary=adversary)), bits


def test_p_values_of_equal_ones_are_small_as_seldom_as_they_say_and_of_other_ones_often():
    rng, failed, seen = np.random.default_rng(5), 0, 0
    for _ in range(60):
        bits, subsets = rng.integers(0, 2, SIZE), Subsets.drawn(rng, 12 * SIZE, SIZE)
        for weights in (np.ones(SIZE), np.where(np.arange(SIZE) % 3, 1.0, 0.4)):
            answers = 0.8 * subsets.sums(bits * weights) + rng.normal(0, 1.5, len(subsets))
            plain = least_squares_adversary(subsets, answers, offset=True, sharpened=False)
            small = equal_ones_p_value(subsets, answers, plain, plain.bits) < DOUBTFUL_P_VALUE
            if weights.min() == 1:
                failed += small
            else:
                seen += small
    assert failed <= binom.isf(1e-6, 60, DOUBTFUL_P_VALUE)
    assert seen >= 30


@pytest.mark.campaign
@pytest.mark.parametrize("deviation", [0.0, 0.5])
@pytest.mark.parametrize("together", [np.bitwise_or, np.bitwise_xor])
def test_nothing_is_claimed_where_people_add_another_number_together(together, deviation):
    def answers(subset, bits, rng):
        added = bits & subset
        return together(added[::2], added[1::2]).sum() + rng.normal(0, deviation)

    for seed in range(2):
        found = attacked(answers, seed)[0]
        assert found.finding.probably_right == SIZE / 2
        assert "no sums of bits" in found.basis


@pytest.mark.parametrize(
    "errors", [np.zeros_like, np.sign, np.exp, lambda x: x**9], ids=["none", "±", "lognormal", "far"]
)
def test_sums_with_errors_of_any_law_show_no_pair_of_people(errors):
    rng = np.random.default_rng(2)
    bits, shown = rng.integers(0, 2, SIZE), 0
    for _ in range(20):
        subsets = Subsets.drawn(rng, 12 * SIZE, SIZE)
        answers = subsets.sums(bits.astype(float)) + errors(rng.normal(0, 1, len(subsets)))
        plain = least_squares_adversary(subsets, answers, offset=True, sharpened=False)
        shown += pairs_add_more(subsets, answers, plain)
        shown += equal_ones_p_value(subsets, answers, plain, bits) < LEVEL
    assert shown <= binom.isf(1e-6, 40, LEVEL)


SAYING_NOTHING = ["noise", "noisy_constant", "half_sizes", "other_bits_each_time", "constant", "noisy_sizes"]


@pytest.mark.parametrize("law", soon(SAYING_NOTHING, 4))
def test_answers_that_say_nothing_claim_nothing(law):
    """Noise passes the test of three standard errors once in 700 systems."""
    claiming = sum((calibration.attack(law, SIZE, seed)[0] > 0.5).any() for seed in range(3))
    assert claiming <= binom.isf(1e-3, 3, 1 / 700)


@pytest.mark.campaign
@pytest.mark.parametrize("offset", [0, 16, -300])
def test_an_honest_system_is_claimed_to_be_nearly_known(offset):
    found, bits = attacked(lambda q, b, g: offset + b[q].sum() + g.normal(0, 2), 1)
    assert np.array_equal(found.reconstruction.bits, bits)
    # The least that scales and further differences between people leave open.
    assert found.finding.probably_right > 0.8 * SIZE
    assert abs(found.scale.value - 1) < 4 * found.scale.error


@pytest.mark.parametrize("adversary", [least_squares_adversary, polynomial_adversary])
@pytest.mark.parametrize("offset", [-300.0, -16.0, 0.0, 16.0, 10_000.0])
def test_a_hidden_offset_changes_nothing(adversary, offset):
    rng = np.random.default_rng(2)
    bits, subsets = rng.integers(0, 2, SIZE), Subsets.drawn(rng, query_count(SIZE), SIZE)
    answers = subsets.sums(bits.astype(float)) + rng.uniform(-3, 3, len(subsets))
    found, plain = (adversary(subsets, answers + more, offset=True) for more in (offset, 0.0))
    assert np.array_equal(found.bits, bits)
    assert found.offset == pytest.approx(offset + plain.offset, abs=0.02)
    assert found.fractions == pytest.approx(plain.fractions, abs=1e-3)


def test_the_scale_is_that_of_answers_it_was_not_made_of():
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2, SIZE)
    subsets = Subsets.drawn(rng, 400, SIZE)
    sums = subsets.sums(bits.astype(float))
    found = Reconstruction(bits=bits, fractions=bits.astype(float), largest_residual=0.0)
    for scale in (1.0, 0.4, -1.0):
        measured = held_out_scale(subsets, 7 + scale * sums, found)
        assert measured.value == pytest.approx(scale)
        assert measured.error < 1e-6
        noisy = held_out_scale(subsets, 7 + scale * sums + rng.normal(0, 3, 400), found)
        assert abs(noisy.value - scale) < 4 * noisy.error
        # Of 400 answers: 3/√(400·n/8), half the bits being 1, half of them in a subset, beside the subset's size.
        assert noisy.error == pytest.approx(3 / math.sqrt(400 * bits.sum() * (1 - bits.mean()) / 4), rel=0.25)
    alike = Reconstruction(bits=np.zeros(SIZE, int), fractions=np.zeros(SIZE), largest_residual=0.0)
    assert held_out_scale(subsets, sums, alike) is None  # predicts what a constant does
    assert (claims_of_fit(least_squares_adversary(subsets, sums, offset=True), None) == 0.5).all()


def test_a_few_answers_that_are_far_off_hide_no_scale():
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 2, SIZE)
    subsets = Subsets.drawn(rng, 400, SIZE)
    answers = subsets.sums(bits.astype(float)) + 2 * rng.standard_cauchy(400)
    found = Reconstruction(bits=bits, fractions=bits.astype(float))
    measured = held_out_scale(subsets, answers, found)
    assert measured.significant
    assert measured.low < 1 < measured.high + measured.error
    assert not held_out_scale(subsets, 1e6 * rng.standard_cauchy(400), found).significant


@pytest.mark.campaign
@pytest.mark.parametrize("adversary", ["polynomial", "least-absolute"])
def test_of_a_named_adversary_no_more_is_claimed_than_is_right(adversary):
    """One answer in ten has nothing to do with anybody: the linear program recovers no bit, and least squares do."""
    claimed, right = 0.0, 0
    for seed in range(4):
        found, bits = attacked(
            lambda q, b, g: b[q].sum() + g.normal(0, 2) if g.random() < 0.9 else g.integers(0, len(b)), seed, adversary
        )
        claimed += found.finding.probably_right
        right += int((found.reconstruction.bits == bits).sum())
    assert claimed <= right + 12  # two standard deviations of how many of 160 guesses are right


@pytest.mark.campaign
@pytest.mark.parametrize("law", sampled([law for law in calibration.LAWS if law not in calibration.UNTOLD], 10))
def test_claims_hold_over_many_systems(law):
    systems = scaled(200)
    row = calibration.measure(law, 64, systems)
    # Bits that are not claimed are guesses: each is right with probability 1/2.
    variance = (64 * systems - sum(part["bits"] for part in row["bins"])) / 4
    for part in row["bins"]:
        number, claim = part["bits"], part["claimed"]
        # Bits of one system are right or wrong together where its scale is missed: a system counts as one bit.
        variance += (own := claim * (1 - claim) * number * min(64, max(number / systems, 1)))
        assert law in calibration.HIDDEN or part["right"] >= claim * number - 4 * math.sqrt(own) - 1, part
    assert row["right"] >= row["claimed"] - 1 - 4 * math.sqrt(variance) / systems


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [92, 136])
def test_bits_that_say_no_more_than_a_constant_are_not_claimed(seed):
    """Of 200 systems with clipped answers these two had all bits recovered as 0, each claimed with .9999."""
    claims, right = calibration.attack("clipped", 64, seed)
    assert not right.all()
    assert (claims == 0.5).all()
