"""Whether runs are independent of each other: exact tests of what independent, equally distributed runs cannot show.

Everything here is a function of counts. Each test conditions on the number of hits, so that no probability has to be
known: given their number, the hits of independent runs lie on every set of places of that size equally often.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: The probability with which a mechanism of independent runs is refused, whatever else is tested of it.
LEVEL: Final = 1e-9
#: How much wider (or narrower) than independent runs make it the distribution of a call's hits may be: exponents 1/T.
TEMPERATURES: Final = (1 / 64, 1 / 8, 2.0, 8.0, 64.0)
#: By how much likelier an outcome may be to come again at the distance at which one came again last.
FACTORS: Final = (1.0, 1e2, 1e4, 1e8)
#: Lags that are tested exactly, of those at which hits lie together, or apart, most; and how many standard errors that
#: must be, since fewer are never significant at `LEVEL`.
LAGS: Final = 4
STANDARD_ERRORS: Final = 5.0

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def fisher_p_value(hits: int, of: int, other_hits: int, of_others: int) -> float:
    """Fisher's exact test that two shares differ in either direction: twice the smaller tail."""
    if not of or not of_others:
        return 1.0
    together = hits + other_hits, of + of_others
    return min(1.0, 2 * _smaller_tail(hits, of, together, _log_factorials(together[1])))


def _smaller_tail(hits: int, rows: int, together: tuple[int, int], factorials: Floats) -> float:
    """P[X ≤ hits] or P[X ≥ hits], the smaller, of the hits among some of all rows: a hypergeometric law.

    `together`: hits and rows of all. Summed here: scipy.stats takes a second to import, and it would be after the
    deadline.
    """
    all_hits, all_rows = together
    least = max(0, rows - (all_rows - all_hits))
    ways = _log_ways(rows, all_rows - rows, all_hits, factorials)
    ways = np.exp(ways - ways.max())
    tails = ways[: hits - least + 1].sum(), ways[hits - least :].sum()
    return float(min(tails) / ways.sum())


def _log_factorials(most: int) -> Floats:
    """Logarithms of 0!, 1!, … of whole numbers up to `most`."""
    from scipy.special import gammaln  # 0.2 s; compiled mechanisms need none of this

    return np.asarray(gammaln(np.arange(most + 1.0) + 1))


def _log_ways(rows: int, others: int, hits: int, factorials: Floats) -> Floats:
    """Log C(rows, k) C(others, hits − k), as far as it depends on k, for every k that can be."""
    least, most = max(0, hits - others), min(rows, hits)
    rest = hits - most
    ways = -factorials[least : most + 1] - factorials[rows - most : rows - least + 1][::-1]
    ways -= factorials[rest : hits - least + 1][::-1] + factorials[others - hits + least : others - rest + 1]
    return ways


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


def parity_p_value(hits: Flags, places: Whole) -> float:
    """Whether hits have another share at odd places than at even ones: Fisher's exact test."""
    odd = places % 2 == 1
    (a, n), (b, m) = ((int(hits[part].sum()), int(part.sum())) for part in (odd, ~odd))
    return fisher_p_value(a, n, b, m)


def lags_p_value(hits: Flags, places: Whole) -> tuple[float, int]:
    """Whether hits at some distance come together more, or less, often than by chance; and at which distance.

    Parameters
    ----------
    hits
        Which runs were hits.
    places
        The numbers of the runs in the order of time, increasing; between them may lie runs of other inputs.

    Returns
    -------
    tuple[float, int]
        The p-value over all distances up to half of the length, and the distance of the smallest. At each of them runs
        are taken in disjoint pairs, in two ways.
    """
    at = places - places[0]
    size, share = int(at[-1]) + 1, float(hits.mean())
    lags = size // 2
    if not 0 < share < 1 or not lags:
        return 1.0, 0
    centred, present = np.zeros(size), np.zeros(size)
    centred[at], present[at] = hits - share, 1.0
    together, pairs = _autocorrelation(centred)[1 : lags + 1], _autocorrelation(present)[1 : lags + 1]
    scores = np.abs(together) / (share * (1 - share) * np.sqrt(np.maximum(np.rint(pairs), 1)))
    likeliest = np.argsort(-scores)[:LAGS] + 1
    found, flags = (1.0, 0), np.full(size, -1, np.int8)
    flags[at] = hits
    for lag in likeliest[scores[likeliest - 1] > STANDARD_ERRORS].tolist():
        a, b = flags[:-lag], flags[lag:]
        block = np.arange(size - lag) // lag % 2
        for part in (0, 1):  # runs of even blocks with those of the blocks behind them, and those of odd ones
            chosen = (a >= 0) & (b >= 0) & (block == part)
            first, second = a[chosen] == 1, b[chosen] == 1
            total = int(first.sum() + second.sum())
            p = pairs_p_value(int((first & second).sum()), total, int(chosen.sum()))
            found = min(found, (min(1.0, 2 * lags * p), lag))
    return found


