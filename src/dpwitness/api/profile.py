"""A lower band of the whole privacy profile of a mechanism, and the claims that lie outside it."""

from collections.abc import Sequence
from typing import Final

from typing_extensions import Unpack

from dpwitness.api.check import adjacency_note
from dpwitness.api.door import public
from dpwitness.api.loop import confirm_events, uninterrupted, witness_of, work_on
from dpwitness.candidate import Candidate
from dpwitness.evidence import Counts, log_e_value
from dpwitness.evidence.profile_band import ProfileBand, band_of
from dpwitness.health import before_search
from dpwitness.options import AnyMechanism, BoundOptions
from dpwitness.problem import Effort, Problem, Statement
from dpwitness.results.profile import BandEvent, Profile
from dpwitness.results.witness import Witness
from dpwitness.runs import Runner
from dpwitness.search.pairs import search_budget
from dpwitness.search.profile_events import ProfileEvents, find_profile_events
from dpwitness.values import shown

MOST_SEARCH_RUNS: Final = 4_000_000


@public
def profile(mechanism: AnyMechanism = None, **options: Unpack[BoundOptions]) -> Profile:
    """A lower band of the privacy profile δ(ε) and of the power of tests, for all ε at once.

    δ(ε) = sup over events S of P[M(D) ∈ S] − e^ε·P[M(D′) ∈ S], the hockey-stick divergence at ε (nats): the least δ
    with which M is (ε, δ)-differentially private on the pair (Balle & Wang 2018). Searches for a pair and for an event
    for every ε, then counts all of them on the same `runs` fresh paired runs. With probability at least 1 − alpha the
    band is nowhere above the true curve of that pair, in its better direction. The mechanism's own curve is the largest
    over all pairs, so the band is nowhere above that either; it may lie far below it. Valid at any stopping time; the
    inequalities are in `evidence.profile_band`.

    `epsilon` is the mechanism's own parameter; a mechanism without it, and without a claim of its own, needs `claim`. A
    `claim` of any kind outside the band is refuted, and the result has a witness; without `claim` the result is the
    band alone. Errors as in `check`.
    """
    statement, effort = Statement.of(mechanism, options), Effort.of(options)
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
    done = done.examine(against=against, compared={str(event.to_json()): event for event in compared}.values())
    return uninterrupted(
        lambda: Profile(
            mechanism=problem.mechanism.name,
            parameters={name: shown(value) for name, value in problem.mechanism.signature.given.items()},
            pair=found.pair,
            alpha=effort.alpha,
            events=tuple(
                BandEvent(event=event, description=problem.described(event), counts=count, line=line)
                for event, count, line in zip(found.events, counts, band.lines, strict=True)
            ),
            claim=problem.claim if judged else None,
            witness=witness,
            search_runs=found.search_runs,
            ended=done.ended,
            seed=runner.seed,
            reproducible=problem.mechanism.repeatable,
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
