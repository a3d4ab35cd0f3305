"""`follows`: its level, exactly and by simulation, its power, and what a pass says; the laws of `dpwitness.laws`."""

import math
import random
import re
from itertools import count, product

import numpy as np
import pytest
from scipy import stats

import dpwitness as dpw
from dpwitness.api import follows as module
from dpwitness.laws import discrete_gaussian
from running import keeps_level

LAPLACE = stats.laplace()
GRID = np.arange(-60, 61)
#: The number of samples of a fault that a pass names: at least 17 must be refuted, as 3 % would be with a power of .5.
SAMPLED_SEEDS = 24


DETECTABLE = module.Hypothesis.detectable


@pytest.fixture(autouse=True)
def no_power(monkeypatch):
    """The power of a pass takes half a second to estimate."""
    monkeypatch.setattr(module.Hypothesis, "detectable", lambda *_: math.inf)


@pytest.fixture
def power(no_power, monkeypatch):
    monkeypatch.setattr(module.Hypothesis, "detectable", DETECTABLE)


def from_table(law):
    p = law.pmf(GRID)
    return lambda rng, size: rng.choice(GRID, size, p=p / p.sum())


def two_sided(rng, size, q):
    return rng.geometric(q, size) - rng.geometric(q, size)


HONEST = {
    "laplace": (lambda rng, size: rng.laplace(0, 2, size), stats.laplace(scale=2)),
    "normal": (lambda rng, size: rng.normal(1, 2, size), stats.norm(1, 2)),
    "uniform": (lambda rng, size: rng.random(size), stats.uniform()),
    "geometric": (lambda rng, size: two_sided(rng, size, 0.2), stats.dlaplace(-math.log(0.8))),
    "discrete Gaussian": (from_table(discrete_gaussian(3)), discrete_gaussian(3)),
    "Poisson": (lambda rng, size: rng.poisson(7, size), stats.poisson(7)),
}


@pytest.mark.parametrize("memory", [False, True])
def test_an_e_value_has_the_mean_1_under_the_law(memory):
    """The mean is the sum over all sequences of 7 draws, each with its probability under the law."""
    p = np.array([0.5, 0.3, 0.2])
    mean = 0.0
    for sequence in product(range(3), repeat=7):
        one = module.SymbolPartition(np.arange(3), p, str, 0.25, memory)
        one.add(np.array(sequence))
        mean += p[list(sequence)].prod() * math.exp(one.log_e_value(one.counts, 1000))
    assert mean == pytest.approx(0.25, rel=1e-9)  # the weight


@pytest.mark.parametrize("name", HONEST)
def test_cells_have_the_probabilities_of_the_law(name):
    """Checked by 10⁵ draws of SciPy's sampler; the sum of all p exceeds 1 by the allowed errors only."""
    law = HONEST[name][1]
    tested = module.Hypothesis(law, 100_000, np.dtype(np.float64))
    tested.add(np.asarray(law.rvs(100_000, random_state=1), np.float64))
    for one in tested.partitions:
        assert 1 <= one.p.sum() < 1 + 1e-8
        if not one.memory:
            kept = one.p * 100_000 > 10
            excess = (one.counts[0] - 1e5 * one.p)[kept] / np.sqrt(1e5 * one.p[kept])
            assert np.abs(excess).max() < 6
    assert sum(one.weight for one in tested.partitions) + tested.tie_weight == pytest.approx(1)


@pytest.mark.campaign
@pytest.mark.parametrize("name", HONEST)
def test_the_level(name):
    sampler, law = HONEST[name]
    found = ([dpw.follows(sampler, law, draws=500, alpha=0.2, seed=seed).refuted] for seed in count())
    assert keeps_level(found, 0.2, times=2)


def last_bit_lost(rng, size, scale):
    x = two_sided(rng, size, 1 - math.exp(-1 / scale))
    return np.where(rng.random(size) < 0.05, x & ~1, x)


def without_zero(rng, size):
    x = two_sided(rng, 2 * size + 50, 1 - math.exp(-1 / 100))
    return x[x != 0][:size]


def autoregressive(rng, size):
    x = rng.normal(size=size)
    for t in range(1, size):
        x[t] = 0.1 * x[t - 1] + math.sqrt(0.99) * x[t]
    return x


def of_32_bits(rng, size):
    return LAPLACE.ppf(rng.integers(1, 1 << 32, size) / 2.0**32)


def short_tails(rng, size):
    x = rng.laplace(size=size)
    return np.where(np.abs(x) > 6, x / 3, x)


