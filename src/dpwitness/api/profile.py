"""A lower band of the whole privacy profile of a mechanism, and the claims that lie outside it.

The pair is that of `search.pairs`, the events are those with nearly the largest δ at some ε: learned ones, and the
nested ones that they belong to, are counted on search runs that did not propose them, and a few that cover all ε are
chosen. That is never evidence: confirm runs count them once they are fixed.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Unpack

from dpwitness.api.check import adjacency_note
from dpwitness.api.door import public
from dpwitness.api.loop import confirm_events, result_fields, uninterrupted, witness_of, work_on
from dpwitness.candidate import Candidate
from dpwitness.errors import MechanismTimeout
from dpwitness.events import Event, Thresholds, cells_of, thresholds_of
from dpwitness.events.counting import cells_between
from dpwitness.evidence import Counts, Estimate, log_e_value
from dpwitness.evidence.counts import cell_probabilities
from dpwitness.evidence.profile_band import PlannedLine, ProfileBand, band_of, expected_differences
from dpwitness.health import before_search
from dpwitness.neighbours import Pair
from dpwitness.options import AnyMechanism, BoundOptions
from dpwitness.problem import Effort, Problem, Statement
from dpwitness.results.profile import BandEvent, Profile
from dpwitness.results.witness import Witness
from dpwitness.runs import Role, Runner
from dpwitness.search.learners import RatedEvent, learn
from dpwitness.search.objectives import SEVERAL, DeltaAt
from dpwitness.search.pairs import PromisingPair, proposed, search, search_budget
from dpwitness.search.samples import Sample, sample_of

Floats = NDArray[np.float64]
Rows = NDArray[np.float64]

MOST_SEARCH_RUNS: Final = 4_000_000
#: Numbers that a part of the runs may hold in memory.
ROOM: Final = 1 << 21
#: Quantiles at which nested events are cut, evenly spaced in log-odds.
SHARES: Final = 1 / (1 + np.exp(-np.linspace(-14.0, 14.0, 401)))
#: How many families of nested events are looked at.
FAMILIES: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """k events, and the share of the runs in each cell (1,0), (1,1), (0,1), (0,0); shape (k, 4).

    `nested`: each lies in the one before, at the next of many cuts, so that neighbours differ by little.
    """

    event: Callable[[int], Event]
    cells: Floats
    nested: bool
    swapped: bool = False

    def turned(self) -> "Chain":
        """The same events with D and D′ exchanged."""
        return Chain(self.event, self.cells[:, [2, 1, 0, 3]], self.nested, not self.swapped)


def counted_chains(
    runner: Runner, pair: Pair, sample: Sample, learned: Sequence[RatedEvent], runs: int
) -> tuple[list[Chain], int]:
    """The learned events, and all that those of them which are nested belong to, counted on fresh search runs.

    Returns them in the direction of the pair, and how many runs they were counted on: `runs`, or as many as there was
    time for; where that was none, the learned events alone with the estimates that they have.
    """
    events = list({str(found.event.to_json()): found.event for found in learned}.values())
    families = _families(events, sample.outcomes)
    totals = [np.zeros((4, len(events)), np.int64), *(np.zeros((4, len(cuts)), np.int64) for _, cuts in families)]
    done = 0
    for counted, cells in _parts(runner, pair, runs, lambda x, y: _cells(events, families, x, y)):
        done += counted
        for total, part in zip(totals, cells, strict=True):
            total += part
    if not done:
        return [_of_estimates(learned)], max(sample.test_runs, 1)
    chains = [Chain(events.__getitem__, totals[0].T / done, nested=False)]
    for (family, cuts), total in zip(families, totals[1:], strict=True):
        chains.append(Chain(partial(_above, family, cuts), total.T / done, nested=True))
    return chains, done


def _cells(
    events: Sequence[Event], families: Sequence[tuple[Thresholds[Event], Floats]], x: Rows, y: Rows
) -> list[NDArray[np.int64]]:
    """The four cells of every event, and of every cut of each family, in paired runs."""
    nested = [_nested_cells(family.value(x), family.value(y), cuts) for family, cuts in families]
    return [cells_of(events, x, y), *nested]


def _above(family: Thresholds[Event], cuts: Floats, k: int) -> Event:
    event: Event = family.above(float(cuts[k]))
    return event


def _families(events: Sequence[Event], outcomes: Rows) -> list[tuple[Thresholds[Event], Floats]]:
    """The families of nested events that any of the events belongs to, and their cuts."""
    found: dict[str, tuple[Thresholds[Event], Floats]] = {}
    for event in events:
        for family in thresholds_of(event):
            key = str(family.above(1.0).to_json())
            if key in found or len(found) == FAMILIES:
                continue
            values = family.value(outcomes)
            values = np.sort(values[np.isfinite(values)])
            if len(values):
                spots = values[np.minimum((SHARES * len(values)).astype(np.int64), len(values) - 1)]
                found[key] = family, np.unique(spots)
    return list(found.values())


def _parts(
    runner: Runner, pair: Pair, runs: int, count: Callable[[Rows, Rows], list[NDArray[np.int64]]]
) -> Iterator[tuple[int, list[NDArray[np.int64]]]]:
    """What is counted of fresh paired search runs, part by part, until they are done or the time is over.

    Each part comes with how many runs it holds. Parts of compiled code are drawn and counted beside each other.
    """
    each = max(min(ROOM // (2 * max(runner.mechanism.cost.width, 1)), runs), 1)
    spread = runner.mechanism.threads and runner.pool is None
    drawing = runner.alone() if spread else runner

    def part(number: int) -> tuple[int, list[NDArray[np.int64]]]:
        asked = min(each, runs - number * each)
        try:
            x, y = drawing.sample(pair, asked, Role.ESTIMATE, number, partial_too=True)
        except MechanismTimeout:
            return 0, []
        return len(x), count(x, y)

    done, tasks = 0, (partial(part, number) for number in range(-(-runs // each)))
    results = runner.each(tasks, workers=runner.workers) if spread else (task() for task in tasks)
    for found in results:
        if found is None or not found[0]:
            return
        yield found
        done += found[0]
        runner.report("search", done, runs, "events counted")
        if done < runs and found[0] < each:
            return


def _nested_cells(x: Floats, y: Floats, cuts: Floats) -> NDArray[np.int64]:
    """The four cells of {value ≥ cut} for every cut, ascending; shape (4, k)."""
    a, b = (cells_between(cuts, values, len(cuts)) for values in (x, y))
    hits, others, both = (
        np.bincount(places, minlength=len(cuts) + 1)[::-1].cumsum()[::-1][1:] for places in (a, b, np.minimum(a, b))
    )
    return np.stack([hits - both, both, others - both, len(x) - hits - others + both])


def _of_estimates(learned: Sequence[RatedEvent]) -> Chain:
    """The learned events with the estimates that they have."""
    rates = [(found.estimate.p, found.estimate.q, found.estimate.both) for found in learned]
    cells = np.array([cell_probabilities(*rate) for rate in rates])
    swapped = np.array([found.swapped for found in learned])
    return Chain(lambda k: learned[k].event, np.where(swapped[:, None], cells[:, [2, 1, 0, 3]], cells), nested=False)


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
    promising, spent = search(problem, searching, objective, budget)
    attacked, more = _of_attack(problem, searching, planned, max(budget // 4, 16))
    best = _best_pair(searching, [*attacked, *promising], objective)
    learned = _learned(searching, best, objective)
    again = max(budget, min(planned // 4, MOST_COUNTED)) if problem.mechanism.threads else max(budget // 2, 16)
    chains, counted = counted_chains(searching, best.pair, best.sample, learned, again)
    directed = [*chains, *(chain.turned() for chain in chains)]
    events, lines = _covering(directed, planned, counted, alpha)
    return ProfileEvents(pair=best.pair, events=events, lines=lines, search_runs=spent + more + counted)


def _of_attack(problem: Problem, runner: Runner, planned: int, runs: int) -> tuple[list[PromisingPair], int]:
    """Samples of the pairs that a target's attack proposes, and the runs spent."""
    found, spent = [], 0
    pairs = list({candidate.pair.key: candidate.pair for candidate in proposed(problem, planned)}.values())
    for number, pair in enumerate(pairs[:PROPOSED]):
        try:
            x, y = runner.sample(pair, min(runs, 1 << 18), Role.COMPARISON, number)
        except MechanismTimeout:
            break
        found.append(PromisingPair(pair=pair, sample=sample_of(x, y)))
        spent += len(x)
    return found, spent


