"""Features of outcomes: sums, differences, places, lengths, counts, residues, bits (see `events.features`).

All are tried of few columns, of many columns those that some outcomes point to. Features are many and most show nothing
that the entries do not show: a screening on some of the runs chooses a few, and only those that then show clearly more
than any one entry are proposed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.events import Feature, FeatureEvent, Interval, OutcomeSet
from dpwitness.events.encoding import WHOLE
from dpwitness.events.features import numbers
from dpwitness.search.learners.intervals import best_intervals
from dpwitness.search.learners.learner import Learner, Proposal, tolerance
from dpwitness.search.learners.outcome_sets import best_sets
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample, Table

Rows = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Pairs of so many columns, at most, are looked at, and of these as many as each measure of `_pairs` points to.
COLUMNS: Final = 24
PAIRS: Final = 4
#: Of so many columns all pairs are looked at.
FEW: Final = 5
#: Digits of so many columns.
DIGITS_OF: Final = 4
#: How many values are counted and located, those seen most; and how often one comes at least, per entry.
VALUES: Final = 3
OFTEN: Final = 1 / 64
#: The moduli that people round to, and of whole numbers some more.
MODULI: Final = (1.0, 10.0, 100.0)
WHOLE_MODULI: Final = (2.0, 3.0, 5.0, 10.0, 100.0, 4.0, 8.0, 16.0, 1024.0)
#: A spacing is computed from the smallest steps between values, in blocks of so many; how many blocks and spacings.
BLOCK: Final = 6
BLOCKS: Final = 5
SPACINGS: Final = 4
#: A multiple of the spacing is one up to this share of it.
NEARLY: Final = 0.01
#: What of the largest value may be rounding, and how many times as large a spacing is at least.
ROUNDING: Final = 2.0**-46
ON_GRID: Final = 2.0**12


def features_of(rows: Rows, times: Whole, columns: list[int]) -> Iterator[Feature]:
    """Features worth trying, of outcomes and how often each came under D and D′; shapes (k, width), (2, k).

    `columns` are the most promising ones first.
    """
    for column in columns[:DIGITS_OF]:
        yield from _of_entry(rows[:, column], times, column)
    if rows.shape[1] > 1:
        for pair in _pairs(rows, times, sorted(columns[:COLUMNS])):
            for name in ("difference", "sum of two", "order", "ratio"):
                yield Feature(name=name, columns=pair)
        yield from _of_all(rows)


def bit_features(rows: Rows, times: Whole, columns: list[int]) -> Iterator[Feature]:
    """The features of floating-point numbers, as `features_of`; none of whole numbers.

    They refute almost every mechanism that adds floating-point noise to a number (Mironov 2012), also those that are
    private in real arithmetic. So a check looks at them apart (`api.floating_point`), and no learner asks for them
    unless a user registers one: then what they show is a violation like any other.
    """
    for column in columns[:DIGITS_OF]:
        plain = numbers(rows[:, column])
        if np.any(plain != np.round(plain), where=np.isfinite(plain)):
            yield Feature(name="power of two", columns=(column,))
            yield Feature(name="trailing zeros", columns=(column,))
            for bits in (1.0, 2.0, 4.0):
                yield Feature(name="low bits", columns=(column,), number=bits)


def quick_features(rows: Rows) -> tuple[Rows, Callable[[int], Feature]]:
    """The values of some features that show the clearest leaks, shape (features, k), and what the features are.

    What costs little: differences and sums of two entries, of many entries the differences of neighbours, the sum and
    the place of the largest of all, the number of entries.
    """
    width = rows.shape[1]
    if width == 1:
        return np.empty((0, len(rows))), lambda number: Feature(name="sum", columns=(0,))
    columns = numbers(rows).T
    if width <= FEW:
        first, second = np.triu_indices(width, 1)
    else:
        first = np.arange(min(width - 1, COLUMNS))
        second = first + 1
    last = (width - 1,)
    with np.errstate(all="ignore"):
        parts = [columns[first] - columns[second], columns[first] + columns[second]]
    names = ["sum", "place of largest", "length"]
    parts += [Feature(name=name, columns=last).values(rows)[None] for name in names]

    def named(number: int) -> Feature:
        turn, place = divmod(number, len(first))
        if turn < 2:
            name = "sum of two" if turn else "difference"
            return Feature(name=name, columns=(int(first[place]), int(second[place])))
        return Feature(name=names[number - 2 * len(first)], columns=last)

    return np.concatenate(parts), named


def _of_entry(values: Rows, times: Whole, column: int) -> Iterator[Feature]:
    """Presence and digits of one entry."""
    absent = np.isnan(values)
    if absent.any() and not absent.all():
        yield Feature(name="present", columns=(column,))
    plain = numbers(values)
    finite = np.isfinite(plain)
    spacings = set[float]().union(*(_spacings(plain[finite & (side > 0)]) for side in times))
    moduli = WHOLE_MODULI if np.all(plain[finite] == np.round(plain[finite])) else MODULI
    for modulus in dict.fromkeys((*sorted(spacings, reverse=True)[:SPACINGS], *moduli)):
        yield Feature(name="residue", columns=(column,), number=modulus)


def _spacings(values: Rows) -> set[float]:
    """Numbers of which the differences of many of some values are multiples; none where the values are on no grid.

    The smallest steps are few multiples of it, and some blocks of them have both ends on one grid, where there are two.
    """
    if not len(values):
        return set()
    rounding = float(np.max(np.abs(values))) * ROUNDING
    steps = np.diff(np.unique(values))
    steps = np.sort(steps[steps > rounding])[: BLOCK * BLOCKS]
    blocks = steps[: len(steps) // BLOCK * BLOCK].reshape(-1, BLOCK)
    return {_spacing(block, ON_GRID * rounding) for block in blocks} - {0.0}


def _spacing(steps: Rows, least: float) -> float:
    """The largest number of which all of some steps, ascending, are multiples; 0 where it is below `least`."""
    if np.all(steps == np.round(steps)) and steps.max() < WHOLE:
        spacing = float(np.gcd.reduce(steps.astype(np.int64)))
        return spacing if spacing > 1 else 0.0
    spacing = 0.0
    for step in steps.tolist():
        larger, smaller = (spacing, step % spacing) if spacing else (step, 0.0)
        while smaller > NEARLY * larger:  # what is rounded multiplies in Euclid's algorithm: never down to 0
            larger, smaller = smaller, abs(larger - smaller * round(larger / smaller))
        # By the largest step so far, of which the least is rounded.
        spacing = step / round(step / larger)
        if spacing < least:
            return 0.0
    multiples = steps / spacing
    return float(f"{spacing:.6g}") if np.all(np.abs(multiples - np.round(multiples)) < NEARLY) else 0.0


def _pairs(rows: Rows, times: Whole, columns: list[int]) -> list[tuple[int, int]]:
    """Pairs of columns: all of few; of many those most correlated, and whose order or equality differs most."""
    first, second = np.triu_indices(len(columns), 1)
    places = np.arange(len(first))
    if len(columns) > FEW:
        chosen = rows[:, columns]
        centred = np.clip(np.nan_to_num(numbers(chosen)), -1e150, 1e150)
        centred -= centred.mean(axis=0)
        # Not by BLAS, whose threads wait for each other where pairs are looked at on all cores.
        products = np.einsum("ij,ik->jk", centred, centred)
        scale = np.sqrt(np.maximum(products.diagonal(), 1e-300))
        correlation = (products / scale[:, None] / scale)[first, second]
        sides = times[0] / max(times[0].sum(), 1) - times[1] / max(times[1].sum(), 1)
        a, b = chosen[:, first], chosen[:, second]
        measures = (correlation, *(np.einsum("i,ij->j", sides, true) for true in (a > b, a == b)))
        places = np.unique(np.concatenate([np.argsort(-np.abs(m), kind="stable")[:PAIRS] for m in measures]))
    return [(columns[first[k]], columns[second[k]]) for k in places]


def _of_all(rows: Rows) -> Iterator[Feature]:
    """Features of all entries together."""
    last = (rows.shape[1] - 1,)
    for name in ("sum", "largest", "smallest", "place of largest", "place of smallest", "different"):
        yield Feature(name=name, columns=last)
    present = rows[~np.isnan(rows)]
    if len(present) < rows.size:
        yield Feature(name="length", columns=last)
    values, often = np.unique(present, return_counts=True)
    order = np.argsort(-often, kind="stable")[:VALUES]
    for value in values[order[often[order] >= OFTEN * len(present)]].tolist():
        yield Feature(name="count", columns=last, number=value)
        yield Feature(name="first place", columns=last, number=value)
        yield Feature(name="last place", columns=last, number=value)


FeatureChoice = Callable[[Rows, Whole, list[int]], Iterable[Feature]]

#: Training runs of each input that features are screened on, in a quick look and in a thorough one.
QUICK: Final = 96
SCREENED: Final = 1024
#: From how many training runs of each input the values of a feature are learned.
LEARNED: Final = 1 << 14
#: Fewer show nothing among so many features.
LEAST: Final = 16
#: How many features are looked at in all runs.
KEPT: Final = 3
#: With how many entries the features are compared.
COMPARED: Final = 8
#: In a quick look a feature must separate the inputs better than every entry, by so many standard errors.
STANDARD_ERRORS: Final = 2.5
#: A feature of at most so many values is taken value by value.
MOST_VALUES: Final = 64


class Features(Learner):
    """The best sets of values of the best features, where they are clearly better than all intervals of entries.

    In a quick look one feature that separates the inputs much better than any entry does.

    `of` says which features are tried, of outcomes and how often each came under D and D′, the most promising columns
    first: `features_of`, `bit_features`, or a function of one's own.
    """

    def __init__(self, of: FeatureChoice = features_of) -> None:
        self._of = of

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        if sample.training_runs < LEAST or sample.few_outcomes:
            return
        if thorough:
            features = _screened(sample, objective, self._of)
        else:
            features = sample.once(_separating) if self._of is features_of else []
        if not features:
            return
        intervals = best_intervals(sample, objective, thorough=thorough)
        least = intervals[0].value + tolerance(intervals[0].value) if intervals else -np.inf
        for feature in features:
            found = _best_set(sample.once(_valued, feature), objective, thorough, least)
            if found is not None:
                yield Proposal(event=FeatureEvent(feature=feature, within=found.within), swapped=found.swapped)


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A set of values of a feature, whether D′ plays D, and what the objective makes of it in the training runs."""

    within: Interval | OutcomeSet
    swapped: bool
    value: float


