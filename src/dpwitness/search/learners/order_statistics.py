"""Order statistics, counts, sums and rises of all entries: what shows where each entry tells little.

Where both inputs of a run share their draws, runs are compared one by one: the noise that both have in common then does
not count, and few runs are enough to choose a feature by.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.events import Feature, FeatureEvent, Interval
from dpwitness.events.features import numbers
from dpwitness.search.learners.features import LEAST
from dpwitness.search.learners.intervals import SHARES, best_intervals
from dpwitness.search.learners.learner import Learner, Proposal
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Training runs of each input that features are screened on, and numbers that their outcomes hold at most.
SCREENED: Final = 1024
ROOM: Final = 1 << 17
#: Of so many runs the cuts of the screening hold a share that they can show.
CUTS: Final = np.concatenate([[1 / 64], np.arange(1, 16) / 16, [63 / 64]])
#: Training runs of each input that the best feature of each family is then looked at in.
LEARNED: Final = 1 << 14
#: In a quick look, from so many training runs on.
QUICK: Final = 1 << 15
#: Of so many families.
FAMILIES: Final = 4
#: Shares of all entries, or of all rises, at which counts are taken.
LEVELS: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
#: How many order statistics are looked at, between the extremes.
RANKS: Final = 4
#: Of how many features the best events are proposed.
PROPOSED: Final = 2
#: An order statistic gives way to a count above a level that shows so much of it: both say much the same, and of rarer
#: events, which more runs allow, the count's are better.
ENOUGH: Final = 0.75
#: With how many entries features are compared: in the screening, and then.
COMPARED: Final = 24
BEST_ENTRIES: Final = 3


class OrderStatistics(Learner):
    """The best thresholds of the best features of all entries, where they show more than any one entry does.

    In a quick look at many runs one event: of pairs whose entries show the same, all entries may tell which is best.
    """

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        if sample.width < 2 or sample.training_runs < (LEAST if thorough else QUICK) or sample.few_outcomes:
            return
        entries = [
            item.interval.coordinate for item in best_intervals(sample, objective, thorough=thorough)[:BEST_ENTRIES]
        ]
        least = max((_best(sample.once(_of_entry, entry), objective, 2.0) for entry in entries), default=-np.inf)
        found = []
        for feature in _screened(sample, objective):
            rates = sample.once(_of_feature, feature)
            # The best of so many thresholds is overestimated: two standard errors lower.
            found.append((_best(rates, objective, 2.0), feature, rates))
        counted = max((value for value, feature, _ in found if feature.name == "above"), default=-np.inf)
        found = [
            item for item in found
            if item[0] > least and (item[1].name != "order statistic" or ENOUGH * item[0] > counted)
        ]  # fmt: skip
        found.sort(key=lambda item: -item[0])
        for place, (_, feature, rates) in enumerate(found[: PROPOSED if thorough else 1]):
            errors = (1.0,) if place or not thorough else (1.0, 3.0)  # the best of some hundred thresholds, too
            for k in dict.fromkeys(int(rates.values(objective, error).argmax()) for error in errors):
                interval, swapped = rates.interval(k)
                yield Proposal(event=FeatureEvent(feature=feature, within=interval), swapped=swapped)


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """The share of the runs with a value at least each of k cuts, and then below each: of D, D′ and both; shapes (2k,).

    `both` is None where it is not known which outcomes came in one run.
    """

    cuts: Floats
    p: Floats
    q: Floats
    both: Floats | None
    runs: int

    def values(self, objective: Objective, standard_errors: float) -> Floats:
        """What the objective makes of each, and of each with D and D′ exchanged; shape (4k,)."""
        p, q = np.concatenate([self.p, self.q]), np.concatenate([self.q, self.p])
        both = None if self.both is None else np.concatenate([self.both, self.both])
        return objective(p, q, self.runs, standard_errors, both)

    def interval(self, k: int) -> tuple[Interval, bool]:
        """The values that the k-th of `values` is of, and whether D′ plays D."""
        swapped, place = divmod(k, 2 * len(self.cuts))
        below, place = divmod(place, len(self.cuts))
        cut = float(self.cuts[place])
        return (Interval(coordinate=0, high=cut) if below else Interval(coordinate=0, low=cut)), bool(swapped)


def order_features(rows: Floats) -> list[list[tuple[Feature, Floats]]]:
    """The features of all entries with their values, by family, for rows of shape (n, width).

    A family shows much the same: of each one is looked at in more runs.
    """
    last = (rows.shape[1] - 1,)
    plain = numbers(rows)
    rising = np.sort(plain, axis=1)
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        rises = np.diff(plain, axis=1, prepend=0.0)

    def named(*names: str, levels: Sequence[float] = (math.nan,)) -> list[tuple[Feature, Floats]]:
        features = [Feature(name=name, columns=last, number=level) for name in names for level in levels]
        return [(feature, feature.values(plain)) for feature in features]

    ranks = np.unique(np.linspace(1, rows.shape[1], RANKS + 2).round()).tolist()[1:-1]
    return [
        named("sum", "sum of absolute values", "sum of absolute differences"),
        named("largest", "smallest", "range", "gap")
        + [(Feature(name="order statistic", columns=last, number=k), rising[:, int(k) - 1]) for k in ranks],
        named("above", levels=_levels(plain, LEVELS)),
        named("smallest step", "largest step") + named("steps above", levels=_levels(rises, LEVELS[1:-1])),
        named("smallest difference", "largest difference")
        + named("differences above", levels=_levels(rises[:, 1:], LEVELS[1:-1])),
        named("first place above", levels=_levels(plain, LEVELS[2::2])) + named("rank", levels=(1.0,)),
    ]


def _levels(values: Floats, shares: tuple[float, ...]) -> list[float]:
    """The values at some shares of all of them, each once."""
    present = np.sort(values[np.isfinite(values)])
    if not len(present):
        return []
    levels: list[float] = np.unique(present[[int(share * len(present)) for share in shares]]).tolist()
    return levels


def _screening(sample: Sample) -> tuple[list[list[tuple[Feature, Rates]]], list[Rates]]:
    """The rates of each feature, by family, and those of entries, in some of the training runs."""
    most = max(min(SCREENED, ROOM // (2 * sample.width)), LEAST)
    rows, times = sample.some(most)

    def rates(values: Floats) -> Rates:
        return _rates(values, times, CUTS, paired=not sample.repeats)

    families = [[(feature, rates(values)) for feature, values in family] for family in order_features(rows)]
    return families, [rates(entry) for entry in numbers(rows[:, :COMPARED]).T]


def _screened(sample: Sample, objective: Objective) -> list[Feature]:
    """The best feature of each family in some of the training runs, of those that may be better than every entry."""
    families, entries = sample.once(_screening)
    least = max(_best(entry, objective, 1.0) for entry in entries)
    found = []
    for family in families:
        value, place = max(((_best(rates, objective, 1.0), -k) for k, (_, rates) in enumerate(family)), default=(0, 1))
        if place <= 0 and _best(family[-place][1], objective, -2.0) > least:
            found.append((value, family[-place][0]))
    return [feature for _, feature in sorted(found, key=lambda item: -item[0])[:FAMILIES]]


def _best(rates: Rates, objective: Objective, standard_errors: float) -> float:
    """What the objective makes of the best threshold."""
    return float(rates.values(objective, standard_errors).max(initial=-np.inf))


def _of_feature(sample: Sample, feature: Feature) -> Rates:
    """The rates of a feature in many of the training runs."""
    rows, times = sample.once(_many)
    return _rates(feature.values(rows), times, SHARES, paired=not sample.repeats)


def _of_entry(sample: Sample, entry: int) -> Rates:
    """The rates of an entry in as many."""
    rows, times = sample.once(_many)
    return _rates(numbers(rows[:, entry]), times, SHARES, paired=not sample.repeats)


def _many(sample: Sample) -> tuple[Floats, Whole]:
    return sample.some(LEARNED)


def _rates(values: Floats, times: Whole, shares: Floats, *, paired: bool) -> Rates:
    """The rates of the values of outcomes that came so often under D and D′; shapes (k,) and (2, k).

    `paired`: the first half of them came under D, the others under D′, in the same runs.
    """
    runs = int(times[0].sum())
    if paired:
        x, y = np.split(values, 2)
        sides = [_counts_of(np.sort(of)) for of in (x, y, np.minimum(x, y), np.maximum(x, y))]
    else:
        order = np.argsort(values)
        sides = [(values[order], np.append(0, np.cumsum(of[order]))) for of in times]
    cuts = np.unique(np.concatenate([_quantiles(*side, shares) for side in sides[:2]]))
    before = [cumulative[np.searchsorted(ranked, cuts)] for ranked, cumulative in sides]
    present = [cumulative[np.searchsorted(ranked, np.nan)] for ranked, cumulative in sides]
    # Both are at least the cut where the smaller one is, and below it where the larger one is.
    p, q = (np.concatenate([present[k] - before[k], before[k]]) / runs for k in (0, 1))
    both = np.concatenate([present[2] - before[2], before[3]]) / runs if paired else None
    return Rates(cuts, p, q, both, runs)


def _counts_of(ranked: Floats) -> tuple[Floats, Whole]:
    """Sorted values, and how many runs the first k stand for."""
    return ranked, np.arange(len(ranked) + 1)


def _quantiles(ranked: Floats, cumulative: Whole, shares: Floats) -> Floats:
    """The values at some shares of the runs that have one; none where no run has."""
    present = int(np.searchsorted(ranked, np.nan))
    if not present:
        return ranked[:0]
    return np.asarray(ranked[np.searchsorted(cumulative[1:], shares * (cumulative[present] - 1), side="right")])