def _best_pair(runner: Runner, promising: Sequence[PromisingPair], objective: DeltaAt) -> PromisingPair:
    """The pair with the event that shows most over all ε."""
    if len(promising) == 1:
        return promising[0]
    results = runner.each([partial(learn, one.sample, objective, most=1) for one in promising])
    # At the deadline those that were not looked at yet count as nothing.
    values = [-math.inf if found is None else found[0].value for found in results]
    return promising[int(np.argmax(values)) if values else 0]


def _learned(runner: Runner, one: PromisingPair, objective: DeltaAt) -> list[RatedEvent]:
    """Events of a pair for several ε."""
    each = [replace(objective, epsilons=(epsilon,)) for epsilon in objective.epsilons]
    results = replace(runner, deadline=None).each([partial(learn, one.sample, alone, most=4) for alone in each])
    return [event for found in results for event in found or ()]


def _covering(
    chains: Sequence[Chain], planned: int, counted: int, alpha: float
) -> tuple[tuple[Event, ...], tuple[PlannedLine, ...]]:
    """Few events of which at every ε one shows nearly as much as the best one, and their parts in the band."""
    epsilons = np.arange(0.0, min(math.log(max(planned, 2)), MOST_EPSILON) + STEP, STEP)
    threshold = math.log(1 / alpha) + LOG_EVENTS
    # The error of the estimates too: of many events some seem good by chance.
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
    start, found = 0, []
    while start < len(enough):
        reach = np.logical_and.accumulate(enough[start:, start:], axis=1).sum(axis=1)  # columns in a row
        found.append(start + int(reach.argmax()))
        start += max(int(reach.max()), 1)  # a difference that is no number covers nothing
    return found


