"""Claims as regions: validity of every half-plane, closed forms, and that the half-planes taken have power."""

import json
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, ndtr, ndtri

import dpwitness as dpw
from dpwitness import ZCDP, ApproxDP, GaussianDP, PrivacyProfile, RenyiDP, TradeOff
from dpwitness.claims import HalfPlane, claim_from_json
from dpwitness.claims.regions import boundary_of
from dpwitness.claims.trade_off import TEST_SIZES
from dpwitness.errors import BadInput, InvalidClaim
from dpwitness.evidence import Estimate, detectable_at_best, event_bet, growth_rate, log_e_value, lower_bound
from dpwitness.evidence.counts import Counts
from dpwitness.mechanisms.claims import claim_of_text
from running import soon
from truth import gaussian_delta

#: Probabilities of D′ at which a half-plane is compared with the region in arithmetic of 60 digits.
RATES = [1e-300, 1e-30, *(10.0 ** -np.arange(2, 13)), *np.linspace(0.02, 0.98, 25), 1 - 1e-9]


def gaussian_curve(mu):
    return TradeOff(lambda a: ndtr(-ndtri(a) - mu))


CLAIMS = [
    GaussianDP(1.0), GaussianDP(0.05), RenyiDP(2, 0.5), RenyiDP(40, 1.5), RenyiDP(1.01, 0.1), ZCDP(0.5), ZCDP(0.02),
    PrivacyProfile([(0.0, 0.3), (0.5, 0.01), (1, 1e-3)]), TradeOff([(0, 1), (0.1, 0.7), (0.5, 0.2), (1, 0)]),
    gaussian_curve(1.0),
]  # fmt: skip


def exceeds(order, epsilon, p, q):
    """Whether D_α(p ‖ q) ≥ ε, in exact arithmetic, up to the last of 60 digits."""
    with mpmath.workdps(60):
        p, q, a = mpmath.mpf(p), mpmath.mpf(q), mpmath.mpf(order)
        h = p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)
        return h >= mpmath.exp((a - 1) * mpmath.mpf(epsilon))


def points_on(slope, intercept):
    """Points of the line of a half-plane below p = 1, as exact numbers, in the part p > q."""
    for q in RATES:
        with mpmath.workdps(60):
            p = mpmath.mpf(float(slope)) * mpmath.mpf(float(q)) + mpmath.mpf(float(intercept))
        if q < p < 1:
            yield p, q


def chosen(claim, draw):
    """Some of a claim's half-planes, and some of those of other members of its family, each with its order."""
    places = draw.integers(0, 1023, 3)
    boundary = boundary_of(claim)
    yield from zip(*planes(boundary.planes, places), boundary.contacts.hints[0][places], [claim] * 3, strict=True)
    others = np.array([1e-4, 0.03, 0.7, 1.3]) * claim.parameter
    found = claim.half_planes(others, *draw.random(2))
    yield from zip(found.slope, found.intercept, [None] * 4, map(claim.at, others), strict=True)


def planes(found, places):
    return found.slope[places], found.intercept[places]


@pytest.mark.campaign
@settings(deadline=None, max_examples=6)
@given(st.floats(1e-3, 40), st.integers(0, 10**6))
def test_half_planes_of_gaussian_dp_contain_its_region(mu, seed):
    claim, rng = GaussianDP(mu), np.random.default_rng(seed)
    for slope, intercept, _, member in chosen(claim, rng):
        with mpmath.workdps(60):
            for z in np.linspace(-12 - member.mu, 12, 40):
                q, p = mpmath.ncdf(mpmath.mpf(z)), mpmath.ncdf(mpmath.mpf(z) + mpmath.mpf(member.mu))
                assert p <= mpmath.mpf(float(slope)) * q + mpmath.mpf(float(intercept))


@pytest.mark.campaign
@settings(deadline=None, max_examples=6)
@given(st.floats(1e-5, 1e5), st.floats(1e-4, 30), st.integers(0, 10**6))
def test_half_planes_of_renyi_dp_contain_its_region(less, epsilon, seed):
    claim, rng = RenyiDP(1 + less, epsilon), np.random.default_rng(seed)
    for slope, intercept, _, member in chosen(claim, rng):
        for p, q in points_on(slope, intercept):
            assert exceeds(member.alpha, member.epsilon, p, q), (p, q)