BROKEN = {
    "scale": (lambda rng, size: rng.laplace(0, 1.05, size), LAPLACE, 30_000, r"values (from|above|up to)"),
    "family": (lambda rng, size: rng.laplace(0, math.sqrt(0.5), size), stats.norm(), 2_000, "values from"),
    "rounded": (lambda rng, size: np.rint(rng.normal(size=size)), discrete_gaussian(1), 40_000, "values "),
    "tails": (short_tails, LAPLACE, 40_000, r"values (from|above|up to)"),
    "zero": (without_zero, stats.dlaplace(0.01), 20_000, r"values equal to 0 have .* came in 0 of .* draws \(0\)"),
    "bits": (lambda rng, size: last_bit_lost(rng, size, 50), stats.dlaplace(0.02), 60_000, "integers with remainder ."),
    "bits of wide noise": (
        lambda rng, size: last_bit_lost(rng, size, 1e4), stats.dlaplace(1e-4), 60_000, "integers with remainder ."
    ),
    "dependence": (autoregressive, stats.norm(), 30_000, "draws after values"),
    "32 bits": (of_32_bits, LAPLACE, 1_000_000, "draws repeat an earlier value; at most"),
    "one seed": (lambda size: np.random.default_rng(1).laplace(size=size), LAPLACE, 50, "repeat an earlier value"),
    "support": (lambda rng, size: rng.normal(size=size), stats.expon(), 16, "draw 1 is -.*, which has probability 0"),
    "half": (lambda rng: rng.poisson(3) / 2, stats.poisson(3), 16, r"draw \d+ is \d\.5, which has probability 0"),
    "a cell of all": (lambda rng, size: rng.random(size), stats.gamma(1e-3), 50, "values from .* have probability"),
    "NaN": (lambda: math.nan, stats.poisson(3), 16, "draw 1 is nan"),
    "infinity": (lambda: math.inf, LAPLACE, 16, "draw 1 is inf"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_sampler_is_refuted_and_the_sentence_says_where(name):
    sampler, law, draws, finding = BROKEN[name]
    found = dpw.follows(sampler, law, draws=draws, seed=5)
    assert found.refuted
    assert found.draws <= draws
    assert re.search(finding, found.finding), found.finding
    assert found.p_value <= found.alpha == 1e-6
    assert found.detectable_scale == found.detectable_shift == math.inf


#: Samplers that round draws to a grid, whose values have probabilities up to 2⁻³⁶ and repeat a few times in 10⁶ draws,
#: to single precision, to doubles far from 0, and to values just outside the ends of the support.
ROUNDED = {
    "grid": (lambda rng, size: np.rint(rng.laplace(size=size) * 2.0**35) / 2.0**35, LAPLACE),
    "float32": (lambda rng, size: rng.standard_normal(size, dtype=np.float32), stats.norm()),
    "far from 0": (lambda rng, size: rng.normal(1e10, 1, size), stats.norm(1e10)),
    "ends": (lambda rng, size: rng.uniform(0.1, 0.4, size), stats.uniform(0.1, 0.3)),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_draws_are_not_refuted(name):
    sampler, law = ROUNDED[name]
    assert not dpw.follows(sampler, law, draws=1_000_000 if name == "grid" else 200_000, seed=2).refuted


def test_draws_of_single_precision_in_doubles_are_refuted():
    found = dpw.follows(
        lambda rng, size: rng.standard_normal(size, dtype=np.float32).astype(float), stats.norm(), seed=1
    )
    assert found.refuted
    assert "repeat" in found.finding


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("law", "sampler"),
    [
        (stats.laplace(scale=3), lambda rng, size, scale, shift: shift + rng.laplace(0, 3 * scale, size)),
        (stats.expon(), lambda rng, size, scale, shift: shift + rng.exponential(scale, size)),
        # The integer k is the interval from k − ½ to k + ½: a shift is rounded at random.
        (stats.poisson(50), lambda rng, size, scale, shift: np.floor(rng.poisson(50, size) + rng.random(size) + shift)),
    ],
)  # fmt: skip
def test_a_pass_would_have_caught_what_it_says(law, sampler, monkeypatch):
    with monkeypatch.context() as only:
        only.setattr(module.Hypothesis, "detectable", DETECTABLE)
        passed = dpw.follows(lambda rng, size: sampler(rng, size, 1, 0), law, draws=20_000, seed=3)
    assert not passed.refuted
    scale, shift = passed.detectable_scale, passed.detectable_shift
    faults = [(1, shift), (1, -shift)] + [(1 + scale, 0), (1 / (1 + scale), 0)] * hasattr(law, "pdf")
    for by, to in faults:
        caught = [
            dpw.follows(lambda rng, size, by=by, to=to: sampler(rng, size, by, to), law, draws=20_000, seed=s).refuted
            for s in range(SAMPLED_SEEDS)
        ]
        assert sum(caught) >= stats.binom.ppf(1e-4, SAMPLED_SEEDS, 0.95)
    by, to = (1 + scale / 2, 0) if hasattr(law, "pdf") else (1, shift / 2)  # a fault half as large is caught less often
    less = sum(
        dpw.follows(lambda rng, size: sampler(rng, size, by, to), law, draws=20_000, seed=s).refuted
        for s in range(SAMPLED_SEEDS)
    )
    assert less < stats.binom.ppf(1e-4, SAMPLED_SEEDS, 0.95)


def test_the_time_ends_the_draws():
    found = dpw.follows(np.random.default_rng(1).laplace, LAPLACE, draws=10**9, max_time="300ms")
    assert found.draws < 10**9
    assert found.seconds < 10
    slow = dpw.follows(random.random, stats.uniform(), draws=10**9, max_time=0.1)
    assert 1 <= slow.draws < 10**9


@pytest.mark.parametrize(
    "sampler",
    [
        lambda: random.gauss(0, 1), lambda rng: rng.normal(), lambda size: np.random.default_rng().normal(size=size),
        lambda rng, size: rng.normal(size=size).tolist(), lambda rng, n_samples: rng.normal(size=n_samples),
        stats.norm().rvs, np.random.default_rng(1).standard_normal, lambda rng, scale=1.0: rng.normal(0, scale),
    ],
)  # fmt: skip
def test_samplers_of_every_form(sampler):
    found = dpw.follows(sampler, stats.norm(), draws=200, alpha=1e-6, seed=1)
    assert (found.draws, found.refuted) == (200, False)


@pytest.mark.parametrize(
    ("sampler", "law", "more", "message"),
    [
        (3, LAPLACE, {}, "sampler=3 must be a function"),
        (lambda rng, n: 0, LAPLACE, {}, "sampler: 'n' needs a value"),
        (lambda: "a", LAPLACE, {}, "sampler returned 'a': it must return one number"),
        (lambda: None, LAPLACE, {}, "sampler returned None: it must return one number"),
        (lambda: [1.0, 2.0], LAPLACE, {}, r"sampler returned \[1.0, 2.0\]: it must return one number"),
        (lambda size: [1.0], LAPLACE, {}, r"returned \[1.0\]: it must return an array of 16 numbers for size=16"),
        (lambda: 0, "laplace", {}, "law='laplace' must be a law of scipy.stats"),
        (lambda: 0, stats.laplace(scale=[1, 2]), {}, "must be a law of scipy.stats"),
        (lambda: 0, stats.laplace(scale=-1), {}, r"law=laplace\(scale=-1\) must have finite quantiles"),
        (lambda: 0, stats.poisson(2, loc=0.5), {}, r"law=poisson\(2, loc=0.5\) must have finite quantiles, whole"),
        (lambda: 0, LAPLACE, {"alpha": 1}, "alpha=1 must lie between 0 and 1"),
        (lambda: 0, LAPLACE, {"draws": 15}, "draws=15 must be a whole number at least 16|from 16 to"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_clear_line(sampler, law, more, message):
    with pytest.raises((dpw.InvalidParameter, dpw.InvalidOutcome), match=message) as caught:
        dpw.follows(sampler, law, **more)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("power")
def test_a_result_has_no_truth_value_and_says_what_it_is():
    passed = dpw.follows(*HONEST["laplace"], draws=1000, seed=1)
    refuted = dpw.follows(*BROKEN["scale"][:2], draws=100_000, seed=1)
    for found, head in ((passed, "NOT REFUTED: independent draws from laplace(scale=2)"), (refuted, "REFUTED with")):
        with pytest.raises(TypeError, match=r"assert not follows\(…\)\.refuted"):
            bool(found)
        assert str(found) == found.report()
        assert found.report().startswith(head)
        assert repr(found).startswith(f"<GoodnessOfFit: {head}")
        assert all(len(line) <= 72 for line in found.report().splitlines()[1:])
    assert refuted.finding in repr(refuted)
    assert f"{100 * passed.detectable_scale:.0f} %" in passed.report()


@pytest.mark.parametrize("scale", [0.03, 0.4, 1.0, 7.5, 1000.0])
def test_the_discrete_gaussian_has_its_probabilities(scale):
    """The probabilities are compared with sums by Python's `fsum`, the tails to a relative 10⁻¹²."""
    law, far = discrete_gaussian(scale), math.ceil(38 * scale)
    weights = {k: math.exp(-(k * k) / (2 * scale * scale)) for k in range(-far, far + 1)}
    total = math.fsum(weights.values())
    for k in {0, 1, -1, round(scale), -round(3 * scale), round(8 * scale), -round(8 * scale)}:
        upto = math.fsum(weight for at, weight in weights.items() if at <= k) / total
        beyond = math.fsum(weight for at, weight in weights.items() if at > k) / total
        assert law.pmf(k) == pytest.approx(weights.get(k, 0.0) / total, rel=1e-12)
        assert law.cdf(k) == pytest.approx(upto, rel=1e-12)
        assert law.sf(k) == pytest.approx(beyond, rel=1e-12, abs=0)
        assert law.cdf(k) == 1 or law.ppf(law.cdf(k)) == k or law.pmf(k) < 1e-15
    assert law.ppf(0.5) == 0
    assert list(law.pmf([0.5, math.inf])) == [0, 0]


def test_a_scale_that_no_table_holds_is_refused():
    for scale in (0, -1, math.nan, math.inf, 2e5):
        with pytest.raises(dpw.InvalidParameter, match=r"must be from 0\.03 to 100,000"):
            discrete_gaussian(scale)
