"""Features of outcomes: sums, differences, places, lengths, counts, residues, bits (see `events.features`).

Features are many and most show nothing that the entries do not show: a screening on some of the runs chooses a few, and
only those that then show clearly more than any one entry are proposed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.events import Feature, FeatureEvent, Interval, OutcomeSet
from dpwitness.search.learners.base import Proposal
from dpwitness.search.learners.choose import tolerance
from dpwitness.search.learners.feature_choice import features_of, quick_features
from dpwitness.search.learners.intervals import best_intervals
from dpwitness.search.learners.outcome_sets import best_sets
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample, Table

__all__ = ["Features"]

Rows = NDArray[np.float64]
Whole = NDArray[np.int64]
FeatureChoice = Callable[[Rows, Whole, list[int]], Iterable[Feature]]

#: Where outcomes repeat so often, sets of whole outcomes show it all.
FEW_OUTCOMES: Final = 64
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
VALUES: Final = 64


class Features:
    """The best sets of values of the best features, where they are clearly better than all intervals of entries.

    `of` says which features are tried, of outcomes and how often each came under D and D′, the most promising columns
    first: `features_of`, `bit_features`, or a function of one's own.
    """

    def __init__(self, of: FeatureChoice = features_of) -> None:
        self._of = of

    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        """As in `Learner`; unless thorough, one feature that separates the inputs much better than any entry does."""
        if sample.training_runs < LEAST or (sample.repeats and len(sample.outcomes) <= FEW_OUTCOMES):
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
    if 0 < len(valued.outcomes) <= VALUES:
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
    # The best of a hundred features is the luckiest: two standard errors lower, and entries one.
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
