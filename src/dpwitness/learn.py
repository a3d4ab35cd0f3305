"""Which event, given outcomes of both sides: everything here is heuristic and never evidence.

By Neyman–Pearson the best event is {likelihood ratio > t}. Candidates are learned on the first half of the search
runs and compared on the second; among those within 5 % of the best the simplest wins.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpwitness.events import Box, Event, Interval, OutcomeSet, ScoreThreshold, widen
from dpwitness.evidence import Estimate, growth_rate
from dpwitness.kernels import bin_counts, outcome_codes

Floats = NDArray[np.float64]
Rows = NDArray[np.float64]

#: Where one-sided cuts are tried, as shares of the values seen: dense in the tails, where rare clear events live.
SHARES = np.concatenate([[1e-4, 3e-4, 1e-3, 3e-3, 0.01], np.arange(1, 64) / 64])
SHARES = np.unique(np.concatenate([SHARES, 1 - SHARES]))
COARSE = np.concatenate([[1e-3, 0.01], np.arange(1, 16) / 16, [0.99, 0.999]])
#: A simpler event may be this much worse than the best one.
SLACK = 0.05
#: Columns with at most this many different values are taken value by value.
FEW = 40


class Objective(Protocol):
    """How much an event of probabilities p under D and q under D′ promises; any real number, larger is better."""

    def __call__(self, p: Floats, q: Floats, runs: int, caution: float = 1.0, both: Floats | None = None) -> Floats:
        """Broadcasts; `runs` is how many search runs p and q were estimated from.

        `caution`: by how many standard errors of these estimates to doubt them; the largest of many noisy values is
        mostly noise, the larger of two is not. `both`: the share of runs with both sides in the event; None: p·q.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthAt:
    """Nats of evidence a run against (ε, δ); where there are none, how much ε is missing (negative)."""

    epsilon: float
    delta: float = 0.0

    def __call__(self, p: Floats, q: Floats, runs: int, caution: float = 1.0, both: Floats | None = None) -> Floats:
        """As in `Objective`."""
        ratio = np.exp(self.epsilon)
        joint = p * q if both is None else both
        # One imagined run more in each cell that decides: what was not seen in a few runs is not impossible.
        spread = p - joint + ratio**2 * (q - joint) + (ratio - 1) ** 2 * joint + (1 + ratio**2) / runs
        doubt = np.sqrt(spread / runs)
        p = np.maximum(p - caution * doubt, 0.0)
        q = np.minimum(q + 1 / runs, 1.0)  # one imagined hit under D′: one that it merely missed promises nothing
        allowed = ratio * q + self.delta
        grows = p > allowed
        values = np.log(np.maximum(p, 1e-30) / allowed)
        joint = np.minimum(joint, p)
        values[grows] = growth_rate(p[grows], q[grows], self.epsilon, self.delta, joint[grows])
        return np.asarray(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAt:
    """The lower bound of ε to expect from `planned` runs at level α (normal approximation; may be negative)."""

    planned: int
    log_bar: float  # log(1/α)
    delta: float = 0.0

    def __call__(self, p: Floats, q: Floats, runs: int, caution: float = 1.0, both: Floats | None = None) -> Floats:
        """As in `Objective`."""
        joint = p * q if both is None else both
        bar = self.log_bar + np.log(2)
        hits = np.maximum(p - self.delta, 1e-300)
        others = q + 1 / runs + bar / 2 / self.planned
        variance = np.maximum(1 / hits + 1 / others - 2 * joint / (hits * others), 1e-12)
        spread = np.sqrt(variance) * (np.sqrt(2 * bar / self.planned) + caution / np.sqrt(runs))
        return np.asarray(np.log(hits) - np.log(others) - spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerAt:
    """Standard errors between what the thinned D side and D′ show, for a test of (ε, δ) with a fixed number of runs."""

    epsilon: float
    delta: float = 0.0

    def __call__(self, p: Floats, q: Floats, runs: int, caution: float = 1.0, both: Floats | None = None) -> Floats:
        """As in `Objective`."""
        thinned = (p - self.delta) * np.exp(-self.epsilon)
        return np.asarray((thinned - q - 1 / runs) / np.sqrt(np.maximum(thinned, 0.0) + q + 1 / runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An event, which side plays D, its rough probabilities and what the objective makes of them."""

    event: Event
    swapped: bool
    estimate: Estimate
    value: float
    sure: float = -np.inf  # the value after three standard errors of doubt, not one


def learn_events(x: Rows, y: Rows, objective: Objective, *, thorough: bool = True, most: int = 4) -> list[Found]:
    """The events that the objective likes best, in either direction, from rows of outcomes of D and D′.

    The first is the simplest that is nearly as good as the best one; the others follow by value. `thorough` adds finer
    cuts, boxes and learned scores to outcome sets and intervals, for the final choice.
    """
    width = max(x.shape[1], y.shape[1])
    x, y = widen(x, width), widen(y, width)
    half = len(x) // 2
    train, test = (x[:half], y[:half]), (x[half:], y[half:])
    columns = _columns(train, half, objective, thorough)
    sets = _outcome_sets(train, test, objective)
    trials = [c for c in sets if c.size == 1]  # simplest first
    trials += [_tried(interval, swapped, test) for _, interval, swapped in columns[:3]]
    trials += [c for c in sets if c.size > 1]
    if thorough and width > 1:
        for _, interval, swapped in columns[:2]:
            box = _grow_box(train, interval, swapped, objective)
            if box is not None:
                trials.append(_tried(box, swapped, test))
        if not sets:
            trials += [_tried(score, swapped, test) for score, swapped in _scores(train, objective)]
    p, q, both = (np.array(rates) for rates in zip(*((t.p, t.q, t.both) for t in trials), strict=True))
    values = objective(p, q, len(test[0]), 1.0, both)
    sure = objective(p, q, len(test[0]), 3.0, both)
    best = float(values.max())
    chosen = int(np.argmax(values >= best - slack(best)))
    order = [chosen, *(int(k) for k in np.argsort(-values, kind="stable") if k != chosen)]
    return [
        Found(
            event=trials[k].event(),
            swapped=trials[k].swapped,
            estimate=Estimate(p=trials[k].p, q=trials[k].q, both=trials[k].both),
            value=float(values[k]),
            sure=float(sure[k]),
        )
        for k in order[:most]
    ]


@dataclass(frozen=True, slots=True)
class Trial:
    """An event to be built when it wins, and its rates on runs that it was not learned from."""

    event: Callable[[], Event]
    swapped: bool
    p: float
    q: float
    both: float
    size: int = 1  # outcomes, for a set of outcomes


def _tried(event: Event, swapped: bool, test: tuple[Rows, Rows]) -> Trial:
    a, b = (event.contains(rows) for rows in (test[::-1] if swapped else test))
    return Trial(lambda: event, swapped, float(a.mean()), float(b.mean()), float((a & b).mean()))


def slack(best: float) -> float:
    """How much less a simpler event may promise: 5 %, of an ε where the claim holds."""
    return SLACK * (best if best > 0 else 1.0)


def _columns(
    train: tuple[Rows, Rows], runs: int, objective: Objective, thorough: bool = True
) -> list[tuple[float, Interval, bool]]:
    """The best interval of each column of rows that come from `runs` runs a side, best column first."""
    shares, enough = (SHARES, 1 << 16) if thorough else (COARSE, 1 << 11)
    ordered = [np.sort(rows[:enough], axis=0) for rows in train]  # NaN goes last
    present = [len(rows) - np.isnan(rows).sum(axis=0) for rows in ordered]
    cuts: list[Floats] = []
    for j in range(train[0].shape[1]):
        sides = [rows[: count[j], j] for rows, count in zip(ordered, present, strict=True) if count[j]]
        spots = [side[(shares * (len(side) - 1)).astype(np.int64)] for side in sides]
        cuts.append(np.unique(np.concatenate([*spots, *(side[:1] for side in sides)])) if sides else np.empty(0))
    starts = np.cumsum([0] + [len(c) for c in cuts])
    counted = []
    for rows in train:
        counts = np.zeros(starts[-1] + len(cuts), np.int64)
        bin_counts(rows, starts, np.concatenate(cuts), counts)
        counted.append(counts)
    intervals: list[tuple[int, Floats, Floats]] = []
    rates: list[tuple[Floats, Floats]] = []
    for j, cut in enumerate(cuts):
        if not len(cut):
            continue
        lows, highs = [np.full(len(cut), -np.inf), cut], [cut, np.full(len(cut), np.inf)]
        single = len(cut) <= FEW  # single values too
        if single:
            lows.append(cut[:-1])
            highs.append(cut[1:])
        pair = []
        for counts in counted:
            bins = counts[starts[j] + j : starts[j + 1] + j + 1] / runs
            below = np.cumsum(bins)
            pair.append(np.concatenate([below[:-1], below[-1] - below[:-1], bins[1:-1] if single else []]))
        intervals.append((j, np.concatenate(lows), np.concatenate(highs)))
        rates.append((pair[0], pair[1]))
    if not intervals:
        return []
    p, q = (np.concatenate(side) for side in zip(*rates, strict=True))
    values = objective(np.concatenate([p, q]), np.concatenate([q, p]), runs)
    straight, swapped = np.split(values, 2)
    found = []
    start = 0
    for j, low, high in intervals:
        here = slice(start, start + len(low))
        start += len(low)
        k = int(np.maximum(straight[here], swapped[here]).argmax())
        turned = bool(swapped[here][k] > straight[here][k])
        value = float(max(straight[here][k], swapped[here][k]))
        found.append((value, Interval(coordinate=j, low=float(low[k]), high=float(high[k])), turned))
    return sorted(found, key=lambda item: -item[0])


def _grow_box(train: tuple[Rows, Rows], first: Interval, swapped: bool, objective: Objective) -> Box | None:
    """Add sides to an interval while each makes it clearly better."""
    runs = len(train[0])
    sides = {first.coordinate: first}
    best = -1e9
    while len(sides) <= 3:
        box = Box(tuple(sides.values()))
        inside = [rows[box.contains(rows)] for rows in train]
        p, q = (np.array([len(rows) / runs]) for rows in (inside[::-1] if swapped else inside))
        value = float(objective(p, q, runs)[0])
        if value <= best + slack(best):
            break
        best, grown = value, box
        better = [item for item in _columns((inside[0], inside[1]), runs, objective) if item[2] == swapped]
        if not better:
            break
        side = better[0][1]
        old = sides.get(side.coordinate, side)
        low, high = max(old.low, side.low), min(old.high, side.high)
        if not low < high:
            break
        sides[side.coordinate] = Interval(coordinate=side.coordinate, low=low, high=high)
    return grown if grown.sides != (first,) else None


def _outcome_sets(train: tuple[Rows, Rows], test: tuple[Rows, Rows], objective: Objective) -> list[Trial]:
    """The best sets of whole outcomes, where outcomes repeat: one outcome, and prefixes by likelihood ratio."""
    runs = len(train[0])
    most = min(max(runs // 4, 64), 1 << 16)
    table = 1 << (2 * most - 1).bit_length()
    hashes, numbers = np.zeros(table, np.uint64), np.full(table, -1, np.int64)
    first, known = np.zeros(most, np.int64), 0
    places: list[Rows] = []
    counts: list[NDArray[np.int64]] = []
    coded: list[NDArray[np.int64]] = []
    for rows in (*train, *test):
        codes = np.empty(len(rows), np.int64)
        before = known
        known = outcome_codes(rows, hashes, numbers, codes, first, known)
        if known < 0:  # more than a quarter of the runs are outcomes of their own: continuous, or nearly so
            return []
        places.append(rows[first[before:known]])
        counts.append(np.bincount(codes, minlength=most)[:most])
        coded.append(codes)
    outcomes = np.concatenate(places)
    seen = counts[0][:known] + counts[1][:known] > 0
    counts = [count[:known][seen] for count in counts]
    outcomes = outcomes[seen]
    numbers = np.flatnonzero(seen)
    order = np.argsort(-_shrunken_log_ratio(counts[0], counts[1]), kind="stable")
    trials: list[Trial] = []
    for swapped in (False, True):
        hits, others = counts[1::-1] if swapped else counts[:2]
        ranking = order[::-1] if swapped else order
        p = np.concatenate([hits, np.cumsum(hits[ranking])]) / runs
        q = np.concatenate([others, np.cumsum(others[ranking])]) / runs
        alone, prefix = np.split(objective(p, q, runs), [len(hits)])
        best = float(prefix.max())
        # One outcome; the best prefix; the shortest prefix that is nearly as good.
        sizes = {int(prefix.argmax()) + 1, int(np.argmax(prefix >= best - slack(best))) + 1}
        chosen = [np.array([int(alone.argmax())])] + [ranking[:size] for size in sorted(sizes) if size < len(ranking)]
        for members in chosen:
            inside = np.zeros(known, np.bool_)
            inside[numbers[members]] = True
            a, b = (inside[codes] for codes in (coded[:1:-1] if swapped else coded[2:]))
            event = partial(OutcomeSet, outcomes[members])
            rates = float(a.mean()), float(b.mean()), float((a & b).mean())
            trials.append(Trial(event, swapped, *rates, size=len(members)))
    return sorted(trials, key=lambda c: c.size)


def _shrunken_log_ratio(hits: NDArray[np.int64], others: NDArray[np.int64]) -> Floats:
    """Log ratios pulled towards 0 by as much as they are noise (empirical Bayes)."""
    ratio = np.log((hits + 0.5) / (others + 0.5))
    noise = 1 / (hits + 0.5) + 1 / (others + 0.5)
    weight = 1 / noise
    prior = max(float(np.sum(weight * (ratio**2 - noise)) / np.sum(weight)), 1e-6)
    return np.asarray(ratio * prior / (prior + noise))


def _scores(train: tuple[Rows, Rows], objective: Objective) -> list[tuple[ScoreThreshold, bool]]:
    """Additive scores: the log ratio of each entry's bin, summed over the entries (exact for independent entries)."""
    runs = len(train[0])
    coordinates, edges, weights = [], [], []
    for j in range(train[0].shape[1]):
        pooled = np.concatenate([side[:, j] for side in train])
        values = np.sort(pooled[~np.isnan(pooled)])
        if not len(values):
            continue
        cuts = np.unique(values[(np.arange(1, 32) / 32 * len(values)).astype(np.int64)])
        cuts = cuts[cuts > values[0]]
        counts = []
        for side in train:
            column = side[:, j]
            there = column[~np.isnan(column)]
            bins = np.bincount(np.searchsorted(cuts, there, side="right"), minlength=len(cuts) + 1)
            counts.append(np.append(bins, runs - len(there)))
        hits, others = counts
        # Entries that tell nothing only add noise, and time: a bin must stand out by 4 standard errors.
        if np.max(np.abs(hits - others) / np.sqrt(hits + others + 1)) < 4:
            continue
        ratio = _shrunken_log_ratio(hits, others)
        coordinates.append(j)
        edges.append(cuts)
        weights.append(ratio)
    if len(coordinates) < 2:
        return []
    score = ScoreThreshold(coordinates, edges, weights, 0.0)
    ranked = [np.sort(score.score(rows)) for rows in train]
    cuts = np.unique(np.quantile(np.concatenate(ranked), SHARES))
    p, q = (1 - np.searchsorted(side, cuts, side="right") / runs for side in ranked)
    found = [(ScoreThreshold(coordinates, edges, weights, float(cuts[int(objective(p, q, runs).argmax())])), False)]
    opposite = [-w for w in weights]
    k = int(objective(1 - q, 1 - p, runs).argmax())
    # Just above −cut: the negated score must exceed it where the score stays at or below the cut.
    found.append((ScoreThreshold(coordinates, edges, opposite, float(np.nextafter(-cuts[k], -np.inf))), True))
    return found
