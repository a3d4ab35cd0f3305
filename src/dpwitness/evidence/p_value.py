"""p-values of claims, exact or by a score test, and Holm's adjustment."""

import math
from collections.abc import Sequence

import numpy as np

from dpwitness.claims import Claim, HalfPlane
from dpwitness.evidence.counts import Counts


def p_value(counts: Counts, claim: Claim, *, method: str = "exact", seed: int = 0) -> float:
    """The p-value of the claim for a number of runs that was fixed beforehand, with independent sides.

    "exact", for claims p ≤ s·q such as ε-DP: the hits on D are thinned once by a seeded Binomial(hits, 1/s), then
    Fisher's one-sided exact test (Ding et al. 2018, section 4). "exact", for other claims: the smallest level at which
    two one-sided Clopper–Pearson bounds at half the level, p from below and q from above, lie outside a half-plane of
    the claim. "score": statsmodels' score test, quick and not exact; for δ > 0 or s ≥ 10¹⁰⁰ it tests the difference of
    the rates, after thinning on D. Raises `ValueError` for another method, and for "score" unless the claim is one
    half-plane, as (ε, δ) is.
    """
    if method not in ("exact", "score"):
        raise ValueError(f"method={method!r} must be 'exact' or 'score'")
    if method == "score" and claim.curved:
        raise ValueError(f"method='score' is for claims of ε and δ, not for {claim}: use 'exact'")
    if counts.runs == 0:
        return 1.0
    if claim.curved:
        return _clopper_pearson(counts, claim)
    plane = claim.half_plane()
    thinned = int(np.random.default_rng(seed).binomial(counts.hits, 1 / plane.slope))
    if method == "score":
        return _score(counts, plane, thinned)
    if plane.intercept:
        return _clopper_pearson(counts, claim)
    return fisher_p_value(thinned, counts.runs, counts.neighbour_hits, counts.runs, two_sided=False)


def fisher_p_value(hits: int, of: int, other_hits: int, of_others: int, *, two_sided: bool = True) -> float:
    """The p-value of Fisher's exact test against unequal shares (twice the smaller tail), or a larger first share."""
    from scipy.stats import hypergeom  # takes 0.5 s to import

    if not of or not of_others:
        return 1.0
    law = of + of_others, hits + other_hits, of
    larger = float(hypergeom.sf(hits - 1, *law))
    return min(1.0, 2 * min(float(hypergeom.cdf(hits, *law)), larger)) if two_sided else larger


def _clopper_pearson(counts: Counts, claim: Claim) -> float:
    from scipy import stats
    from scipy.optimize import brentq

    n, hits, other = counts.runs, counts.hits, counts.neighbour_hits

    def excess(log_level: float) -> float:
        """The amount by which the bounds violate the claim; it rises in the level."""
        half = math.exp(log_level) / 2
        lower = stats.beta.ppf(half, hits, n - hits + 1) if hits else 0.0
        upper = stats.beta.isf(half, other + 1, n - other) if other < n else 1.0
        plane = claim.half_plane(lower, upper)
        return float(lower - plane.slope * upper - plane.intercept)

    least, low = -700.0, -1.0
    if excess(0.0) <= 0:
        return 1.0
    while excess(low) > 0:  # in steps, as SciPy's bounds for few runs fail at levels near 10⁻³⁰⁴
        if low <= least:
            return math.exp(least)
        low = max(2 * low, least)
    tolerance = 1e-10
    level = brentq(excess, low, 0.0, xtol=tolerance) + tolerance  # rounded up
    while level < 0 and excess(level) <= 0:  # the half-plane of a curved claim may change with the level
        tolerance *= 2
        level += tolerance
    return min(math.exp(level), 1.0)


def _score(counts: Counts, plane: HalfPlane, thinned: int) -> float:
    from statsmodels.stats.proportion import (  # type: ignore[import-untyped]  # takes 0.6 s; no types
        test_proportions_2indep,
    )

    n, hits, other, how = counts.runs, counts.hits, counts.neighbour_hits, {"value": plane.slope, "compare": "ratio"}
    if plane.intercept or plane.slope >= 1e100:  # the score test of a ratio squares the slope, which overflows
        hits, how = thinned, {"value": plane.intercept / plane.slope, "compare": "diff"}
    elif hits == 0 or other == 0:  # the score statistic of a ratio needs hits on both sides
        hits, other, n = hits + 1, other + 1, n + 2
    with np.errstate(divide="ignore", invalid="ignore"):  # statsmodels computes ratios too, even of rates 0
        value = float(test_proportions_2indep(hits, n, other, n, method="score", alternative="larger", **how).pvalue)
    return 1.0 if math.isnan(value) else value  # no hits, or hits alone, on both sides: nothing varies


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted by Holm's step-down method (1979), for any dependence; statsmodels takes 0.6 s to import."""
    values = np.asarray(p_values, np.float64)
    order = np.argsort(values)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)), 1.0)
    return [float(p) for p in adjusted]
