"""Learned scores of several entries at once: boosted trees, and a logistic model of binned entries.

scikit-learn trains them; what they say is an event of ours (`TreeScore`), which needs it no more. It is an extra
(`pip install dpwitness[learn]`), imported when there is something to learn: where it is missing, nothing is proposed.

They show what no entry, no feature and no sum of entries shows: entries that matter only together. A test of ranks
(`_tells`) looks for that first; where one entry tells all, as in most mechanisms, nothing is trained.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.events import Tree, TreeScore
from dpwitness.events.features import numbers
from dpwitness.search.learners.additive_score import Scored
from dpwitness.search.learners.intervals import SHARES
from dpwitness.search.learners.learner import Learner, Proposal
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Training runs of each input: fewer are too few to learn from, and of many only so many numbers are learned from.
FEWEST: Final = 4096
ROOM: Final = 3 << 17
#: Outcomes that repeat are learned from if there are more than so many, and one for so many runs: else sets of them
#: show it all.
FEW_OUTCOMES: Final = 256
RUNS_OF_EACH: Final = 128
#: Entries that are looked at; of so few entries the differences of neighbours too.
MOST_ENTRIES: Final = 32
FEW_ENTRIES: Final = 20
#: Differences are looked at of entries that most of so many runs return different values of.
FEW_VALUES: Final = 256
#: One in so many of the training runs teaches no tree: it says how many of them are of use, and where to cut.
KEPT: Final = 4
#: Boosted trees: how many, of what depth, how much each moves the score; a leaf's least runs and its ridge penalty.
TREES: Final = 40
DEPTH: Final = 4
RATE: Final = 0.2
LEAST_LEAF: Final = 100
RIDGE: Final = 20.0
#: So many trees are tried, and fewer if they are nearly as good.
PREFIXES: Final = (5, 10, 20, 30, 40)
ENOUGH: Final = 0.95
#: Beyond this numbers count as this, so that sums of two are finite.
LIMIT: Final = 1e300
#: Bins of the logistic model, and its penalty.
BINS: Final = 8
PENALTY: Final = 0.1
#: The test of ranks: runs of each input, and numbers in them at most; ranks, by how many runs; the limit; triples of
#: so few entries.
RANKED: Final = 1 << 13
RANKED_NUMBERS: Final = 5 << 13
RANKS: Final = 32
SORTED: Final = 1024
STANDARD_ERRORS: Final = 4.5
TRIPLES_OF: Final = 8


class Trees(Learner):
    """The best thresholds of boosted trees and of a logistic model; nothing in a quick look."""

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        if not thorough or sample.width < 2 or sample.training_runs < FEWEST or find_spec("sklearn") is None:
            return
        if sample.repeats and len(sample.outcomes) <= max(FEW_OUTCOMES, sample.training_runs // RUNS_OF_EACH):
            return
        for scored in sample.once(_learned):
            # The best of many thresholds is overestimated, so also that three errors lower.
            yield from scored.proposals(objective, (1.0, 3.0))


def _learned(sample: Sample) -> list[Scored]:
    """The scores of a sample; none where nothing is there that needs more than one entry."""
    width = min(sample.width, MOST_ENTRIES)
    outcomes, times = sample.some(ROOM // (2 * width if width <= FEW_ENTRIES else width))
    entries = np.clip(numbers(outcomes[:, :width]), -LIMIT, LIMIT)
    if not _tells(entries, times):
        return []
    inputs: list[tuple[int, ...]] = [(j,) for j in range(width)]
    if width <= FEW_ENTRIES and not sample.repeats:
        several = [len(np.unique(column[:FEW_VALUES])) > FEW_VALUES // 2 for column in entries.T]
        inputs += [(j + 1, j) for j in range(width - 1) if several[j] and several[j + 1]]
    x = np.column_stack([entries[:, one[0]] - (entries[:, one[1]] if len(one) == 2 else 0.0) for one in inputs])
    kept = _kept(times, repeats=sample.repeats)
    taught = times - kept
    # scikit-learn finds no bins for an input that is a number in none of the runs that teach.
    present = np.flatnonzero(~np.isnan(x[taught.any(axis=0)]).all(axis=0))
    if not len(present):
        return []
    data = Runs(x[:, present], outcomes, taught, kept, [inputs[j] for j in present])
    models = [event for fit in (_boosted, _logistic) if (event := fit(data)) is not None]
    return [_scored(event, data, paired=not sample.repeats) for event in models]


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Inputs of trees and the outcomes that they are of, by row; how often each came in the runs that teach, and kept.

    Shapes (n, inputs), (n, width), (2, n), (2, n).
    """

    x: Floats
    outcomes: Floats
    taught: Whole
    kept: Whole
    inputs: Sequence[tuple[int, ...]]