@pytest.mark.campaign
@settings(deadline=None, max_examples=5)
@given(st.floats(1e-4, 20), st.integers(0, 10**6))
def test_half_planes_of_zcdp_contain_its_region(rho, seed):
    """What lies on the line of a half-plane exceeds ρ·α at the order that the half-plane was made for."""
    claim, rng = ZCDP(rho), np.random.default_rng(seed)
    for slope, intercept, hint, member in chosen(claim, rng):
        orders = 1 + np.geomspace(1e-4, 1e6, 200) if hint is None else [1 + math.exp(hint)]
        for p, q in points_on(slope, intercept):
            if hint is None:  # the order is not known here: the one that is exceeded most, slightly rounded
                assert member.reached(float(p), q) >= member.rho * (1 - 1e-6) - 1e-9
            else:
                assert any(exceeds(a, member.rho * a * (1 - 1e-14), p, q) for a in orders), (p, q)


@pytest.mark.parametrize("claim", [ApproxDP(1.0), ApproxDP(0.5, 0.01), *CLAIMS], ids=str)
class TestEveryClaim:
    """What all claims keep: what they are in JSON, their boundary and its inverse, the parameters of events."""

    def test_it_is_read_back_as_it_was_written(self, claim):
        again = claim_from_json(json.loads(json.dumps(claim.to_json())))
        assert again == claim
        assert hash(again) == hash(claim)
        assert claim.at(claim.parameter) == claim
        assert claim.at(claim.parameter + 0.25).parameter == claim.parameter + 0.25
        assert str(claim.at(claim.parameter + 0.25)) != str(claim)

    def test_its_boundary_its_inverse_and_its_parameter_agree(self, claim):
        assert claim.largest(1.0) == 1.0
        before = 0.0
        for q in (1e-300, 1e-9, 1e-3, 0.05, 0.3, 0.6, 0.9):
            p = claim.largest(q)
            assert max(q, before) <= p <= 1
            before = p
            if p < 1:
                assert claim.smallest(p, claim.parameter) == pytest.approx(q, rel=1e-6)
                if q >= 1e-9 * getattr(claim, "delta", 0.0):  # δ hides less than that
                    assert float(claim.reached(p, q)) == pytest.approx(claim.parameter, rel=1e-6, abs=1e-9)
                wider = claim.at(claim.parameter + 0.1).largest(q)
                assert wider > p or (wider == p and q < 1e-6)
                if q > 1e-6 and wider < 1:
                    assert claim.smallest(wider, claim.parameter + 0.1) == pytest.approx(q, rel=1e-6)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
class TestEveryBoundary:
    """What the half-planes of a claim with a curved boundary, or with many corners, keep."""

    def test_half_planes_contain_the_region_and_those_of_contacts_touch_it(self, claim):
        rates = np.array([1e-12, 1e-6, 1e-3, 0.02, 0.1, 0.3, 0.5, 0.8])
        for member in (claim, claim.at(claim.parameter + 0.4)):
            allowed, boundary = np.array([member.largest(q) for q in rates]), boundary_of(member)
            for place in range(0, len(boundary.contacts.q), max(len(boundary.contacts.q) // 10, 1)):
                slope, intercept = boundary.planes.slope[place], boundary.planes.intercept[place]
                assert np.all(slope * rates + intercept >= allowed * (1 - 1e-9))
                q, p = boundary.contacts.q[place], boundary.contacts.p[place]
                assert slope * q + intercept == pytest.approx(p, rel=0.01, abs=1e-12)
            planes = claim.half_planes(np.array([0.5 * member.parameter, member.parameter]), 0.3, 0.1)
            assert np.all(planes.slope[1] * rates + planes.intercept[1] >= allowed * (1 - 1e-9))

    @pytest.mark.parametrize("q", [0.0, 1e-5, 0.01, 0.2, 0.5])
    def test_the_half_plane_that_is_taken_grows_nearly_as_fast_as_any(self, claim, q):
        """Independent sides; clear violations and small ones."""
        boundary = boundary_of(claim)
        for excess in (0.05, 0.5, 2.0):
            p = claim.at(claim.parameter * (1 + excess) + 0.1 * excess * (claim.parameter == 0)).largest(max(q, 1e-4))
            best = float(growth_rate(p, q, boundary.planes).max())
            taken = float(growth_rate(p, q, claim.half_plane(p, q)))
            assert taken >= best / 1.15
            arrays = claim.half_plane(np.array([p, 0.4]), np.array([q, 0.4]))
            assert arrays.slope[0] == claim.half_plane(p, q).slope


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0.5", 0.5), ("1,1e-5", ApproxDP(1.0, 1e-5)), ("dp:2", ApproxDP(2.0)), ("zcdp:0.5", ZCDP(0.5)),
        ("gdp:1", GaussianDP(1.0)), ("rdp:8,0.4", RenyiDP(8.0, 0.4)),
        *((text, None) for text in ("zcdp", "zcdp:", "rdp:8", "1,2,3", ":1", "gdp:1,2", "other:1", "zcdp:-1")),
    ],
)  # fmt: skip
def test_claims_as_text(text, found):
    if found is None:
        with pytest.raises(InvalidClaim, match="must be"):
            claim_of_text(text)
    else:
        assert claim_of_text(text) == found


