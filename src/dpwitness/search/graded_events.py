"""A graded event for a candidate: a bet on all outcomes, where that grows clearly faster than the bet on its event.

Everything here comes from search runs and is never evidence. A third of them gives cells, by a learned score of
likelihood ratios; each of the others gives grades, and says how fast those of the other third grow.

Let the event grow by g nats a run. Whether something grows faster by a quarter shows in some 60/g runs at least, and
confirming takes log(1/α)/g, 14/g at the usual α. So no runs are made for it alone where that would cost more than it
saves: only a small part of those that the search took anyway, which is enough where a violation is clear.
"""

import math
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.candidate import Candidate, Grades
from dpwitness.claims import Claim, HalfPlane
from dpwitness.errors import MechanismTimeout
from dpwitness.events import SplitEvent, is_partition, of_one_width
from dpwitness.evidence.bet import bets_and_weights, graded_payoffs
from dpwitness.evidence.counts import best_fractions, growth_rate
from dpwitness.runs import Role, Runner
from dpwitness.runs.shards import tally_of_rows
from dpwitness.search.samples import score_of, shrunken_log_ratio, telling_entries

Floats = NDArray[np.float64]

#: Search runs for each run that the event takes to grow by one nat; at least so many, and at most a part of the search.
PER_NAT: Final = 1_600
FEWEST: Final = 1 << 12
PART: Final = 32
LEAST_PER_NAT: Final = 60
#: Numbers that they may hold in memory, both sides together.
ROOM: Final = 1 << 22
#: Bins of an entry; it has one for each value if these are few.
BINS: Final = np.unique([1 / 512, 1 / 128, *(np.arange(1, 32) / 32), 127 / 128, 511 / 512])
FEW: Final = 64
#: Cuts of the score beyond each end; likelihood ratios are told apart from this power of the slope on.
CUTS: Final = 6
NEARLY: Final = 0.8
#: Imagined runs without a difference between D and D′, added to a table.
IMAGINED: Final = 8.0
#: Steps towards the best grades.
STEPS: Final = 250
#: By so much at least the graded event must grow faster than the event.
MARGIN: Final = 1.1


