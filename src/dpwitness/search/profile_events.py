"""Which pair and which events for the band of a privacy profile: for every ε one that shows nearly the most there.

Never evidence: confirm runs count the events once they are fixed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import MechanismTimeout
from dpwitness.events import Event
from dpwitness.evidence import Estimate
from dpwitness.evidence.profile_band import PlannedLine, expected_differences
from dpwitness.neighbours import Pair
from dpwitness.problem import Problem
from dpwitness.runs import Role, Runner
from dpwitness.search.find import proposed
from dpwitness.search.halving import Finalist, search
from dpwitness.search.learners import RatedEvent, learn
from dpwitness.search.profile_objective import SEVERAL, DeltaAt
from dpwitness.search.profile_sample import Chain, counted_chains
from dpwitness.search.samples import sample_of

__all__ = ["ProfileEvents", "find_profile_events"]

Floats = NDArray[np.float64]

#: ε between which events are chosen; beyond log(runs) there are too few runs for any.
STEP: Final = 0.02
MOST_EPSILON: Final = 20.0
#: An event may show less than the best one at an ε by this share of the best one's error, or of δ.
OF_ERROR: Final = 0.05
OF_DELTA: Final = 5e-4
#: Relative errors between which shares of α are proportional to them: what is known to 0.2 % needs little.
LEAST_ERROR: Final = 0.002
MOST_ERROR: Final = 0.05
#: Nested events that show nearly as much as the best: through them a parabola is laid, whose vertex is chosen.
NEARLY: Final = 0.9
FEWEST: Final = 7
#: At most so many events; first guess of log of their number.
MOST_EVENTS: Final = 96
LOG_EVENTS: Final = math.log(30)
#: Runs that events are counted on at most before they are chosen: that places cuts well enough for 10¹⁰ confirm runs.
MOST_COUNTED: Final = 100_000_000
#: Pairs of an attack that are sampled too.
PROPOSED: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileEvents:
    """A pair, events, each with its part in the band, and the paired search runs spent."""

    pair: Pair
    events: tuple[Event, ...]
    lines: tuple[PlannedLine, ...]
    search_runs: int


def find_profile_events(problem: Problem, runner: Runner, *, alpha: float, planned: int, budget: int) -> ProfileEvents:
    """The pair that shows most, and its events, for `planned` confirm runs. Raises as `search`.

    `budget`: paired search runs for the pair; the events are counted on as many again, of compiled code on a quarter of
    the planned ones at least.
    """
    searching = runner.searching()
    objective = DeltaAt(epsilons=SEVERAL, planned=planned, log_threshold=math.log(1 / alpha) + LOG_EVENTS)
    finalists, spent = search(problem, searching, objective, budget)
    attacked, more = _of_attack(problem, searching, planned, max(budget // 4, 16))
    best = _best_pair(searching, [*attacked, *finalists], objective)
    learned = _learned(searching, best, objective)
    again = max(budget, min(planned // 4, MOST_COUNTED)) if problem.mechanism.threads else max(budget // 2, 16)
    chains, counted = counted_chains(searching, best.pair, best.sample, learned, again)
    directed = [*chains, *(chain.turned() for chain in chains)]
    events, lines = _covering(directed, planned, counted, alpha)
    return ProfileEvents(pair=best.pair, events=events, lines=lines, search_runs=spent + more + counted)


def _of_attack(problem: Problem, runner: Runner, planned: int, runs: int) -> tuple[list[Finalist], int]:
    """Samples of the pairs that a target's attack proposes, and the runs spent."""
    found, spent = [], 0
    pairs = list({candidate.pair.key: candidate.pair for candidate in proposed(problem, planned)}.values())
    for number, pair in enumerate(pairs[:PROPOSED]):
        try:
            x, y = runner.sample(pair, min(runs, 1 << 18), Role.PLAYOFF, number)
        except MechanismTimeout:
            break
        found.append(Finalist(pair=pair, sample=sample_of(x, y)))
        spent += len(x)
    return found, spent


def _best_pair(runner: Runner, finalists: Sequence[Finalist], objective: DeltaAt) -> Finalist:
    """The finalist with the event that shows most over all ε."""
    if len(finalists) == 1:
        return finalists[0]
    results = runner.each([partial(learn, arm.sample, objective, most=1) for arm in finalists])
    # At the deadline those that were not looked at yet count as nothing.
    values = [-math.inf if found is None else found[0].value for found in results]
    return finalists[int(np.argmax(values)) if values else 0]


def _learned(runner: Runner, arm: Finalist, objective: DeltaAt) -> list[RatedEvent]:
    """Events of a pair for several ε."""
    each = [replace(objective, epsilons=(epsilon,)) for epsilon in objective.epsilons]
    results = replace(runner, deadline=None).each([partial(learn, arm.sample, alone, most=4) for alone in each])
    return [event for found in results for event in found or ()]


