"""Additive scores: the log likelihood ratio of each entry, summed over the entries; exact for independent entries.

Entries that tell D from D′ by themselves have fine bins. Weak entries have two bins each, and the weights of all weak
entries are shrunk together: twenty weak entries are summed, not left out.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Floats, Rows
from dpwitness.events import ScoreThreshold
from dpwitness.search.learners.learner import Learner, Proposal
from dpwitness.search.objectives import Objective
from dpwitness.search.ranges import FINE_SHARES, Scan, scan_of
from dpwitness.search.samples import Sample, informative_bins, score_of, shrunken_log_ratio

#: The largest number of bins of an entry that distinguishes D from D′ by itself.
MOST_BINS: Final = 32
#: The number of bins of a weak entry: below and above its median on D.
WEAK_BINS: Final = 2
#: The largest number of training runs of each input from which weak entries are learned.
WEAK_RUNS: Final = 1 << 15
#: The number of present values on D that a weak entry must exceed.
LEAST_VALUES: Final = 64
#: The least separation of the sides by a score of weak entries, in standard errors, in runs that did not choose it.
LEAST_SCORE_SEPARATION: Final = 2.0

ScorePart = tuple[int, Floats, Floats]  # an entry, its edges and weights, as in `ScoreThreshold`


class AdditiveScores(Learner):
    """The learner of the best thresholds of one or two additive scores: without weak entries, and with weak entries.

    No threshold is proposed where outcomes repeat, or in a quick look.
    """

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        if not thorough or sample.repeats or sample.width < 2:
            return
        for score, one in sample.once(_learned):
            for found in one.proposals(objective, (1.0, 3.0)):  # the best of some hundred thresholds is overestimated
                yield Proposal(event=score.between(found.interval.low, found.interval.high), swapped=found.swapped)


def _learned(sample: Sample) -> list[tuple[ScoreThreshold, Scan]]:
    """The scores of a sample of rows that have at least two entries, each with its ranges."""
    strong: list[ScorePart] = []
    others: list[tuple[int, Floats]] = []
    for j, column in enumerate(zip(*sample.columns(), strict=True)):
        bins = informative_bins(
            [side.values for side in column], np.arange(1, MOST_BINS) / MOST_BINS, sample.training_runs
        )
        if bins is not None:
            strong.append((j, *bins))
        elif len(column[0].values) > LEAST_VALUES:
            others.append((j, column[0].values))
    weak = _weak(sample, others)
    scores = [score_of(strong)] if len(strong) >= 2 else []
    if weak and len(strong) + len(weak) >= 2:
        scores.append(score_of(sorted([*strong, *weak], key=lambda part: part[0])))
    return [(score, scan_of(score.score(sample.outcomes), sample.times, FINE_SHARES, paired=True)) for score in scores]


def _weak(sample: Sample, columns: Sequence[tuple[int, Floats]]) -> list[ScorePart]:
    """The weak entries with edges and weights; [] if the entries' score does not separate the sides in other runs.

    `columns`: the numbers of the entries, and their sorted values on D.
    """
    if not columns:
        return []
    rows, _ = sample.some(WEAK_RUNS)
    x, y = np.split(rows, 2)
    half = len(x) // 2
    edges = [np.unique(ranked[np.arange(1, WEAK_BINS) * len(ranked) // WEAK_BINS]) for _, ranked in columns]
    score = score_of(_parts(columns, edges, x[:half], y[:half]))
    apart = score.score(x[half:]) - score.score(y[half:])  # in each run, so that shared noise cancels
    if apart.mean() * math.sqrt(len(apart)) <= LEAST_SCORE_SEPARATION * apart.std():
        return []
    return _parts(columns, edges, x, y)


def _parts(columns: Sequence[tuple[int, Floats]], edges: Sequence[Floats], x: Rows, y: Rows) -> list[ScorePart]:
    """The entries with their edges and shrunken weights; the last weight of each entry is the weight of its absence."""
    counted = []
    for side in (x, y):
        cells = [np.searchsorted(edge, side[:, j], side="right") for (j, _), edge in zip(columns, edges, strict=True)]
        cells = [
            np.where(np.isnan(side[:, j]), len(edge) + 1, cell)
            for (j, _), edge, cell in zip(columns, edges, cells, strict=True)
        ]
        counted.append([np.bincount(c, minlength=len(edge) + 2) for c, edge in zip(cells, edges, strict=True)])
    weights = shrunken_log_ratio(*(np.concatenate(side) for side in counted))
    parts = np.split(weights, np.cumsum([len(edge) + 2 for edge in edges])[:-1])
    return [(j, edge, part) for (j, _), edge, part in zip(columns, edges, parts, strict=True)]
