"""Whether runs are independent of each other: exact tests of what independent, equally distributed runs cannot show.

Everything here is a function of counts. Each test conditions on the number of hits, so that no probability has to be
known: given their number, the hits of independent runs lie on every set of places of that size equally often.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: The probability with which a mechanism of independent runs is refused, whatever else is tested of it.
LEVEL: Final = 1e-9
#: How much wider (or narrower) than independent runs make it the distribution of a call's hits may be: exponents 1/T.
TEMPERATURES: Final = (1 / 64, 1 / 8, 2.0, 8.0, 64.0)

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]


def fisher_p_value(hits: int, of: int, other_hits: int, of_others: int) -> float:
    """Fisher's exact test that two shares differ in either direction: twice the smaller tail."""
    if not of or not of_others:
        return 1.0
    return min(1.0, 2 * _smaller_tail(hits, of, hits + other_hits, of + of_others))


def _smaller_tail(hits: int, rows: int, all_hits: int, all_rows: int) -> float:
    """P[X ≤ hits] or P[X ≥ hits], the smaller, of the hits among some of all rows: a hypergeometric law.

    Summed here: scipy.stats takes a second to import, and it would be after the deadline.
    """
    least, most = max(0, rows - (all_rows - all_hits)), min(rows, all_hits)
    k = np.arange(least, most + 1, dtype=np.float64)
    log_ways = _choose(all_hits, k) + _choose(all_rows - all_hits, rows - k)
    ways = np.exp(log_ways - log_ways.max())
    tails = ways[: hits - least + 1].sum(), ways[hits - least :].sum()
    return float(min(tails) / ways.sum())


def pairs_p_value(both: int, hits: int, pairs: int) -> float:
    """Whether hits come in pairs of rows more, or less, often than by chance: twice the smaller tail.

    Of `pairs` disjoint pairs of rows, fixed beforehand, `both` consist of hits; `hits` is the number of hits in all.
    Placed at random, j pairs are filled in C(m, j) C(m − j, h − 2j) 2^(h − 2j) of the C(2m, h) ways.
    """
    from scipy.special import logsumexp  # 0.2 s; compiled mechanisms need none of this

    least, most = max(0, hits - pairs), hits // 2
    j = np.arange(least, most + 1, dtype=np.float64)
    log_ways = _choose(pairs, j) + _choose(pairs - j, hits - 2 * j) + (hits - 2 * j) * math.log(2)
    share = np.exp(log_ways - logsumexp(log_ways))
    below, above = share[: both - least + 1].sum(), share[both - least :].sum()
    return min(1.0, 2 * float(min(below, above)))


def calls_p_value(hits: Sequence[int], rows: Sequence[int]) -> float:
    """Whether some call's share of hits is not that of the others, or all shares vary more, or less, than by chance.

    Half of the level for each: the hypergeometric tails of every call, and the e-value of `log_dispersion`.
    """
    if len(hits) < 2:
        return 1.0
    h, n = np.asarray(hits, np.int64), np.asarray(rows, np.int64)
    together = int(h.sum()), int(n.sum())
    single = 2 * len(h) * min(_smaller_tail(int(a), int(b), *together) for a, b in zip(h, n, strict=True))
    return min(1.0, 2 * min(single, math.exp(-max(log_dispersion(h, n), 0.0))))


def log_dispersion(hits: Whole, rows: Whole) -> float:
    """The logarithm of an e-value against independence from the hits of several calls.

    Given all hits, those of the first call are hypergeometric, those of the second given the first again, and so on.
    The alternative is that law made wider or narrower, p(h)^(1/T) up to a constant: the ratio of the two has
    expectation 1 under independence, and so has the mean over several T. Its inverse is a p-value (Markov).
    """
    from scipy.special import gammaln, logsumexp  # 0.2 s; compiled mechanisms need none of this

    left, hits_left = int(rows.sum()), int(hits.sum())
    factorials = gammaln(np.arange(left + 1.0) + 1)  # logarithms; once: they take most of the time
    ratios = np.zeros(len(TEMPERATURES))
    for h, n in zip(hits.tolist(), rows.tolist(), strict=True):
        least, most = max(0, n - (left - hits_left)), min(n, hits_left)
        k, others = slice(least, most + 1), left - n
        # C(n, k) C(left − n, hits − k) / C(left, hits) as far as it depends on k; what does not is divided out below.
        ways = -factorials[k] - factorials[n - most : n - least + 1][::-1]
        rest = hits_left - most
        ways -= (
            factorials[rest : hits_left - least + 1][::-1] + factorials[others - hits_left + least : others - rest + 1]
        )
        ways -= ways.max()
        log_p = ways - math.log(np.exp(ways).sum())
        for i, temperature in enumerate(TEMPERATURES):
            tempered = ways / temperature
            ratios[i] += tempered[h - least] - math.log(np.exp(tempered).sum()) - log_p[h - least]
        left, hits_left = others, hits_left - h
    return float(logsumexp(ratios) - math.log(len(ratios)))


def _choose(n: Any, k: Any) -> Floats:
    """Log C(n, k), for arrays and numbers."""
    from scipy.special import gammaln  # 0.2 s; compiled mechanisms need none of this

    return np.asarray(gammaln(np.add(n, 1.0)) - gammaln(np.add(k, 1.0)) - gammaln(np.subtract(n, k) + 1.0))
