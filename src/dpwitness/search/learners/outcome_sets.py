"""Sets of whole outcomes, where outcomes repeat: by Neyman–Pearson the best event is {likelihood ratio > t}."""

from collections.abc import Iterator

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Integers
from dpwitness.events import OutcomeSet
from dpwitness.search.learners.learner import Learner, Proposal, tolerance
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample, shrunken_log_ratio

#: The number of single outcomes that are proposed in either direction.
PROPOSED_SINGLE_OUTCOMES = 3


class OutcomeSets(Learner):
    """The learner of single outcomes and of sets of the outcomes of largest likelihood ratio, if outcomes repeat."""

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> list[Proposal]:
        if not sample.repeats:
            return []
        return [Proposal(event=members, swapped=swapped) for members, swapped in best_sets(sample, objective)]


def best_sets(sample: Sample, objective: Objective) -> list[tuple[OutcomeSet, bool]]:
    """The best sets of outcomes in rising order of size, each with a flag: whether D and D′ are exchanged."""
    sets = [(members, swapped) for swapped in (False, True) for members in _best_sets(sample, objective, swapped)]
    return sorted(sets, key=lambda item: len(item[0].rows))  # stable: of equally large sets, unswapped sets first


def _best_sets(sample: Sample, objective: Objective, swapped: bool) -> Iterator[OutcomeSet]:
    """The best single outcomes, the best prefix by likelihood ratio, and the shortest good prefix, in one direction."""
    ranking = sample.once(_ranking)
    ranking, times = (ranking[::-1], sample.times[::-1]) if swapped else (ranking, sample.times)
    alone = times[:, ranking]
    p, q = np.hstack([alone, np.cumsum(alone, axis=1)]) / sample.training_runs
    singles, prefixes = np.split(objective(p, q, sample.training_runs), 2)
    best = float(prefixes.max())
    sizes = {int(prefixes.argmax()) + 1, int(np.argmax(prefixes >= best - tolerance(best))) + 1}
    members = [ranking[[k]] for k in np.argsort(-singles, kind="stable")[:PROPOSED_SINGLE_OUTCOMES]]
    members += [ranking[:size] for size in sorted(sizes) if 1 < size < len(ranking)]
    for chosen in members:
        yield OutcomeSet(sample.outcomes[chosen])


def _ranking(sample: Sample) -> Integers:
    """The places of the outcomes seen in the training runs, in falling order of likelihood ratio."""
    hits, others = sample.times
    seen = np.flatnonzero(hits + others)
    return seen[np.argsort(-shrunken_log_ratio(hits[seen], others[seen]), kind="stable")]
