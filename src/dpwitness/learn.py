"""Which event, given outcomes of both sides: everything here is heuristic and never evidence.

By Neyman–Pearson the best event is {likelihood ratio > t}. Candidates are learned on the first half of the search
runs and compared on the second; among those within 5 % of the best the simplest wins.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpwitness.events import Box, Event, Interval, OutcomeSet, ScoreThreshold, widen
from dpwitness.evidence import Estimate
from dpwitness.kernels import outcome_codes
from dpwitness.objectives import Objective

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An event, which side plays D, its rough probabilities and what the objective makes of them."""

    event: Event
    swapped: bool
    estimate: Estimate
    value: float
    sure: float = -np.inf  # the value after three standard errors of doubt, not one


def learn_events(x: Rows, y: Rows, objective: Objective, *, thorough: bool = True, most: int = 4) -> list[Found]:
    """The events that an objective likes best; see `Outcomes`."""
    return Outcomes(x, y, thorough=thorough).events(objective, most)


class Outcomes:
    """Rows of outcomes of D and D′, half to learn from and half to compare on; read once, for any objective.

    `thorough` adds finer cuts, boxes and learned scores to outcome sets and intervals, for the final choice.
    """

    def __init__(self, x: Rows, y: Rows, *, thorough: bool = True) -> None:
        width = max(x.shape[1], y.shape[1])
        x, y = widen(x, width), widen(y, width)
        half = len(x) // 2
        self.width, self.thorough = width, thorough
        self.train, self.test = (x[:half], y[:half]), (x[half:], y[half:])

    def events(self, objective: Objective, most: int = 4) -> list[Found]:
        """The events that the objective likes best, in either direction.

        The first is the simplest that is nearly as good as the best one; the others follow by value.
        """
        columns = _best_intervals(self._binned, objective)
        sets = _best_sets(self._coded, objective) if self._coded else []
        trials = [c for c in sets if c.size == 1]  # simplest first
        trials += [_tried(interval, swapped, self.test) for _, interval, swapped in columns[:3]]
        trials += [c for c in sets if c.size > 1]
        if self.thorough and self.width > 1:
            for _, interval, swapped in columns[:2]:
                box = _grow_box(self.train, interval, swapped, objective)
                if box is not None:
                    trials.append(_tried(box, swapped, self.test))
            if not sets and self._scored:
                trials += [
                    _tried(score, swapped, self.test) for score, swapped in _best_scores(self._scored, objective)
                ]
        runs = len(self.test[0])
        p, q, both = (np.array(rates) for rates in zip(*((t.p, t.q, t.both) for t in trials), strict=True))
        values = objective(p, q, runs, 1.0, both)
        sure = objective(p, q, runs, 3.0, both)
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

    @cached_property
    def _ordered(self) -> "list[list[_Side]]":
        if self._coded:
            return [_sides(self._coded.outcomes, counts) for counts in (self._coded.hits, self._coded.others)]
        return [_sides(rows) for rows in self.train]

    @cached_property
    def _binned(self) -> "list[_Column]":
        return _bin(self._ordered, len(self.train[0]), thorough=self.thorough)

    @cached_property
    def _coded(self) -> "_Coded | None":
        return _code(self.train, self.test)

    @cached_property
    def _scored(self) -> "_Scored | None":
        return _score(self.train, self._ordered)


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


@dataclass(frozen=True, slots=True)
class _Column:
    """Intervals of one column, and the share of the runs of D and of D′ that fall into each."""

    coordinate: int
    runs: int
    lows: Floats
    highs: Floats
    p: Floats
    q: Floats


class _Side(NamedTuple):
    """A column of one side: its values in order, absent ones left out, and how many runs the first k stand for."""

    values: Floats
    upto: NDArray[np.int64]