def test_claims_in_files(tmp_path):
    file = tmp_path / "profile.json"
    for word, kind, points in (
        ("profile", PrivacyProfile, [[0.5, 0.01], [1, 1e-5]]), ("tradeoff", TradeOff, [[0, 1], [0.5, 0.1], [1, 0]]),
    ):  # fmt: skip
        file.write_text(json.dumps(points))
        assert claim_of_text(f"{word}:{file}") == kind(points)
    for broken in ("{", "3", "[]", "[[1]]", '{"kind": "other"}', '{"a": 1}'):
        file.write_text(broken)
        with pytest.raises(BadInput, match=r"profile\.json"):
            claim_of_text(f"profile:{file}")


@pytest.mark.parametrize("points", [3, 20, 70, 200])
def test_of_a_polygon_the_side_is_taken_that_grows_nearly_as_fast_as_any(points):
    """Rates of all sizes, at corners too; a polygon of more than 64 sides was given wrong ones at a quarter of them."""
    at = np.linspace(0, 1, points)
    claim = TradeOff([(a, float(ndtr(-ndtri(a) - 1))) for a in at])
    q = expit(np.random.default_rng(points).uniform(-20, 8, 300))
    for excess in (0.02, 0.2):
        p = np.array([claim.at(excess).largest(rate) for rate in q])
        taken = growth_rate(p, q, claim.half_plane(p, q), p * q)
        sides = zip(*TradeOff.sides(claim.points), strict=True)
        best = np.max([growth_rate(p, q, HalfPlane(float(s), float(t)), p * q) for s, t in sides], axis=0)
        clear = (p < 1) & (best > 1e-12)
        assert clear.sum() > 200
        assert np.all(taken[clear] > 0.9 * best[clear])


def gaussian_of_one(rng, data):
    return data[0] + rng.normal()


@pytest.mark.parametrize("family", ["profile", "trade-off"])
def test_a_pass_of_a_family_of_excess_rests_on_a_frequent_event(family):
    """All events fall short of no excess by nothing: the first in the order, a tail that detects nothing, was taken."""
    profile = PrivacyProfile([(e / 4, gaussian_delta(e / 4, mu=1.02)) for e in range(25)])
    claim = profile if family == "profile" else TradeOff(lambda a: float(ndtr(-ndtri(a) - 1.02)))
    neighbours = dpw.pairs(([1.0], [0.0]))
    verdict = dpw.check(gaussian_of_one, claim=claim, neighbours=neighbours, runs=300_000, seed=1, bits=False)
    assert isinstance(verdict, dpw.NotRefuted)
    assert verdict.counts.hits > 0.2 * verdict.counts.runs
    assert verdict.detectable < 0.1


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_the_gaussian_mechanism_lies_on_the_boundary_of_what_it_satisfies(mu):
    """μ-GDP exactly; (α, αμ²/2)-RDP, μ²/2-zCDP and each (ε, δ(ε)) with some room for events (closed forms)."""
    profile = PrivacyProfile([(e, gaussian_delta(e, mu=mu)) for e in np.linspace(0, 4, 41)])
    outer = gaussian_curve(mu)
    for z in np.linspace(-6, 4, 11):
        q, p = float(ndtr(z)), float(ndtr(z + mu))
        assert GaussianDP(mu).largest(q) == pytest.approx(p, rel=1e-12)
        for claim in (ZCDP(mu**2 / 2), *(RenyiDP(a, a * mu**2 / 2) for a in (1.5, 2, 8, 100)), profile, outer):
            assert p <= claim.largest(q) * (1 + 1e-9)
        assert outer.largest(q) <= p + 1e-4
    at = np.linspace(-9, 9, 20_001)
    p, q = stats.norm.cdf(at + mu), stats.norm.cdf(at)
    tangent = [float(np.max(p - math.exp(e) * q)) for e in (0.0, 0.5, 2.0)]
    assert tangent == pytest.approx([gaussian_delta(e, mu=mu) for e in (0.0, 0.5, 2.0)], abs=1e-6)


