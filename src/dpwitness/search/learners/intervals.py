"""Intervals of one entry, between the cuts that tell D from D′ best, and boxes: intervals of several entries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Booleans, Floats, Integers
from dpwitness.events import LARGEST, Box, Event, Interval
from dpwitness.events.encoding import LEAST_NUMBER
from dpwitness.search.learners.learner import Learner, Proposal, tolerance
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample, SortedColumn

#: Shares of the values of a column at which it is cut: dense in the tails, which hold rare clear events.
SHARES = np.concatenate([[1e-4, 3e-4, 1e-3, 3e-3, 0.01], np.arange(1, 64) / 64])
SHARES = np.unique(np.concatenate([SHARES, 1 - SHARES]))
#: Shares of the values of a column at which it is cut in a quick look.
COARSE_SHARES = np.concatenate([[1e-3, 0.01], np.arange(1, 16) / 16, [0.99, 0.999]])
#: Columns whose best interval is proposed.
PROPOSED_COLUMNS = 3
#: The largest number of different values of a column for which each value is an interval.
SINGLE_VALUES = 40
#: The least share of the runs of an input that return one value for which that value is an interval.
ATOM_SHARE = 1 / 64


@dataclass(frozen=True, slots=True)
class RankedInterval:
    """The best interval of a column, its value, and whether D and D′ are exchanged."""

    value: float
    interval: Interval
    swapped: bool


class Intervals(Learner):
    """The best interval of each of the best columns."""

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        ranked = best_intervals(sample, objective, thorough=thorough)[:PROPOSED_COLUMNS]
        if thorough:
            # The best of some hundred intervals is overestimated, so the best by values three errors lower comes too.
            tried = [item.interval for item in ranked]
            lower = best_intervals(sample, objective, thorough=thorough, standard_errors=3.0)[:PROPOSED_COLUMNS]
            ranked = ranked + [item for item in lower if item.interval not in tried]
        for item in ranked:
            yield Proposal(event=item.interval, swapped=item.swapped)


def best_intervals(
    sample: Sample, objective: Objective, *, thorough: bool, standard_errors: float = 1.0
) -> list[RankedInterval]:
    """The best interval of each column, best column first."""
    return _best(sample.once(_all_intervals, thorough), objective, sample.training_runs, standard_errors)


@dataclass(frozen=True, slots=True)
class ColumnIntervals:
    """k intervals of one column, and the shares of the runs of D and of D′ in each; shapes (k,)."""

    coordinate: int
    lows: Floats
    highs: Floats
    p: Floats
    q: Floats


def _all_intervals(sample: Sample, thorough: bool) -> list[ColumnIntervals]:
    return _column_intervals(sample, None, SHARES if thorough else COARSE_SHARES)


def _column_intervals(sample: Sample, event: Event | None, shares: Floats) -> list[ColumnIntervals]:
    """The intervals of each column among the runs in an event, or among all training runs.

    They lie below and above every cut, and at single values: at all values if few differ, else at frequent values.
    """
    columns = enumerate(zip(*sample.columns(event), strict=True))
    found = (_intervals(j, both, shares, sample.training_runs) for j, both in columns)
    return [column for column in found if column is not None]


def _intervals(
    coordinate: int, both: tuple[SortedColumn, SortedColumn], shares: Floats, runs: int
) -> ColumnIntervals | None:
    """The intervals of a column below and above every cut, and from every atom to the next value; None if empty.

    An interval without the value +inf ends at the largest finite number, since the end +inf means no end.
    """
    present = [column for column in both if len(column.values)]
    if not present:
        return None
    values = _few_values(present)
    cuts = _cuts(present, shares) if values is None else values
    # The number of values of each side below every cut, and up to it: all counts follow from these numbers.
    below, upto = ([column.values.searchsorted(cuts, side) for column in both] for side in ("left", "right"))
    single = np.flatnonzero(_frequent(both, below, upto)) if values is None else np.arange(len(cuts))
    following = np.empty(0)
    if len(single):
        following = _following(both, upto, cuts, single)
        # An atom without a value above it is the interval above its cut.
        infinite = any(column.values[-1] == np.inf for column in present)
        proper = (cuts[single] < LARGEST) if infinite else (following < np.inf)
        single, following = single[proper], np.minimum(following[proper], LARGEST)
    starts, ends, under = cuts, cuts, below
    special = not (cuts[0] >= LEAST_NUMBER and cuts[-1] <= LARGEST)
    if special:
        ordered = (cuts >= LEAST_NUMBER) | (cuts < -LARGEST)  # codes of texts have no order
        starts, under = cuts[ordered], [places[ordered] for places in below]
        ends = np.clip(starts, -LARGEST, LARGEST)
    n = len(starts)
    lows, highs = np.full((2, 2 * n + len(single)), np.inf)
    lows[:n], highs[:n] = -np.inf, ends
    lows[n : 2 * n] = starts
    lows[2 * n :], highs[2 * n :] = cuts[single], following
    if not len(lows):
        return None
    rates = []
    for column, less, least, most in zip(both, under, below, upto, strict=True):
        before = column.cumulative[less]
        inside = column.cumulative[column.values.searchsorted(ends)] if special else before
        atoms = column.cumulative[most[single]] - column.cumulative[least[single]]
        rates.append(np.concatenate([inside, column.cumulative[-1] - before, atoms]) / runs)
    return ColumnIntervals(coordinate, lows, highs, *rates)


def _few_values(columns: Sequence[SortedColumn]) -> Floats | None:
    """The different values of a column, sorted; None if there are more than `SINGLE_VALUES`."""
    different = []
    for values in (column.values for column in columns):
        some = values[:: max(len(values) // (2 * SINGLE_VALUES), 1)]  # in most cases these show that many values differ
        if np.count_nonzero(some[1:] != some[:-1]) >= SINGLE_VALUES:
            return None
        different.append(_different(values))
    if max(map(len, different)) > SINGLE_VALUES:
        return None
    values = _different(np.sort(np.concatenate(different)))
    return values if len(values) <= SINGLE_VALUES else None


def _different(values: Floats) -> Floats:
    """Each of sorted values once."""
    first = np.empty(len(values), np.bool_)
    first[:1] = True
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values[first]


def _cuts(columns: Sequence[SortedColumn], shares: Floats) -> Floats:
    """The quantiles of a column of many values, rising."""
    # With the least value, which may be an atom that no share meets.
    spots = [column.values[:1] for column in columns]
    for values, cumulative in columns:
        spots.append(values[cumulative.searchsorted(shares * (cumulative[-1] - 1), "right") - 1])
    cuts = np.concatenate(spots)
    cuts.sort()
    cuts = _different(cuts)
    if min(column.values[0] for column in columns) < LEAST_NUMBER:
        ends = [column.values.searchsorted([-LARGEST, LEAST_NUMBER]) for column in columns]
        if any(first < last for first, last in ends):
            cuts = np.union1d(cuts, [LEAST_NUMBER])  # between codes and numbers
    return cuts


def _frequent(columns: Sequence[SortedColumn], below: Sequence[Integers], upto: Sequence[Integers]) -> Booleans:
    """Whether each cut is a frequent value, unlike a quantile of a continuous column, whose counts differ by chance."""
    frequent = [
        column.cumulative[more] - column.cumulative[less] >= max(ATOM_SHARE * column.cumulative[-1], 1)
        for column, less, more in zip(columns, below, upto, strict=True)
    ]
    return np.asarray(frequent[0] | frequent[1])


def _following(columns: Sequence[SortedColumn], upto: Sequence[Integers], cuts: Floats, single: Integers) -> Floats:
    """The next value above each single value, on either side; above a code the next number."""
    following = np.full(len(single), np.inf)
    for column, places in zip(columns, upto, strict=True):
        after = places[single]
        inside = after < len(column.values)
        following[inside] = np.minimum(following[inside], column.values[after[inside]])
    atoms = cuts[single]
    codes = (atoms < LEAST_NUMBER) & (atoms > -np.inf)
    following[codes] = np.nextafter(atoms[codes], np.inf)
    return following


def _best(
    columns: Sequence[ColumnIntervals], objective: Objective, runs: int, standard_errors: float
) -> list[RankedInterval]:
    """The best interval of each column, in its better direction, best column first."""
    if not columns:
        return []
    p, q = np.concatenate([column.p for column in columns]), np.concatenate([column.q for column in columns])
    values = objective(np.concatenate([p, q]), np.concatenate([q, p]), runs, standard_errors)
    straight, swapped = np.split(values, 2)
    better = np.maximum(straight, swapped)
    found = []
    start = 0
    for column in columns:
        k = int(better[start : start + len(column.lows)].argmax())
        interval = Interval(coordinate=column.coordinate, low=float(column.lows[k]), high=float(column.highs[k]))
        turned = bool(swapped[start + k] > straight[start + k])
        found.append(RankedInterval(float(better[start + k]), interval, turned))
        start += len(column.lows)
    return sorted(found, key=lambda item: -item.value)


#: Intervals that are grown into boxes.
GROWN_INTERVALS = 2
#: The most sides of a box.
MOST_SIDES = 3


class Boxes(Learner):
    """Boxes grown from the best intervals of two columns, while a further side makes them clearly better."""

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        if not thorough or sample.width < 2:
            return
        for first in best_intervals(sample, objective, thorough=thorough)[:GROWN_INTERVALS]:
            box = _grown(sample, objective, first)
            if box.sides != (first.interval,):
                yield Proposal(event=box, swapped=first.swapped)


def _grown(sample: Sample, objective: Objective, first: RankedInterval) -> Box:
    """The box of an interval, with sides added while each makes it clearly better."""
    box = Box((first.interval,))
    value = _value(sample, objective, box, swapped=first.swapped)
    while True:
        larger = _with_best_side(sample, objective, box, swapped=first.swapped)
        if larger is None:
            return box
        new = _value(sample, objective, larger, swapped=first.swapped)
        if new <= value + tolerance(value):
            return box
        box, value = larger, new


def _with_best_side(sample: Sample, objective: Objective, box: Box, *, swapped: bool) -> Box | None:
    """The box with the best further side among the runs in it; None without a better side."""
    ranked = _best(_column_intervals(sample, box, SHARES), objective, sample.training_runs, 1.0)
    better = [item for item in ranked if item.swapped == swapped]
    if not better:
        return None
    new = better[0].interval
    sides = {side.coordinate: side for side in box.sides}
    side = sides.get(new.coordinate, new).intersection(new)
    if side is None:
        return None
    sides[side.coordinate] = side
    return Box(tuple(sides.values())) if len(sides) <= MOST_SIDES else None


def _value(sample: Sample, objective: Objective, box: Box, *, swapped: bool) -> float:
    """The value of a box in the training runs."""
    p, q = np.array(sample.training_rates(box))[:, None]
    return float((objective(q, p, sample.training_runs) if swapped else objective(p, q, sample.training_runs))[0])
