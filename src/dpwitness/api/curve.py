"""p-values of many test ε, or of another family's parameter, as in the figures of Ding et al. 2018.

The tests, their events and the number of runs are fixed before the runs that give the p-values.
"""

import math
import numbers
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, get_args

import numpy as np
from typing_extensions import Unpack

from dpwitness.api.check import adjacency_note
from dpwitness.api.door import public
from dpwitness.api.loop import Totals, confirm_events, require_agreement, work_on
from dpwitness.candidate import Estimate
from dpwitness.checks import brief, number
from dpwitness.claims import ApproxDP, Claim, is_claim
from dpwitness.errors import (
    ClusterLost,
    DependentRuns,
    DPWitnessError,
    InvalidClaim,
    InvalidParameter,
    MechanismTimeout,
)
from dpwitness.evidence import holm, p_value
from dpwitness.health import before_search
from dpwitness.health.refutation import check_refutation, require_same_in_python
from dpwitness.mechanisms.claims import as_claim
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.signature import EPSILON_NAMES
from dpwitness.neighbours import Pair
from dpwitness.options import AnyMechanism, CurveOptions, Method
from dpwitness.problem import Effort, Problem, Statement
from dpwitness.results.curve import Curve, PValueCurve
from dpwitness.results.verdict import EARLY
from dpwitness.runs import Role, Runner
from dpwitness.search.comparison import ranked_entries
from dpwitness.search.learners import RatedEvent, learn
from dpwitness.search.objectives import BoundAt, GrowthAt, Objective, ParameterAt, PowerAt
from dpwitness.search.pairs import PROMISING, learned, sampled, search, search_budget, usual_runs
from dpwitness.values import shown

CURVE_RUNS: Final = 1_500_000
CLEAR: Final = 7.5  # standard errors; a p-value of 10⁻⁶ takes 4.8
#: How many times fewer runs the search has where pairs are known from a larger ε.
SHORTER: Final = 6
#: log(1/α) of the bounds that events are chosen by.
THRESHOLD: Final = math.log(1e6)
Found = tuple[PValueCurve, str, tuple[str, ...]]  # a line, whether it ended early though whole, and notes
SUSPICIOUS: Final = 0.01  # small enough to be taken as evidence