def test_randomised_response_lies_on_the_boundary_of_its_divergence():
    """Its two outcomes are an event and its complement, so nothing is lost: Mironov 2017, Proposition 5."""
    t = math.e / (1 + math.e)
    for alpha in (1.5, 2.0, 10.0):
        exact = math.log(t**alpha * (1 - t) ** (1 - alpha) + (1 - t) ** alpha * t ** (1 - alpha)) / (alpha - 1)
        assert RenyiDP(alpha, exact).largest(1 - t) == pytest.approx(t, rel=1e-9)
        assert float(RenyiDP(alpha, 0.1).reached(t, 1 - t)) == pytest.approx(exact, rel=1e-12)
    assert RenyiDP(1e6, 0.5).largest(0.1) == pytest.approx(ApproxDP(0.5).largest(0.1), rel=1e-4)


def test_the_laplace_mechanism_is_within_its_renyi_divergence():
    """Closed form of Mironov 2017, Table II; events of Lap(1) against Lap(1) + 1."""
    for a in (1.1, 2.0, 20.0):
        claim = RenyiDP(a, math.log(a / (2 * a - 1) * math.exp(a - 1) + (a - 1) / (2 * a - 1) * math.exp(-a)) / (a - 1))
        for t in np.linspace(-3, 4, 15):
            assert stats.laplace.sf(t - 1) <= claim.largest(stats.laplace.sf(t)) * (1 + 1e-9)


@pytest.mark.library
def test_dp_accounting_agrees_with_the_profile_of_gaussian_dp():
    library = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism", reason="dp-accounting, if it is there")
    law = library.GaussianPrivacyLoss(1.0)
    for epsilon in (0.0, 0.5, 2.0, 4.0):
        assert gaussian_delta(epsilon, mu=1.0) == pytest.approx(law.get_delta_for_epsilon(epsilon), rel=1e-9)


def leaky(rng, data):
    return data[0] * (rng.random() < 0.4)


@pytest.mark.parametrize("claim", soon([RenyiDP(2, 0.3), ZCDP(0.2), RenyiDP(1.001, 0.3)], 1), ids=str)
def test_an_output_of_one_side_alone_is_more_than_any_parameter(claim):
    assert claim.reached(0.4, 0.0) == math.inf
    assert list(claim.reached(np.array([0.0, 0.4]), np.zeros(2))) == [0.0, math.inf]
    found = dpw.bound(leaky, claim=claim, neighbours=dpw.pairs(([1], [0])), seed=1, runs=2_000, search_runs=1_000)
    assert found.lower_bound > claim.parameter


@pytest.mark.parametrize("claim", soon([GaussianDP(0.8), gaussian_curve(0.7), RenyiDP(2, 0.3), ZCDP(0.2)], 3), ids=str)
def test_evidence_and_bounds_of_expected_counts(claim):
    """Counts as they are expected of N(0, 1) against N(1, 1): refuted, and never more than what is true."""
    p, q, n = stats.norm.sf(0.3 - 1), stats.norm.sf(0.3), 200_000
    cells = [round(n * x) for x in (p * (1 - q), p * q, (1 - p) * q, (1 - p) * (1 - q))]
    counts, hint = Counts(n10=cells[0], n11=cells[1], n01=cells[2], n00=cells[3]), Estimate(p=p, q=q)
    assert log_e_value(counts, claim, hint) > math.log(1e6)
    found = lower_bound(event_bet(counts, hint), claim, alpha=1e-6)
    assert claim.parameter < found <= float(claim.reached(p, q))
    assert found >= 0.85 * float(claim.reached(p, q))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianDP(-1), "mu=-1.0"),
        (lambda: ZCDP(math.nan), "rho=nan"),
        (lambda: RenyiDP(1.0, 1.0), "alpha=1.0"),
        (lambda: PrivacyProfile([]), "at least one"),
        (lambda: PrivacyProfile([(0.1, 0.1), (0.2, 0.3)]), "must fall"),
        (lambda: TradeOff([(0, 1), (0.5, 0.5), (0.6, 0.1), (1, 0)]), "convex"),
        (lambda: PrivacyProfile([(1, 1e-5), (1, 1e-6)]), "two values at 1.0"),
        (lambda: TradeOff(lambda a: a), "from 0 to 1"),
        (lambda: RenyiDP(2, 701.0), "epsilon=701.0"),
        (lambda: ApproxDP(1.0, 1.0), "delta=1.0"),
        (lambda: PrivacyProfile([(1.0, 1.0)]), "ε from 0 to 700"),
        (lambda: claim_from_json({"kind": "zcdp"}), "rho"),
    ],
)
def test_what_is_no_claim_is_refused(make, message):
    with pytest.raises(InvalidClaim, match=message):
        make()


