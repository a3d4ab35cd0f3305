"""The candidate of one problem: what its attack proposes and what the search finds, the best of both."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from dpwitness.attacks.registry import attack_named
from dpwitness.candidate import Candidate, Estimate
from dpwitness.errors import MechanismTimeout
from dpwitness.neighbours import Pair, adjacent, require_adjacent
from dpwitness.problem import Problem, plain_function
from dpwitness.runs import Role, Runner
from dpwitness.search.halving import Finalist, search
from dpwitness.search.learners import RatedEvent, learn
from dpwitness.search.objectives import Objective
from dpwitness.search.ranking import Entry, playoff
from dpwitness.targets import target_of


def find(problem: Problem, runner: Runner, objective: Objective, *, planned: int, budget: int) -> tuple[Candidate, int]:
    """The most promising candidate of attacks and search, D first, and the paired search runs spent.

    `planned`: the paired confirm runs that will follow; `budget`: paired search runs. Raises as `search`.
    """
    runner = runner.searching()
    entries, spent = [], 0
    for candidate in proposed(problem, planned):
        found = RatedEvent(event=candidate.event, swapped=False, estimate=Estimate(p=0.0, q=0.0), value=0.0)
        entries.append(Entry(candidate.pair, found))
    if entries:  # at least two, so that all are counted
        best, spent = playoff(runner, [*entries, entries[0]], objective, budget // 4, Role.ATTACK)
        if best.found.lower_value >= objective.stop_value:
            return _candidate(best), spent
        entries = [best]
    try:
        finalists, searched = search(problem, runner, objective, budget)
    except MechanismTimeout:
        if not entries:
            raise
        finalists, searched = [], 0  # too slow to search: what the attack proposes can still be confirmed
    spent += searched
    thorough = math.isinf(objective.stop_value)
    certain = [Entry(arm.pair, arm.certain, place) for place, arm in enumerate(finalists) if arm.certain]
    entries += certain + learned(runner, finalists, objective, 6 if thorough else 2)  # a bound tells many apart
    best = certain[0] if certain else max(entries, key=_rank)
    if len(entries) > 1 and (certain or best.found.lower_value < objective.stop_value):
        cheap = thorough and problem.mechanism.threads  # slow code: the budget is all that fits
        share = budget // 5 if certain else max(budget, planned // 2 if cheap else 0)
        try:
            best, more = playoff(runner, entries, objective, share)
        except MechanismTimeout:
            more = 0  # it only refines: the best of the search stays, and half of the time is left to confirm it
        spent += more
    return _candidate(best), spent


def learned(runner: Runner, finalists: Sequence[Finalist], objective: Objective, most: int) -> list[Entry]:
    """The events that the finalists' outcomes show, at most so many of each; each finalist on a thread."""
    tasks = (partial(learn, arm.sample, objective, most=most) for arm in finalists)
    results = replace(runner, deadline=None).each(tasks)
    return [
        Entry(arm.pair, found, place)
        for place, (arm, events) in enumerate(zip(finalists, results, strict=True))
        for found in events or ()
    ]


def reestimated(runner: Runner, pair: Pair, pool: Sequence[RatedEvent], runs: int) -> list[RatedEvent]:
    """The same events with estimates from search runs that none of them was chosen by."""
    return [
        replace(
            found,
            estimate=runner.tally(
                pair.swapped() if found.swapped else pair, found.event, runs, Role.ESTIMATE, number
            ).estimate,
        )
        for number, found in enumerate(pool)
    ]


def proposed(problem: Problem, planned: int) -> list[Candidate]:
    """What the attack that the user names proposes, else the target's own, which says nothing of other relations."""
    if problem.attack is not None:
        return problem.proposals(problem.attack, planned)
    own = target_of(plain_function(problem.function))
    if own is None or own.attack is None or not problem.own_relation:
        return []
    attack = attack_named(own.attack)
    found = list(attack(dict(problem.mechanism.signature.parameters), problem.data, problem.claim, planned))
    for candidate in found:
        # About given data other questions may be asked, too.
        if not adjacent(problem.relation, candidate.pair, problem.data):
            require_adjacent(problem.relation, candidate.pair, what="the attack's candidate")
    return found


def _rank(entry: Entry) -> tuple[bool, bool, float]:
    """By what an entry promises; where that is nothing, an event that some runs are in and some are not comes first."""
    found = entry.found
    return found.value > 0, found.telling, found.value


def _candidate(entry: Entry) -> Candidate:
    return Candidate(pair=entry.directed, event=entry.found.event, estimate=entry.found.estimate)