@public
def curve(mechanism: AnyMechanism = None, **options: Unpack[CurveOptions]) -> Curve:
    """p-values of every test ε in `claims`, for the mechanism run with `epsilon`, or with each ε of a list (nats).

    These are the figures of Ding et al. 2018. With a `claim`, the parameter of the claim's family is tested instead, in
    its unit, such as μ for `GaussianDP(1.0)` or ρ for `ZCDP(0.5)`; the claim's own value of it is ignored.

    For each ε of the mechanism, one search serves all test ε, and one fresh sample of `runs` paired runs (by default as
    many as are needed to exclude 80 % of ε) tests each chosen event. So the p-values depend on each other, which Holm's
    adjustment allows. Errors as in `check`.

    The largest ε is searched first. The searches for the others use only its best pairs, and the best pair of a search
    that is a sixth as long.

    A p-value needs all of its runs. `max_time` limits each ε separately; an ε whose runs are not finished in this time
    has no line. Finished lines are returned, with a note on each missing line, also after Ctrl-C, a lost cluster or a
    failed run; if no line is finished, the error is raised.
    """
    started = time.monotonic()
    method = options["method"]
    runs = None if options["runs"] is None else Effort.of(options).runs
    effort = Effort.of({**options, "runs": runs or CURVE_RUNS})
    if not isinstance(method, str) or method not in get_args(Method):
        raise InvalidParameter(f"method={brief(method)} must be one of {', '.join(get_args(Method))}")
    family = as_claim(options["claim"])
    if family is not None and not is_claim(family):
        raise InvalidParameter(
            f"claim={brief(options['claim'])}: claims=… has the test ε; name another family, as claim='gdp:1', or "
            "leave it out"
        )
    several = _several("epsilon", options["epsilon"])
    statements = [Statement.of(mechanism, {**options, "claim": family, "epsilon": epsilon}) for epsilon in several]
    # Before anything is run: a mistake in the last ε must not cost the others.
    stated = [statement.stated for statement in statements]
    tests = _tests(options["claims"], stated[0].claim, method, of_family=family is not None)
    lines: dict[int, PValueCurve] = {}
    notes: list[list[str]] = [[] for _ in statements]
    mechanisms: list[Mechanism] = []
    known: list[Pair] = []
    ended, lost = "runs", None

    # The larger ε is, the more of a leak few runs of the search show: the first line's pairs are those of the others.
    order = sorted(range(len(statements)), key=lambda k: -(stated[k].epsilon or 0.0))
    for place, k in enumerate(order):

        def work(problem: Problem, runner: Runner, of: float = stated[k].epsilon or 0.0) -> Found:
            mechanisms.append(problem.mechanism)
            return _line(problem, runner, effort, tests, (of, method, runs), known)

        try:
            lines[k], line_ended, said = work_on(statements[k], effort, work)
        except DependentRuns:  # of the same function: what was counted of it before is no evidence either
            raise
        except (KeyboardInterrupt, DPWitnessError) as error:
            lost, line_ended = error, _ended(error)
            notes[k].append(f"no line for ε = {stated[k].epsilon:g}: {str(error) or EARLY[line_ended]}")
        else:
            notes[k] += said
        if line_ended != "runs":
            ended = line_ended
        if line_ended not in ("runs", "time"):  # of the others each has time of its own
            left = [f"{stated[other].epsilon:g}" for other in sorted(order[place + 1 :])]
            notes[k] += [f"not begun: ε = {', '.join(left)}"] if left else []
            break
    if not lines and lost is not None:
        raise lost
    ran = mechanisms[-1]
    return Curve(
        mechanism=ran.name,
        parameters={k: shown(v) for k, v in ran.signature.given.items() if k not in EPSILON_NAMES},
        delta=tests.delta,
        claim=tests.family,
        method=method,
        lines=tuple(lines[k] for k in sorted(lines)),
        ended=ended,
        seed=effort.seed or 0,
        reproducible=ran.reproducible,
        seconds=time.monotonic() - started,
        notes=tuple(dict.fromkeys(chain.from_iterable(notes))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveTests:
    """The claims that a curve tests: every parameter of a `family` in `values`, or every ε at δ where that is None."""

    values: tuple[float, ...]
    delta: float = 0.0
    family: Claim | None = None

    @property
    def claims(self) -> list[Claim]:
        """The claim of each test. Raises `InvalidClaim` for a parameter that the family does not have."""
        return [self.of(value) for value in self.values]

    def of(self, value: float) -> Claim:
        """The claim with one parameter."""
        if self.family is None:
            return ApproxDP(value, self.delta)
        return self.family.at(value)

    def power(self, value: float) -> Objective:
        """What events are chosen by for one test."""
        if self.family is None:
            return PowerAt(epsilon=value, delta=self.delta)
        return GrowthAt(claim=self.of(value), planned=CURVE_RUNS, log_threshold=THRESHOLD)

    def widest(self, planned: int) -> Objective:
        """What pairs are chosen by."""
        if self.family is None:
            return BoundAt(planned=planned, log_threshold=THRESHOLD, delta=self.delta)
        return ParameterAt(claim=self.family, planned=planned, log_threshold=THRESHOLD)

    def best_of(self, pool: Sequence[RatedEvent]) -> list[int]:
        """For each test the event of largest power, by the search's estimates."""
        p, q = np.array([f.estimate.p for f in pool]), np.array([f.estimate.q for f in pool])
        return [int(np.argmax(self.power(value)(p, q, 100_000))) for value in self.values]

    def most_runs(self, epsilon: float) -> int:
        """At most so many confirm runs, for a mechanism's ε."""
        return most_runs(epsilon) if self.family is None else CURVE_RUNS

    def runs_needed(self, estimate: Estimate, runs: int, epsilon: float) -> int:
        """Confirm runs that the tests near ε ask for; of other families as many as is usual."""
        return runs_to_exclude(estimate, runs, epsilon, self.delta) if self.family is None else CURVE_RUNS


def _tests(claims: object, stated: Claim, method: str, *, of_family: bool) -> CurveTests:
    """The tests of all parameters, checked before anything is run. Raises `InvalidParameter` and `InvalidClaim`."""
    values = tuple(_several("claims", claims))
    if not of_family:
        tests = CurveTests(values=values, delta=stated.largest(0.0))
    elif stated.curved and method == "score":
        raise InvalidParameter(f"method='score' is for claims of ε and δ, not for {stated}: use method='exact'")
    else:
        if not all(value >= 0 for value in values):
            raise InvalidParameter(f"claims={brief(list(values))}: a parameter of {stated} is not negative")
        tests = CurveTests(values=values, family=stated)
    for value in values:
        try:
            tests.of(value).half_plane()
        except InvalidClaim as error:
            raise InvalidClaim(f"claims={brief(list(values))}: {error}") from error
    return tests


def _several(name: str, values: object) -> list[float]:
    """A list of numbers that was given under a name. Raises `InvalidParameter`."""
    if isinstance(values, numbers.Real):
        values = [values]
    several = isinstance(values, Iterable) and getattr(values, "ndim", 1) > 0  # an array without axes holds one
    if isinstance(values, str | bytes | Mapping) or not several:
        raise InvalidParameter(f"{name}={brief(values)} must be a number or a list of numbers")
    assert isinstance(values, Iterable)
    found = [number(f"{name}: one of them", value) for value in values]
    if not found:
        raise InvalidParameter(f"{name}={brief(values)} is empty: a curve needs at least one epsilon and one claim")
    return found


def _ended(error: BaseException) -> str:
    """Why there is no line, as results say it."""
    kinds = {KeyboardInterrupt: "interrupted", ClusterLost: "cluster lost", MechanismTimeout: "time"}
    return next((text for kind, text in kinds.items() if isinstance(error, kind)), "failed")


def _line(
    problem: Problem,
    runner: Runner,
    effort: Effort,
    tests: CurveTests,
    how: tuple[float, str, int | None],
    known: list[Pair],
) -> Found:
    """The p-values of all tests for one mechanism, whether it was interrupted behind them, and notes.

    `how`: the mechanism's ε, the method, and the confirm runs if given; `known`: as in `pool_of`.
    """
    notes = before_search.required(problem, runner)
    epsilon, method, runs = how
    planned = tests.most_runs(epsilon) if runs is None else runs
    budget = search_budget(problem, runner, effort.search_runs, min(usual_runs(problem.claim), planned))
    pair, pool, spent = pool_of(problem, runner, tests, (planned, budget), known)
    again = max(budget // 6, 16)
    # By search runs that none of the events was chosen by, the same for all.
    tallies = runner.tallies(pair, [found.event for found in pool], again, Role.ESTIMATE)
    pool = [
        replace(found, estimate=(tally.swapped if found.swapped else tally).estimate)
        for found, tally in zip(pool, tallies, strict=True)
    ]
    if runs is None:
        planned = tests.runs_needed(pool[0].estimate, again, epsilon)
    chosen = tests.best_of(pool)
    pool = [pool[k] for k in sorted(set(chosen))]  # the others are not counted
    chosen = tests.best_of(pool)
    events = [found.event for found in pool]

    def look(totals: Totals) -> tuple[str, str]:
        return "", f"ε = {epsilon:g}"

    # The exact tests ask for independent sides.
    done = confirm_events(runner, pair, events, planned, coupled=False, look=look)
    if done.ended == "interrupted":
        raise KeyboardInterrupt
    if done.lost is not None:
        raise done.lost
    if done.totals[0].runs < planned:
        raise MechanismTimeout(
            f"{problem.mechanism.name} did not finish {planned} runs in {runner.max_time:g} s: give fewer, or more time"
        )
    for event, total in zip(events, done.totals, strict=True):
        require_agreement(runner, pair, event, total, coupled=False)
    require_same_in_python(runner, pair)
    counts = [done.totals[k].swapped() if pool[k].swapped else done.totals[k] for k in chosen]
    values = [
        p_value(c, test, method=method, seed=runner.seed + i)
        for i, (c, test) in enumerate(zip(counts, tests.claims, strict=True))
    ]
    asked = runner.notes
    if any(value < SUSPICIOUS for value in values):
        done = done.unless_interrupted(lambda: check_refutation(runner, pair, events, done.shards))
        asked = done.notes
    line = PValueCurve(
        epsilon=epsilon,
        test_epsilons=tests.values,
        p_values=tuple(values),
        adjusted=tuple(holm(values)),
        events=tuple(problem.described(pool[k].event) for k in chosen),
        counts=tuple(counts),
        pair_label=pair.label,
        search_runs=spent,
    )
    return line, done.ended, (*notes, *asked, *adjacency_note(problem, pair))


def pool_of(
    problem: Problem, runner: Runner, tests: CurveTests, effort: tuple[int, int], known: list[Pair]
) -> tuple[Pair, list[RatedEvent], int]:
    """A pair and a handful of events for all tests, each once, and the search runs spent.

    The event of the largest bound, and what is best at a few parameters on the way. `effort`: confirm runs planned, and
    search runs; `known`: the pairs that promised most for a larger ε of the mechanism, which are filled in if there are
    none. To them comes the best one of a short search: a leak may be one of this ε alone.
    """
    planned, budget = effort
    searching, wide = runner.searching(), tests.widest(planned)
    finalists, spent = search(problem, searching, wide, budget // SHORTER if known else budget)
    if known:
        pairs = {pair.key: pair for pair in (*known, finalists[0].pair)}
        finalists, more = sampled(problem, searching, list(pairs.values()), wide, budget)
        spent += more
    else:
        finalists = finalists[:PROMISING]
        known += [one.pair for one in finalists]
    # Slow learners are asked of the best pair alone, below.
    entries = learned(searching, finalists, wide, 3, slow=False)
    ranked, more = ranked_entries(searching, entries, wide, budget) if len(entries) > 1 else (entries, 0)
    best = ranked[0]
    spots = np.unique(np.quantile(tests.values, (0, 0.25, 0.5, 0.75, 1), method="nearest"))
    powers = [tests.power(float(spot)) for spot in spots]
    pool = [best.found, *(found for power in powers for found in learn(finalists[best.place].sample, power, most=1))]
    different = {(str(found.event.to_json()), found.swapped): found for found in pool}
    return best.pair, list(different.values()), spent + more


def most_runs(epsilon: float) -> int:
    """At most so many confirm runs for a curve: to see the same share of ε, their number must grow as 1/ε²."""
    return int(CURVE_RUNS * min(max(1 / max(epsilon, 1e-9), 1.0) ** 2, 15.0))


def runs_to_exclude(estimate: Estimate, runs: int, epsilon: float, delta: float) -> int:
    """Confirm runs of a curve that put 80 % of ε `CLEAR` standard errors away; of the ε shown where that is less.

    `runs`: how many the estimate is from; it is lowered by one standard error.
    """
    apparent = math.log(max(estimate.p - delta, 1e-30) / max(estimate.q, 1e-30))
    if apparent <= 0:
        return CURVE_RUNS
    excluded = 0.8 * (epsilon if apparent > 0.8 * epsilon else apparent)
    p, q = np.array([estimate.p]), np.array([estimate.q])
    power = float(PowerAt(epsilon=excluded, delta=delta)(p, q, runs)[0]) - 1 / math.sqrt(runs)
    return int(min(max((CLEAR / max(power, 1e-9)) ** 2, CURVE_RUNS), most_runs(epsilon)))