def _sides(rows: Rows, weights: NDArray[np.int64] | None = None) -> list[_Side]:
    """Every column of rows that stand for as many runs as `weights` says, or for one each."""
    columns = np.ascontiguousarray(rows.T)
    if weights is None:
        columns = np.sort(columns, axis=1)  # NaN goes last
        upto = np.broadcast_to(np.arange(len(rows) + 1), (len(columns), len(rows) + 1))
    else:
        order = np.argsort(columns, axis=1, kind="stable")
        columns = np.take_along_axis(columns, order, axis=1)
        upto = np.cumsum(np.hstack([np.zeros((len(columns), 1), np.int64), weights[order]]), axis=1)
    present = columns.shape[1] - np.isnan(columns).sum(axis=1)
    return [_Side(column[:n], counts[: n + 1]) for column, counts, n in zip(columns, upto, present, strict=True)]


def _bin(columns: Sequence[Sequence[_Side]], runs: int, *, thorough: bool = True) -> list[_Column]:
    """The intervals to try in each column of D and of D′, of `runs` runs each."""
    shares = SHARES if thorough else COARSE
    binned = []
    for j, sides in enumerate(zip(*columns, strict=True)):
        spots = [
            side.values[np.searchsorted(side.upto, shares * (side.upto[-1] - 1), side="right") - 1]
            for side in sides
            if len(side.values)
        ]
        cuts = np.unique(np.concatenate([*spots, *(side.values[:1] for side in sides)]))
        if not len(cuts):
            continue
        lows, highs = [np.full(len(cuts), -np.inf), cuts], [cuts, np.full(len(cuts), np.inf)]
        if single := len(cuts) <= FEW:  # single values too
            lows.append(cuts[:-1])
            highs.append(cuts[1:])
        rates = []
        for side in sides:
            below = side.upto[np.searchsorted(side.values, cuts)] / runs
            rates.append(np.concatenate([below, side.upto[-1] / runs - below, np.diff(below) if single else []]))
        binned.append(_Column(j, runs, np.concatenate(lows), np.concatenate(highs), *rates))
    return binned


def _best_intervals(columns: Sequence[_Column], objective: Objective) -> list[tuple[float, Interval, bool]]:
    """The best interval of each column, best column first: its value, itself, and whether D′ plays D."""
    if not columns:
        return []
    p, q = np.concatenate([column.p for column in columns]), np.concatenate([column.q for column in columns])
    straight, swapped = np.split(objective(np.concatenate([p, q]), np.concatenate([q, p]), columns[0].runs), 2)
    found = []
    start = 0
    for column in columns:
        here = slice(start, start + len(column.lows))
        start += len(column.lows)
        k = int(np.maximum(straight[here], swapped[here]).argmax())
        turned = bool(swapped[here][k] > straight[here][k])
        value = float(max(straight[here][k], swapped[here][k]))
        low, high = float(column.lows[k]), float(column.highs[k])
        found.append((value, Interval(coordinate=column.coordinate, low=low, high=high), turned))
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
        columns = _bin([_sides(rows) for rows in inside], runs)
        better = [item for item in _best_intervals(columns, objective) if item[2] == swapped]
        if not better:
            break
        side = better[0][1]
        old = sides.get(side.coordinate, side)
        low, high = max(old.low, side.low), min(old.high, side.high)
        if not low < high:
            break
        sides[side.coordinate] = Interval(coordinate=side.coordinate, low=low, high=high)
    return grown if grown.sides != (first,) else None


@dataclass(frozen=True, slots=True)
class _Coded:
    """Outcomes that repeat, numbered: those of the learning runs with their counts, and the number of every run."""

    outcomes: Rows
    numbers: NDArray[np.int64]
    hits: NDArray[np.int64]
    others: NDArray[np.int64]
    order: NDArray[np.int64]  # by likelihood ratio, largest first
    known: int
    test: tuple[NDArray[np.int64], NDArray[np.int64]]
    runs: int


def _code(train: tuple[Rows, Rows], test: tuple[Rows, Rows]) -> _Coded | None:
    """Number the outcomes; None where more than a quarter of the runs are outcomes of their own."""
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
        if known < 0:  # continuous, or nearly so
            return None
        places.append(rows[first[before:known]])
        counts.append(np.bincount(codes, minlength=most)[:most])
        coded.append(codes)
    seen = counts[0][:known] + counts[1][:known] > 0
    hits, others = (count[:known][seen] for count in counts[:2])
    order = np.argsort(-_shrunken_log_ratio(hits, others), kind="stable")
    outcomes = np.concatenate(places)[seen]
    return _Coded(outcomes, np.flatnonzero(seen), hits, others, order, known, (coded[2], coded[3]), runs)