def _kept(times: Whole, *, repeats: bool) -> Whole:
    """How often each outcome came in the runs that teach nothing: every fourth run, of outcomes that repeat a draw."""
    if repeats:
        return np.random.default_rng(0).binomial(times, 1 / KEPT)
    run = np.concatenate([np.arange(side.sum()) for side in times])  # rows of D, then those of D′
    return np.asarray(times * (run % KEPT == KEPT - 1))


def _tells(entries: Floats, times: Whole) -> bool:
    """Whether entries tell D from D′ together: two of them, or a product of two or three of their ranks, or a sum.

    Of few entries products of squares too. What one entry tells alone, intervals of it show.
    """
    half, runs = entries.shape[0] // 2, min(RANKED, RANKED_NUMBERS // entries.shape[1])
    if half > runs and np.all(times.sum(axis=0) == 1):
        chosen = np.r_[:runs, half : half + runs]
        entries, times = entries[chosen], times[:, chosen]
    columns = np.ascontiguousarray(entries.T)
    absent = np.isnan(columns)
    share = absent.mean(axis=1)
    mixed = np.flatnonzero((share > 0.01) & (share < 0.99))
    scores = np.concatenate([np.array([_ranks(column) for column in columns]), 0.5 - absent[mixed]]).astype(np.float32)
    owner = np.concatenate([np.arange(len(columns)), mixed])
    weights = [(side / side.sum()).astype(np.float32) for side in times]
    runs_of = times.sum(axis=1)
    one = np.ones((1, scores.shape[1]), np.float32)
    single, squares = (_products(of, one, weights, runs_of)[:, 0] for of in (scores, scores**2))
    clear = {int(owner[k]) for k in np.flatnonzero(np.maximum(np.abs(single), np.abs(squares)) > STANDARD_ERRORS)}
    if len(clear) > 1:
        return True
    if len(single) > 3 and np.sum(single**2 - 1) > STANDARD_ERRORS * np.sqrt(2 * len(single)):
        return not clear  # of one entry that tells alone the sum is as large
    factors, of = scores, owner
    if len(columns) <= TRIPLES_OF:
        ranks = scores[: len(columns)]
        factors = np.concatenate([scores, ranks**2 - (ranks**2).mean(axis=1, keepdims=True)])
        of = np.append(owner, np.arange(len(columns)))
    pairs = _products(factors, factors, weights, runs_of)
    if np.abs(pairs[of[:, None] != of]).max(initial=0.0) > STANDARD_ERRORS:
        return True
    few, whose = scores[:TRIPLES_OF], owner[:TRIPLES_OF]
    first, second = np.triu_indices(len(few), 1)
    triples = _products(few[first] * few[second], few, weights, runs_of)
    different = (whose[first][:, None] != whose) & (whose[second][:, None] != whose)
    different &= (whose[first] != whose[second])[:, None]
    return bool(np.abs(triples[different]).max(initial=0.0) > STANDARD_ERRORS)


