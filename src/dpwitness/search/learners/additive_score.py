"""Additive scores: the log likelihood ratio of each entry, summed over the entries; exact for independent entries.

Entries that tell much each have fine bins. Those that tell little have few, and their weights are shrunk by what is
noise in all of them together: twenty weak entries are summed, not left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.events import ScoreThreshold
from dpwitness.search.learners.intervals import SHARES
from dpwitness.search.learners.learner import Learner, Proposal
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample, informative_bins, score_of

Floats = NDArray[np.float64]

#: Bins of an entry, at most.
BINS = 32
#: Bins of a weak entry, a power of two, and one more for its absence.
FEW_BINS: Final = 8
#: Training runs of each input that weak entries are learned from, and the parts of them by which noise is estimated.
WEAK_RUNS: Final = 1 << 15
PARTS: Final = 16
#: A part of a weak entry with fewer runs has no weight.
FEWEST: Final = 64
#: By how many standard errors weak entries together must differ more than noise.
STANDARD_ERRORS: Final = 2.0
#: What the weak entries must add to what the others tell: a second score takes as long as the first.
SHARE: Final = 0.25

Part = tuple[int, Floats, Floats]  # an entry, its edges and weights, as in `ScoreThreshold`


class AdditiveScores(Learner):
    """The best threshold of an additive score, and of its opposite; none where outcomes repeat, or in a quick look.

    There may be two scores: of the entries that tell much each, and of these and the weak ones. Test runs choose.
    """

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        if not thorough or sample.repeats or sample.width < 2:
            return
        for scored in sample.once(_learned):
            yield from scored.proposals(objective, (1.0,))


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A score, and the share of the runs of D, of D′ and of both that lie above each of k cuts; shapes (k,).

    `both` is None where it is not known which outcomes came in one run.
    """

    event: ScoreThreshold
    cuts: Floats
    p: Floats
    q: Floats
    both: Floats | None
    runs: int

    def proposals(self, objective: Objective, errors: Sequence[float]) -> Iterator[Proposal]:
        """The best threshold of the score, and of its opposite, where values are lowered by so many standard errors."""
        p, q, both = self.p, self.q, self.both
        outside = None if both is None else 1 - p - q + both
        found = set()
        for lower in errors:
            found.add((False, int(objective(p, q, self.runs, lower, both).argmax())))
            found.add((True, int(objective(1 - q, 1 - p, self.runs, lower, outside).argmax())))
        for below, k in sorted(found):
            event, threshold = self.event, float(self.cuts[k])
            if below:  # just above −cut: the negated score must exceed it where the score stays at or below the cut
                event, threshold = event.opposite(), float(np.nextafter(-threshold, -np.inf))
            yield Proposal(event=event.exceeding(threshold), swapped=below)


def _learned(sample: Sample) -> list[Scored]:
    """The scores of a sample of rows; none of fewer than two columns."""
    runs = sample.training_runs
    strong: list[Part] = []
    others = []
    for j, column in enumerate(zip(*sample.columns(), strict=True)):
        bins = informative_bins([side.values for side in column], np.arange(1, BINS) / BINS, runs)
        if bins is not None:
            strong.append((j, *bins))
        elif len(column[0].values) > FEWEST:
            others.append((j, column[0].values))
    found = [_score(sample, strong)] if len(strong) >= 2 else []
    weak, variance = _weak(sample, others)
    if weak and len(strong) + len(weak) >= 2 and all(variance > SHARE * own for _, own in found):
        found.append(_score(sample, sorted([*strong, *weak], key=lambda part: part[0])))
    return [scored for scored, _ in found]


def _score(sample: Sample, parts: list[Part]) -> tuple[Scored, float]:
    """The score of some entries, and its variance: its Kullback–Leibler divergence is about half of that."""
    score = score_of(parts)
    scores = score.score(sample.outcomes)
    x, y = np.split(scores, 2)
    ranked = [np.sort(side) for side in (x, y, np.minimum(x, y))]
    places = (SHARES * (len(x) - 1)).astype(np.int64)
    cuts = np.unique([side[places] for side in ranked[:2]])
    p, q, both = (1 - np.searchsorted(side, cuts, side="right") / len(x) for side in ranked)
    return Scored(score, cuts, p, q, both, len(x)), float(scores.var())


