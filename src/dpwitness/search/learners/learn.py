"""Which event, given outcomes of both sides: everything here is heuristic and never evidence.

By Neyman–Pearson the best event is {likelihood ratio > t}. Candidates are learned on the first half of the search
runs and compared on the second; among those within 5 % of the best the simplest wins.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from dpwitness.candidate import Estimate
from dpwitness.events import LARGEST, Box, Event, Interval, OutcomeSet, ScoreThreshold
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import RowSample, Sample, Side, Table, sample_of, shrunken_log_ratio

Floats = NDArray[np.float64]
Rows = NDArray[np.float64]

#: Where one-sided cuts are tried, as shares of the values seen: dense in the tails, where rare clear events live.
SHARES = np.concatenate([[1e-4, 3e-4, 1e-3, 3e-3, 0.01], np.arange(1, 64) / 64])
SHARES = np.unique(np.concatenate([SHARES, 1 - SHARES]))
COARSE = np.concatenate([[1e-3, 0.01], np.arange(1, 16) / 16, [0.99, 0.999]])
#: A simpler event may be this much worse than the best one.
SLACK = 0.05
#: How many single outcomes go on to the comparison, from either side.
SINGLES = 3
#: Columns with at most this many different values are taken value by value.
FEW = 40
#: Of other columns, the values that at least this share of the runs of a side return.
ATOM = 1 / 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An event, which side plays D, its rough probabilities and what the objective makes of them."""

    event: Event
    swapped: bool
    estimate: Estimate
    value: float
    lower_value: float = -np.inf  # the value lowered by three standard errors, not one


def learn_events(x: Rows, y: Rows, objective: Objective, *, thorough: bool = True, most: int = 4) -> list[Found]:
    """The events that an objective likes best in rows of outcomes of D and of D′; see `Learner`."""
    return Learner(sample_of(x, y), thorough=thorough).events(objective, most)


class Learner:
    """Learns events from a sample: reads it once, for any objective.

    `thorough` adds finer cuts, boxes and learned scores to outcome sets and intervals, for the final choice.
    """

    def __init__(self, sample: Sample, *, thorough: bool = True) -> None:
        self.sample, self.thorough = sample, thorough

    def events(self, objective: Objective, most: int = 4) -> list[Found]:
        """The events that the objective likes best, in either direction.

        The first is the simplest that is nearly as good as the best one, the second the best three standard errors
        lower, in case that the first owes its value to luck; the others follow by value.
        """
        sample = self.sample
        objective = objective.for_tables() if isinstance(sample, Table) else objective
        columns = _best_intervals(self._columns, objective)
        # The best of some hundred intervals is the luckiest; so also the best three standard errors lower.
        careful = _best_intervals(self._columns, objective, 3.0) if self.thorough else []
        tried = [interval for _, interval, _ in columns[:3]]
        sets = _best_sets(sample, objective) if isinstance(sample, Table) else []
        trials = [trial for trial in sets if trial.size == 1]  # simplest first
        trials += [_tried(interval, swapped, sample) for _, interval, swapped in columns[:3]]
        trials += [_tried(interval, swapped, sample) for _, interval, swapped in careful[:3] if interval not in tried]
        trials += [trial for trial in sets if trial.size > 1]
        if self.thorough and sample.width > 1:
            for _, interval, swapped in columns[:2]:
                box = _grow_box(sample, interval, swapped, objective)
                if box is not None:
                    trials.append(_tried(box, swapped, sample))
            if self._scored:
                trials += [_tried(score, swapped, sample) for score, swapped in _best_scores(self._scored, objective)]
        p, q, both = (np.array(rates) for rates in zip(*((t.p, t.q, t.both) for t in trials), strict=True))
        values = objective(p, q, sample.tested, 1.0, both)
        lower = objective(p, q, sample.tested, 3.0, both)
        best = float(values.max())
        chosen = int(np.argmax(values >= best - slack(best)))
        order = list(dict.fromkeys([chosen, int(np.argmax(lower)), *map(int, np.argsort(-values, kind="stable"))]))
        return [
            Found(
                event=trials[k].event(),
                swapped=trials[k].swapped,
                estimate=Estimate(p=trials[k].p, q=trials[k].q, both=trials[k].both),
                value=float(values[k]),
                lower_value=float(lower[k]),
            )
            for k in order[:most]
        ]

    @cached_property
    def _columns(self) -> "list[_Column]":
        return _bin(self.sample.sides(), self.sample.runs, thorough=self.thorough)

    @cached_property
    def _scored(self) -> "_Scored | None":
        return _score(self.sample) if isinstance(self.sample, RowSample) else None


