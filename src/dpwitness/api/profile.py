"""A lower band of the whole privacy profile of a mechanism, and the claims that lie outside it.

The pair comes from `search.pairs`. Learned events, and all half-lines of their statistics, are counted on search runs
that did not propose them. A few events are chosen so that one has nearly the largest δ at every ε. Only the confirm
runs, which count the chosen events, are evidence.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from typing_extensions import Unpack

from dpwitness.api.check import adjacency_note
from dpwitness.api.door import public
from dpwitness.api.loop import confirm_events, result_fields, uninterrupted, witness_of, work_on
from dpwitness.arrays import Booleans, Floats
from dpwitness.candidate import Candidate
from dpwitness.errors import MechanismTimeout
from dpwitness.events import Event, statistic_of
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
from dpwitness.search.cuts import CutCells
from dpwitness.search.learners import RatedEvent, learn
from dpwitness.search.objectives import TEST_EPSILONS, DeltaAt
from dpwitness.search.pairs import PromisingPair, proposed, search, search_budget
from dpwitness.search.samples import Sample, sample_of

#: The largest number of paired search runs for the pair, unless the user gives the number.
MOST_PROFILE_SEARCH_RUNS: Final = 4_000_000
#: The quantiles at which a statistic is cut, evenly spaced in log-odds.
CUT_SHARES: Final = 1 / (1 + np.exp(-np.linspace(-14.0, 14.0, 129)))
#: The largest number of statistics whose half-lines are counted.
MOST_STATISTICS: Final = 4
#: The places of the cells (1,0), (1,1), (0,1), (0,0) with D and D′ exchanged.
EXCHANGED_CELLS: Final = (2, 1, 0, 3)


def counted_events(
    runner: Runner, pair: Pair, sample: Sample, learned: Sequence[RatedEvent], runs: int
) -> tuple[list[Event], Floats, int]:
    """The learned events, or all half-lines of their statistics; the shares of each event's cells; the number of runs.

    The shares of the four cells, of shape (events, 4), are counted in `runs` fresh search runs, fewer at the deadline,
    in the direction of the pair. If no run is done in time, they come from the learned events' estimates.
    """
    cuts: dict[Hashable, CutCells] = {}
    others: dict[str, Event] = {}
    for event in (found.event for found in learned):
        statistic = statistic_of(event)
        if statistic is not None and not statistic.outside and statistic.between is not None:
            values = statistic.value(sample.outcomes)
            values = np.sort(values[np.isfinite(values)])
            if len(values) and statistic.key not in cuts and len(cuts) < MOST_STATISTICS:
                spots = values[np.minimum((CUT_SHARES * len(values)).astype(np.int64), len(values) - 1)]
                cuts[statistic.key] = CutCells(event, statistic, np.unique(spots))
        if statistic is None or statistic.outside or statistic.key not in cuts:
            others[str(event.to_json())] = event
    try:
        tallies = runner.tallies(pair, [*cuts.values(), *others.values()], runs, Role.ESTIMATE, partial_too=True)
    except MechanismTimeout:
        shares = [cell_probabilities(one.estimate.p, one.estimate.q, one.estimate.both) for one in learned]
        swapped = np.array([[one.swapped] for one in learned])
        cells = np.where(swapped, np.array(shares)[:, EXCHANGED_CELLS], shares)
        return [one.event for one in learned], cells, max(sample.test_runs, 1)
    nested = [one.four_cells(tally) for one, tally in zip(cuts.values(), tallies, strict=False)]
    alone = [[one.four] for one in tallies[len(cuts) :]]
    events = [event for one in cuts.values() for event in one.half_lines()]
    return [*events, *others.values()], np.concatenate([*nested, *alone]) / tallies[0].runs, tallies[0].runs


#: The step between the ε, in nats, for which events are chosen.
CHOICE_EPSILON_STEP: Final = 0.02
#: The largest ε for which events are chosen, also where log(runs) is larger.
MOST_EPSILON: Final = 20.0
#: The allowed loss of δ against the best event at an ε, as a share of the best event's error, which is the expected
#: distance between its δ and the lower bound of this δ.
ALLOWED_ERROR: Final = 0.05
#: The allowed loss of δ against the best event at an ε, as a share of the δ of the best event.
ALLOWED_DELTA: Final = 5e-4
#: The least and the largest relative error (error divided by δ) to which an event's share of α is proportional.
RELATIVE_ERRORS: Final = (0.002, 0.05)
#: The largest number of events of a band.
MOST_BAND_EVENTS: Final = 96
#: The logarithm of the number of events of a band, a guess before they are chosen.
LOG_EVENTS: Final = math.log(30)
#: The largest number of search runs that count events before the choice: a choice for 10¹⁰ confirm runs needs no more.
MOST_COUNTED_RUNS: Final = 100_000_000
#: The largest number of pairs of an attack that are sampled beside the pairs of the search.
MOST_ATTACKED_PAIRS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileEvents:
    """A pair, events, the planned line of each event in the band, and the paired search runs spent."""

    pair: Pair
    events: list[Event]
    lines: tuple[PlannedLine, ...]
    search_runs: int


def find_profile_events(problem: Problem, runner: Runner, *, alpha: float, planned: int, budget: int) -> ProfileEvents:
    """The best pair and its events for `planned` confirm runs. Raises the errors of `search`.

    `budget`: paired search runs for the pair; as many runs again count the events, for compiled code at least a quarter
    of the planned runs.
    """
    searching = runner.searching()
    objective = DeltaAt(epsilons=TEST_EPSILONS, planned=planned, log_threshold=math.log(1 / alpha) + LOG_EVENTS)
    promising, spent = search(problem, searching, objective, budget)
    attacked, more = _of_attack(problem, searching, planned, max(budget // 4, 16))
    best = _best_pair(searching, [*attacked, *promising], objective)
    learned = _learned(searching, best, objective)
    again = max(budget, min(planned // 4, MOST_COUNTED_RUNS)) if problem.mechanism.threads else max(budget // 2, 16)
    events, cells, counted = counted_events(searching, best.pair, best.sample, learned, again)
    events, lines = _covering(events, cells, planned, counted, alpha)
    return ProfileEvents(pair=best.pair, events=events, lines=lines, search_runs=spent + more + counted)


def _of_attack(problem: Problem, runner: Runner, planned: int, runs: int) -> tuple[list[PromisingPair], int]:
    """Samples of the pairs that a target's attack proposes, and the runs spent."""
    found, spent = [], 0
    pairs = list({candidate.pair.key: candidate.pair for candidate in proposed(problem, planned)}.values())
    for number, pair in enumerate(pairs[:MOST_ATTACKED_PAIRS]):
        try:
            x, y = runner.sample(pair, min(runs, 1 << 18), Role.COMPARISON, number)
        except MechanismTimeout:
            break
        found.append(PromisingPair(pair=pair, sample=sample_of(x, y)))
        spent += len(x)
    return found, spent