@pytest.mark.parametrize(
    ("claim", "short"),
    [
        (ApproxDP(0.0, 0.9999999), "(0, 0.9999999)-DP"),  # every mechanism is (0, 1)-DP
        (RenyiDP(1.0000001, 0.25), "(1.0000001, 0.25)-RDP"),
        (ApproxDP(1.0, 1e-5), "(1, 1e-05)-DP"),
        (ApproxDP(0.1 + 0.2), "0.3-DP"),
    ],
)
def test_a_verdict_names_no_weaker_claim_than_was_tested(claim, short):
    assert claim.short == short


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("claim", [ZCDP(2.0), GaussianDP(3.0), RenyiDP(1.0001, 4.2), ApproxDP(0.0, 0.9)])
def test_a_strong_claim_can_be_refuted_by_the_runs_that_are_usual(claim):
    """An event of p = 1/2 that D′ has at the rate allowed at less than twice the claim; of δ = 0.9, one of p = 0.95."""
    caught = detectable_at_best(2_000_000, claim, alpha=1e-6)
    assert claim.parameter < caught < max(1.2 * claim.parameter, 0.1)
    assert detectable_at_best(2_000_000, ZCDP(100.0), alpha=1e-6) == math.inf


def laplace_curve(epsilon):
    """The trade-off function of Laplace noise (Dong, Roth & Su 2022, Proposition A.6)."""

    def f(a):
        if a < math.exp(-epsilon) / 2:
            return 1 - math.exp(epsilon) * a
        return math.exp(-epsilon) / (4 * a) if a <= 0.5 else math.exp(-epsilon) * (1 - a)

    return f


def subsampled(f, rate):
    """Dong, Roth & Su 2022, Section 4: a record is in the sample with probability `rate`, one direction."""
    return lambda a: rate * f(a) + (1 - rate) * (1 - a)


def exponential_curve(epsilon, delta):
    return lambda a: max(0.0, 1 - delta - math.exp(epsilon) * a, math.exp(-epsilon) * (1 - delta - a))


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["laplace", "epsilon-delta", "gaussian"])
def test_all_that_a_trade_off_function_allows_is_in_its_region_and_little_more(kind):
    """At some ε two corners near a = 1 are so close that the slope between them is wrong by a thousandth."""
    rates = np.concatenate([np.geomspace(1e-9, 0.5, 60), 1 - np.geomspace(1e-9, 0.5, 60)])
    sized = [0.3475, 0.5209, *np.geomspace(0.02, 8, 25)]
    curves = [
        {
            "laplace": laplace_curve(e),
            "epsilon-delta": exponential_curve(e, 1e-5),
            "gaussian": lambda a, mu=e: float(ndtr(ndtri(1 - a) - mu)),
        }[kind]
        for e in sized
    ]
    for f in [*curves, *(subsampled(f, rate) for f in curves for rate in (0.01, 0.37, 0.9))]:
        slopes, intercepts = TradeOff.sides(TradeOff(f).points)
        region = np.min(slopes * rates[:, None] + intercepts, axis=1)
        allowed = np.array([1 - f(float(q)) for q in rates])
        assert np.all(region >= allowed)
        assert np.all(np.minimum(region, 1.0) <= allowed + 1e-3)