def _autocorrelation(values: Floats) -> Floats:
    """Σ v[t]·v[t + lag] for every lag."""
    size = 1 << (2 * len(values) - 1).bit_length()
    return np.asarray(np.fft.irfft(np.abs(np.fft.rfft(values, size)) ** 2, size)[: len(values)])


def repeats_p_value(outcomes: Sequence[int], places: Sequence[int]) -> float:
    """Whether outcomes come again at a distance at which others came again; the inverse of an e-value.

    Given which outcomes there are, independent runs return them in every order equally often: the next is c with the
    share that c has of those still to come. The alternative makes likelier the one that stood as far before as an
    outcome came again last, counted in places, or in runs of this input. What is bet is known before the run, so the
    ratio of the two has expectation 1, and so has the mean over several bets.

    Parameters
    ----------
    outcomes
        The outcomes of one input in the order of time, equal ones by one number, from 0 on.
    places
        The numbers of these runs among all, increasing.
    """
    ratios = [*_repeat_ratios(outcomes, places), *_repeat_ratios(outcomes, range(len(outcomes)))]
    top = max(ratios)
    return math.exp(min(0.0, math.log(len(ratios)) - top - math.log(sum(math.exp(r - top) for r in ratios))))


def _repeat_ratios(outcomes: Sequence[int], places: Sequence[int]) -> list[float]:
    """The logarithm of the ratio of `repeats_p_value` for each factor."""
    ratios = [0.0] * len(FACTORS)
    to_come = Counter(outcomes)
    at: dict[int, int] = {}
    last: dict[int, int] = {}
    distance, left = 0, len(outcomes)
    for place, outcome in zip(places, outcomes, strict=True):
        expected = at.get(place - distance) if distance else None
        if expected is not None and 0 < to_come[expected] < left:
            share = to_come[expected] / left
            for k, factor in enumerate(FACTORS):
                ratios[k] += (math.log1p(factor) if outcome == expected else 0.0) - math.log1p(factor * share)
        if outcome in last:
            distance = place - last[outcome]
        at[place] = outcome
        last[outcome] = place
        to_come[outcome] -= 1
        left -= 1
    return ratios


def calls_p_value(hits: Sequence[int], rows: Sequence[int]) -> float:
    """Whether some call's share of hits is not that of the others, or all shares vary more, or less, than by chance.

    Half of the level for each: the hypergeometric tails of every call, and the e-value of `log_dispersion`.
    """
    if len(hits) < 2:
        return 1.0
    h, n = np.asarray(hits, np.int64), np.asarray(rows, np.int64)
    together = int(h.sum()), int(n.sum())
    factorials = _log_factorials(together[1])  # once: they take most of the time
    calls = zip(h.tolist(), n.tolist(), strict=True)
    single = 2 * len(h) * min(_smaller_tail(a, b, together, factorials) for a, b in calls)
    return min(1.0, 2 * min(single, math.exp(-max(log_dispersion(h, n, factorials), 0.0))))


def log_dispersion(hits: Whole, rows: Whole, factorials: Floats | None = None) -> float:
    """The logarithm of an e-value against independence from the hits of several calls.

    Given all hits, those of the first call are hypergeometric, those of the second given the first again, and so on.
    The alternative is that law made wider or narrower, p(h)^(1/T) up to a constant: the ratio of the two has
    expectation 1 under independence, and so has the mean over several T. Its inverse is a p-value (Markov).
    `factorials`: logarithms of those of whole numbers up to all rows, where they are known.
    """
    from scipy.special import logsumexp  # 0.2 s; compiled mechanisms need none of this

    left, hits_left = int(rows.sum()), int(hits.sum())
    factorials = _log_factorials(left) if factorials is None else factorials
    ratios = np.zeros(len(TEMPERATURES))
    for h, n in zip(hits.tolist(), rows.tolist(), strict=True):
        least, others = max(0, n - (left - hits_left)), left - n
        ways = _log_ways(n, others, hits_left, factorials)
        ways -= ways.max()  # what does not depend on k is divided out below
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