def _weak(sample: Sample, columns: list[tuple[int, Floats]]) -> tuple[list[Part], float]:
    """Edges and weights of entries that tell little each, and the variance of their sum; nothing where all is noise.

    `columns`: their sorted values on D. The log ratio of a column is written in the Haar basis: of its upper and lower
    half, of the halves of these, and so on, and of its absence. Coefficients of one level are shrunk alike, by what
    they vary more than their noise in all columns together (empirical Bayes).
    """
    if not columns:
        return [], 0.0
    rows, _ = sample.some(WEAK_RUNS)
    numbers = [number for number, _ in columns]
    edges = np.array([ranked[np.arange(1, FEW_BINS) * len(ranked) // FEW_BINS] for _, ranked in columns])
    sides = [_counted(side, numbers, edges) for side in np.split(rows, 2)]
    runs = np.add(*sides).sum(axis=1)  # by column and bin
    weights = np.zeros(runs.shape)
    half = FEW_BINS // 2
    while half:
        starts = range(0, FEW_BINS, 2 * half)
        _add(weights, sides, runs, [(slice(k, k + half), slice(k + half, k + 2 * half)) for k in starts])
        half //= 2
    _add(weights, sides, runs, [(slice(0, FEW_BINS), slice(FEW_BINS, FEW_BINS + 1))])
    variance = float(np.sum(runs * weights**2) / len(rows))
    if not variance:
        return [], 0.0
    parts = []
    for number, edge, weight in zip(numbers, edges, weights, strict=True):
        # Bins between equal edges are empty.
        different = np.unique(edge)
        bins = np.concatenate([[0], np.searchsorted(edge, different, side="right"), [FEW_BINS]])
        parts.append((number, different, weight[bins]))
    return parts, variance


def _counted(rows: Floats, columns: list[int], edges: Floats) -> Floats:
    """How many of the rows are in each bin, the last of absent entries; shape (columns, parts of the rows, bins)."""
    part = np.arange(len(rows)) * PARTS // len(rows) * (FEW_BINS + 1)
    found = np.empty((len(columns), PARTS, FEW_BINS + 1))
    for place, (column, edge) in enumerate(zip(columns, edges, strict=True)):
        entries = np.ascontiguousarray(rows[:, column])
        bins = np.add.reduce((entries >= edge[:, None]).view(np.int8), axis=0, dtype=np.int8)
        bins[np.isnan(entries)] = FEW_BINS
        found[place] = np.bincount(part + bins, minlength=found[place].size).reshape(PARTS, -1)
    return found


def _add(weights: Floats, sides: list[Floats], runs: Floats, level: list[tuple[slice, slice]]) -> None:
    """Add the shrunken coefficients of one level, of the log ratio between two runs of bins each, to the weights."""
    coefficients, noise = np.array([_coefficients(sides, *split) for split in level]).transpose(1, 0, 2)
    shares = np.array([[runs[:, bins].sum(axis=1) for bins in split] for split in level])
    enough = shares.min(axis=1) >= FEWEST
    if not enough.any():
        return
    expected = float(noise[enough].mean())
    prior = float((coefficients[enough] ** 2).mean()) - expected
    if prior <= STANDARD_ERRORS * expected * np.sqrt(2 / np.count_nonzero(enough)):
        return
    shrunk = np.where(enough, coefficients * prior / (prior + expected), 0.0)
    for split, value, share in zip(level, shrunk, shares, strict=True):
        left, right = share / np.maximum(share.sum(axis=0), 1)
        weights[:, split[0]] += (value * right)[:, None]
        weights[:, split[1]] -= (value * left)[:, None]


def _coefficients(sides: list[Floats], first: slice, second: slice) -> tuple[Floats, Floats]:
    """The log ratio of D to D′ in some bins less that in others, of each column, and the variance of its noise.

    The variance is that of estimates that each leave one part of the runs out (the jackknife): it holds whatever the
    two sides of a run share.
    """

    def ratio(counts: list[Floats]) -> Floats:
        hits, others = ([np.log(side[..., bins].sum(axis=-1) + 0.5) for bins in (first, second)] for side in counts)
        return np.asarray(hits[0] - others[0] - hits[1] + others[1])

    totals = [side.sum(axis=1) for side in sides]
    without = ratio([total[:, None] - side for total, side in zip(totals, sides, strict=True)])
    return ratio(totals), without.var(axis=1) * (PARTS - 1)
