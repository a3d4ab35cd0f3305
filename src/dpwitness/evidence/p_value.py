"""p-values for a number of runs that was fixed beforehand, with independent sides."""

import math
from collections.abc import Sequence

import numpy as np

from dpwitness.claims import ApproxDP
from dpwitness.evidence.counts import Counts


def p_value(counts: Counts, claim: ApproxDP, *, method: str = "exact", seed: int = 0) -> float:
    """p-value of the claim for a number of runs that was fixed beforehand, with independent sides.

    "exact", δ = 0: the D side is thinned once by Binomial(hits, e^−ε), seeded, then Fisher's exact test, one-sided
    (Ding et al. 2018, section 4). "exact", δ > 0: the smallest level at which two one-sided Clopper–Pearson bounds,
    half of it each, refute the claim. "score": statsmodels' score test, a quick look, not exact; for δ > 0 on the
    difference of the thinned rates. Raises `ValueError` for another method.
    """
    if method not in ("exact", "score"):
        raise ValueError(f"method={method!r} must be 'exact' or 'score'")
    if counts.runs == 0:
        return 1.0
    if method == "score":
        return _score(counts, claim, seed)
    return _fisher(counts, claim, seed) if claim.delta == 0 else _clopper_pearson(counts, claim)


def _thinned(counts: Counts, claim: ApproxDP, seed: int) -> int:
    """The hits on D, each kept with probability e^−ε."""
    return int(np.random.default_rng(seed).binomial(counts.hits, math.exp(-claim.epsilon)))


def _fisher(counts: Counts, claim: ApproxDP, seed: int) -> float:
    from scipy import stats  # 0.5 s

    n, thinned = counts.runs, _thinned(counts, claim, seed)
    return float(stats.hypergeom.sf(thinned - 1, 2 * n, n, thinned + counts.neighbour_hits))


def _clopper_pearson(counts: Counts, claim: ApproxDP) -> float:
    from scipy import stats
    from scipy.optimize import brentq

    n, hits, other = counts.runs, counts.hits, counts.neighbour_hits

    def excess(log_level: float) -> float:
        """By how much the bounds at a level violate the claim; it grows with the level."""
        half = math.exp(log_level) / 2
        lower = stats.beta.ppf(half, hits, n - hits + 1) if hits else 0.0
        upper = stats.beta.isf(half, other + 1, n - other) if other < n else 1.0
        return float(lower - claim.ratio * upper - claim.delta)

    least = -700.0
    if excess(0.0) <= 0:
        return 1.0
    if excess(least) > 0:
        return math.exp(least)
    tolerance = 1e-10
    return min(math.exp(brentq(excess, least, 0.0, xtol=tolerance) + tolerance), 1.0)  # rounded up


def _score(counts: Counts, claim: ApproxDP, seed: int) -> float:
    from statsmodels.stats.proportion import (  # type: ignore[import-untyped]  # 0.6 s, and no types
        test_proportions_2indep,
    )

    n, hits, other = counts.runs, counts.hits, counts.neighbour_hits
    if claim.delta == 0:
        if hits == 0 or other == 0:  # the score statistic of a ratio needs both
            hits, other, n = hits + 1, other + 1, n + 2
        result = test_proportions_2indep(
            hits, n, other, n, value=claim.ratio, compare="ratio", method="score", alternative="larger"
        )
    else:
        least = claim.delta * math.exp(-claim.epsilon)
        with np.errstate(divide="ignore", invalid="ignore"):  # it reports the ratio, too, which other = 0 does not have
            result = test_proportions_2indep(
                _thinned(counts, claim, seed), n, other, n, value=least, compare="diff", method="score",
                alternative="larger",
            )  # fmt: skip
    return float(result.pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values of several claims tested in one run: Holm's step-down method, any dependence."""
    from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]  # 0.6 s, and no types

    return [float(p) for p in multipletests(list(p_values), method="holm")[1]]
