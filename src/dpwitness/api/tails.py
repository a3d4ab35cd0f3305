"""Weighted runs of an event in a tail: looked for where the user wants it, and made again by a replay."""

import math
from dataclasses import replace
from typing import Final

from dpwitness.candidate import Candidate
from dpwitness.claims import Claim
from dpwitness.errors import InvalidParameter, InvalidWitness
from dpwitness.events import weighted_of
from dpwitness.mechanisms.tilted import CannotTilt, offset_of, tilted
from dpwitness.problem import Effort, Problem
from dpwitness.runs import Runner
from dpwitness.search.objectives import Objective, value_of
from dpwitness.search.tails import TailAim, weighted_candidate

#: By so many standard errors the promise of plain runs is lowered: it may be the luckiest of thousands of events, and
#: that of weighted runs was estimated anew.
LOWER: Final = 2.0


def require_tails(claim: Claim, effort: Effort) -> None:
    """Raise `InvalidParameter` where tails are to be looked at and the claim is not of (ε, δ)."""
    if effort.tails and claim.curved:
        raise InvalidParameter(
            f"tails=True is for claims of (ε, δ), not for {claim}: leave it out, or test one δ(ε) of it"
        )


def in_tails(
    problem: Problem,
    runner: Runner,
    effort: Effort,
    candidate: Candidate,
    objective: Objective,
    budget: int,
    *,
    of_bound: bool = False,
) -> tuple[Candidate, Runner, int, tuple[str, ...]]:
    """A candidate for weighted runs with the runner that makes them, if `effort` says so and it promises more.

    More than the other one by the objective, nats of evidence a run or a bound, by `budget` search runs. With the
    paired search runs spent, and notes for people.
    """
    if not effort.tails:
        return candidate, runner, 0, ()
    assert candidate.estimate is not None  # of a search
    aim = TailAim(
        claim=problem.claim,
        runs=effort.runs,
        log_threshold=math.log(1 / (effort.alpha if of_bound else effort.level)),
        of_bound=of_bound,
        least=value_of(candidate.estimate, objective, budget, LOWER),
    )
    try:
        found, spent = weighted_candidate(problem, runner.searching(), candidate, aim)
        if found is None:
            return candidate, runner, spent, ("no runs were weighted: the search saw no tail in which they show more",)
        return found, weighted_runner(problem, runner, found), spent, ()
    except CannotTilt as error:
        return candidate, runner, 0, (f"no runs were weighted: {error}",)


def weighted_runner(problem: Problem, runner: Runner, candidate: Candidate) -> Runner:
    """The runner that makes the runs of a candidate: weighted ones where its event is of such.

    Raises `InvalidWitness` where the mechanism's noise cannot be shifted as the event says.
    """
    event = weighted_of(candidate.event)
    if event is None:
        return runner
    try:
        shifted = tilted(problem.mechanism, candidate.pair, event.shifts)
        if offset_of(shifted, problem.mechanism, candidate.pair) != event.offset:
            raise InvalidWitness(
                f"offset={event.offset} of the weighted event is not where this mechanism's outcomes begin"
            )
        return replace(runner, mechanism=shifted)
    except CannotTilt as error:
        raise InvalidWitness(
            f"the event is of weighted runs, which {problem.mechanism.name} cannot make: {error}"
        ) from error
