"""Scans for sets in which the runs of one input gather: repeated values, intervals with two ends, and grids.

A set may be rare: it stands out by the improbability of its counts, given the number N of sets that were tried. N is
about n/w for intervals of w of n runs, and the number of repeated values for a repeated value. The best of N sets
stands out by √(2 log N) standard errors by chance alone, by which the value of each set is lowered (scan statistics
with a penalty for scale: Dümbgen & Spokoiny 2001, Ann. Stat. 29(1); Walther 2010, Ann. Stat. 38(2)).

Entries are scanned on all training runs; residues are searched for repeated values on some of these runs, as continuous
numbers never repeat.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Booleans, Floats, Integers
from dpwitness.events import LARGEST_FLOAT, Event, Feature, FeatureEvent, Interval, OutcomeSet
from dpwitness.events.encoding import LEAST_NUMBER
from dpwitness.events.features import numbers
from dpwitness.search.learners.intervals import best_intervals
from dpwitness.search.learners.learner import Learner, Proposal
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample, SortedColumn

#: A column of the outcomes on D, and the same column on D′.
Both: TypeAlias = tuple[SortedColumn, SortedColumn]

#: The least number of training runs of a sample that is scanned.
LEAST_SCANNED_RUNS: Final = 128
#: The least number of training runs of a sample that is scanned in a quick look.
LEAST_SCANNED_RUNS_IF_QUICK: Final = 1024
#: Shares of a set's error of chance by which its value is lowered; the best set for each share is proposed.
ERROR_SHARES: Final = (1.0, 0.5)
#: The number of sets of each kind, in either direction, that the objective rates.
KEPT_SETS: Final = 4
#: The least number of runs of an input between two ends of intervals.
END_STEP: Final = 8
#: The largest number of runs of an input between two ends of intervals, for 16,384 runs and more.
LARGEST_END_STEP: Final = 32
#: The number of intervals of one length that begin within that length.
STARTS_PER_LENGTH: Final = 2
#: The number of values near an end of an interval that are tried in its place.
NEAR_ENDS: Final = 32
#: The number of values of each input, in all columns together, that are searched for repeated residues.
SEARCHED_RESIDUES: Final = 1 << 16
#: The least number of runs of an input that are searched for repeated residues.
LEAST_SEARCHED_RUNS: Final = 1 << 11
#: The largest number of runs of an input that are searched for repeated residues.
MOST_SEARCHED_RUNS: Final = 1 << 15
#: The number of significant digits of the ends of an interval around repeated values.
DIGITS: Final = 9
#: The finest spacing of each family of grids, the factor to the next spacing, and the number of spacings.
GRIDS: Final = ((1e-3, 10.0, 7), (2.0**-10, 2.0, 21))
#: The largest distance from a multiple of a spacing, as a share of the spacing, that counts as rounding.
GRID_ROUNDING: Final = 1e-11
#: The set that holds the value 0 alone.
ZERO: Final = OutcomeSet(np.zeros((1, 1)))
#: The least number of standard errors by which a set stands out in some runs before it is counted in all runs.
LEAST_STANDARD_ERRORS: Final = 2.5


class Scans(Learner):
    """The learner of sets that stand out most for the number of sets tried, if better than every entry's best range.

    A quick look proposes repeated values only.
    """

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        if (
            sample.training_runs < (LEAST_SCANNED_RUNS if thorough else LEAST_SCANNED_RUNS_IF_QUICK)
            or sample.few_outcomes
        ):
            return
        found = sample.once(_scanned, thorough)
        if not found.events:
            return
        cuts = best_intervals(sample, objective, thorough=thorough)
        least = cuts[0].value if cuts else -np.inf
        proposed: list[Event] = []
        for share in ERROR_SHARES:
            errors = np.maximum(share * found.errors, 1.0)
            rates = (found.p, found.q), (found.q, found.p)
            straight, swapped = (objective(p, q, sample.training_runs, errors) for p, q in rates)
            values = np.maximum(straight, swapped)
            k = int(np.argmax(values))
            turned = bool(swapped[k] > straight[k])
            event, value = found.events[k], float(values[k])
            if k in found.intervals:
                event, value = _with_better_ends(sample, objective, found.intervals[k], float(errors[k]), turned)
            if value > least and event not in proposed:
                proposed.append(event)
                yield Proposal(event=event, swapped=turned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """k sets that stand out, and their shares of the training runs of D and of D′.

    `errors`, of shape (k,) as `p` and `q`: the standard errors by which the best of the sets stands out by chance.
    `intervals`: the sets with two ends, by their place, whose ends may be improved.
    """

    events: Sequence[Event]
    p: Floats
    q: Floats
    errors: Floats
    intervals: Mapping[int, Interval]


def _error_of_chance(tried: int) -> float:
    """The number of standard errors by which the best of `tried` sets stands out by chance."""
    return float(np.sqrt(2 * np.log(max(tried, 1))))


def _clear(hits: Floats | Integers, others: Floats | Integers) -> Floats:
    """The difference of the runs of D and of D′ in each set, in the standard errors of equal rates."""
    return np.asarray((hits - others) / np.sqrt(hits + others + 1))


def _clearest(hits: Integers, others: Integers) -> list[int]:
    """The places of the `KEPT_SETS` sets that stand out most, in either direction."""
    clear = _clear(hits, others)
    order = np.argsort(clear, kind="stable")
    return list(dict.fromkeys([*order[::-1][:KEPT_SETS].tolist(), *order[:KEPT_SETS].tolist()]))


def _scanned(sample: Sample, thorough: bool) -> Scanned:
    """The sets that stand out in a sample."""
    columns = list(zip(*sample.columns(), strict=True))
    repeated = [[_repeated(side) for side in both] for both in columns]
    # Where each outcome is one repeated number, `OutcomeSets` proposes the best numbers.
    parts: list[Rated] = (
        [_atoms(columns, repeated, sample.training_runs)] if sample.width > 1 or not sample.repeats else []
    )
    intervals: dict[int, Interval] = {}
    if thorough:
        found = _intervals(columns, sample.training_runs)
        intervals = dict(enumerate(found[0], sum(len(part[0]) for part in parts)))
        parts += [found, _residues(sample, columns, repeated)]
    events, p, q, errors = zip(*parts, strict=True) if parts else ((), (), (), ())
    return Scanned(
        events=[event for part in events for event in part],
        p=np.concatenate([np.zeros(0), *p]),
        q=np.concatenate([np.zeros(0), *q]),
        errors=np.concatenate([np.zeros(0), *errors]),
        intervals=intervals,
    )


#: Events, their shares on D and on D′, and the standard errors by which the best stands out by chance.
Rated: TypeAlias = tuple[Sequence[Event], Floats, Floats, Floats]


def _atoms(columns: Sequence[Both], repeated: Sequence[Sequence[Floats]], runs: int) -> Rated:
    """The repeated values of all entries that stand out most."""
    places, values, hits, others = [], [], [], []
    for j, (both, several) in enumerate(zip(columns, repeated, strict=True)):
        if any(map(len, several)):
            again = np.unique(np.concatenate(several))
            places.append(np.full(len(again), j))
            values.append(again)
            hits.append(_runs_at(both[0], again))
            others.append(_runs_at(both[1], again))
    if not places:
        return [], np.zeros(0), np.zeros(0), np.zeros(0)
    place, value, k, m = (np.concatenate(part) for part in (places, values, hits, others))
    chosen = _clearest(k, m)
    events: list[Event] = [
        Interval(coordinate=int(place[i]), low=float(value[i]), high=math.nextafter(value[i], math.inf)) for i in chosen
    ]
    return events, k[chosen] / runs, m[chosen] / runs, np.full(len(chosen), _error_of_chance(len(value)))


def _of_runs(column: SortedColumn) -> bool:
    """Whether a column has exactly one value for each of its runs, not one value for several runs."""
    return bool(column.cumulative[-1] == len(column.values))


def _repeated(column: SortedColumn) -> Floats:
    """The values of a column that came in several runs; a value may occur several times."""
    values, runs = column
    same = values[1:] == values[:-1]
    if _of_runs(column):
        return values[1:][same] if same.any() else values[:0]
    several = np.diff(runs) > 1
    several[1:] |= same
    return values[several]


def _runs_at(column: SortedColumn, values: Floats) -> Integers:
    """The number of runs that returned each value."""
    first, last = (np.searchsorted(column.values, values, side=side) for side in ("left", "right"))
    return np.asarray(column.cumulative[last] - column.cumulative[first])


def _intervals(columns: Sequence[Both], runs: int) -> tuple[Sequence[Interval], Floats, Floats, Floats]:
    """The interval that stands out most, for either input and for each length, counted in runs of that input.

    Intervals of one length hold about equally many runs of the input, so the best interval by any objective holds the
    fewest runs of the other input.
    """
    step = min(max(runs >> 9, END_STEP), LARGEST_END_STEP)
    events: list[Interval] = []
    hits, errors = [], []
    for side in (0, 1):
        cuts = [_cuts(both[side], step) for both in columns]
        most = max(len(ends) for ends, _ in cuts)
        # The runs before each cut, for all columns at once; columns of fewer cuts repeat their last cut.
        before = np.zeros((2, len(columns), most))
        for j, (ends, own) in enumerate(cuts):
            n = len(ends)
            before[side, j, :n], before[1 - side, j, :n] = own, _runs_below(columns[j][1 - side], ends)
            before[:, j, n:] = before[:, j, n - 1 : n]
        length = 1
        while length < most:
            stride = max(length // STARTS_PER_LENGTH, 1)
            inside = before[:, :, length::stride] - before[:, :, : most - length : stride]
            clear = _clear(inside[side], inside[1 - side])
            j, place = divmod(int(clear.argmax()), clear.shape[1])
            start = place * stride
            if start + length < len(cuts[j][0]) and cuts[j][0][start] < cuts[j][0][start + length]:
                low, high = cuts[j][0][[start, start + length]].tolist()
                events.append(Interval(coordinate=j, low=low, high=high))
                hits.append(inside[:, j, place])
                errors.append(_error_of_chance(2 * clear.size))
            length += max(length // 2, 1)
    p, q = np.array(hits).reshape(-1, 2).T / runs
    return events, p, q, np.array(errors)


def _cuts(column: SortedColumn, step: int) -> tuple[Floats, Integers]:
    """Ends of intervals (−∞, the numbers of a column at every `step` runs, +∞), and the number of runs below each."""
    values, runs = column
    if _of_runs(column):
        places = np.arange(0, len(values), step)
        cuts = values[places]
        if np.any(values[places[1:] - 1] == cuts[1:]):
            places = np.searchsorted(values, cuts)
    else:
        cuts = np.unique(values[np.searchsorted(runs, np.arange(0, runs[-1], step), side="right") - 1])
        places = np.searchsorted(values, cuts)
    numbers = (cuts >= LEAST_NUMBER) & (cuts <= LARGEST_FLOAT)
    ends = np.concatenate([[-np.inf], cuts[numbers], [np.inf]])
    return ends, np.concatenate([[0], runs[places[numbers]], runs[-1:]])


def _runs_below(column: SortedColumn, ends: Floats) -> Integers:
    """The number of runs below the ends of intervals; all runs for the end +∞."""
    places = np.where(ends == np.inf, len(column.values), np.searchsorted(column.values, ends))
    return np.asarray(column.cumulative[places])


def _with_better_ends(
    sample: Sample, objective: Objective, interval: Interval, errors: float, swapped: bool
) -> tuple[Interval, float]:
    """The interval with the best ends nearby, one end after the other, and its value; infinite ends stay."""
    both = [columns[interval.coordinate] for columns in sample.columns()]
    ends, value = np.array([interval.low, interval.high]), -np.inf
    for which in range(2):
        if not np.isfinite(ends[which]):
            continue
        tried = np.unique(np.concatenate([*(_near(side, ends, which) for side in both), ends[[which]]]))
        inside = tried > ends[0] if which else (tried < ends[1]) & (tried >= LEAST_NUMBER)
        tried = tried[inside & (tried <= LARGEST_FLOAT)]
        fixed = np.full(len(tried), ends[1 - which])
        lows, highs = (fixed, tried) if which else (tried, fixed)
        p, q = ((_runs_below(side, highs) - _runs_below(side, lows)) / sample.training_runs for side in both)
        values = objective(*((q, p) if swapped else (p, q)), sample.training_runs, errors)
        best = int(values.argmax())
        ends[which], value = tried[best], float(values[best])
    return Interval(coordinate=interval.coordinate, low=float(ends[0]), high=float(ends[1])), value


def _near(column: SortedColumn, ends: Floats, which: int) -> Floats:
    """Values of a column on both sides of an end of an interval, at a distance up to the number of values inside."""
    first, last = np.searchsorted(column.values, ends)
    around, reach = (first, last)[which], max(last - first, 1)
    start, stop = max(around - reach, 0), min(around + reach + 1, len(column.values))
    return column.values[start : stop : max((stop - start) // NEAR_ENDS, 1)]


def _residues(sample: Sample, columns: Sequence[Both], repeated: Sequence[Sequence[Floats]]) -> Rated:
    """The repeated residues that stand out most, found in some and counted in all of the training runs."""
    state = _Clearest()
    if sample.repeats:
        continuous = list(range(len(columns)))
    else:
        continuous = [j for j, both in enumerate(columns) if all(map(_continuous, both, repeated[j]))]
    with np.errstate(all="ignore"):  # ∞ − ∞, x / 0, overflow
        _on_grids(sample, continuous, state)
    ranked = sorted(state.found.items(), key=lambda item: -item[1])
    events = [event for event, _ in ranked[:KEPT_SETS]]
    rates = np.array([sample.training_rates(event) for event in events]).reshape(-1, 2)
    return events, rates[:, 0], rates[:, 1], np.full(len(events), _error_of_chance(state.tried))


def _continuous(column: SortedColumn, repeated: Floats) -> bool:
    """Whether most numbers of a column came once."""
    return 2 * len(repeated) < len(column.values)


@dataclass(slots=True)
class _Clearest:
    """The sets that stand out, each with its standard errors, and the number of sets tried."""

    found: dict[Event, float] = field(default_factory=dict)
    tried: int = 0

    def add(self, hits: Integers, others: Integers, event: Callable[[int], Event]) -> None:
        """Add the sets that stand out among k sets, by their runs of D and of D′; `event` makes the set of a number."""
        self.tried += len(hits)
        clear = np.abs(_clear(hits, others))
        for k in _clearest(hits, others):
            if clear[k] >= LEAST_STANDARD_ERRORS:
                self.found[event(k)] = float(clear[k])


def _on_grids(sample: Sample, columns: Sequence[int], state: _Clearest) -> None:
    """Add the multiples of every spacing in each column and, if no outcome repeats, repeated residues of a column."""
    rows, times = sample.some(
        min(max(SEARCHED_RESIDUES // max(len(columns), 1), LEAST_SEARCHED_RUNS), MOST_SEARCHED_RUNS)
    )
    plain = np.ascontiguousarray(numbers(rows[:, columns]).T)
    for finest, factor, spacings in GRIDS:
        turns = plain * (1 / finest)
        whole = np.rint(turns)
        rest = turns - whole
        on = np.abs(rest) < GRID_ROUNDING
        for j in np.flatnonzero(np.count_nonzero(on, axis=1) > 1).tolist():
            multiples = _multiples(whole[j, on[j]], times[:, on[j]], factor, spacings)
            found = np.array([part.sum(axis=1) for part in multiples])
            numbered = [float(f"{finest * factor**k:.12g}") for k in range(spacings)]
            kinds = [Feature(name="residue", columns=(columns[j],), number=spacing) for spacing in numbered]
            events = [FeatureEvent(feature=kind, within=ZERO) for kind in kinds]
            state.add(found[:, 0], found[:, 1], events.__getitem__)
        if not sample.repeats and finest == GRIDS[0][0]:
            rest[on] = np.nan
            kinds = [Feature(name="residue", columns=(j,), number=finest) for j in columns]
            even = np.full(len(columns), finest)
            _add_gathered(state, kinds, rest * finest, GRID_ROUNDING * even, even)


def _multiples(turns: Floats, times: Integers, factor: float, spacings: int) -> Iterator[Integers]:
    """The counts on D and D′ of whole numbers, then of the multiples of a factor, of the factor's square, and so on.

    `turns`: k whole numbers; `times`: their counts, shape (2, k). Each array of counts has the shape (2, multiples).
    """
    for _ in range(spacings):
        yield times
        kept = turns % factor == 0
        turns, times = turns[kept] / factor, times[:, kept]


def _add_gathered(
    state: _Clearest, features: Sequence[Feature], values: Floats, rounding: Floats, scales: Floats
) -> None:
    """Add the values of k features that repeat up to `rounding`, as intervals whose ends have few digits.

    `values`, of shape (k, 2n): the first half is from D. Residues may be given less the modulus.
    """
    sides = [np.sort(half, axis=1) for half in np.split(values, 2, axis=1)]  # NaN goes last
    near = [side[:, 1:] - side[:, :-1] <= rounding[:, None] for side in sides]
    for j in np.flatnonzero(near[0].any(axis=1) | near[1].any(axis=1)).tolist():
        spans = np.hstack([_spans(side[j], here[j]) for side, here in zip(sides, near, strict=True)])
        hits, others = (
            np.searchsorted(side[j], spans[1], side="right") - np.searchsorted(side[j], spans[0]) for side in sides
        )
        state.add(hits, others, partial(_around, features[j], spans, float(scales[j])))


def _spans(values: Floats, near: Booleans) -> Floats:
    """The first and the last value of each group of sorted values that lie close together; shape (2, k).

    `near`: flags of the values that are close to the next value.
    """
    edges = np.diff(np.concatenate([[False], near, [False]]).astype(np.int8))
    return np.stack([values[edges > 0], values[edges < 0]])


def _around(feature: Feature, spans: Floats, scale: float, k: int) -> FeatureEvent:
    """The event that a feature lies in span k, widened to ends of `DIGITS` digits."""
    unit = 10.0 ** (math.ceil(math.log10(scale)) - DIGITS)
    low, high = spans[:, k] + (feature.number if feature.name == "residue" and spans[0, k] < 0 else 0.0)
    ends = (math.floor(low / unit - 0.5), math.ceil(high / unit + 0.5))
    low, high = (float(f"{end * unit:.12g}") for end in ends)
    return FeatureEvent(feature=feature, within=Interval(coordinate=0, low=low, high=high))
