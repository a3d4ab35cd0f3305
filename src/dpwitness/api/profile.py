"""A lower band of the whole privacy profile of a mechanism, and the claims that lie outside it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dpwitness.api.check import adjacency_note
from dpwitness.api.door import public
from dpwitness.api.loop import (
    confirmed,
    made_whole,
    prepared,
    require_agreement,
    require_sound_pass,
    unless_interrupted,
    witness_of,
)
from dpwitness.candidate import Candidate
from dpwitness.checks import seconds
from dpwitness.claims import Claim
from dpwitness.evidence import Counts, log_e_value
from dpwitness.evidence.profile_band import ProfileBand, band_of
from dpwitness.health import before_search
from dpwitness.health.dependence import Shards
from dpwitness.health.refutation import check_refutation
from dpwitness.mechanisms.claims import Accountant
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.python import Outcome
from dpwitness.neighbours import Relation
from dpwitness.problem import Effort, Problem, Statement
from dpwitness.results.profile import BandEvent, Profile
from dpwitness.results.witness import Witness
from dpwitness.runs import Progress, Runner
from dpwitness.search.pairs import search_budget
from dpwitness.search.profile_events import ProfileEvents, find_profile_events
from dpwitness.values import shown

PROFILE_RUNS: Final = 20_000_000
MAX_TIME: Final = 600.0
MOST_SEARCH_RUNS: Final = 4_000_000


@public
def profile(
    mechanism: Callable[..., Any] | Mechanism | str | None = None,
    *,
    make: Callable[[], Any] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    claim: Claim | Accountant | float | str | None = None,
    d_in: Any = None,
    alpha: float = 0.001,
    runs: int = PROFILE_RUNS,
    neighbours: Relation | Sequence[Any] | None = None,
    data: Any = None,
    parameters: Mapping[str, Any] | None = None,
    outcome: Outcome | None = None,
    errors: str = "raise",
    max_time: float | str = MAX_TIME,
    search_runs: int | None = None,
    seed: int | None = None,
    workers: int | None = None,
    cluster: Any = None,
    reference: str | None = None,
    progress: Progress | None = None,
) -> Profile:
    """A lower band of the privacy profile δ(ε) and of the power of tests, for all ε at once.

    δ(ε) = sup over events S of P[M(D) ∈ S] − e^ε·P[M(D′) ∈ S], the hockey-stick divergence at ε (nats): the least δ
    with which M is (ε, δ)-differentially private on the pair (Balle & Wang 2018). Searches for a pair and for an event
    for every ε, then counts all of them on the same `runs` fresh paired runs. With probability at least 1 − alpha the
    band lies nowhere above the true curve of that pair, in its better direction, and so nowhere above the mechanism's,
    which is the largest over all pairs: what lies above the band is not excluded. Valid at any stopping time; which
    inequalities, see `evidence.profile_band`.

    `epsilon` is the mechanism's own parameter; one without it, which carries no claim either, needs `claim`. A `claim`
    of any kind that lies outside the band is refuted, and the result has a witness; where `epsilon` alone is given the
    curve alone is found. Other parameters and errors as in `check`.
    """
    statement = Statement(
        mechanism=mechanism, make=make, epsilon=epsilon, delta=delta, claim=claim, d_in=d_in, neighbours=neighbours,
        data=data, parameters=parameters, outcome=outcome, errors=errors, reference=reference,
    )  # fmt: skip
    effort = Effort(
        alpha=alpha, max_runs=runs, max_time=seconds("max_time", max_time),
        search_runs=search_runs, seed=seed, workers=workers, cluster=cluster, progress=progress,
    )  # fmt: skip
    return prepared(
        statement, effort, lambda problem, runner: _profile(problem, runner, effort, judged=claim is not None)
    )


def _profile(problem: Problem, runner: Runner, effort: Effort, *, judged: bool) -> Profile:
    """Search, then confirm all events at once. `judged`: the problem's claim is one to be judged by the band."""
    said = before_search.required(problem, runner)
    runs = effort.max_runs
    budget = search_budget(problem, runner, effort.search_runs, min(max(runs // 4, 100_000), MOST_SEARCH_RUNS))
    planned = runs if problem.mechanism.threads else min(runs, 4 * budget)
    found = find_profile_events(problem, runner, alpha=effort.alpha, planned=planned, budget=budget)
    done, shards = confirmed(runner, found.pair, found.events, runs)
    counts = [total.swapped() if line.swapped else total for total, line in zip(done.totals, found.lines, strict=True)]
    band = band_of(found.lines, counts, planned)
    witness = _witness(problem, runner, effort, found, (band, counts)) if judged else None
    against = band.delta(0.0) > 0 or witness is not None
    if not against:
        done.require_runs()
    done, asked = unless_interrupted(done, runner, lambda: _asked(runner, found, shards, witness, against=against))
    return made_whole(
        lambda: Profile(
            mechanism=problem.mechanism.name,
            parameters={name: shown(value) for name, value in problem.mechanism.signature.parameters.items()},
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
            reproducible=problem.mechanism.reproducible,
            seconds=runner.seconds,
            notes=(*said, *asked, *adjacency_note(problem, found.pair)),
        )
    )


def _witness(
    problem: Problem, runner: Runner, effort: Effort, found: ProfileEvents, shown: tuple[ProfileBand, Sequence[Counts]]
) -> Witness | None:
    """The event that speaks most clearly among those by which the claim lies outside the band; None if none does."""
    claim, (band, counts) = problem.claim, shown
    outside = [k for k, line in enumerate(band.lines) if line.outside(claim) > 0]
    if not outside:
        return None
    k = max(outside, key=lambda k: log_e_value(counts[k], claim, found.lines[k].estimate))
    line = found.lines[k]
    pair = found.pair.swapped() if line.swapped else found.pair
    candidate = Candidate(pair=pair, event=found.events[k], estimate=line.estimate)
    return witness_of(problem, runner, effort.alpha, candidate, counts[k])


def _asked(
    runner: Runner, found: ProfileEvents, shards: Shards, witness: Witness | None, *, against: bool
) -> tuple[str, ...]:
    """Ask what has to be asked of counts that speak against a mechanism, or of those that show nothing; notes."""
    if not against:
        return require_sound_pass(runner, found.pair, found.events, shards)
    # Of nested events the outermost and the innermost, and the one that is to be believed most.
    asked = [found.events[0], found.events[-1], *([] if witness is None else [witness.event])]
    for event in {str(event.to_json()): event for event in asked}.values():
        require_agreement(runner, found.pair, event)
    return check_refutation(runner, found.pair, found.events, shards)