def _best_set(valued: Table, objective: Objective, thorough: bool, least: float) -> ValueSet | None:
    """The simplest set of values of a feature that is nearly as good as its best; None where none exceeds `least`."""
    found = []
    if 0 < len(valued.outcomes) <= MOST_VALUES:
        for members, swapped in best_sets(valued, objective):
            rates = valued.training_rates(members)
            p, q = (np.array([rate]) for rate in (rates[::-1] if swapped else rates))
            found.append(ValueSet(members, swapped, float(objective(p, q, valued.training_runs)[0])))
    intervals = best_intervals(valued, objective, thorough=thorough)
    found += [ValueSet(item.interval, item.swapped, item.value) for item in intervals]
    best = max((item.value for item in found), default=-np.inf)
    nearly = [item for item in found if item.value >= best - tolerance(best) and item.value > least]
    return min(nearly, key=lambda item: item.within.complexity[0], default=None)


def _valued(sample: Sample, feature: Feature) -> Table:
    """The values of a feature in many of the training runs, each once; runs without a value count as runs."""
    rows, times = sample.some(LEARNED)
    values, numbers = np.unique(feature.values(rows), return_inverse=True)
    counted = np.stack([np.bincount(numbers, weights=side, minlength=len(values)) for side in times])
    present = ~np.isnan(values)
    table = _table([values[present]], counted[:, present].astype(np.int64))
    table.training_runs = int(times[0].sum())
    return table


