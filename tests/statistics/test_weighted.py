"""Weighted runs: weights that are right in the mean whatever is drawn, and e-values that keep their level."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from dpwitness.candidate import Candidate, Estimate, Stake
from dpwitness.claims import ApproxDP
from dpwitness.errors import InvalidParameter
from dpwitness.events import Interval, Weighted, event_from_json
from dpwitness.events.weighted import FARTHEST, LEADING, LEVELS, MOST_DRAWS, SHARE
from dpwitness.evidence import Counts, bet_on, detectable_parameter, lower_bound
from dpwitness.evidence.bet import best_stake, weighted_errors, weighted_rates
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.mechanisms.tilted import CannotTilt, offset_of, tilted, tilted_signature
from dpwitness.neighbours import Pair
from dpwitness.noise import discrete_gaussian, exponential, gaussian, geometric, gumbel, laplace

PAIR = Pair(np.array([0.0]), np.array([-0.5]))
RUNS = 1 << 11
#: Far tails, all of them seen in less than one of a thousand plain runs.
FAR = 8.0


def one_laplace(rng, data):
    return data[0] + laplace(rng, 1.0)


def one_gaussian(rng, data):
    return data[0] + gaussian(rng, 2.0)


def one_exponential(rng, data):
    return data[0] + exponential(rng, 1.0)


def one_gumbel(rng, data):
    return data[0] + gumbel(rng, 1.0)


def one_geometric(rng, data):
    return data[0] + geometric(rng, 1.5)


def one_discrete_gaussian(rng, data):
    return data[0] + discrete_gaussian(rng, 2.5)


def two_gaussians(rng, data):
    return data[0] + gaussian(rng, 2.0) + gaussian(rng, 1.0)


def first_of_three(rng, data):
    kept = laplace(rng, 1.0)
    gaussian(rng, 1.0)
    return data[0] + kept + 0 * laplace(rng, 3.0)


def until_positive(rng, data):
    x = laplace(rng, 1.0)
    while x <= 0:
        x = laplace(rng, 1.0)
    return data[0] + x


def leaves_early(rng, data):
    if gaussian(rng, 1.0) > 0:
        return data[0]
    return data[0] + laplace(rng, 1.0)


def as_often_as_the_coin_says(rng, data):
    total = data[0]
    while rng.random() < 0.5:
        total += gaussian(rng, 1.0)
    return total


def more_than_are_shifted(rng, data):
    total = data[0]
    for _ in range(MOST_DRAWS + 6):
        total += gaussian(rng, 1.0) / 4
    return total


def several_entries(rng, data):
    return np.array([laplace(rng, 1.0) for _ in range(2)]) + data[0]


def no_noise_at_all(rng, data):
    return data[0] + laplace(rng, 0.0)


def numpys_own(rng, data):
    return data[0] + rng.laplace(0.0, 1.0)


def shadowed(rng, data):
    laplace = 2.0
    return data[0] + laplace * rng.random()


def of_coin(t):
    """P[the sum of so many N(0, 1) as a coin shows heads ≥ t]."""
    return sum(0.5 ** (k + 1) * stats.norm.sf(t / math.sqrt(k)) for k in range(1, 200))


def whole_tail(log_mass, t):
    k = np.arange(-400, 401)
    mass = np.exp(log_mass(k))
    return mass[k >= t].sum() / mass.sum()


#: A mechanism, the shifts of its draws, and P[outcome ≥ t] on the input 0.
CASES = {
    "laplace": (one_laplace, [FAR], lambda t: 0.5 * math.exp(-t)),
    "laplace away": (one_laplace, [-3.0], lambda t: 0.5 * math.exp(-t)),
    "gaussian": (one_gaussian, [4.0], lambda t: stats.norm.sf(t / 2)),
    "exponential": (one_exponential, [math.log(FAR)], lambda t: math.exp(-max(t, 0.0))),
    "gumbel": (one_gumbel, [7.0], lambda t: -math.expm1(-math.exp(-t))),
    "geometric": (one_geometric, [5.0], lambda t: whole_tail(lambda k: -np.abs(k) / 1.5, t)),
    "discrete gaussian": (one_discrete_gaussian, [3.2], lambda t: whole_tail(lambda k: -(k**2) / 12.5, t)),
    "two draws": (two_gaussians, [3.0, 1.5], lambda t: stats.norm.sf(t / math.sqrt(5))),
    "ignored draws": (first_of_three, [FAR, 2.0, -1.0], lambda t: 0.5 * math.exp(-t)),
    "a number of draws by their values": (until_positive, [6.0, 3.0, 1.0], lambda t: math.exp(-max(t, 0.0))),
    "an early exit": (leaves_early, [-1.0, FAR], lambda t: 0.25 * math.exp(-t)),
    "a number of draws by chance": (as_often_as_the_coin_says, [3.0, 2.0, 1.0, 1.0], of_coin),
    "more draws than are shifted": (
        more_than_are_shifted, [0.4] * MOST_DRAWS, lambda t: stats.norm.sf(t * 4 / math.sqrt(MOST_DRAWS + 6))
    ),
    "several entries": (several_entries, [FAR, 0.0], lambda t: 0.5 * math.exp(-t)),
}  # fmt: skip


def made(function, shifts, pair=PAIR, *, compiled=False):
    """The mechanism with shifted noise, as machine code or as the plain Python that this is compared with."""
    if compiled:
        mechanism = as_mechanism(function, pair.data, neighbour=pair.neighbour)
        own = tilted(mechanism, pair, np.array(shifts))
        assert offset_of(own, mechanism, pair) == offset(function, shifts)
        return own
    own = PythonMechanism(tilted_signature(Signature.of(function, {}), np.array(shifts)).interpreted())
    own.begin(None, keyed=False, by_position=True)
    return own


def offset(function, shifts):
    """The column of the outcome: a list begins with its length."""
    return LEADING + len(shifts) + (function is several_entries)


def weighted_rows(function, shifts, seed, runs=RUNS, *, compiled=False):
    """Rows of both sides."""
    rng = np.random.Generator(np.random.SFC64(seed))
    own = made(function, shifts, compiled=compiled)
    return own.pair_outcomes(PairedRuns.d_first(PAIR, runs, coupled=True), rng)


def above(threshold, function, shifts):
    interval = Interval(coordinate=0, low=threshold)
    return Weighted(event=interval, shifts=np.array(shifts), offset=offset(function, shifts))


def counts_of(event, rows):
    k = event.cells
    i, j = (event.cell_of(side) for side in rows)
    cells = np.bincount(i * k + j, minlength=k * k)
    inside = (i > 0, j > 0)
    n11 = int((inside[0] & inside[1]).sum())
    n10, n01 = (int(side.sum()) - n11 for side in inside)
    return Counts(n10=n10, n11=n11, n01=n01, n00=len(i) - n10 - n11 - n01, cells=tuple(cells.tolist()))


def expect_the_tail(case, thresholds, **how):
    """Both sides within five standard errors; the relative error at the last threshold."""
    function, shifts, tail = CASES[case]
    rows = weighted_rows(function, shifts, 7, **how)
    for threshold in thresholds:
        counts = counts_of(above(threshold, function, shifts), rows)
        for side, x in enumerate((0.0, -0.5)):
            found, error = weighted_rates(counts)[side], weighted_errors(counts)[side]
            assert abs(found - tail(threshold - x)) < 5 * error  # one in a million of right weights
    return weighted_errors(counts)[0] / tail(thresholds[-1])


@pytest.mark.campaign
@pytest.mark.parametrize("case", [case for case in CASES if case != "more draws than are shifted"])
def test_weights_are_right_in_the_mean(case):
    expect_the_tail(case, (0.5, 1.25, 2.0))


@pytest.mark.campaign
@pytest.mark.parametrize("case", CASES)
def test_weights_of_machine_code_are_right_in_the_mean(case):
    expect_the_tail(case, (0.5, 1.25, 2.0, 4.0), runs=1 << 18, compiled=True)


@pytest.mark.campaign
@pytest.mark.parametrize(
    "case",
    ["laplace", "gaussian", "exponential", "gumbel", "geometric", "two draws", "an early exit", "several entries"],
)
def test_a_tail_that_plain_runs_hardly_see_is_seen_well(case):
    # Of a probability of 4e-5 to 3e-3, by 2,048 runs of which some 205 are shifted.
    assert expect_the_tail(case, (FAR,)) < 0.3


@pytest.mark.campaign
def test_no_weight_exceeds_its_bound_and_all_weights_add_up_to_one():
    shifts = [3.0, -2.0]
    rows = weighted_rows(two_gaussians, shifts, 1)
    counts = counts_of(above(-math.inf, two_gaussians, shifts), rows)
    for rate, error in zip(weighted_rates(counts), weighted_errors(counts), strict=True):
        assert abs(rate - 1) < 5 * error
    assert rows[0, :, 0].max() <= len(LEVELS) - 1
    assert np.all((LEVELS >= 0) & (LEVELS <= 1))
    assert LEVELS[-1] == 1
    shifted = rows[0, :, 2]
    assert abs(shifted.mean() - SHARE) < 5 * math.sqrt(SHARE * (1 - SHARE) / RUNS)


def test_noise_of_scale_zero_stays_as_it_is():
    rows = weighted_rows(no_noise_at_all, [5.0], 3, runs=256)
    assert np.all(rows[0, :, LEADING + 1] == 0)
    assert set(LEVELS[rows[0, :, 0].astype(int)]) <= {LEVELS[-1], LEVELS[-2]}  # w = 1: 1 − τ, rounded


@pytest.mark.parametrize(
    ("function", "why"), [(numpys_own, "none of the samplers"), (shadowed, "none of the samplers")]
)
def test_other_noise_cannot_be_shifted(function, why):
    with pytest.raises(CannotTilt, match=why):
        tilted_signature(Signature.of(function, {}), np.zeros(1))


def alarms(seeds, runs, *, compiled, alpha=0.05):
    """How often, of so many times, a claim that just holds is refuted at any of 16 looks, or exceeded by the bound."""
    pair, threshold, shifts = Pair(np.array([0.0]), np.array([-1.0])), 5.0, [3.0]
    own = made(one_gaussian, shifts, pair, compiled=compiled)
    p, q = stats.norm.sf(threshold / 2), stats.norm.sf((threshold + 1) / 2)
    epsilon = math.log(1.2)
    claim = ApproxDP(epsilon, p - 1.2 * q)  # p = e^ε·q + δ: the claim holds of this event, and of no larger one
    event = above(threshold, one_gaussian, shifts)
    estimate = Estimate(p=p, q=q, both=q, stake=Stake(bet=0.9, against=epsilon))
    rng = np.random.Generator(np.random.SFC64(2026))
    ever = too_large = 0
    for _ in range(seeds):
        rows = own.pair_outcomes(PairedRuns.d_first(pair, runs, coupled=True), rng)
        bets = [bet_on(counts_of(event, rows[:, : runs * k // 16]), claim, estimate) for k in range(1, 17)]
        ever += max(bet.log_e_value(claim) for bet in bets) >= math.log(1 / alpha)
        too_large += lower_bound(bets[-1], claim.at(0.0), alpha=alpha) > epsilon * (1 + 1e-9)
    return ever, too_large


def expect_the_level(seeds, runs, **how):
    assert max(alarms(seeds, runs, **how)) <= stats.binom.isf(1e-9, seeds, 0.05)


@pytest.mark.campaign
def test_a_claim_that_just_holds_is_seldom_refuted():
    expect_the_level(32, 256, compiled=False)


@pytest.mark.campaign
def test_a_claim_that_just_holds_is_seldom_refuted_in_many_seeds():
    expect_the_level(2_000, 4_096, compiled=True)


@pytest.mark.campaign
def test_the_evidence_falls_in_epsilon():
    counts = counts_of(above(FAR, one_gaussian, [4.0]), weighted_rows(one_gaussian, [4.0], 5))
    estimate = Estimate(p=1e-5, q=1e-6, both=1e-6, stake=Stake(bet=0.5, against=0.5))
    bet = bet_on(counts, ApproxDP(0.5, 1e-6), estimate)
    logs = [bet.log_e_value(ApproxDP(epsilon, 1e-6)) for epsilon in np.linspace(0.0, 9.0, 50)]
    assert all(a >= b for a, b in pairwise(logs))
    assert logs[-1] == -math.inf  # a bet that could lose more than all is lost


def tail_law(scale, threshold, shift, steps=20_000):
    """The joint law of levels where Laplace noise of that scale is added to 1 on D and to 0 on D′, from the same draws.

    The event is what lies above the threshold; a part `SHARE` of the draws is shifted by `shift`, in scales.
    """
    table = np.zeros((len(LEVELS), len(LEVELS)))
    ends = (threshold - 1) / scale, threshold / scale, threshold / scale + 40
    for low, high, on_both in ((*ends[:2], False), (*ends[1:], True)):
        z = np.linspace(low, high, steps)
        mass = sum(w * -np.diff(stats.laplace.sf(z - s)) for w, s in ((1 - SHARE, 0.0), (SHARE, shift)))
        middle = (z[1:] + z[:-1]) / 2
        ratio = np.exp(np.abs(middle) - np.abs(middle - shift))  # of the shifted law and the law itself
        value = (1 - SHARE) / (1 - SHARE + SHARE * ratio)
        level = np.clip(np.searchsorted(LEVELS, value, side="right") - 1, 0, len(LEVELS) - 2)
        up = (value - LEVELS[level]) / (LEVELS[level + 1] - LEVELS[level])
        for k, part in ((level, mass * (1 - up)), (level + 1, mass * up)):
            own = np.bincount(k, part, len(LEVELS))
            table[np.diag_indices(len(LEVELS)) if on_both else (slice(None), 0)] += own
    table[0, 0] += 1 - table.sum()
    return table


@pytest.mark.parametrize(("epsilon", "p", "runs"), [(0.1, 0.01, 3_000), (0.3, 0.01, 100_000), (1.0, 0.001, 100_000)])
def test_what_would_have_been_caught_is_refuted_as_often_as_said(epsilon, p, runs):
    """Where D alone is in the event a run pays all, where both are next to nothing: .51 were, of 3,000 runs."""
    claim, alpha, rng = ApproxDP(epsilon), 1e-6, np.random.default_rng(1)

    def law(parameter):
        scale = 1 / parameter
        threshold = 1 - scale * math.log(2 * p)
        return tail_law(scale, threshold, (threshold - 1) / scale)

    estimate = Estimate(p=p, q=claim.smallest(p, 2 * epsilon), stake=Stake(bet=0.999, against=epsilon))

    def counts(cells):
        inside = cells[1:, 1:].sum(), cells[1:, 0].sum(), cells[0, 1:].sum()
        n11, n10, n01 = map(int, inside)
        n00 = int(cells.sum()) - n11 - n10 - n01
        return Counts(n10=n10, n11=n11, n01=n01, n00=n00, cells=tuple(cells.ravel().tolist()))

    own = np.round(law(epsilon) * runs).astype(int)
    own[0, 0] += runs - own.sum()
    caught = detectable_parameter(bet_on(counts(own), claim, estimate), claim, alpha=alpha)
    tables = rng.multinomial(runs, law(caught).ravel(), 400).reshape(400, *own.shape)
    refuted = [bet_on(counts(one), claim, estimate).log_e_value(claim) >= math.log(1 / alpha) for one in tables]
    assert np.mean(refuted) > 0.9


def test_swapped_sides_are_the_same_bet_the_other_way():
    rows, event = weighted_rows(one_laplace, [3.0], 5, runs=1_024), above(2.0, one_laplace, [3.0])
    counts = counts_of(event, rows)
    assert counts.swapped() == counts_of(event, rows[::-1])
    assert weighted_rates(counts)[::-1] == weighted_rates(counts.swapped())


def test_a_stake_never_grows_where_the_claim_holds():
    joint = np.zeros((len(LEVELS), len(LEVELS)))
    joint[0, 0], joint[5, 5] = 0.5, 0.5
    assert best_stake(joint, ApproxDP(0.1, 0.0).half_plane()) == 0


def test_a_candidate_of_weighted_runs_needs_a_stake_and_no_other_may_have_one():
    interval = Interval(coordinate=0, low=2.0)
    weighted = Weighted(event=interval, shifts=np.array([1.0]), offset=6)
    staked = Estimate(p=0.1, q=0.0, both=0.0, stake=Stake(bet=0.5, against=1.0))
    assert Candidate(pair=PAIR, event=weighted, estimate=staked).weighted
    for event, estimate in ((weighted, Estimate(p=0.1, q=0.0)), (weighted, None), (interval, staked)):
        with pytest.raises(ValueError, match="weighted runs"):
            Candidate(pair=PAIR, event=event, estimate=estimate)


@pytest.mark.parametrize(("bet", "against"), [(1.0, 1.0), (-0.1, 1.0), (math.nan, 1.0), (0.5, -1.0), (0.5, math.inf)])
def test_a_stake_is_a_part_of_the_largest_bet(bet, against):
    with pytest.raises(ValueError, match="between"):
        Stake(bet=bet, against=against)


@pytest.mark.parametrize(
    ("shifts", "offset"), [([math.nan], 6), ([2 * FARTHEST], 6), ([0.0] * (MOST_DRAWS + 1), 70), ([1.0], 5), ([1.0], 8)]
)
def test_shifts_and_offsets_of_a_file_are_checked(shifts, offset):
    with pytest.raises(InvalidParameter):
        Weighted(event=Interval(coordinate=0), shifts=shifts, offset=offset)


def test_an_event_is_written_and_read():
    event = Weighted(event=Interval(coordinate=0, low=2.0), shifts=np.array([1.5]), offset=6)
    again = event_from_json(event.to_json())
    assert again.to_json() == event.to_json()