def _best_pair(runner: Runner, promising: Sequence[PromisingPair], objective: DeltaAt) -> PromisingPair:
    """The pair with the event of the largest value over all ε."""
    if len(promising) == 1:
        return promising[0]
    results = runner.each([partial(learn, one.sample, objective, most=1) for one in promising])
    # A pair whose events were not learned before the deadline comes last.
    values = [-math.inf if found is None else found[0].value for found in results]
    return promising[int(np.argmax(values)) if values else 0]


def _learned(runner: Runner, one: PromisingPair, objective: DeltaAt) -> list[RatedEvent]:
    """Learned events of a pair, for each of several ε."""
    each = [replace(objective, epsilons=(epsilon,)) for epsilon in objective.epsilons]
    results = replace(runner, deadline=None).each([partial(learn, one.sample, alone, most=4) for alone in each])
    return [event for found in results for event in found or ()]


def _covering(
    events: Sequence[Event], cells: Floats, planned: int, counted: int, alpha: float
) -> tuple[list[Event], tuple[PlannedLine, ...]]:
    """A few events, one of which is nearly the best at each ε, and the planned line of each event.

    `cells`: the shares of the four cells of each event in `counted` search runs; shape (events, 4).
    """
    epsilons = np.arange(0.0, min(math.log(max(planned, 2)), MOST_EPSILON) + CHOICE_EPSILON_STEP, CHOICE_EPSILON_STEP)
    threshold = math.log(1 / alpha) + LOG_EVENTS
    # The estimates have an error too, by which some of many events look good.
    threshold = (math.sqrt(threshold) + math.sqrt(planned / counted / 2)) ** 2

    def differences(cells: Floats, epsilons: Floats) -> Floats:
        """The mean and the error of p − e^ε·q, for each event and ε; shape (2, events, ε)."""
        expected = cells * planned + 0.5
        slopes = (np.full(len(cells), slope) for slope in np.exp(epsilons).tolist())
        return np.stack([expected_differences(expected, slope, threshold) for slope in slopes], axis=-1)

    cells = np.concatenate([cells, cells[:, EXCHANGED_CELLS]])  # of both directions
    means, errors = differences(cells, epsilons)
    best = (means - errors).argmax(axis=0)
    showing = int(np.logical_and.accumulate((means - errors).max(axis=0) > 0).sum())
    if not showing:  # no event shows δ > 0, so the band has the best event at ε = 0
        best, showing = means[:, :1].argmax(axis=0), 1
    best, epsilons = best[:showing], epsilons[:showing]
    cells = cells[best]
    means, errors = differences(cells, epsilons)
    shown = means - errors  # by the event chosen for ε_i, at ε_j
    own, error = np.diagonal(shown), np.diagonal(errors)
    less = np.maximum(ALLOWED_ERROR * error, ALLOWED_DELTA * np.diagonal(means))
    nodes = _greedy(shown >= own - less)
    while len(nodes) > MOST_BAND_EVENTS:
        less = 2 * less
        nodes = _greedy(shown >= own - less)
    relative = error[nodes] / np.maximum(np.diagonal(means)[nodes], 1e-12)
    shares = np.clip(relative, *RELATIVE_ERRORS)
    shares = alpha * shares / shares.sum()
    lines = tuple(
        PlannedLine(
            slope=float(np.exp(epsilons[i])),
            alpha=float(share),
            estimate=_estimate(cells[i]),
            swapped=bool(best[i] >= len(events)),
        )
        for i, share in zip(nodes, shares, strict=True)
    )
    return [events[best[i] % len(events)] for i in nodes], lines