def _ranks(column: Floats) -> Floats:
    """Ranks between −½ and ½ in few steps, 0 where there is no number."""
    present = column[~np.isnan(column)]
    if not len(present):
        return np.zeros(len(column))
    some = np.sort(present[:: max(len(present) // SORTED, 1)])
    edges = some[np.arange(1, RANKS) * len(some) // RANKS]
    low = np.searchsorted(edges, column)
    # Of few values, half way between those below and those up to it.
    high = np.searchsorted(edges, column, side="right") if len(np.unique(edges)) < len(edges) else low
    return np.where(np.isnan(column), 0.0, (low + high) / (2 * (RANKS - 1)) - 0.5)


def _products(
    values: NDArray[np.float32], others: NDArray[np.float32], weights: list[NDArray[np.float32]], runs: Whole
) -> Floats:
    """How much the means of products under D and D′ differ, in standard errors; shapes (k, n) and (m, n), (k, m).

    `weights`: of each outcome in the mean under D, and under D′, of so many runs.
    """
    means, variance = [], np.zeros((len(values), len(others)))
    for weight, n in zip(weights, runs.tolist(), strict=True):
        chosen = np.flatnonzero(weight)
        left, right = values[:, chosen], others[:, chosen]
        weighted = left * weight[chosen]
        mean = (weighted @ right.T).astype(np.float64)
        variance += ((weighted * left) @ (right**2).T - mean**2) / n
        means.append(mean)
    return np.asarray((means[0] - means[1]) / np.sqrt(np.maximum(variance, 1e-30)))


def _labelled(x: Floats, times: Whole) -> tuple[Floats, Whole, Floats | None]:
    """Rows with the side that they came from (1 is D), and how often they came; None where each came once.

    Weights that are all 1 are not given: with any, scikit-learn takes twenty times as long to find its bins.
    """
    chosen = [np.flatnonzero(side) for side in times]
    labels = np.repeat([1, 0], [len(places) for places in chosen])
    weights = np.concatenate([side[places] for side, places in zip(times, chosen, strict=True)])
    return x[np.concatenate(chosen)], labels, None if np.all(weights == 1) else weights.astype(np.float64)


_lock = threading.Lock()


@cache
def _controller() -> Any:
    """What says how many threads OpenMP may use, in the caller's thread, and linear algebra, in the process."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # of scikit-learn

    return ThreadpoolController()


def _boosted(data: Runs) -> TreeScore | None:
    """Boosted trees, as few as do; None where they tell nothing of the runs kept."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # type: ignore[import-untyped]

    rows, labels, weights = _labelled(data.x, data.taught)
    model = HistGradientBoostingClassifier(
        max_iter=TREES, max_depth=DEPTH, max_leaf_nodes=2**DEPTH, learning_rate=RATE, min_samples_leaf=LEAST_LEAF,
        l2_regularization=RIDGE, early_stopping=False, random_state=0,
    )  # fmt: skip
    with _controller().limit(limits=1, user_api="openmp"):  # pairs are looked at beside each other
        model.fit(rows, labels, sample_weight=weights)
    event = trees_of(model, data.inputs)
    outcomes, sides, often = _labelled(data.outcomes, data.kept)
    prefixes = [replace(event, trees=event.trees[:count]) for count in PREFIXES]
    gains = np.array([_gain(prefix.score(outcomes), sides, often) for prefix in prefixes])
    best = float(gains.max())
    return prefixes[int(np.argmax(gains >= ENOUGH * best))] if best > 0 else None


def _gain(scores: Floats, sides: Whole, times: Floats | None) -> float:
    """The mean log-likelihood of the sides, less that of a coin."""
    losses = np.logaddexp(0.0, np.where(sides == 1, -scores, scores))
    return float(np.log(2.0) - np.average(losses, weights=times))


def trees_of(model: Any, inputs: Sequence[tuple[int, ...]]) -> TreeScore:
    """The trees of a fitted `HistGradientBoostingClassifier`: the score is its decision function, to the last bit."""
    return TreeScore(
        inputs=tuple(inputs),
        trees=tuple(_complete(predictor.nodes, DEPTH) for (predictor,) in model._predictors),
        start=float(model._baseline_prediction.item()),
        threshold=0.0,
    )


def _complete(nodes: Any, depth: int) -> Tree:
    """A tree of scikit-learn as a complete one: below an early leaf all rows go left, and all leaves are that one."""
    places, splits = [0], []
    for _ in range(depth):
        below = []
        for place in places:
            node = nodes[place]
            if node["is_leaf"]:
                splits.append((0, np.inf, True))
                below += [place, place]
            else:
                cut, absent_left = float(node["num_threshold"]), bool(node["missing_go_to_left"])
                splits.append((int(node["feature_idx"]), cut, absent_left))
                below += [int(node["left"]), int(node["right"])]
        places = below
    return Tree(
        inputs=tuple(split[0] for split in splits),
        cuts=tuple(split[1] for split in splits),
        absent_left=tuple(split[2] for split in splits),
        leaves=tuple(float(nodes[place]["value"]) for place in places),
    )


def _logistic(data: Runs) -> TreeScore | None:
    """A logistic model of the rank of each input and of its absence, by bins: one tree for each input."""
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    columns, tables = [], []
    for place, values in enumerate(data.x.T):
        absent = np.isnan(values)
        present = np.sort(values[~absent])
        edges = np.unique(present[np.arange(1, BINS) * len(present) // BINS]) if len(present) else present
        rank = np.append(np.linspace(-1.0, 1.0, len(edges) + 1), 0.0)
        if len(edges):
            tables.append((place, edges, rank))
            columns.append(rank[np.where(absent, len(edges) + 1, np.searchsorted(edges, values))])
        if absent.any():
            tables.append((place, edges, np.append(np.zeros(len(edges) + 1), 1.0)))
            columns.append(absent.astype(np.float64))
    if not tables:
        return None
    rows, labels, weights = _labelled(np.column_stack(columns), data.taught)
    model = LogisticRegression(C=PENALTY)
    # Several threads take longer for so few rows; their number belongs to the whole process, so one fit at a time.
    with _lock, _controller().limit(limits=1):
        model.fit(rows, labels, sample_weight=weights)
    steps: dict[int, tuple[Floats, Floats]] = {}
    for (place, edges, table), weight in zip(tables, model.coef_[0], strict=True):
        # In few digits: how many threads added up does not show in them.
        own = table * float(f"{weight:.4g}")
        steps[place] = edges, own + steps[place][1] if place in steps else own
    trees = tuple(_steps(place, edges, weights) for place, (edges, weights) in steps.items())
    event = TreeScore(inputs=tuple(data.inputs), trees=trees, start=0.0, threshold=0.0)
    outcomes, sides, often = _labelled(data.outcomes, data.kept)
    return event if _gain(event.score(outcomes), sides, often) > 0 else None


def _steps(place: int, edges: Floats, weights: Floats) -> Tree:
    """A step function of one input as a tree: what is absent goes right at the root, the bins are below the left.

    Bins reach from one edge up to the next, which is in them; the last of the weights is that of an absent input.
    """
    cuts = np.append(edges, np.full(BINS - 1 - len(edges), np.inf))
    values = np.append(weights[:-1], np.full(BINS - len(weights) + 1, weights[-2]))
    levels = [[np.inf], [cuts[3], np.inf], [*cuts[[1, 5]], np.inf, np.inf], [*cuts[[0, 2, 4, 6]], *[np.inf] * 4]]
    ordered = tuple(float(cut) for level in levels for cut in level)
    return Tree(
        inputs=(place,) * len(ordered),
        cuts=ordered,
        absent_left=(False,) + (True,) * (len(ordered) - 1),
        leaves=(*map(float, values), *[float(weights[-1])] * BINS),
    )


def _scored(event: TreeScore, data: Runs, *, paired: bool) -> Scored:
    """Where to cut a score, and how many of the runs kept lie above each cut."""
    scores = event.score(data.outcomes)
    if paired:
        x, y = (scores[side > 0] for side in data.kept)
        cuts = np.unique(np.quantile(np.concatenate([x, y]), SHARES))
        sides = [np.sort(of) for of in (x, y, np.minimum(x, y))]
        p, q, both = (1 - np.searchsorted(side, cuts, side="right") / len(side) for side in sides)
        return Scored(event, cuts, p, q, both, len(x))
    order = np.argsort(scores, kind="stable")
    below = np.cumsum(np.hstack([np.zeros((2, 1), np.int64), data.kept[:, order]]), axis=1)
    runs = below[:, -1:]
    ranked = scores[order]
    total = below.sum(axis=0)
    places = np.searchsorted(total[1:], SHARES * (total[-1] - 1), side="right")
    cuts = np.unique(ranked[places])
    p, q = 1 - below[:, np.searchsorted(ranked, cuts, side="right")] / runs
    return Scored(event, cuts, p, q, None, int(runs.min()))