def _table(columns: Sequence[Rows], times: Whole) -> Table:
    """Columns of values with how often each row of them came, as a sample without test runs."""
    return Table(np.stack(columns, axis=1), times, np.zeros((3, 0), np.int64))


def _separating(sample: Sample) -> list[Feature]:
    """The feature whose values separate the inputs best, if it does so clearly better than every entry."""
    rows, times = sample.some(QUICK)
    values, named = quick_features(rows)
    separation = _separation(np.concatenate([values, rows.T]), times)
    best = int(separation[: len(values)].argmax()) if len(values) else 0
    error = float(np.sqrt((1 / times.sum(axis=1)).sum()))
    clear = separation[best] > separation[len(values) :].max() + STANDARD_ERRORS * error
    return [named(best)] if len(values) and clear else []


def _separation(columns: Rows, times: Whole) -> NDArray[np.float64]:
    """The Kolmogorov–Smirnov distance of the inputs in each column, of shape (columns, k); absent entries go last."""
    columns = np.where(np.isnan(columns), np.inf, columns)
    order = np.argsort(columns, axis=1)
    values = columns[np.arange(len(columns))[:, None], order]
    shares = times[0] / times[0].sum() - times[1] / times[1].sum()
    distance = np.abs(np.cumsum(shares[order], axis=1))[:, :-1]
    distance[values[:, 1:] == values[:, :-1]] = 0.0
    return np.asarray(distance.max(axis=1, initial=0.0))


def _screened(sample: Sample, objective: Objective, of: FeatureChoice) -> list[Feature]:
    """The few best features by their best intervals in some of the training runs, of those better than every entry."""
    features, table = sample.once(_screening, of)
    # The best of a hundred features is overestimated: two standard errors lower, and entries one.
    ranked = best_intervals(table, objective, thorough=False, standard_errors=2.0)
    entries = [
        item for item in best_intervals(table, objective, thorough=False) if item.interval.coordinate >= len(features)
    ]
    if not entries:
        return []
    better = [item.interval.coordinate for item in ranked if item.value > entries[0].value]
    return [features[place] for place in better if place < len(features)][:KEPT]


def _screening(sample: Sample, of: FeatureChoice) -> tuple[list[Feature], Table]:
    """The features to screen, and their values in some of the training runs, followed by the best entries."""
    rows, times = sample.some(SCREENED)
    columns = np.argsort(-_separation(rows.T, times), kind="stable").tolist()
    features = list(of(rows, times, columns))
    values = [feature.values(rows) for feature in features] + [rows[:, column] for column in columns[:COMPARED]]
    return features, _table(values, times)