def _covering(
    chains: Sequence[Chain], planned: int, counted: int, alpha: float
) -> tuple[tuple[Event, ...], tuple[PlannedLine, ...]]:
    """Few events of which at every ε one shows nearly as much as the best one, and their parts in the band."""
    epsilons = np.arange(0.0, min(math.log(max(planned, 2)), MOST_EPSILON) + STEP, STEP)
    threshold = math.log(1 / alpha) + LOG_EVENTS
    # The error of the estimates too: of many events that seem good some are lucky.
    threshold = (math.sqrt(threshold) + math.sqrt(planned / counted / 2)) ** 2
    places = _best_places(chains, epsilons, planned, threshold)
    if not places:
        places = _best_places(chains, epsilons[:1], planned, 0.0) or [(0, 0)]  # nothing shows: some event must do
    epsilons = epsilons[: len(places)]
    cells = np.array([chains[chain].cells[k] for chain, k in places])
    n = len(places)
    means, errors = (
        part.reshape(n, n)
        for part in expected_differences(
            np.repeat(cells, n, axis=0) * planned + 0.5, np.tile(np.exp(epsilons), n), threshold
        )
    )
    shown = means - errors  # by the event chosen for ε_i, at ε_j
    own, error = np.diagonal(shown), np.diagonal(errors)
    less = np.maximum(OF_ERROR * error, OF_DELTA * np.diagonal(means))
    nodes = _greedy(shown >= own - less)
    while len(nodes) > MOST_EVENTS:
        less = 2 * less
        nodes = _greedy(shown >= own - less)
    relative = error[nodes] / np.maximum(np.diagonal(means)[nodes], 1e-12)
    shares = np.clip(relative, LEAST_ERROR, MOST_ERROR)
    shares = alpha * shares / shares.sum()
    lines = tuple(
        PlannedLine(
            slope=float(np.exp(epsilons[i])),
            alpha=float(share),
            estimate=_estimate(cells[i]),
            swapped=chains[places[i][0]].swapped,
        )
        for i, share in zip(nodes, shares, strict=True)
    )
    return tuple(chains[chain].event(k) for chain, k in (places[i] for i in nodes)), lines


def _best_places(chains: Sequence[Chain], epsilons: Floats, planned: int, threshold: float) -> list[tuple[int, int]]:
    """For each ε, until nothing shows any more, the chain and the number of the event that shows most."""
    tables = []
    for chain in chains:
        k, n = len(chain.cells), len(epsilons)
        means, errors = expected_differences(
            np.repeat(chain.cells, n, axis=0) * planned + 0.5, np.tile(np.exp(epsilons), k), threshold
        )
        tables.append((means - errors).reshape(k, n))
    best = np.array([table.max(axis=0) for table in tables])  # (chains, ε)
    found = []
    for j in range(len(epsilons)):
        place = int(best[:, j].argmax())
        if best[place, j] <= 0:
            break
        column = tables[place][:, j]
        found.append((place, _peak(column) if chains[place].nested else int(column.argmax())))
    return found


def _peak(values: Floats) -> int:
    """The place of the maximum of a smooth curve that is known with errors: the vertex of a parabola near it."""
    top = int(values.argmax())
    near = values >= NEARLY * values[top]
    first, last = top, top
    while first > 0 and near[first - 1]:
        first -= 1
    while last + 1 < len(values) and near[last + 1]:
        last += 1
    if last - first + 1 < FEWEST:
        return top
    square, slope, _ = np.polyfit(np.arange(first, last + 1) - top, values[first : last + 1], 2)
    if square >= 0:
        return top
    return int(np.clip(round(top - slope / (2 * square)), first, last))


def _greedy(enough: NDArray[np.bool_]) -> list[int]:
    """Few rows of a square table with which every column is covered, its diagonal being true; from the left."""
    n, start, found = len(enough), 0, []
    while start < n:
        reach = np.array([_run(enough[i, start:]) if i >= start else 0 for i in range(n)])
        found.append(int(reach.argmax()))
        start += max(int(reach.max()), 1)
    return found


def _run(flags: NDArray[np.bool_]) -> int:
    """How many flags are true before the first false one."""
    return len(flags) if flags.all() else int(np.argmin(flags))


def _estimate(cells: Floats) -> Estimate:
    n10, n11, n01, _ = (float(cell) for cell in cells)
    return Estimate(p=min(n10 + n11, 1.0), q=min(n01 + n11, 1.0), both=min(n11, n10 + n11, n01 + n11))