def _greedy(enough: Booleans) -> list[int]:
    """Few rows of a square table, whose diagonal is true, that cover every column; chosen from the left."""
    start, found = 0, []
    while start < len(enough):
        reach = np.logical_and.accumulate(enough[start:, start:], axis=1).sum(axis=1)  # columns in a row
        found.append(start + int(reach.argmax()))
        start += max(int(reach.max()), 1)  # a NaN covers no column
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
    the band is nowhere above the true curve of that pair, the larger δ of both directions at every ε. The mechanism's
    own curve is the largest over all pairs, so the band is nowhere above that curve either, and may lie far below it.
    Valid at any stopping time; the inequalities are in `evidence.profile_band`.

    `epsilon` is the mechanism's own parameter. A `claim` of any kind that lies outside the band is refuted, and the
    result has a witness; without `claim` the result is the band alone. Raises the errors of `check`.
    """
    statement, effort = Statement.of(mechanism, {**options, "claim_needed": False}), Effort.of(options)
    judged = options["claim"] is not None
    return work_on(statement, effort, lambda problem, runner: _profile(problem, runner, effort, judged=judged))


def _profile(problem: Problem, runner: Runner, effort: Effort, *, judged: bool) -> Profile:
    """Search, then confirm all events at once. `judged`: whether the problem's claim is judged by the band."""
    notes = before_search.make_required_checks(problem, runner)
    runs = effort.runs
    budget = search_budget(problem, runner, effort.search_runs, min(max(runs // 4, 100_000), MOST_PROFILE_SEARCH_RUNS))
    planned = runs if problem.mechanism.threads else min(runs, 4 * budget)
    found = find_profile_events(problem, runner, alpha=effort.alpha, planned=planned, budget=budget)
    done = confirm_events(runner, found.pair, found.events, runs)
    counts = [total.swapped() if line.swapped else total for total, line in zip(done.totals, found.lines, strict=True)]
    band = band_of(found.lines, counts, planned)
    witness = _witness(problem, runner, effort, found, (band, counts)) if judged else None
    against = band.delta(0.0) > 0 or witness is not None
    # The outermost and the innermost of nested events, and the event of the witness.
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
    """The witness of the event with the strongest evidence that the claim is outside the band; None if it is inside."""
    claim, (band, counts) = problem.claim, shown
    outside = [k for k, line in enumerate(band.lines) if line.outside(claim) > 0]
    if not outside:
        return None
    k = max(outside, key=lambda k: log_e_value(counts[k], claim, found.lines[k].estimate))
    line = found.lines[k]
    pair = found.pair.swapped() if line.swapped else found.pair
    candidate = Candidate(pair=pair, event=found.events[k], estimate=line.estimate)
    return witness_of(problem, runner, effort.alpha, candidate, counts[k])