def kinked(a):
    """Two kinks at neighbouring points of the grid, where f has nearly fallen to 0: the worst case."""
    first, second = TEST_SIZES[500:502]
    return max(1 - 0.98 * a / first, 0.02 * (second - a) / (second - first), 0.0)


@pytest.mark.parametrize(
    ("f", "most"),
    [(kinked, 1e-2), *((lambda a, mu=mu: float(ndtr(-ndtri(a) - mu)), 1e-3) for mu in (6.0, 8.0, 10.0))],
)
def test_the_polygon_of_a_steep_function_is_near_it_from_the_least_size_of_its_grid_on(f, most):
    at, claim = np.geomspace(1e-12, 0.5, 3_000), TradeOff(f)
    gap = np.array([f(a) - (1 - claim.largest(a)) for a in at])
    assert np.all(gap >= 0)
    assert np.max(gap) < most
    if f is kinked:
        assert np.max(gap) > 0.8 * most


@pytest.mark.parametrize("a", [0.0, 0.01, 0.1])
def test_a_trade_off_function_that_is_known_from_the_left_end_on_only_claims_no_more_there(a):
    """Of f(a) and f(b) alone f may rise along their line to the left, and be no higher anywhere than it is convex."""
    first, second, b = 0.7, 0.4, 0.4
    claim = TradeOff([(a, first), (b, second), (1, 0)])
    expected = min(first + (first - second) / (b - a) * a, 1.0)
    assert claim.largest(0.0) == pytest.approx(1 - expected, abs=1e-12)
    for share in (0.0, 0.25, 0.5, 1.0):
        at = share * a
        assert claim.largest(at) == pytest.approx(1 - (first + (first - second) / (b - a) * (a - at)), abs=1e-9)


@pytest.mark.parametrize("kind", [TradeOff, PrivacyProfile])
def test_a_point_that_is_given_twice_is_one_point(kind):
    points = [(0.5, 0.3), (0.7, 0.1)]
    assert kind([*points, *points]) == kind(points)


@pytest.mark.parametrize(
    ("kind", "points"),
    [
        (TradeOff, [(0, 1), (5e-324, 0.5), (1, 0)]),
        (TradeOff, [(0, 1), (1e-310, 0)]),
        (TradeOff, [(0, 1), (1e-300, 0.5), (1e-300 * (1 + 3e-16), 0.4), (0.5, 0.1)]),
        (TradeOff, [(0, 1), (0.5, 1e-310), (1, 0)]),
        (TradeOff, [(0, 0.5), (1 - 1e-16, 1e-17)]),
        (PrivacyProfile, [(5e-324, 1e-17), (695.0, 1e-310)]),
        (PrivacyProfile, [(0.0, 1 - 1e-16), (690.0, 0.0)]),
    ],
)
def test_corners_that_nearly_coincide_have_finite_half_planes_that_contain_the_region(kind, points):
    """NumPy's warnings are errors in tests."""
    claim = kind(points)
    at = np.concatenate([[0.0], np.logspace(-323, 0, 200)])
    allowed = np.array([claim.largest(q) for q in at])
    assert np.all((allowed >= 0) & (allowed <= 1))
    assert np.all(np.diff(allowed) >= 0)
    for estimate in [(0.5, 0.1), (1.0, 0.0), (1e-9, 0.0), (0.5, 1e-300)]:
        plane = claim.half_plane(*estimate)
        assert np.all(plane.slope * at + plane.intercept >= allowed * (1 - 1e-12))
        assert 0 <= claim.smallest(estimate[0], 0.0) <= 1
        assert claim.reached(*estimate) >= 0
    assert "nan" not in str(claim)


def test_points_that_count_as_no_error_of_the_first_kind_claim_no_more_than_was_given():
    points = [(0.0, 1.0), (5e-324, 0.7), (1e-300, 0.5), (0.5, 0.1), (1.0, 0.0)]
    claim = TradeOff(points)
    assert claim.points == ((0.0, 0.5), (0.5, 0.1), (1.0, 0.0))
    assert all(claim.largest(a) >= 1 - f for a, f in points)


def test_zcdp_allows_a_divergence_of_rho_times_the_order():
    assert [ZCDP(0.5).largest_divergence(order, 0.5) for order in (1.5, 2.0, 16.0)] == pytest.approx([0.75, 1.0, 8.0])
