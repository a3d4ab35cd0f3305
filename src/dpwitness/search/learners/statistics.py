"""Statistics of several entries, and of the digits of one entry, that tell D from D′ better than every entry by itself.

One or two entries give differences, order, residues; all entries give sums, extremes and their places, order
statistics, counts of a value and rises. Where both inputs of a run share their draws, runs are compared one by one, so
that the shared noise cancels and few runs choose a statistic.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Floats, Integers, Rows
from dpwitness.events import Feature, FeatureEvent
from dpwitness.events.encoding import EXACT_INTEGER_LIMIT
from dpwitness.events.features import numbers
from dpwitness.search.learners.intervals import best_intervals
from dpwitness.search.learners.learner import Learner, Proposal
from dpwitness.search.learners.outcome_sets import best_sets
from dpwitness.search.objectives import Objective
from dpwitness.search.ranges import COARSE_SHARES, FINE_SHARES, Scan, best_of, scan_of
from dpwitness.search.samples import OutcomeTable, Sample

#: A family of statistics that show nearly the same difference; the best statistic of a family is compared in more runs.
FeatureFamily = Sequence[Feature]
#: A function that gives families of statistics from outcomes and their counts under D and D′, of shapes (k, width) and
#: (2, k), and from the columns, the most promising column first.
FeatureFamilies = Callable[[Rows, Integers, list[int]], Sequence[FeatureFamily]]

#: The largest number of training runs of each input that statistics are screened on.
STATISTIC_SCREENING_RUNS: Final = 1024
#: The largest number of entries in the outcomes of the screening: 1 MiB.
STATISTIC_SCREENING_ENTRIES: Final = 1 << 17
#: The number of training runs of each input for the comparison of the best statistics of all families.
STATISTIC_RUNS: Final = 1 << 14
#: The least number of training runs for which statistics are compared: fewer runs cannot choose among hundreds of
#: statistics.
LEAST_STATISTIC_RUNS: Final = 16
#: The least number of training runs for which a quick look compares families.
LEAST_FAMILY_RUNS: Final = 1 << 15
#: The number of training runs of each input from which a quick look chooses one statistic.
QUICK_RUNS: Final = 96
#: The least number of standard errors by which a quick look's statistic separates the inputs better than every entry.
LEAST_STATISTIC_SEPARATION: Final = 2.5
#: The largest number of families whose best statistic is compared in more runs.
KEPT_FAMILIES: Final = 6
#: The largest number of statistics that give events.
PROPOSED_STATISTICS: Final = 3
#: The number of entries that statistics are compared with in the screening.
SCREENED_ENTRIES: Final = 24
#: The number of entries that statistics are compared with in more runs.
COMPARED_ENTRIES: Final = 3


class Statistics(Learner):
    """The learner of the best ranges of statistics that separate the inputs better than every single entry.

    A quick look takes the statistic that separates the inputs best, if every entry separates them much less.
    `of`: the function that gives the families of statistics, such as `families_of` or `bit_families`.
    """

    def __init__(self, of: "FeatureFamilies | None" = None) -> None:
        self._of = of or families_of

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        if sample.training_runs < LEAST_STATISTIC_RUNS or sample.few_outcomes:
            return
        features: Sequence[Feature] = []
        if thorough or sample.training_runs >= LEAST_FAMILY_RUNS:
            features = _screened(sample, objective, self._of)
        elif self._of is families_of:
            features = sample.once(_separating)
        if not features:
            return
        entries = best_intervals(sample, objective, thorough=thorough)[:COMPARED_ENTRIES]
        known = [sample.once(_of_entry_in_many, item.interval.coordinate) for item in entries]
        least = max((one.value for one in best_of(known, objective, 2.0)), default=-math.inf)
        scans = [(sample.once(_in_many, feature), feature) for feature in features]
        # The best of many ranges is overestimated, so values are lowered by two standard errors.
        better = [(one.best(objective, 2.0).value, one, feature) for one, feature in scans]
        better = sorted((item for item in better if item[0] > least), key=lambda item: -item[0])
        for place, (_, one, feature) in enumerate(better[: PROPOSED_STATISTICS if thorough else 1]):
            for found in one.proposals(objective, (1.0, 3.0) if thorough and not place else (1.0,)):
                yield Proposal(event=FeatureEvent(feature=feature, within=found.interval), swapped=found.swapped)
            if thorough and one.single_values:
                for members, swapped in best_sets(sample.once(_table, feature), objective):
                    yield Proposal(event=FeatureEvent(feature=feature, within=members), swapped=swapped)


def _screened(sample: Sample, objective: Objective, of: FeatureFamilies) -> list[Feature]:
    """The best statistic of each family in some of the training runs, where it may be better than every entry."""
    families, entries = sample.once(_screening, of)
    least = max((one.value for one in best_of(entries, objective, 1.0)), default=-math.inf)
    found = []
    for family in families:
        values = [one.value for one in best_of([one for _, one in family], objective, 2.0)]
        feature, best = family[int(np.argmax(values))]
        if best.best(objective, -2.0).value > least:
            found.append((max(values), feature))
    return [feature for _, feature in sorted(found, key=lambda item: -item[0])[:KEPT_FAMILIES]]


def _screening(sample: Sample, of: FeatureFamilies) -> tuple[list[list[tuple[Feature, Scan]]], list[Scan]]:
    """The scans of the statistics of each family, and of the entries, in some of the training runs."""
    rows, times = sample.some(
        max(min(STATISTIC_SCREENING_RUNS, STATISTIC_SCREENING_ENTRIES // (2 * sample.width)), LEAST_STATISTIC_RUNS)
    )
    columns = np.argsort(-_separation(rows.T, times), kind="stable").tolist()
    paired = not sample.repeats
    families = [
        [(feature, scan_of(feature.values(rows), times, COARSE_SHARES, paired=paired)) for feature in family]
        for family in of(rows, times, columns)
    ]
    compared = columns[:SCREENED_ENTRIES]
    entries = [scan_of(numbers(rows[:, column]), times, COARSE_SHARES, paired=paired) for column in compared]
    return [family for family in families if family], entries


def _many(sample: Sample) -> tuple[Rows, Integers]:
    return sample.some(STATISTIC_RUNS)


def _in_many(sample: Sample, feature: Feature) -> Scan:
    """The scan of a statistic in `STATISTIC_RUNS` training runs."""
    rows, times = sample.once(_many)
    return scan_of(feature.values(rows), times, FINE_SHARES, paired=not sample.repeats)


def _of_entry_in_many(sample: Sample, column: int) -> Scan:
    """The scan of an entry, by its column, in `STATISTIC_RUNS` training runs."""
    rows, times = sample.once(_many)
    return scan_of(numbers(rows[:, column]), times, FINE_SHARES, paired=not sample.repeats)


def _table(sample: Sample, feature: Feature) -> OutcomeTable:
    """The table of the few values of a statistic; runs without a value count as runs."""
    rows, times = sample.once(_many)
    values, places = np.unique(feature.values(rows), return_inverse=True)
    counted = np.stack([np.bincount(places, weights=side, minlength=len(values)) for side in times])
    present = ~np.isnan(values)
    table = OutcomeTable(values[present, None], counted[:, present].astype(np.int64), np.zeros((3, 0), np.int64))
    table.training_runs = int(times[0].sum())
    return table


def _separating(sample: Sample) -> list[Feature]:
    """The statistic whose values separate the inputs best, if every entry separates them clearly less; else []."""
    rows, times = sample.some(QUICK_RUNS)
    values, named = quick_features(rows)
    separation = _separation(np.concatenate([values, rows.T]), times)
    best = int(separation[: len(values)].argmax()) if len(values) else 0
    error = float(np.sqrt((1 / times.sum(axis=1)).sum()))
    clear = separation[best] > separation[len(values) :].max() + LEAST_STATISTIC_SEPARATION * error
    return [named(best)] if len(values) and clear else []


def _separation(columns: Floats, times: Integers) -> Floats:
    """The Kolmogorov–Smirnov distance of the inputs in each column, of shape (columns, k); absent entries go last."""
    columns = np.where(np.isnan(columns), np.inf, columns)
    order = np.argsort(columns, axis=1)
    values = columns[np.arange(len(columns))[:, None], order]
    shares = times[0] / times[0].sum() - times[1] / times[1].sum()
    distance = np.abs(np.cumsum(shares[order], axis=1))[:, :-1]
    distance[values[:, 1:] == values[:, :-1]] = 0.0
    return np.asarray(distance.max(axis=1, initial=0.0))


#: The number of most promising columns whose pairs are tried.
PAIRED_COLUMNS: Final = 24
#: The number of pairs that each measure of `_pairs` chooses.
PAIRS_BY_MEASURE: Final = 4
#: The largest number of columns whose pairs are all tried.
COLUMNS_WITH_ALL_PAIRS: Final = 5
#: The number of most promising columns whose digits are tried.
DIGIT_COLUMNS: Final = 4
#: The number of most frequent values that are counted and located.
COUNTED_VALUES: Final = 3
#: The least share of a counted value among all entries.
COUNTED_SHARE: Final = 1 / 64
#: Shares of all entries, or of all rises, below each value above which entries or rises are counted.
LEVELS: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
#: The number of order statistics between the extremes.
ORDER_STATISTICS: Final = 4
#: Moduli of residues: people round numbers to multiples of them.
MODULI: Final = (1.0, 10.0, 100.0)
#: Moduli of residues of whole numbers.
WHOLE_MODULI: Final = (2.0, 3.0, 5.0, 10.0, 100.0, 4.0, 8.0, 16.0, 1024.0)
#: The number of steps between values in a block, from which one spacing is computed.
SPACING_STEPS: Final = 6
#: The number of blocks of the smallest steps.
SPACING_BLOCKS: Final = 5
#: The number of largest spacings that are moduli.
SPACINGS: Final = 4
#: The largest distance of a step from a multiple of a spacing, as a share of the spacing.
MULTIPLE_TOLERANCE: Final = 0.01
#: The difference of two values, as a share of the largest value, that may be rounding.
ROUNDING: Final = 2.0**-46
#: The least spacing, as a multiple of the difference that may be rounding.
LEAST_SPACING: Final = 2.0**12


def families_of(rows: Rows, times: Integers, columns: list[int]) -> list[FeatureFamily]:
    """The families of all statistics except statistics of last bits; see `FeatureFamilies`."""
    families: list[FeatureFamily] = [
        list(_of_entry(rows[:, column], times, column)) for column in columns[:DIGIT_COLUMNS]
    ]
    if rows.shape[1] > 1:
        pairs = _pairs(rows, times, sorted(columns[:PAIRED_COLUMNS]))
        kinds = ("difference", "sum of two", "order", "ratio")
        families += [[Feature(name=name, columns=pair) for pair in pairs] for name in kinds]
        families += _of_all(rows)
    return families


def bit_families(rows: Rows, times: Integers, columns: list[int]) -> list[FeatureFamily]:
    """The statistics of floating-point numbers by their last bits, a family a column; no family for integers.

    They refute almost every mechanism that adds floating-point noise to a number (Mironov 2012), even if it is private
    in real arithmetic. So a check tests them apart (`api.floating_point`), and no learner proposes them. If a user
    registers `Statistics(of=bit_families)`, a leak through last bits is a violation like any other.
    """
    families: list[FeatureFamily] = []
    for column in columns[:DIGIT_COLUMNS]:
        plain = numbers(rows[:, column])
        if np.any(plain != np.round(plain), where=np.isfinite(plain)):
            kinds = [
                ("power of two", math.nan),
                ("trailing zeros", math.nan),
                *(("low bits", k) for k in (1.0, 2.0, 4.0)),
            ]
            families.append([Feature(name=name, columns=(column,), number=number) for name, number in kinds])
    return families


def quick_features(rows: Rows) -> tuple[Floats, Callable[[int], Feature]]:
    """The values of cheap features, of shape (features, k), and the function that names a feature by its place.

    The features are differences and sums of two entries (consecutive entries in long outcomes), the sum of all
    entries, the place of the largest entry, and the number of entries.
    """
    width = rows.shape[1]
    if width == 1:
        return np.empty((0, len(rows))), lambda number: Feature(name="sum", columns=(0,))
    columns = numbers(rows).T
    if width <= COLUMNS_WITH_ALL_PAIRS:
        first, second = np.triu_indices(width, 1)
    else:
        first = np.arange(min(width - 1, PAIRED_COLUMNS))
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


def _of_entry(values: Floats, times: Integers, column: int) -> Iterator[Feature]:
    """The features of the presence and of the digits of one entry."""
    absent = np.isnan(values)
    if absent.any() and not absent.all():
        yield Feature(name="present", columns=(column,))
    plain = numbers(values)
    finite = np.isfinite(plain)
    spacings = set[float]().union(*(_spacings(plain[finite & (side > 0)]) for side in times))
    moduli = WHOLE_MODULI if np.all(plain[finite] == np.round(plain[finite])) else MODULI
    for modulus in dict.fromkeys((*sorted(spacings, reverse=True)[:SPACINGS], *moduli)):
        yield Feature(name="residue", columns=(column,), number=modulus)


def _spacings(values: Floats) -> set[float]:
    """The spacings of grids that many of the values lie on; an empty set if there is no grid.

    The smallest steps between values are small multiples of a spacing. Steps are taken in blocks, as values on two
    grids have some blocks whose steps lie on one grid.
    """
    if not len(values):
        return set()
    rounding = float(np.max(np.abs(values))) * ROUNDING
    steps = np.diff(np.unique(values))
    steps = np.sort(steps[steps > rounding])[: SPACING_STEPS * SPACING_BLOCKS]
    blocks = steps[: len(steps) // SPACING_STEPS * SPACING_STEPS].reshape(-1, SPACING_STEPS)
    return {_spacing(block, LEAST_SPACING * rounding) for block in blocks} - {0.0}


def _spacing(steps: Floats, least: float) -> float:
    """The largest common divisor of ascending steps; 0 if it is below `least`, or at most 1 for whole numbers."""
    if np.all(steps == np.round(steps)) and steps.max() < EXACT_INTEGER_LIMIT:
        spacing = float(np.gcd.reduce(steps.astype(np.int64)))
        return spacing if spacing > 1 else 0.0
    spacing = 0.0
    for step in steps.tolist():
        larger, smaller = (spacing, step % spacing) if spacing else (step, 0.0)
        # Euclid's algorithm multiplies rounding errors and would not reach 0.
        while smaller > MULTIPLE_TOLERANCE * larger:
            larger, smaller = smaller, abs(larger - smaller * round(larger / smaller))
        # The spacing follows from the largest step so far, whose relative rounding error is the smallest.
        spacing = step / round(step / larger)
        if spacing < least:
            return 0.0
    multiples = steps / spacing
    return float(f"{spacing:.6g}") if np.all(np.abs(multiples - np.round(multiples)) < MULTIPLE_TOLERANCE) else 0.0


def _pairs(rows: Rows, times: Integers, columns: list[int]) -> list[tuple[int, int]]:
    """All pairs of few columns; else the pairs that correlate most, or whose order or equality best tells D from D′."""
    first, second = np.triu_indices(len(columns), 1)
    places = np.arange(len(first))
    if len(columns) > COLUMNS_WITH_ALL_PAIRS:
        chosen = rows[:, columns]
        centred = np.clip(np.nan_to_num(numbers(chosen)), -1e150, 1e150)
        centred -= centred.mean(axis=0)
        # BLAS is avoided: its threads wait for each other where learners run on all cores.
        products = np.einsum("ij,ik->jk", centred, centred)
        scale = np.sqrt(np.maximum(products.diagonal(), 1e-300))
        correlation = (products / scale[:, None] / scale)[first, second]
        sides = times[0] / max(times[0].sum(), 1) - times[1] / max(times[1].sum(), 1)
        a, b = chosen[:, first], chosen[:, second]
        measures = (correlation, *(np.einsum("i,ij->j", sides, true) for true in (a > b, a == b)))
        places = np.unique(np.concatenate([np.argsort(-np.abs(m), kind="stable")[:PAIRS_BY_MEASURE] for m in measures]))
    return [(columns[first[k]], columns[second[k]]) for k in places]


def _of_all(rows: Rows) -> list[FeatureFamily]:
    """The families of statistics of all entries together."""
    last = (rows.shape[1] - 1,)
    plain = numbers(rows)
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        rises = np.diff(plain, axis=1, prepend=0.0)
    present = rows[~np.isnan(rows)]
    values, often = np.unique(present, return_counts=True)
    most = np.argsort(-often, kind="stable")[:COUNTED_VALUES]
    frequent = values[most[often[most] >= COUNTED_SHARE * len(present)]].tolist()
    ranks = np.unique(np.linspace(1, rows.shape[1], ORDER_STATISTICS + 2).round()).tolist()[1:-1]

    def named(*names: str, levels: Sequence[float] = (math.nan,)) -> list[Feature]:
        return [Feature(name=name, columns=last, number=level) for name in names for level in levels]

    return [
        named("sum", "sum of absolute values", "sum of absolute differences"),
        named("largest", "smallest", "range", "gap") + named("order statistic", levels=ranks),
        named("above", levels=_levels(plain, LEVELS)),
        named("smallest step", "largest step") + named("steps above", levels=_levels(rises, LEVELS[1:-1])),
        named("smallest difference", "largest difference")
        + named("differences above", levels=_levels(rises[:, 1:], LEVELS[1:-1])),
        named("place of largest", "place of smallest")
        + named("first place above", levels=_levels(plain, LEVELS[2::2]))
        + named("rank", levels=(1.0,)),
        named("different", *(["length"] if len(present) < rows.size else [])),
        named("count", "first place", "last place", levels=frequent),
    ]


def _levels(values: Floats, shares: tuple[float, ...]) -> list[float]:
    """The different values at the quantiles `shares`."""
    present = np.sort(values[np.isfinite(values)])
    if not len(present):
        return []
    levels: list[float] = np.unique(present[[int(share * len(present)) for share in shares]]).tolist()
    return levels