@dataclass(frozen=True, slots=True)
class Trial:
    """An event to be built when it wins, and its rates on runs that it was not learned from."""

    event: Callable[[], Event]
    swapped: bool
    p: float
    q: float
    both: float
    size: int = 1  # outcomes, for a set of outcomes

    @classmethod
    def of(cls, event: Callable[[], Event], swapped: bool, rates: tuple[float, float, float], size: int = 1) -> "Trial":
        """From the rates of D, of D′ and of both."""
        p, q, both = rates
        return cls(event, swapped, q, p, both, size) if swapped else cls(event, swapped, p, q, both, size)


def _tried(event: Event, swapped: bool, sample: Sample) -> Trial:
    return Trial.of(lambda: event, swapped, sample.rates(event))


def slack(best: float) -> float:
    """How much less a simpler event may promise: 5 %."""
    return SLACK * abs(best)


@dataclass(frozen=True, slots=True)
class _Column:
    """Intervals of one column, and the share of the runs of D and of D′ that fall into each."""

    coordinate: int
    runs: int
    lows: Floats
    highs: Floats
    p: Floats
    q: Floats


def _bin(columns: tuple[list[Side], list[Side]], runs: int, *, thorough: bool = True) -> list[_Column]:
    """The intervals to try in each column of D and of D′, of `runs` runs each.

    Below and above every cut, and single values: of a column of few different ones all of them, else the frequent ones.
    """
    shares = SHARES if thorough else COARSE
    binned = []
    for j, sides in enumerate(zip(*columns, strict=True)):
        present = [side for side in sides if len(side.values)]
        if not present:
            continue
        values = _few_values(present)
        if values is None:
            spots = [
                side.values[np.searchsorted(side.upto, shares * (side.upto[-1] - 1), side="right") - 1]
                for side in present
            ]
            # The least too: it may be an atom that no share meets.
            cuts = np.unique(np.concatenate([*spots, *(side.values[:1] for side in present)]))
            # A quantile of a continuous column is no atom: around it there is nothing but a sliver, and luck.
            frequent = [
                _runs_between(side, cuts, np.nextafter(cuts, np.inf)) >= ATOM * side.upto[-1] for side in present
            ]
            atoms = cuts[np.logical_or.reduce(frequent)]
        else:
            cuts = atoms = values
        lows, highs = _intervals(cuts, atoms, present)
        p, q = (_runs_between(side, lows, highs) / runs for side in sides)
        binned.append(_Column(j, runs, lows, highs, p, q))
    return binned


def _few_values(sides: Sequence[Side]) -> Floats | None:
    """The different values of a column, sorted; None if there are more than `FEW`."""
    different = [side.values[np.append(True, side.values[1:] != side.values[:-1])] for side in sides]
    if max(len(values) for values in different) > FEW:
        return None
    values = np.unique(np.concatenate(different))
    return values if len(values) <= FEW else None


def _intervals(cuts: Floats, atoms: Floats, sides: Sequence[Side]) -> tuple[Floats, Floats]:
    """Ends of the intervals below and above every cut, and from every atom to the next value; no interval is empty.

    The end +inf of an interval is no end at all: to leave the value +inf out, it ends at the largest finite number.
    """
    after = [np.append(side.values, np.inf)[np.searchsorted(side.values, atoms, side="right")] for side in sides]
    following = np.minimum.reduce(after)
    # An atom with nothing above it is the interval above its cut.
    single = (following < np.inf) | any(side.values[-1] == np.inf for side in sides)
    lows = np.concatenate([np.full(len(cuts), -np.inf), cuts, atoms[single]])
    ends = np.clip(np.concatenate([cuts, following[single]]), -LARGEST, LARGEST)
    highs = np.concatenate([ends[: len(cuts)], np.full(len(cuts), np.inf), ends[len(cuts) :]])
    proper = (lows < highs) | (lows == np.inf) & (highs == np.inf)
    return lows[proper], highs[proper]


