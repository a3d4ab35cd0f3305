"""Additive scores: the log likelihood ratio of each entry, summed over the entries; exact for independent entries."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.events import ScoreThreshold
from dpwitness.search.learners.intervals import SHARES
from dpwitness.search.learners.learner import Learner, Proposal
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample, informative_bins

Floats = NDArray[np.float64]

#: Bins of an entry, at most.
BINS = 32


class AdditiveScores(Learner):
    """The best threshold of an additive score, and of its opposite; none where outcomes repeat, or in a quick look."""

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        learned = None if not thorough or sample.repeats or sample.width < 2 else sample.once(_learned)
        if learned is None:
            return
        score, cuts, p, q = learned.score, learned.cuts, learned.p, learned.q
        above = float(cuts[int(objective(p, q, sample.training_runs).argmax())])
        below = float(cuts[int(objective(1 - q, 1 - p, sample.training_runs).argmax())])
        yield Proposal(event=ScoreThreshold(score.coordinates, score.edges, score.weights, above))
        # Just above −cut: the negated score must exceed it where the score stays at or below the cut.
        opposite, threshold = [-w for w in score.weights], float(np.nextafter(-below, -np.inf))
        yield Proposal(event=ScoreThreshold(score.coordinates, score.edges, opposite, threshold), swapped=True)


@dataclass(frozen=True, slots=True)
class Learned:
    """A score, and the share of the training runs of D and of D′ that lie above each of k cuts; shapes (k,)."""

    score: ScoreThreshold
    cuts: Floats
    p: Floats
    q: Floats


def _learned(sample: Sample) -> Learned | None:
    """The score of a sample of rows; None where fewer than two columns tell anything."""
    runs = sample.training_runs
    coordinates, edges, weights = [], [], []
    for j, column in enumerate(zip(*sample.sorted_columns, strict=True)):
        bins = informative_bins([side.values for side in column], np.arange(1, BINS) / BINS, runs)
        if bins is not None:
            coordinates.append(j)
            edges.append(bins[0])
            weights.append(bins[1])
    if len(coordinates) < 2:
        return None
    score = ScoreThreshold(coordinates, edges, weights, 0.0)
    scores = score.score(sample.outcomes)
    ranked = [np.sort(scores[times > 0]) for times in sample.times]
    cuts = np.unique(np.quantile(scores, SHARES))
    p, q = (1 - np.searchsorted(side, cuts, side="right") / runs for side in ranked)
    return Learned(score, cuts, p, q)
