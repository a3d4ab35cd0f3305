"""The adaptive attack: any histogram, its own test of what it finds, and what it says where it cannot know."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.datasets import nile

from dpwitness.errors import AttackStopped, InvalidParameter
from dpwitness.files import read_column
from dpwitness.reconstruction.questions import Limits
from dpwitness.reconstruction.threshold_testing import attack
from dpwitness.reconstruction.threshold_testing.attack import Reconstruction, adaptive_attack
from dpwitness.reconstruction.threshold_testing.comparison import (
    Comparison,
    ReferenceSums,
    find_base_sum,
    random_sum,
)
from dpwitness.reconstruction.threshold_testing.oracle import Noise, Queries, ThresholdOracle, queries_of
from dpwitness.reconstruction.threshold_testing.relative_counts import (
    OPEN_LIMIT,
    Bisection,
    RelativeCounts,
    find_relative_counts,
    in_largest_unit,
    prevailing_unit,
)

SMALL = np.array([0, 0, 2, 2, 3, 3, 5, 5, 7, 9, 12, 30] * 5)


def oracle_at(counts, z, epsilon2=np.inf, totals=None, seed=0):
    """An oracle whose noisy threshold is z: noise of scale 10⁻³⁰⁰ around it."""
    return ThresholdOracle(
        np.asarray(counts), np.random.default_rng(seed), epsilon1=1e300, epsilon2=epsilon2, threshold=z,
        epsilon_totals=totals,
    )  # fmt: skip


@pytest.fixture(scope="module")
def no_ones(data_folder):
    counts = read_column(data_folder / "medical_cost.csv")
    return np.where(counts == 1, 0, counts)


@pytest.mark.parametrize("z", [-9.5, 0.3, 9.5])
@pytest.mark.parametrize("change", [lambda x: x, lambda x: x + 5, lambda x: 2 * x + 1])
def test_counts_without_a_cell_of_one_are_read(z, change):
    counts = change(SMALL)
    found = adaptive_attack(oracle_at(counts, z, totals=10.0), np.random.default_rng(1))
    assert found.method == "weighing"
    assert found.known.all()
    assert found.factor == 1
    assert found.guess.tolist() == counts.tolist()
    assert found.confidence > 0.999


def test_real_data_without_ones_are_read_in_few_queries(no_ones):
    found = adaptive_attack(
        ThresholdOracle(no_ones, np.random.default_rng(2), epsilon1=0.45, epsilon_totals=0.05), np.random.default_rng(3)
    )
    assert np.array_equal(found.guess, no_ones)
    assert found.queries < 12 * len(no_ones)


@pytest.mark.campaign
@given(st.lists(st.integers(0, 12), max_size=20), st.integers(-8, 8), st.integers(0, 1000), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_what_is_claimed_is_right_up_to_a_factor(more, z, seed, shift):
    counts = np.array([2, 2, 3, 4, 4, 5, 6, 9, *more]) + shift
    found = adaptive_attack(oracle_at(counts, z - 0.5), np.random.default_rng(seed))
    factors = {x / guess for x, guess, known in zip(counts, found.guess, found.known, strict=True) if known and guess}
    assert len(factors) <= 1
    assert not np.any(counts[found.known & (found.guess == 0)])


@pytest.mark.campaign
def test_counts_that_the_answers_do_not_determine_are_not_claimed():
    # Of these eight cells a solution in units of a twelfth explained 60 answers, and all of 40 fresh ones.
    counts = np.array([3, 3, 4, 5, 5, 6, 7, 10])
    found = adaptive_attack(oracle_at(counts, -2.5), np.random.default_rng(181))
    assert not np.any(found.known & (found.guess != counts))


def test_a_common_divisor_is_known_from_a_total_alone():
    found = adaptive_attack(oracle_at(3 * SMALL, 4.5), np.random.default_rng(1))
    assert found.factor is None
    assert found.guess.tolist() == SMALL.tolist()
    sold = adaptive_attack(oracle_at(3 * SMALL, 4.5, totals=1.0), np.random.default_rng(1))
    assert sold.factor == 3
    assert sold.guess.tolist() == (3 * SMALL).tolist()


@pytest.mark.campaign
def test_counts_that_no_sum_of_the_first_cells_tells_apart_are_read():
    """Nearly all of these are even: where the first 24 are, nothing lies between 1,159 and 1,160 in their sums."""
    counts = nile.load_pandas().data["volume"].to_numpy().astype(int)
    rng = np.random.default_rng([37, 1])
    found = adaptive_attack(ThresholdOracle(counts, rng, epsilon1=0.9, epsilon_totals=0.1), rng)
    assert found.known.mean() >= 0.98  # 0.79 of these draws without a second look
    assert np.array_equal(found.guess[found.known], counts[found.known])


def told(low, total, known=True):
    """What the attack says of counts in a unit, and of a total that an oracle gave."""
    low = np.array(low)
    relative = RelativeCounts(low=low, high=low + (not known), likeliest=low * 1.0, fresh_sums=64, threshold=None)
    oracle = oracle_at(low, 0.5)
    oracle.totals = lambda parts: np.array([total])
    oracle.noise = Noise(epsilon2=np.inf, epsilon_totals=1.0)
    return attack._claim_relative(oracle, relative, False)


def test_a_unit_finer_than_people_is_known_from_a_total():
    for people in (1, 2):
        found = told([30, 45, 60, 150], 19.2 * people)
        assert found.known.all()
        assert (found.guess.tolist(), found.factor) == ([2 * people, 3 * people, 4 * people, 10 * people], people)


def test_a_total_that_contradicts_the_counts_gives_no_factor():
    assert told([30, 45, 60, 151], 286.0).factor == 1
    assert told([30, 45, 60, 151], 340.0).factor is None  # neither once nor twice their sum
    assert told([30, 45, 60, 151], 20.0).factor is None  # fewer people than units, and no common divisor


def limited(epsilon1, threshold, theta=0.0, negated=False):
    """What the attack says of counts without totals, where the threshold is known to be so many units."""
    relative = RelativeCounts(low=SMALL, high=SMALL, likeliest=SMALL * 1.0, fresh_sums=64, threshold=threshold)
    oracle = Queries(None, len(SMALL), Noise(epsilon1=epsilon1, threshold=theta))
    return attack._claim_relative(oracle, relative, negated=negated)


def test_the_threshold_limits_the_factor():
    # z lies in (4, 5] units. At most ln(20)/ε₁ = 6 with 95 %: no two people a unit.
    assert limited(0.5, 5).factor == 1
    wide = limited(0.1, 11)
    assert wide.factor is None
    assert wide.factor_at_most == pytest.approx(np.log(20) / 0.1 / 10)


def test_a_threshold_that_no_noise_explains_limits_nothing():
    # z above 20, of noise of scale 2: once in 20,000 times. ε₁ or θ is not what was said.
    found = limited(0.5, 21)
    assert (found.factor, found.factor_at_most) == (None, None)
    assert limited(0.5, 21, theta=20.0).factor == 1
    assert limited(0.5, 21, theta=20.0, negated=True).factor is None


@pytest.mark.parametrize("factor", [2, 3])
def test_the_limit_of_the_factor_covers_the_true_one_as_often_as_it_says(factor):
    # |z| is what counts: queries are asked negated where z is not positive. For (z)/factor in (T − 1, T].
    rng, epsilon1, runs = np.random.default_rng(11), 0.3, 20_000
    missed = 0
    thresholds = np.ceil(np.abs(rng.laplace(0.0, 1 / epsilon1, runs)) / factor).astype(int)
    for threshold, number in zip(*np.unique(thresholds, return_counts=True), strict=True):
        said = limited(epsilon1, int(threshold))
        missed += number * (said.factor == 1 or (said.factor_at_most or np.inf) < factor)
    assert missed <= binom.isf(1e-9, runs, 0.05)
    assert missed > 0.01 * runs  # and says something


SIXTEENS = np.concatenate([16 * np.random.default_rng(1).poisson(3, 150), [17, 35, 59, 101], np.zeros(400, np.int64)])


@pytest.mark.parametrize("z", [-0.3, *(pytest.param(z, marks=pytest.mark.campaign) for z in (-5.82, -2.24, 5.26))])
def test_cells_between_two_whole_numbers_of_the_others_unit_are_not_claimed(z):
    found = adaptive_attack(oracle_at(SIXTEENS, z), np.random.default_rng(1))
    assert np.all(found.right_claims(SIXTEENS) == found.known)
    assert found.confidence < 0.999  # a single such cell need not show


@pytest.mark.campaign
@pytest.mark.parametrize("counts", [[0, 6, 10, 48, 199], [0, 30, 50, 240, 1001]])
def test_a_ratio_that_another_group_seems_to_tell_is_not_claimed_wrongly(counts):
    """In units of 2 and of 10 people the last count is nearly 100."""
    truth = np.repeat(counts, [106, 109, 97, 105, 95])
    for seed in range(2):
        found = adaptive_attack(oracle_at(truth, -1.2), np.random.default_rng(seed))
        some = found.known & (found.guess > 0)
        assert len(np.unique(truth[some] / found.guess[some])) <= 1


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [5, *range(5)])
def test_a_ratio_that_so_few_cells_leave_open_is_not_claimed(seed):
    # 17 times 3 for 40 times 7 passed 64 fresh sums of 60 cells; of seed 5 where a unit of nearly all is looked for.
    rng = np.random.default_rng(seed)
    counts = rng.choice([0, 7, 40], 120, p=[0.5, 0.3, 0.2])
    found = adaptive_attack(oracle_at(counts, -1.16), rng)
    some = found.known & (found.guess > 0)
    factors = np.unique(counts[some] / found.guess[some])
    assert np.array_equal(factors, np.rint(factors))
    assert len(factors) <= 1


@pytest.mark.parametrize(
    ("cells", "z"),
    [
        ([3] * 8 + [7], 4.6),
        pytest.param([9] * 5 + [17] * 3, 0.7, marks=pytest.mark.campaign),
        pytest.param([5] * 3 + [13] * 3, -1.1, marks=pytest.mark.campaign),
    ],
)
def test_a_ratio_of_two_counts_is_claimed_only_where_sums_of_cells_alike_tell_it(cells, z):
    counts = np.array([*cells, 0, 0])
    for seed in range(4):
        found = adaptive_attack(oracle_at(counts, z), np.random.default_rng(seed))
        some = found.known & (found.guess > 0)
        assert len(np.unique(counts[some] / found.guess[some])) <= 1


def test_a_unit_is_one_of_nearly_all_cells():
    assert prevailing_unit(np.array([16] * 30 + [17, 35])) == 16
    assert prevailing_unit(np.array([16, 17, 35])) == 1
    assert prevailing_unit(np.array([2] * 500 + [3] * 12)) == 1  # so many do not lie there by chance
    assert prevailing_unit(np.zeros(4, np.int64)) == 1
    low = np.array([4, 8, 12, 4, 8, 5, 0])
    relative = in_largest_unit(low, low, 64, 9)
    assert relative.known.tolist() == [True] * 5 + [False, True]
    assert (relative.low[5], relative.high[5], relative.likeliest[5]) == (1, 2, 1.25)
    assert relative.threshold is None


def test_cells_that_the_answers_do_not_tell_apart_are_one_total():
    low = np.concatenate([SMALL, np.zeros(500, np.int64)])
    high = low + (np.arange(len(low)) >= len(SMALL))
    relative = RelativeCounts(low=low, high=high, likeliest=low * 1.0, fresh_sums=64, threshold=None)
    oracle, bought = oracle_at(low, 0.5), []

    def totals(parts):
        bought.append(parts)
        noise = np.random.default_rng(3).laplace(0.0, 20.0, parts.max() + 1)
        return np.bincount(parts, weights=low) + noise

    oracle.totals, oracle._totals = totals, totals
    oracle.noise = Noise(epsilon_totals=0.05)
    found = attack._claim_relative(oracle, relative, False)
    assert len(bought) == 1  # a budget is spent once
    assert bought[0].max() == 1
    assert np.array_equal(found.guess, low)


def test_only_a_factor_that_is_claimed_makes_counts_right():
    guess, truth = np.array([10, 10, 20, 5]), np.array([16, 16, 32, 8])
    said = {"guess": guess, "known": np.ones(4, bool), "confidence": 0.9, "method": "weighing", "queries": 1}
    assert Reconstruction(**said, factor=None).right_claims(truth).sum() == 0  # 1.6 is no whole number
    assert Reconstruction(**said, factor=None).right_claims(np.array([20, 20, 40, 11])).sum() == 3
    assert Reconstruction(**said, factor=None, factor_at_most=1.5).right_claims(2 * guess).sum() == 0


def test_a_cell_that_outweighs_all_others_is_not_claimed():
    counts = np.append(SMALL, 100_000)
    found = adaptive_attack(oracle_at(counts, 3.5, totals=100.0), np.random.default_rng(1))
    assert found.known.tolist() == [True] * len(SMALL) + [False]
    assert found.guess.tolist() == counts.tolist()  # the last one by a total of its own


@pytest.mark.parametrize("counts", [[0, 7, 40], [3, 5, 24, 100]])
def test_of_a_few_different_counts_or_of_a_few_cells_nothing_is_claimed(counts):
    rng = np.random.default_rng(2)
    assert not adaptive_attack(oracle_at(rng.choice(counts, 200), 2.3), rng).known.any()
    assert not adaptive_attack(oracle_at(rng.integers(0, 60, 30), 2.3), rng).known.any()


def test_where_its_own_test_fails_algorithm_4_is_run(monkeypatch):
    nothing = RelativeCounts(low=SMALL, high=SMALL, likeliest=SMALL * 1.0, fresh_sums=0, threshold=None)
    monkeypatch.setattr(attack, "find_relative_counts", lambda comparison, rng: nothing)
    found = adaptive_attack(oracle_at(SMALL, 0.5, totals=100.0), np.random.default_rng(1))
    assert found.method == "partition and totals"
    assert found.guess.tolist() == SMALL.tolist()
    assert not found.known.any()
    unsold = adaptive_attack(oracle_at(SMALL, 0.5), np.random.default_rng(1))
    assert not unsold.known.any()
    assert not unsold.guess.any()


def test_a_wrong_count_does_not_pass_the_test_of_fresh_sums():
    # One cell of 60 counted as one more: an error passes each of 64 sums with probability 3/4 at most.
    comparison = Comparison(oracle_at(SMALL, 3.5))
    rng = np.random.default_rng(4)
    bisection = Bisection(comparison, find_base_sum(comparison, rng))
    bisection.gap = 4 - int(bisection.base.signs @ SMALL)
    bisection.low[:] = bisection.high[:] = SMALL
    everything = np.arange(len(SMALL))
    assert bisection.test(everything, rng) >= 24
    wrong = int(bisection.base.above[0])
    bisection.low[wrong] = bisection.high[wrong] = SMALL[wrong] + 1
    assert bisection.test(everything, rng) == 0


def test_a_threshold_beyond_all_cells_gives_nothing_away():
    found = find_relative_counts(Comparison(oracle_at([1, 2, 3], 100.0)), np.random.default_rng(0))
    assert found.fresh_sums == 0
    assert not found.known.any()


@pytest.mark.campaign
@given(st.lists(st.integers(0, 12), min_size=2, max_size=14), st.floats(-15, 15), st.integers(0, 1000))
@settings(max_examples=3, deadline=None)
def test_the_adaptive_attack_ends_on_any_histogram(counts, z, seed):
    oracle = oracle_at(counts, z)
    found = adaptive_attack(oracle, np.random.default_rng(seed))
    assert found.guess.shape == (len(counts),)
    assert found.queries == oracle.queries


@given(st.data())
@settings(deadline=None)
def test_reference_sums_have_the_value_that_they_say(data):
    counts = np.array(data.draw(st.lists(st.integers(0, 30), min_size=3, max_size=25)))
    signs = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(counts), max_size=len(counts))), np.int8)
    known = np.array(data.draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts))))
    reference, rng = ReferenceSums(signs, known, counts), np.random.default_rng(data.draw(st.integers(0, 99)))
    first = data.draw(st.integers(-200, 200))
    last = first + data.draw(st.integers(0, 50))
    found = reference.between(first, last, first, rng)
    if found is not None:
        made, w = found
        assert np.abs(made).max() <= 1
        assert int(counts @ made) == int(counts @ signs) + w
        assert not np.any(made[~known | (signs == 1)] != signs[~known | (signs == 1)])
        assert first <= w <= last
    elif len(counts[known & (signs == 0) & (counts > 0)]) <= 9:  # then all signed sums are at hand
        sums = {0}
        for value in counts[known & (signs == 0)]:
            sums = {s + d * int(value) for s in sums for d in (-1, 0, 1)}
        assert not sums & set(range(first, last + 1))


def test_random_sums_have_the_value_that_they_say():
    rng, base = np.random.default_rng(5), np.zeros(len(SMALL), np.int8)
    base[:7] = 1
    for target in (-3, 0, 4):
        signs = random_sum(base, np.ones(len(SMALL), bool), SMALL, np.arange(len(SMALL)), target, rng)
        assert int(signs @ SMALL) == int(base @ SMALL) + target
        assert np.abs(signs).max() == 1


@pytest.mark.parametrize(("epsilon2", "z"), [(0.5, 9.2), (0.5, -3.0), (1.0, 0.1), (2.5, 4.2)])
def test_query_noise_is_read_through(epsilon2, z):
    counts = np.array([0, 0, 2, 2, 2, 3, 3, 4, 5, 7, 9, 12] * 6)
    found = adaptive_attack(oracle_at(counts, z, epsilon2=epsilon2, totals=10.0), np.random.default_rng(6))
    assert found.known.all()
    assert found.guess.tolist() == counts.tolist()


@pytest.mark.parametrize("epsilon2", [0.5, 1.45])
@pytest.mark.parametrize("share", [0.0, 0.45, 0.5, 1.0])
def test_answers_that_do_not_depend_on_the_question_claim_nothing(epsilon2, share):
    class Coin(Queries):
        def ask_all(self, questions, copies=1):
            return self._tossed(len(questions), copies)

        def ask_changes(self, changes, copies=1):
            return [self._tossed(len(cells), copies) for _, cells, _ in changes]

        def _tossed(self, number, copies):
            self.queries += number * copies
            return rng.binomial(copies, share, number)

    rng = np.random.default_rng(1)
    oracle = Coin(None, 30, Noise(epsilon2=epsilon2))
    assert not adaptive_attack(oracle, rng).known.any()
    assert oracle.queries < 100_000_000  # 2 cuts, at most 6,300 copies of each question


@pytest.mark.parametrize(("epsilon2", "z"), [(5.0, 3.0), (50.0, 4.9999), (1000.0, 7.5), (1e9, 2.0)])
def test_little_query_noise_takes_few_copies(epsilon2, z):
    counts = np.array([0, 0, 2, 2, 2, 3, 3, 4, 5, 7, 9, 12] * 6)
    oracle = oracle_at(counts, z, epsilon2=epsilon2, totals=10.0)
    found = adaptive_attack(oracle, np.random.default_rng(6))
    assert found.known.all()
    assert found.guess.tolist() == counts.tolist()
    assert oracle.queries < 100 * 576 * len(counts)


def test_a_common_divisor_is_no_part_of_the_counts():
    found = in_largest_unit(np.array([6, 0, 9, 4, 11]), np.array([6, 0, 9, OPEN_LIMIT, 12]), 40, 7)
    assert (found.low.tolist(), found.high.tolist(), found.threshold) == ([2, 0, 3, 1, 3], [2, 0, 3, OPEN_LIMIT, 4], 3)
    assert found.known.tolist() == [True, True, True, False, False]  # 11 or 12 may be 11


@pytest.mark.parametrize(("epsilon2", "copies"), [(1e-9, None), (1e-300, None), (5e-324, 3)])
def test_noise_that_takes_too_many_copies_is_refused_before_anything_is_asked(epsilon2, copies):
    oracle = oracle_at([1, 2, 3], 0.5, epsilon2=epsilon2)
    with pytest.raises(InvalidParameter, match=f"epsilon2={epsilon2:g} is too small"):
        adaptive_attack(oracle, np.random.default_rng(0), copies=copies)
    assert oracle.queries == 0


def test_query_noise_is_read_through_where_no_cell_is_light():
    counts = np.random.default_rng(7).integers(300, 900, 60)
    found = adaptive_attack(oracle_at(counts, 2.3, epsilon2=0.5), np.random.default_rng(8))
    assert found.known.all()
    assert found.guess.tolist() == counts.tolist()


def test_an_oracle_of_ones_own_is_asked_and_never_looked_into():
    asked = []

    def system(signs):
        asked.append(signs)
        signs = signs.copy()
        return bool(signs @ SMALL >= 3.5)

    found = adaptive_attack(queries_of(system, len(SMALL)), np.random.default_rng(9))
    assert found.guess.tolist() == SMALL.tolist()
    assert len(asked) == found.queries
    assert all(set(np.unique(signs)) <= {-1, 0, 1} for signs in asked)


def test_an_oracle_may_sell_totals():
    class System:
        def ask_all(self, questions):
            return [bool(signs @ SMALL >= 0.5) for signs in questions]

        def totals(self, parts):
            return np.bincount(parts, weights=SMALL)

    from dpwitness.reconstruction.threshold_testing.attack import reconstruct

    oracle = queries_of(System(), len(SMALL))
    assert reconstruct(oracle).guess.tolist() == SMALL.tolist()
    assert oracle.queries == len(SMALL) ** 2


def test_the_generic_way_of_asking_is_that_of_the_simulation():
    counts = np.array([3, 0, 5, 2, 2])
    fast = oracle_at(counts, 1.5)
    slow = queries_of(lambda signs: signs @ counts >= 1.5, len(counts))
    signs = np.array([1, 0, -1, 0, 0], np.int8)
    for one, other in zip(fast.larger(), slow.larger(), strict=True):
        assert one.tolist() == other.tolist()
    cells = np.array([1, 3])
    fast_answers, slow_answers = (oracle.ask_changes([(signs, cells, 1)]) for oracle in (fast, slow))
    assert np.array_equal(fast_answers, slow_answers)
    assert fast.ask(signs, 7) == slow.ask(signs, 7)
    assert fast.queries == slow.queries == 25 + 2 + 7
    with pytest.raises(ValueError, match="sensitivity"):
        slow.ask_changes([(np.ones(5, np.int8), cells, 1)])


def test_a_budget_ends_the_attack():
    oracle = queries_of(lambda signs: signs @ SMALL >= 3.5, len(SMALL), limits=Limits(budget=50))
    with pytest.raises(AttackStopped, match="--budget 50"):
        adaptive_attack(oracle, np.random.default_rng(0))


def test_parameters_out_of_range_are_refused():
    with pytest.raises(InvalidParameter, match="epsilon1=0"):
        oracle = ThresholdOracle(np.array([1, 2]), np.random.default_rng(0), epsilon1=0.0)
    with pytest.raises(InvalidParameter, match="epsilon2=0"):
        Noise(epsilon2=0.0)
    with pytest.raises(InvalidParameter, match="cells=1"):
        Queries(lambda questions: np.zeros(0), 1)
    oracle = oracle_at([1, 2], 0.5)
    with pytest.raises(InvalidParameter, match="copies=0"):
        adaptive_attack(oracle, np.random.default_rng(0), copies=0)