def better_by_grades(runner: Runner, candidate: Candidate, claim: Claim, budget: int) -> tuple[Candidate, int]:
    """The candidate, with grades if these look better; and the paired search runs spent, `budget` at most.

    It stays as it is where its event does not grow, or grows so fast that nothing grows clearly faster; and if the time
    is over.
    """
    estimate = candidate.estimate
    assert estimate is not None  # of a search
    plane = claim.half_plane(estimate.p, estimate.q)
    growth = float(growth_rate(estimate.p, estimate.q, plane, estimate.both))
    # Nothing grows faster than an event that always happens on D and never on D′, a bet in both directions included.
    fastest = float(growth_rate(1.0, 0.0, plane))
    if growth <= 0 or growth * MARGIN >= fastest or is_partition(candidate.event):
        return candidate, 0
    n = int(min(max(PER_NAT / growth, FEWEST), budget // PART, ROOM // (2 * max(runner.mechanism.width, 1))))
    if n * growth < LEAST_PER_NAT:
        return candidate, 0
    try:
        x, y = runner.sample(candidate.pair, n, Role.GRADES, 0, coupled=candidate.coupled)
    except MechanismTimeout:
        return candidate, 0
    third = n // 3
    event = _split(candidate, x[:third], y[:third], plane.slope)
    if event is None:
        return candidate, n
    parts = [slice(third, 2 * third), slice(2 * third, n)]
    first, second = (_table(event, x[part], y[part], coupled=candidate.coupled) for part in parts)
    # The growth of each part's grades in the other part.
    gains = [
        _gain(candidate, claim, event, _grades(fitted, plane), table)
        for fitted, table in ((first, second), (second, first))
    ]
    means, errors = np.array(gains).T
    if means.sum() <= math.hypot(*errors):
        return candidate, n
    grades = _grades(first + second, plane)
    return replace(candidate, event=event, estimate=replace(estimate, grades=grades)), n


def _split(candidate: Candidate, x: Floats, y: Floats, slope: float) -> SplitEvent | None:
    """The event with cells by a learned score of two samples, shapes (n, any width); None where it has no other."""
    x, y = of_one_width(x, y, candidate.event.width)
    found = telling_entries(x, y, BINS, few=FEW)
    if not found:
        return None
    score = score_of(found)
    scores, inside = ([part(side) for side in (x, y)] for part in (score.score, candidate.event.contains))
    cuts = [
        _cuts(np.concatenate([one[into == side] for one, into in zip(scores, inside, strict=True)]), slope)
        for side in (False, True)
    ]
    return SplitEvent(candidate.event, score, *cuts) if any(map(len, cuts)) else None


def _cuts(scores: Floats, slope: float) -> Floats:
    """Cuts between different scores: all of few, else where one of the grades may be above 0.

    That is where the likelihood ratio exceeds the slope, or nearly so, or is below its inverse. Half-way between even
    shares of the runs there and even distances.
    """
    different = np.unique(scores)
    if len(different) <= 2 * CUTS:
        return different[:-1]
    end = NEARLY * math.log(slope)
    wanted = [np.array([-end, end])]
    for part in (scores[scores < -end], scores[scores > end]):
        if len(part):
            low, high = np.quantile(part, [0.01, 0.99])
            even = np.linspace(low, high, CUTS)
            wanted.append((np.quantile(part, (np.arange(CUTS) + 0.5) / CUTS) + even) / 2)
    places = np.searchsorted(different, np.concatenate(wanted), side="right") - 1
    cuts: Floats = different[np.unique(np.clip(places, 0, len(different) - 2))]
    return cuts


def _table(event: SplitEvent, x: Floats, y: Floats, *, coupled: bool) -> Floats:
    """How many paired runs had cell i on D and cell j on D′, shape (k, k); of independent sides in the mean."""
    tally = tally_of_rows(event, *of_one_width(x, y, event.width))
    table = np.reshape(tally.cells, (event.cells, event.cells)).astype(np.float64)
    return table if coupled else np.outer(table.sum(axis=1), table.sum(axis=0)) / len(x)


def _grades(table: Floats, plane: HalfPlane) -> Grades:
    """The grades whose wealth would have grown fastest in the runs of a table, shape (k, k).

    They are sums of nested events: for each direction the sets of cells of the largest likelihood ratios.
    """
    k, s, t = len(table), plane.slope, plane.intercept
    order = np.argsort(-shrunken_log_ratio(table.sum(axis=1), table.sum(axis=0)), kind="stable")
    up = np.tril(np.ones((k, k)))[:-1, np.argsort(order)]  # row m: the m + 1 cells of the largest ratios
    down = 1 - up
    paid = np.concatenate([up[:, :, None] - s * up[:, None, :], down[:, None, :] - s * down[:, :, None]]) - t
    table = table + IMAGINED * table.T / table.sum()
    seen = np.flatnonzero(table)
    # What is not bet is kept: one more, which pays nothing.
    pays = np.hstack([1 + 0.999 / (s + t) * paid.reshape(-1, k * k).T[seen], np.ones((len(seen), 1))])
    start = np.append(np.full(len(paid), 0.5 / len(paid)), 0.5)
    fractions = best_fractions(pays, table.ravel()[seen] / table.sum(), start, STEPS)[:-1]
    fractions /= max(fractions.sum(), 1.0)
    return Grades(up=tuple((fractions[: k - 1] @ up).tolist()), down=tuple((fractions[k - 1 :] @ down).tolist()))


def _gain(candidate: Candidate, claim: Claim, event: SplitEvent, grades: Grades, table: Floats) -> tuple[float, float]:
    """By how many nats a run of a table grades grow faster than `MARGIN` times the event; and the standard error."""
    estimate = candidate.estimate
    assert estimate is not None
    paid = np.log1p(graded_payoffs(grades, claim.half_plane(estimate.p, estimate.q)))
    best, hit = bets_and_weights(claim, estimate)[0][:, -1], event.inside  # of n10, n11, n01, n00
    alone = np.where(hit[:, None], np.where(hit, best[1], best[0]), np.where(hit, best[2], best[3]))
    runs = table.sum()
    gains, law = paid - MARGIN * alone, table / runs
    mean = float((law * gains).sum())
    return mean, math.sqrt(float((law * (gains - mean) ** 2).sum()) / runs)