def _estimate(cells: Floats) -> Estimate:
    n10, n11, n01, _ = (float(cell) for cell in cells)
    return Estimate(p=min(n10 + n11, 1.0), q=min(n01 + n11, 1.0), both=min(n11, n10 + n11, n01 + n11))


@public
def profile(mechanism: AnyMechanism = None, **options: Unpack[BoundOptions]) -> Profile:
    """A lower band of the privacy profile δ(ε) and of the power of tests, for all ε at once.

    δ(ε) = sup over events S of P[M(D) ∈ S] − e^ε·P[M(D′) ∈ S], the hockey-stick divergence at ε (nats): the least δ
    with which M is (ε, δ)-differentially private on the pair (Balle & Wang 2018). Searches for a pair and for an event
    for every ε, then counts all these events on the same `runs` fresh paired runs. With probability at least 1 − alpha
    the band is nowhere above the true curve of that pair, in its better direction. The mechanism's own curve is the
    largest over all pairs, so the band is nowhere above that curve either, and may lie far below it. Valid at any
    stopping time; the inequalities are in `evidence.profile_band`.

    `epsilon` is the mechanism's own parameter. A `claim` of any kind that lies outside the band is refuted, and the
    result has a witness; without `claim` the result is the band alone, also of what nothing is claimed of. Errors as in
    `check`.
    """
    statement, effort = Statement.of(mechanism, {**options, "claim_needed": False}), Effort.of(options)
    judged = options["claim"] is not None
    return work_on(statement, effort, lambda problem, runner: _profile(problem, runner, effort, judged=judged))


def _profile(problem: Problem, runner: Runner, effort: Effort, *, judged: bool) -> Profile:
    """Search, then confirm all events at once. `judged`: the problem's claim is one to be judged by the band."""
    notes = before_search.required(problem, runner)
    runs = effort.runs
    budget = search_budget(problem, runner, effort.search_runs, min(max(runs // 4, 100_000), MOST_SEARCH_RUNS))
    planned = runs if problem.mechanism.threads else min(runs, 4 * budget)
    found = find_profile_events(problem, runner, alpha=effort.alpha, planned=planned, budget=budget)
    done = confirm_events(runner, found.pair, found.events, runs)
    counts = [total.swapped() if line.swapped else total for total, line in zip(done.totals, found.lines, strict=True)]
    band = band_of(found.lines, counts, planned)
    witness = _witness(problem, runner, effort, found, (band, counts)) if judged else None
    against = band.delta(0.0) > 0 or witness is not None
    # Of nested events the outermost and the innermost, and the one that is to be believed most.
    compared = [found.events[0], found.events[-1], *([] if witness is None else [witness.event])]
    done = done.examine(
        against=against, largest=witness is None, compared={str(event.to_json()): event for event in compared}.values()
    )
    return uninterrupted(
        lambda: Profile(
            **result_fields(problem.mechanism, done),
            pair=found.pair,
            alpha=effort.alpha,
            events=tuple(
                BandEvent(event=event, description=problem.described(event), counts=count, line=line)
                for event, count, line in zip(found.events, counts, band.lines, strict=True)
            ),
            claim=problem.claim if judged else None,
            witness=witness,
            search_runs=found.search_runs,
            seconds=runner.seconds,
            notes=(*notes, *done.notes, *adjacency_note(problem, found.pair)),
        )
    )


def _witness(
    problem: Problem, runner: Runner, effort: Effort, found: ProfileEvents, shown: tuple[ProfileBand, Sequence[Counts]]
) -> Witness | None:
    """Of the events that put the claim outside the band, the one with the strongest evidence; None if there is none."""
    claim, (band, counts) = problem.claim, shown
    outside = [k for k, line in enumerate(band.lines) if line.outside(claim) > 0]
    if not outside:
        return None
    k = max(outside, key=lambda k: log_e_value(counts[k], claim, found.lines[k].estimate))
    line = found.lines[k]
    pair = found.pair.swapped() if line.swapped else found.pair
    candidate = Candidate(pair=pair, event=found.events[k], estimate=line.estimate)
    return witness_of(problem, runner, effort.alpha, candidate, counts[k])