def _runs_between(side: Side, lows: Floats, highs: Floats) -> NDArray[np.int64]:
    """How many runs of a side lie in each of the intervals."""
    before = np.searchsorted(side.values, lows)
    behind = np.where(highs == np.inf, len(side.values), np.searchsorted(side.values, highs))
    return np.asarray(side.upto[behind] - side.upto[before])


def _best_intervals(
    columns: Sequence[_Column], objective: Objective, standard_errors: float = 1.0
) -> list[tuple[float, Interval, bool]]:
    """The best interval of each column, best column first: its value, itself, and whether D′ plays D."""
    if not columns:
        return []
    p, q = np.concatenate([column.p for column in columns]), np.concatenate([column.q for column in columns])
    values = objective(np.concatenate([p, q]), np.concatenate([q, p]), columns[0].runs, standard_errors)
    straight, swapped = np.split(values, 2)
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


def _grow_box(sample: Sample, first: Interval, swapped: bool, objective: Objective) -> Box | None:
    """Add sides to an interval while each makes it clearly better."""
    sides, grown, best = {first.coordinate: first}, None, -np.inf
    while len(sides) <= 3:
        box = Box(tuple(sides.values()))
        shares = sample.learned(box)
        p, q = (np.array([share]) for share in (shares[::-1] if swapped else shares))
        value = float(objective(p, q, sample.runs)[0])
        if grown is not None and value <= best + slack(best):
            break
        best, grown = value, box
        columns = _bin(sample.sides(box), sample.runs)
        better = [item for item in _best_intervals(columns, objective) if item[2] == swapped]
        if not better:
            break
        side = better[0][1]
        old = sides.get(side.coordinate, side)
        low, high = max(old.low, side.low), min(old.high, side.high)
        if not (low < high or low == high == np.inf):
            break
        sides[side.coordinate] = Interval(coordinate=side.coordinate, low=low, high=high)
    return grown if grown is not None and grown.sides != (first,) else None


def _best_sets(table: Table, objective: Objective) -> list[Trial]:
    """The best sets of whole outcomes: single ones, and prefixes by likelihood ratio."""
    trials: list[Trial] = []
    for swapped in (False, True):
        hits, others = (table.others, table.hits) if swapped else (table.hits, table.others)
        ranking = table.ranking[::-1] if swapped else table.ranking
        p = np.concatenate([hits[ranking], np.cumsum(hits[ranking])]) / table.runs
        q = np.concatenate([others[ranking], np.cumsum(others[ranking])]) / table.runs
        alone, prefix = np.split(objective(p, q, table.runs), 2)
        best = float(prefix.max())
        # Single outcomes; the best prefix; the shortest prefix that is nearly as good.
        sizes = {int(prefix.argmax()) + 1, int(np.argmax(prefix >= best - slack(best))) + 1}
        chosen = [ranking[[k]] for k in np.argsort(-alone, kind="stable")[:SINGLES]]
        chosen += [ranking[:size] for size in sorted(sizes) if 1 < size < len(ranking)]
        for members in chosen:
            inside = np.zeros(len(table.outcomes), np.bool_)
            inside[members] = True
            event = partial(OutcomeSet, table.outcomes[members])
            trials.append(Trial.of(event, swapped, table.shares(inside), size=len(members)))
    return sorted(trials, key=lambda trial: trial.size)


@dataclass(frozen=True, slots=True)
class _Scored:
    """An additive score, and how it is distributed under D and D′."""

    score: ScoreThreshold
    cuts: Floats
    p: Floats  # the share above each cut
    q: Floats
    runs: int


def _score(sample: RowSample) -> _Scored | None:
    """The log ratio of each entry's bin, summed over the entries (exact for independent entries).

    None where fewer than two columns tell anything.
    """
    runs = sample.runs
    coordinates, edges, weights = [], [], []
    for j, column in enumerate(zip(*sample.sides(), strict=True)):
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
        weights.append(shrunken_log_ratio(hits, others))
    if len(coordinates) < 2:
        return None
    score = ScoreThreshold(coordinates, edges, weights, 0.0)
    ranked = [np.sort(score.score(rows)) for rows in sample.train]
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
