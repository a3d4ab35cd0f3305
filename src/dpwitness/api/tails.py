"""Weighted runs of an event in a tail (`evidence.bet`): looked for where the user wants it, made again by a replay.

Which noise is shifted, and by how much, comes from search runs and is never evidence. For each value whose tail might
be the event (the entries of an outcome, and what the candidate's own event compares), in both directions of the pair,
the cross-entropy method goes step by step into the tail: half of the runs are shifted as the last step says, and the
next shifts are the means, by weight, of the draws of the runs that come farthest (Rubinstein & Kroese 2004, The
Cross-Entropy Method). In each step all thresholds are rated by what weighted runs would show. Larger samples choose
among the best tails, and fresh runs say what the chosen one is worth.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.candidate import Candidate, Estimate, Stake
from dpwitness.claims import Claim
from dpwitness.errors import InvalidParameter, InvalidWitness, MechanismTimeout
from dpwitness.events import Event, Interval, Thresholds, Weighted, scale_of, thresholds_of, weighted_of
from dpwitness.events.weighted import FARTHEST, LEADING, LEVELS, MOST_DRAWS, SHARE
from dpwitness.evidence.bet import best_stake
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.tilted import CannotTilt, TiltedMechanism, offset_of, tilted
from dpwitness.neighbours import Pair
from dpwitness.problem import Effort, Problem
from dpwitness.roots import halved
from dpwitness.runs import Role, Runner, generator
from dpwitness.search.objectives import Objective, value_of

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


Floats = NDArray[np.float64]

#: Runs in which draws are counted, runs of a step, of a step of all values together, and steps. So many tails of each
#: step are compared by more runs, so many of these by as many as place the bet; numbers of a sample that fit in memory.
COUNTED: Final = 1 << 8
STEP_RUNS: Final = 1 << 13
MOST_STEP_RUNS: Final = 1 << 17
STEPS: Final = 12
FINALISTS: Final = 4
FINAL_RUNS: Final = 1 << 19
ROOM: Final = 1 << 24
#: The share of the runs that come farthest, of which a step learns; and the share of shifted runs in it.
FARTHEST_SHARE: Final = 0.1
LEARNING_SHARE: Final = 0.5
#: Entries of an outcome whose tails are tried.
COLUMNS: Final = 8
#: By so many standard errors a step is rated lower: the best of hundreds of thresholds would be luck else.
RATED_LOWER: Final = 0.5
#: A threshold must be reached in so many runs. Smaller shifts than these are noise of their estimate.
FEWEST: Final = 32
LEAST_SHIFT: Final = 0.1
#: Thresholds for each halving of the runs above them.
PER_HALVING: Final = 4
#: Of a bound in nats: no larger one is looked for, in so many halvings.
LARGEST_BOUND: Final = 40.0
HALVINGS: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class TailAim:
    """What weighted runs are for: evidence against a claim, or the largest bound, by so many runs."""

    claim: Claim
    runs: int
    log_threshold: float  # log(1/α)
    of_bound: bool
    least: float = 0.0  # what has to be exceeded

    def __call__(self, seen: "Moments", standard_errors: float = 1.0) -> Floats:
        """Nats of evidence a run against the claim, or the ε (nats) that is expected to be shown; shape (k,).

        `standard_errors`: by how many of these the mean of X is lowered.
        """
        if not self.of_bound:
            return self._growth(seen, np.full(len(seen.p), self.claim.parameter), standard_errors)

        def shows(epsilon: Floats) -> NDArray[np.bool_]:
            return np.asarray(self.runs * self._growth(seen, epsilon, standard_errors) >= self.log_threshold)

        low, high = np.zeros(len(seen.p)), np.full(len(seen.p), LARGEST_BOUND)
        shown = shows(low)
        least, _ = halved(lambda epsilon: ~shows(epsilon), low, high, HALVINGS)
        return np.where(shown, least, 0.0)

    def _growth(self, seen: "Moments", epsilon: Floats, standard_errors: float) -> Floats:
        """λ·E X − λ²·E X²/2 at the best λ, with E X lowered; the evidence against each ε."""
        plane = self.claim.half_planes(epsilon)
        drift = seen.p - plane.slope * seen.q - plane.intercept
        square = np.maximum(seen.pp - 2 * plane.slope * seen.pq + plane.slope**2 * seen.qq, 1e-300)
        drift = np.maximum(drift - standard_errors * np.sqrt(square / seen.runs), 0.0) * (1 - SHARE)
        square = square * (1 - SHARE) ** 2
        most = 0.95 / (plane.slope + (1 - SHARE) * plane.intercept)
        bet = np.minimum(drift / square, most)
        return np.asarray(bet * drift - bet**2 * square / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Of some thresholds, the probabilities under D and D′ of what reaches them, and means of squares of weights.

    Shape (k,) each. `pp`, `qq` and `pq`: the means of w², w′² and ww′ over the runs in the event, as they are where
    `SHARE` of the runs are shifted.
    """

    thresholds: Floats
    p: Floats
    q: Floats
    pp: Floats
    qq: Floats
    pq: Floats
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """A value of outcomes, the pair on which its tail is looked at, a threshold, shifts, and what that promises."""

    pair: Pair
    events: Thresholds[Event]
    threshold: float
    shifts: Floats
    value: float


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """Paired weighted runs: rows of D and of D′, and the share of shifted ones among them."""

    x: Floats
    y: Floats
    share: float

    def weights(self, rows: Floats) -> Floats:
        """The weights p/((1 − σ)p + σq) for the share σ."""
        return np.exp(-self._log_mixed(rows, self.share))

    def _log_mixed(self, rows: Floats, share: float) -> Floats:
        return np.logaddexp(math.log1p(-share), math.log(share) - rows[:, LEADING - 1])

    def moments(self, values: tuple[Floats, Floats], thresholds: Floats) -> Moments:
        """Those of what reaches each of the thresholds, from the values of all runs on D and D′."""
        w, v = self.weights(self.x), self.weights(self.y)
        # Squares as they are with the share `SHARE`: weights of that, and the ratio of the two laws of the draws on D.
        logs = [self._log_mixed(rows, SHARE) for rows in (self.x, self.y)]
        ratio = np.exp(logs[0] - self._log_mixed(self.x, self.share))
        a, b = np.exp(-logs[0]), np.exp(-logs[1])
        n = len(w)

        def mean_above(value: Floats, numbers: Floats) -> Floats:
            order = np.argsort(value)
            sums = np.append(np.cumsum(numbers[order][::-1])[::-1], 0.0)
            return np.asarray(sums[np.searchsorted(value[order], thresholds)] / n)

        return Moments(
            thresholds=thresholds,
            p=mean_above(values[0], w),
            q=mean_above(values[1], v),
            pp=mean_above(values[0], ratio * a * a),
            qq=mean_above(values[1], ratio * b * b),
            pq=mean_above(np.minimum(*values), ratio * a * b),
            runs=n,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TailSearch:
    """A search for the tail of some mechanism's outcomes.

    `mechanism`: with shifted noise; `draws`: how many draws of a run are shifted; `offset`: the column of outcomes;
    `step_runs`: of each step.
    """

    mechanism: TiltedMechanism
    draws: int
    offset: int
    runner: Runner
    aim: TailAim
    step_runs: int

    def rows(self, pair: Pair, shifts: Floats, share: float, n: int, *key: int) -> WeightedRows:
        """Weighted search runs whose sides share their draws; shifts for each draw of which there are columns."""
        runner = replace(self.runner, mechanism=self.mechanism.at(shifts, share))
        return WeightedRows(*runner.sample(pair, n, Role.TAILS, *key), share)

    def values(self, events: Thresholds[Event], rows: WeightedRows) -> tuple[Floats, Floats]:
        """The value of each outcome, on D and on D′."""
        x, y = (events.value(side[:, self.offset :]) for side in (rows.x, rows.y))
        return x, y

    def tails(self, pair: Pair, events: Thresholds[Event], key: int) -> Iterator[Tail | None]:
        """The best tail of one value in each step; None where a step promises nothing."""
        shifts = np.zeros(self.draws)
        for step in range(STEPS):
            rows = self.rows(pair, shifts, LEARNING_SHARE, self.step_runs, key, step)
            values = self.values(events, rows)
            thresholds = grid_of(values[0])
            if not len(thresholds):
                return
            moments = rows.moments(values, thresholds)
            rated = self.aim(moments, RATED_LOWER)
            k = int(np.argmax(rated))
            found = None
            if rated[k] > 0:
                own = self.learned(rows, values, thresholds[k])
                found = Tail(
                    pair=pair, events=events, threshold=float(thresholds[k]), shifts=own, value=float(rated[k])
                )
            yield found
            goal = float(np.quantile(values[0], 1 - FARTHEST_SHARE))
            # An event of so small a probability refutes nothing: no run of it wins more than one nat.
            if not math.isfinite(goal) or moments.p[-1] * self.aim.runs < self.aim.log_threshold:
                return
            shifts = self.learned(rows, values, goal)

    def learned(self, rows: WeightedRows, values: tuple[Floats, Floats], threshold: float) -> Floats:
        """The means of the draws of the runs that reach a threshold, of both sides."""
        draws = slice(LEADING, LEADING + self.draws)
        both = [
            (rows.weights(side) * (value >= threshold), side[:, draws])
            for side, value in zip((rows.x, rows.y), values, strict=True)
        ]
        total = sum(weights.sum() for weights, _ in both)
        mean = sum(weights @ side for weights, side in both) / max(total, 1e-300)
        return np.where(np.abs(mean) < LEAST_SHIFT, 0.0, np.clip(mean, -FARTHEST, FARTHEST))

    def with_best_threshold(self, tail: Tail, n: int, *key: int) -> Tail:
        """The same with the best of its thresholds, by n fresh runs that are made as those that count are."""
        rows = self.rows(tail.pair, tail.shifts, SHARE, n, STEPS, *key)
        values = self.values(tail.events, rows)
        moments = rows.moments(values, grid_of(values[0]))
        rated = self.aim(moments)
        if not len(rated):
            return replace(tail, value=0.0)
        best = int(np.argmax(rated))
        return replace(tail, threshold=float(moments.thresholds[best]), value=float(rated[best]))

    @property
    def final_runs(self) -> int:
        """Runs of the largest samples."""
        return min(FINAL_RUNS, ROOM // (2 * max(self.mechanism.width, 1)))

    def candidate(self, tail: Tail, key: int) -> Candidate | None:
        """The event and the stake on it, by fresh runs; None where these do not show what has to be exceeded."""
        n = self.final_runs
        rows = self.rows(tail.pair, tail.shifts, SHARE, n, STEPS + 1, key)
        value = float(self.aim(rows.moments(self.values(tail.events, rows), np.array([tail.threshold])))[0])
        if value <= max(self.aim.least, 0.0):
            return None
        event = Weighted(event=tail.events.above(tail.threshold), shifts=tail.shifts, offset=self.offset)
        i, j, k = event.cell_of(rows.x), event.cell_of(rows.y), event.cells
        joint = np.bincount(i * k + j, minlength=k * k).reshape(k, k) / n
        p, q = (min(float(side @ LEVELS) / (1 - SHARE), 1.0) for side in (joint.sum(axis=1), joint.sum(axis=0)))
        both = min(float(rows.weights(rows.x)[(i > 0) & (j > 0)].sum()) / n, p, q)
        against = value if self.aim.of_bound else self.aim.claim.parameter
        stake = Stake(bet=best_stake(joint, self.aim.claim.at(against).half_plane()), against=against)
        return Candidate(pair=tail.pair, event=event, estimate=Estimate(p=p, q=q, both=both, stake=stake))


def weighted_candidate(
    problem: Problem, runner: Runner, found: Candidate, aim: TailAim
) -> tuple[Candidate | None, int]:
    """A candidate for weighted runs on the pair of another one, or None; and the paired search runs spent.

    Raises `CannotTilt` where the mechanism's noise cannot be shifted.
    """
    mechanism, pair = problem.mechanism, found.pair
    most = tilted(mechanism, pair, np.zeros(MOST_DRAWS))
    seen = most.pair_outcomes(PairedRuns.d_first(pair, COUNTED, coupled=True), generator(runner.seed, Role.TAILS))
    draws = min(int(seen[:, :, LEADING - 2].max()), MOST_DRAWS)
    if not draws:
        raise CannotTilt("it draws nothing from dpwitness.noise on these inputs")
    shifted = tilted(mechanism, pair, np.zeros(draws))
    values = list(_tails_of(found, mechanism.width))
    search = TailSearch(
        mechanism=shifted, draws=draws, offset=offset_of(shifted, mechanism, pair), runner=runner, aim=aim,
        step_runs=max(MOST_STEP_RUNS // len(values), STEP_RUNS),
    )  # fmt: skip
    spent = COUNTED
    try:
        each: list[list[Tail]] = [[] for _ in range(STEPS)]
        for key, (one, events) in enumerate(values, 1):
            for step, tail in enumerate(search.tails(one, events, key)):
                each[step] += [] if tail is None else [tail]
                spent += search.step_runs
        # Of each step: what luck promises where outcomes are frequent exceeds all that a tail can keep.
        best = [tail for found in each for tail in _best(found)]
        for n in (search.final_runs // 4, search.final_runs):
            best = _best([search.with_best_threshold(tail, n, n, key) for key, tail in enumerate(best)])
            spent += len(best) * n
        for key, tail in enumerate(best):
            spent += search.final_runs
            if (found_again := search.candidate(tail, key)) is not None:
                return found_again, spent
        return None, spent
    except MechanismTimeout:
        return None, spent


def _best(tails: list[Tail]) -> list[Tail]:
    """The best ones that promise anything, the best first."""
    return sorted((tail for tail in tails if tail.value > 0), key=lambda tail: -tail.value)[:FINALISTS]


def _tails_of(found: Candidate, width: int) -> Iterator[tuple[Pair, Thresholds[Event]]]:
    """The values whose tails are looked at, in both directions of the pair."""
    columns, scale = range(min(width, COLUMNS)), scale_of(found.event)
    own = () if scale is not None and scale.key in columns else thresholds_of(found.event)
    entries = [events for j in columns for events in thresholds_of(Interval(coordinate=j))]
    for events in (*own, *entries):
        yield found.pair, events
        yield found.pair.swapped(), events


def grid_of(values: Floats) -> Floats:
    """Thresholds that shares of the runs reach, from half of them down to `FEWEST`."""
    finite = np.sort(values[np.isfinite(values)])[::-1]
    if len(finite) < 2 * FEWEST:
        return np.empty(0)
    halvings = np.arange(PER_HALVING, int(PER_HALVING * math.log2(len(finite) / FEWEST)) + 1) / PER_HALVING
    return np.unique(finite[(len(finite) * np.exp2(-halvings)).astype(int)])
