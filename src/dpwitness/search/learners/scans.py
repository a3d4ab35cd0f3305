"""Scans for where the runs of one input gather: values that come back, intervals with two ends, grids, equal entries.

However rare: what counts is how unlikely so many hits against so few are, over how many sets were tried. An interval
that holds w of n runs is one of n/w of its length, a value that came back is one of all that did; the luckiest of N
stands out by √(2 log N) standard errors, and by so many a set is lowered before it is compared (scan statistics that
pay for their scale: Dümbgen & Spokoiny 2001, Ann. Stat. 29(1); Walther 2010, Ann. Stat. 38(2)).

Looked at are all entries, on all runs; of differences, ratios and residues the values that come back, on some runs,
which continuous numbers never do; equal entries on all runs. The test runs judge what is proposed, as of all learners.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.events import LARGEST, Event, Feature, FeatureEvent, Interval, OutcomeSet
from dpwitness.events.encoding import LEAST_NUMBER
from dpwitness.events.features import numbers
from dpwitness.search.learners.intervals import best_intervals
from dpwitness.search.learners.learner import Learner, Proposal
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample, SortedColumn

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
#: A column of D and that of D′.
Both: TypeAlias = tuple[SortedColumn, SortedColumn]

#: Training runs from which on anything is looked for.
LEAST: Final = 128
#: How many sets are proposed at most, and in each direction how many of each sort are given to the objective.
PROPOSED: Final = 2
KEPT: Final = 4
#: Intervals begin and end at every so many runs of an input; more where there are many runs.
STEP: Final = 8
LARGEST_STEP: Final = 32
#: Where those of a length begin: so many times in their length.
PARTS: Final = 4
#: How many ends of an interval are tried for a better one, and how often.
ENDS: Final = 48
ROUNDS: Final = 2
#: How many numbers of each input are looked at for values that come back, of all pairs of columns and of all columns,
#: and from how many runs of an input they are at least, and at most.
NUMBERS: Final = 1 << 18
FEWEST: Final = 1 << 12
MOST: Final = 1 << 15
#: Of so many columns all pairs are compared for equality; of more the entries of each run are sorted.
FEW: Final = 8
#: Runs that are compared at a time, and of these at most how many with equal entries are looked at.
BLOCK: Final = 1 << 13
EQUAL: Final = 256
#: Numbers are the same up to rounding: by such a share of what they were computed from.
ROUNDING: Final = 2.0**-44
#: And they are told as an interval with ends of so many digits.
DIGITS: Final = 9
#: The finest grids that are looked for, all that are multiples of these, and which share of a spacing is rounding.
GRIDS: Final = ((1e-3, (1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)), (2.0**-10, tuple(2.0**k for k in range(-10, 11))))
ON_GRID: Final = 1e-11
#: At most so many pairs of columns are looked at.
PAIRS: Final = 64
#: The one value 0 of a feature.
ZERO: Final = OutcomeSet(np.zeros((1, 1)))
#: By how many standard errors a set must stand out on some of the runs to be counted on all.
CLEAR: Final = 2.5


class Scans(Learner):
    """The sets that stand out most for how many were tried, where they are better than what one cut gives.

    Nothing in a quick look.
    """

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        if not thorough or sample.training_runs < LEAST:
            return
        found = sample.once(_scanned)
        if not found.events:
            return
        rates, errors = np.stack([found.p, found.q]), np.maximum(found.errors, 1.0)
        values = np.array([objective(p, q, sample.training_runs, errors) for p, q in (rates, rates[::-1])])
        cuts = best_intervals(sample, objective, thorough=thorough)
        least = cuts[0].value if cuts else -np.inf
        best = np.argsort(-values.max(axis=0), kind="stable")[:PROPOSED]
        for k in best[values.max(axis=0)[best] > least].tolist():
            event, swapped = found.events[k], bool(values[1, k] > values[0, k])
            if found.scanned[k]:
                assert isinstance(event, Interval)
                event = _with_better_ends(sample, objective, event, float(errors[k]), swapped=swapped)
            yield Proposal(event=event, swapped=swapped)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """k sets that stand out, their shares of the training runs of D and of D′, and what the luckiest one shows.

    `errors`: by how many standard errors the luckiest of those tried stands out; `scanned`: of intervals with two ends,
    which may be better with other ends. All of shape (k,).
    """

    events: Sequence[Event]
    p: Floats
    q: Floats
    errors: Floats
    scanned: NDArray[np.bool_]


def _luckiest(tried: int) -> float:
    """By how many standard errors the luckiest of so many sets stands out."""
    return float(np.sqrt(2 * np.log(max(tried, 1))))


def _clear(hits: Whole, others: Whole) -> Floats:
    """By how many standard errors sets stand out, were D and D′ alike."""
    return np.asarray((hits - others) / np.sqrt(hits + others + 1))


def _clearest(hits: Whole, others: Whole) -> list[int]:
    """The few sets that stand out most, in either direction."""
    clear = _clear(hits, others)
    order = np.argsort(clear, kind="stable")
    return list(dict.fromkeys([*order[::-1][:KEPT].tolist(), *order[:KEPT].tolist()]))


def _scanned(sample: Sample) -> Scanned:
    """What stands out in a sample."""
    columns = list(zip(*sample.sorted_columns, strict=True))
    events, p, q, errors = _atoms(columns, sample.training_runs)
    intervals = _intervals(columns, sample.training_runs)
    derived = _derived(sample, columns)
    scanned = np.repeat([False, True, False], [len(events), len(intervals[0]), len(derived[0])])
    return Scanned(
        events=[*events, *intervals[0], *derived[0]],
        p=np.concatenate([p, intervals[1], derived[1]]),
        q=np.concatenate([q, intervals[2], derived[2]]),
        errors=np.concatenate([errors, intervals[3], derived[3]]),
        scanned=scanned,
    )


#: Events, their shares on D and on D′, and what the luckiest shows.
Rated: TypeAlias = tuple[list[Event], Floats, Floats, Floats]


def _atoms(columns: Sequence[Both], runs: int) -> Rated:
    """The clearest of all values of an entry that come back."""
    places, values, hits, others = [], [], [], []
    for j, both in enumerate(columns):
        again = np.unique(np.concatenate([_coming_back(side) for side in both]))
        if len(again):
            places.append(np.full(len(again), j))
            values.append(again)
            hits.append(_runs_at(both[0], again))
            others.append(_runs_at(both[1], again))
    if not places:
        return [], np.zeros(0), np.zeros(0), np.zeros(0)
    place, value, k, m = (np.concatenate(part) for part in (places, values, hits, others))
    chosen = _clearest(k, m)
    events: list[Event] = [
        Interval(coordinate=int(place[i]), low=float(value[i]), high=float(np.nextafter(value[i], np.inf)))
        for i in chosen
    ]
    return events, k[chosen] / runs, m[chosen] / runs, np.full(len(chosen), _luckiest(len(value)))


def _coming_back(column: SortedColumn) -> Floats:
    """The values of a column that came more than once, each perhaps several times."""
    values, runs = column
    same = values[1:] == values[:-1]
    if runs[-1] == len(values):
        return values[1:][same] if same.any() else values[:0]
    several = np.diff(runs) > 1
    several[1:] |= same
    return values[several]


def _runs_at(column: SortedColumn, values: Floats) -> Whole:
    """How many runs returned each of some values."""
    first, last = (np.searchsorted(column.values, values, side=side) for side in ("left", "right"))
    return np.asarray(column.cumulative[last] - column.cumulative[first])


def _intervals(columns: Sequence[Both], runs: int) -> Rated:
    """Of the intervals of each length, in runs, the one that stands out most for either input.

    Intervals of one length hold nearly as many runs of both inputs together, so that the one with the largest share of
    D is the best for every objective.
    """
    step = min(max(runs >> 12, STEP), LARGEST_STEP)
    cuts = [_cuts(both, step) for both in columns]
    most = max(map(len, cuts), default=0)
    if most < 2:
        return [], np.zeros(0), np.zeros(0), np.zeros(0)
    # Of all columns at once: shape (columns, cuts), those of fewer cuts filled up with the last one.
    table = np.array([np.pad(own, (0, most - len(own)), "edge") if len(own) else np.zeros(most) for own in cuts])
    before = np.zeros((2, len(columns), most), np.int64)
    for j, both in enumerate(columns):
        if len(cuts[j]):
            for i, side in enumerate(both):
                before[i, j, : len(cuts[j])] = side.cumulative[np.searchsorted(side.values, cuts[j])]
                before[i, j, len(cuts[j]) :] = before[i, j, len(cuts[j]) - 1]
    events: list[Event] = []
    hits, others, errors = [], [], []
    length = 1
    while length < most:
        stride = max(length // PARTS, 1)
        k, m = before[:, :, length::stride] - before[:, :, : most - length : stride]
        clear = _clear(k, m)
        for place in {int(clear.argmax()), int(clear.argmin())}:
            j, start = divmod(place, clear.shape[1])
            low, high = table[j, start * stride], table[j, start * stride + length]
            if low < high:
                events.append(Interval(coordinate=j, low=float(low), high=float(high)))
                hits.append(int(k[j, start]))
                others.append(int(m[j, start]))
                errors.append(_luckiest(clear.size))
        length += max(length // 2, 1)
    return events, np.array(hits) / runs, np.array(others) / runs, np.array(errors)


def _cuts(both: Both, step: int) -> Floats:
    """The numbers at every so many runs of D and of D′, sorted."""
    spots = []
    for values, runs in both:
        if runs[-1] == len(values):
            spots.append(values[::step])
        else:
            spots.append(values[np.searchsorted(runs, np.arange(0, runs[-1], step), side="right") - 1])
    cuts = np.sort(np.concatenate(spots))
    return cuts[(cuts >= LEAST_NUMBER) & (cuts <= LARGEST)]  # what is no number has no order


def _with_better_ends(
    sample: Sample, objective: Objective, interval: Interval, errors: float, *, swapped: bool
) -> Interval:
    """The interval with the best of the ends nearby, one end after the other."""
    both = [columns[interval.coordinate] for columns in sample.sorted_columns]
    ends = np.array([interval.low, interval.high])
    for turn in range(2 * ROUNDS):
        near = [_near(side, ends, turn % 2) for side in both]
        tried = np.unique(np.concatenate([*near, ends[[turn % 2]]]))
        tried = tried[(tried >= LEAST_NUMBER) & (tried < ends[1] if turn % 2 == 0 else tried > ends[0])]
        fixed = np.full(len(tried), ends[1 - turn % 2])
        lows, highs = (tried, fixed) if turn % 2 == 0 else (fixed, tried)
        p, q = (
            (side.cumulative[np.searchsorted(side.values, highs)] - side.cumulative[np.searchsorted(side.values, lows)])
            / sample.training_runs
            for side in both
        )
        values = (
            objective(q, p, sample.training_runs, errors) if swapped else objective(p, q, sample.training_runs, errors)
        )
        ends[turn % 2] = tried[int(values.argmax())]
    return Interval(coordinate=interval.coordinate, low=float(ends[0]), high=float(ends[1]))


def _near(column: SortedColumn, ends: Floats, which: int) -> Floats:
    """Values of a column around an end of an interval, up to as many as lie inside on either side of it."""
    first, last = np.searchsorted(column.values, ends)
    around, reach = (first, last)[which], max(last - first, 1)
    start, stop = max(around - reach, 0), min(around + reach + 1, len(column.values))
    return column.values[start : stop : max((stop - start) // ENDS, 1)]


def _derived(sample: Sample, columns: Sequence[Both]) -> Rated:
    """The clearest of equal entries, and of values of differences, ratios and residues that come back.

    Equal entries are counted on all training runs; the others are found on some of them, and then counted on all.
    """
    state = _Clearest()
    continuous = [j for j, both in enumerate(columns) if all(map(_continuous, both))]
    _on_grids(sample, continuous, state)
    if not sample.repeats and len(continuous) > 1:
        _equal(sample, continuous, state)
        _of_pairs(sample, continuous, state)
    ranked = sorted(state.found.items(), key=lambda item: -item[1])
    events = [event for event, _ in ranked[: 2 * KEPT]]
    rates = np.array([sample.training_rates(event) for event in events]).reshape(-1, 2)
    return events, rates[:, 0], rates[:, 1], np.full(len(events), _luckiest(state.tried))


@dataclass(slots=True)
class _Clearest:
    """Sets that stand out, by how many standard errors, and of how many that were tried."""

    found: dict[Event, float] = field(default_factory=dict)
    tried: int = 0

    def add(self, hits: Whole, others: Whole, event: Callable[[int], Event]) -> None:
        """The clear ones of k sets, by their runs of D and of D′; `event` makes the set of a number."""
        self.tried += len(hits)
        clear = np.abs(_clear(hits, others))
        for k in _clearest(hits, others):
            if clear[k] >= CLEAR:
                self.found[event(k)] = float(clear[k])


def _continuous(column: SortedColumn) -> bool:
    """Whether most numbers of a column came once."""
    values = column.values
    return 2 * int(np.count_nonzero(values[1:] == values[:-1])) < len(values)


def _some(sample: Sample, looks: int) -> tuple[Floats, Whole]:
    """As `Sample.some`, as many runs as so many looks at them have time for."""
    return sample.some(min(max(NUMBERS // max(looks, 1), FEWEST), MOST))


def _on_grids(sample: Sample, columns: Sequence[int], state: _Clearest) -> None:
    """Of each column the multiples of every spacing, and what else residues come back to."""
    rows, times = _some(sample, len(columns))
    for j in columns:
        plain = numbers(rows[:, j])
        for finest, spacings in GRIDS:
            turns = plain / finest
            rest = turns - np.rint(turns)
            on = np.abs(rest) < ON_GRID
            if np.count_nonzero(on) > 1:
                grid, runs = rows[on], times[:, on]
                kinds = [Feature(name="residue", columns=(j,), number=spacing) for spacing in spacings]
                hits, others = np.array([runs[:, kind.values(grid) == 0].sum(axis=1) for kind in kinds]).T
                state.add(hits, others, [FeatureEvent(feature=kind, within=ZERO) for kind in kinds].__getitem__)
            if not sample.repeats:
                kind = Feature(name="residue", columns=(j,), number=finest)
                rest[on] = np.nan
                _add_gathered(state, kind, np.mod(rest, 1.0) * finest, times, ON_GRID * finest, finest)


def _of_pairs(sample: Sample, columns: Sequence[int], state: _Clearest) -> None:
    """Distances and ratios of two entries that come back; of many columns those of neighbours."""
    pairs = list(islice(_near_pairs(columns), PAIRS))
    rows, times = _some(sample, len(pairs))
    plain = np.ascontiguousarray(numbers(rows).T)
    for pair in pairs:
        a, b = plain[list(pair)]
        distances = np.abs(a - b)
        scale = float(np.nanmean(np.abs(a))) + float(np.nanmean(np.abs(b)))
        distances[distances == 0] = np.nan  # that is for `_equal`
        _add_gathered(state, Feature(name="distance", columns=pair), distances, times, ROUNDING * scale, scale)
        _add_gathered(state, Feature(name="ratio", columns=pair), a / b, times, ROUNDING, 1.0)


def _near_pairs(columns: Sequence[int]) -> Iterator[tuple[int, int]]:
    """All pairs of columns, neighbours first."""
    for distance in range(1, len(columns)):
        yield from zip(columns[:-distance], columns[distance:], strict=True)


def _add_gathered(
    state: _Clearest, feature: Feature, values: Floats, times: Whole, rounding: float, scale: float
) -> None:
    """The values of a feature that come back up to `rounding`, as intervals with ends that are short to say."""
    x, y = (np.sort(values[side > 0]) for side in times)  # NaN goes last
    lows, highs = np.hstack([_gathered(side, rounding) for side in (x, y)])
    if not len(lows):
        return
    hits, others = (np.searchsorted(side, highs, side="right") - np.searchsorted(side, lows) for side in (x, y))
    unit = 10.0 ** (math.ceil(math.log10(scale)) - DIGITS)

    def event(k: int) -> Event:
        ends = math.floor(lows[k] / unit - 0.5) * unit, math.ceil(highs[k] / unit + 0.5) * unit
        low, high = (float(f"{end:.12g}") for end in ends)
        return FeatureEvent(feature=feature, within=Interval(coordinate=0, low=low, high=high))

    state.add(hits, others, event)


def _gathered(values: Floats, rounding: float) -> Floats:
    """Where several of some sorted values lie together, from the first to the last; shape (2, k)."""
    near = values[1:] - values[:-1] <= rounding
    if not near.any():
        return np.zeros((2, 0))
    edges = np.diff(np.concatenate([[False], near, [False]]).astype(np.int8))
    return np.stack([values[edges > 0], values[edges < 0]])


def _equal(sample: Sample, columns: Sequence[int], state: _Clearest) -> None:
    """Pairs of columns that are equal in some runs; of many columns also that any two are."""
    rows, runs = sample.outcomes, sample.training_runs
    counts = [Counter[tuple[int, int]](), Counter[tuple[int, int]]()]
    for side, first in zip(counts, (0, runs), strict=True):
        for start in range(first, first + runs, BLOCK):
            side.update(_equal_pairs(rows[start : min(start + BLOCK, first + runs)][:, columns]))
    pairs = sorted(counts[0].keys() | counts[1].keys())
    if pairs:
        hits, others = (np.array([side[pair] for pair in pairs]) for side in counts)

        def event(k: int) -> Event:
            i, j = pairs[k]
            kind = Feature(name="order", columns=(columns[i], columns[j]))
            return FeatureEvent(feature=kind, within=ZERO)

        state.add(hits, others, event)


def _equal_pairs(rows: Floats) -> Counter[tuple[int, int]]:
    """How many of some rows have two entries that are equal, by their places."""
    width = rows.shape[1]
    if width <= FEW:
        columns = np.ascontiguousarray(rows.T)
        times = {(i, j): int(np.count_nonzero(columns[i] == columns[j])) for j in range(width) for i in range(j)}
        return Counter({pair: n for pair, n in times.items() if n})
    ordered = np.sort(rows, axis=1)
    again = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))[:EQUAL]
    order = np.argsort(rows[again], axis=1, kind="stable")
    values = np.take_along_axis(rows[again], order, axis=1)
    row, place = np.nonzero(values[:, 1:] == values[:, :-1])
    return Counter(zip(order[row, place].tolist(), order[row, place + 1].tolist(), strict=True))