def _best_sets(coded: _Coded, objective: Objective) -> list[Trial]:
    """The best sets of whole outcomes: one outcome, and prefixes by likelihood ratio."""
    trials: list[Trial] = []
    for swapped in (False, True):
        hits, others = (coded.others, coded.hits) if swapped else (coded.hits, coded.others)
        ranking = coded.order[::-1] if swapped else coded.order
        p = np.concatenate([hits, np.cumsum(hits[ranking])]) / coded.runs
        q = np.concatenate([others, np.cumsum(others[ranking])]) / coded.runs
        alone, prefix = np.split(objective(p, q, coded.runs), [len(hits)])
        best = float(prefix.max())
        # One outcome; the best prefix; the shortest prefix that is nearly as good.
        sizes = {int(prefix.argmax()) + 1, int(np.argmax(prefix >= best - slack(best))) + 1}
        chosen = [np.array([int(alone.argmax())])] + [ranking[:size] for size in sorted(sizes) if size < len(ranking)]
        for members in chosen:
            inside = np.zeros(coded.known, np.bool_)
            inside[coded.numbers[members]] = True
            a, b = (inside[codes] for codes in (coded.test[::-1] if swapped else coded.test))
            event = partial(OutcomeSet, coded.outcomes[members])
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


@dataclass(frozen=True, slots=True)
class _Scored:
    """An additive score, and how it is distributed under D and D′."""

    score: ScoreThreshold
    cuts: Floats
    p: Floats  # the share above each cut
    q: Floats
    runs: int


def _score(train: tuple[Rows, Rows], columns: Sequence[Sequence[_Side]]) -> _Scored | None:
    """The log ratio of each entry's bin, summed over the entries (exact for independent entries).

    None where fewer than two columns tell anything.
    """
    runs = len(train[0])
    coordinates, edges, weights = [], [], []
    for j, column in enumerate(zip(*columns, strict=True)):
        sides = [side.values for side in column]
        values = np.sort(np.concatenate(sides), kind="stable")  # a merge
        spots = np.unique(values[(np.arange(1, 32) / 32 * len(values)).astype(np.int64)]) if len(values) else values
        cuts = spots[spots > values[:1]]
        # The bins between the cuts, and one more for the runs without this entry.
        places = [np.concatenate([[0], np.searchsorted(side, cuts), [len(side), runs]]) for side in sides]
        hits, others = (np.diff(place) for place in places)
        # Entries that tell nothing only add noise, and time: a bin must stand out by 4 standard errors.
        if np.max(np.abs(hits - others) / np.sqrt(hits + others + 1)) < 4:
            continue
        coordinates.append(j)
        edges.append(cuts)
        weights.append(_shrunken_log_ratio(hits, others))
    if len(coordinates) < 2:
        return None
    score = ScoreThreshold(coordinates, edges, weights, 0.0)
    ranked = [np.sort(score.score(rows)) for rows in train]
    spots = np.unique(np.quantile(np.concatenate(ranked), SHARES))
    p, q = (1 - np.searchsorted(side, spots, side="right") / runs for side in ranked)
    return _Scored(score, spots, p, q, runs)


def _best_scores(scored: _Scored, objective: Objective) -> list[tuple[ScoreThreshold, bool]]:
    """The best threshold of the score, and of its opposite for D′."""
    above = float(scored.cuts[int(objective(scored.p, scored.q, scored.runs).argmax())])
    below = float(scored.cuts[int(objective(1 - scored.q, 1 - scored.p, scored.runs).argmax())])
    # Just above −cut: the negated score must exceed it where the score stays at or below the cut.
    same, opposite = scored.score.weights, [-w for w in scored.score.weights]
    made = partial(ScoreThreshold, scored.score.coordinates, scored.score.edges)
    return [(made(same, above), False), (made(opposite, float(np.nextafter(-below, -np.inf))), True)]
