"""p-values of many test ε, or of another family's parameter, as in the figures of Ding et al. 2018.

The tests, their events and the number of runs are fixed before the runs that give the p-values.
"""

import math
import numbers
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, get_args

import numpy as np
from typing_extensions import Unpack

from dpwitness.api.check import adjacency_note
from dpwitness.api.door import public
from dpwitness.api.loop import confirm_events, require_agreement, work_on
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
from dpwitness.results.curve import Curve, CurveTest, PValueCurve
from dpwitness.results.verdict import EARLY_END_REASONS
from dpwitness.runs import Role, Runner
from dpwitness.search.comparison import compare
from dpwitness.search.learners import RatedEvent, learn
from dpwitness.search.objectives import BoundAt, GrowthAt, Objective, ParameterAt
from dpwitness.search.pairs import PROMISING_PAIRS, learned, search, search_budget, usual_runs
from dpwitness.values import shown

#: The default number of confirm runs of a curve if the mechanism's ε is at least 1, and for other families of claims.
CURVE_RUNS: Final = 1_500_000
#: The number of standard errors between the sides of a test for which runs are planned; a p-value of 10⁻⁶ takes 4.8
#: standard errors.
PLANNED_STANDARD_ERRORS: Final = 7.5
#: The logarithm of 1/α of the tests for which pairs and events are chosen.
LOG_THRESHOLD: Final = math.log(1e6)
#: The p-value below which the runs are tested for dependence, as a smaller p-value accuses the mechanism.
SUSPICIOUS_P_VALUE: Final = 0.01


@public
def curve(mechanism: AnyMechanism = None, **options: Unpack[CurveOptions]) -> Curve:
    """p-values of every test ε in `claims`, for the mechanism run with `epsilon`, or with each ε of a list (nats).

    These are the figures of Ding et al. 2018. With a `claim`, the parameter of the claim's family is tested instead, in
    its unit, such as μ for `GaussianDP(1.0)` or ρ for `ZCDP(0.5)`; the claim's own value is ignored.

    For each ε of the mechanism, one search serves all test ε, and one fresh sample of `runs` paired runs (by default as
    many as are needed to exclude 80 % of ε) tests each chosen event. So the p-values depend on each other, which Holm's
    adjustment allows. Raises the errors of `check`.

    A p-value needs all of its runs. `max_time` limits each ε separately; an ε whose runs are not finished in this time
    has no line. Finished lines are returned, with a note on each missing line, also after Ctrl-C, a lost cluster or a
    failed run; if no line is finished, the error is raised.
    """
    started = time.monotonic()
    method = options["method"]
    effort = Effort.of({**options, "runs": CURVE_RUNS if options["runs"] is None else options["runs"]})
    if not isinstance(method, str) or method not in get_args(Method):
        raise InvalidParameter(f"method={brief(method)} must be one of {', '.join(get_args(Method))}")
    family = as_claim(options["claim"])
    if family is not None and not is_claim(family):
        raise InvalidParameter(
            f"claim={brief(options['claim'])}: claims=… has the test ε; name another family, as claim='gdp:1', or "
            "leave it out"
        )
    epsilons = _several("epsilon", options["epsilon"])
    statements = [Statement.of(mechanism, {**options, "claim": family, "epsilon": epsilon}) for epsilon in epsilons]
    # Checked before any run: a mistake in the last ε must not cost the other lines.
    (stated, *_) = [statement.stated for statement in statements]
    tests = _tests(options["claims"], stated.claim, method, of_family=family is not None)
    planned = None if options["runs"] is None else effort.runs
    lines: list[PValueCurve] = []
    notes: list[str] = []
    mechanisms: list[Mechanism] = []
    ended, lost = "runs", None
    for place, statement in enumerate(statements):
        epsilon = statement.stated.epsilon or 0.0

        def work(problem: Problem, runner: Runner, epsilon: float = epsilon) -> tuple[PValueCurve, str, Notes]:
            mechanisms.append(problem.mechanism)
            return _line(problem, runner, effort, tests, (epsilon, method, planned))

        try:
            line, line_ended, said = work_on(statement, effort, work)
            lines.append(line)
        except DependentRuns:  # earlier lines counted runs of the same function, so they are no evidence either
            raise
        except (KeyboardInterrupt, DPWitnessError) as error:
            lost, line_ended = error, _ended(error)
            said = (f"no line for ε = {epsilon:g}: {str(error) or EARLY_END_REASONS[line_ended]}",)
        notes += said
        ended = ended if line_ended == "runs" else line_ended
        if line_ended not in ("runs", "time"):  # each line has a time limit of its own
            left = [f"{other.stated.epsilon:g}" for other in statements[place + 1 :]]
            notes += [f"not begun: ε = {', '.join(left)}"] if left else []
            break
    if not lines and lost is not None:
        raise lost
    ran = mechanisms[-1]
    return Curve(
        mechanism=ran.name,
        parameters={k: shown(v) for k, v in ran.signature.given.items() if k not in EPSILON_NAMES},
        delta=0.0 if tests.of_family else tests.family.largest(0.0),
        claim=tests.family if tests.of_family else None,
        method=method,
        lines=tuple(lines),
        ended=ended,
        seed=effort.seed or 0,
        reproducible=ran.reproducible,
        seconds=time.monotonic() - started,
        notes=tuple(dict.fromkeys(notes)),
    )


#: Notes for people, each a sentence.
Notes = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveTests:
    """Tests of the claims of a family, one for each parameter in `values`.

    `of_family`: whether the user named the family; else the family is ε at the mechanism's δ.
    """

    values: tuple[float, ...]
    family: Claim
    of_family: bool

    @property
    def claims(self) -> list[Claim]:
        """The claim of each test. Raises `InvalidClaim` for a parameter outside the family's range."""
        return [self.family.at(value) for value in self.values]

    def widest(self, planned: int) -> Objective:
        """The objective that chooses pairs: the lower bound of the parameter."""
        if self.of_family:
            return ParameterAt(claim=self.family, planned=planned, log_threshold=LOG_THRESHOLD)
        return BoundAt(planned=planned, log_threshold=LOG_THRESHOLD, delta=self.family.largest(0.0))

    def best_of(self, pool: list[RatedEvent], runs: int) -> list[int]:
        """The place of the event that grows evidence fastest for each test, by estimates from `runs` runs."""
        p, q = (np.array([getattr(found.estimate, side) for found in pool]) for side in ("p", "q"))
        return [int(np.argmax(_growth(claim)(p, q, runs))) for claim in self.claims]


def _growth(claim: Claim) -> Objective:
    return GrowthAt(claim=claim, planned=CURVE_RUNS, log_threshold=LOG_THRESHOLD)


def _tests(claims: object, stated: Claim, method: str, *, of_family: bool) -> CurveTests:
    """The tests of all parameters, checked before anything is run. Raises `InvalidParameter` and `InvalidClaim`."""
    values = _several("claims", claims)
    if of_family and stated.curved and method == "score":
        raise InvalidParameter(f"method='score' is for claims of ε and δ, not for {stated}: use method='exact'")
    if of_family and min(values) < 0:
        raise InvalidParameter(f"claims={brief(values)}: a parameter of {stated} is not negative")
    family = stated if of_family else ApproxDP(0.0, stated.largest(0.0))
    tests = CurveTests(values=tuple(values), family=family, of_family=of_family)
    try:
        for claim in tests.claims:
            claim.half_plane()
    except InvalidClaim as error:
        raise InvalidClaim(f"claims={brief(values)}: {error}") from error
    return tests


def _several(name: str, values: object) -> list[float]:
    """The numbers that were given as the parameter `name`. Raises `InvalidParameter`."""
    if isinstance(values, numbers.Real):
        values = [values]
    several = isinstance(values, Iterable) and getattr(values, "ndim", 1) > 0  # an array without axes holds one number
    if isinstance(values, str | bytes | Mapping) or not several:
        raise InvalidParameter(f"{name}={brief(values)} must be a number or a list of numbers")
    assert isinstance(values, Iterable)
    found = [number(f"{name}: one of them", value) for value in values]
    if not found:
        raise InvalidParameter(f"{name}={brief(values)} is empty: a curve needs at least one epsilon and one claim")
    return found


def _ended(error: BaseException) -> str:
    """The reason why a line is missing, as results state it."""
    kinds = {KeyboardInterrupt: "interrupted", ClusterLost: "cluster lost", MechanismTimeout: "time"}
    return next((text for kind, text in kinds.items() if isinstance(error, kind)), "failed")


def _line(
    problem: Problem,
    runner: Runner,
    effort: Effort,
    tests: CurveTests,
    how: tuple[float, str, int | None],
) -> tuple[PValueCurve, str, Notes]:
    """The p-values of all tests for one mechanism, why its last runs ended, and notes.

    `how`: the mechanism's ε, the method, and the confirm runs if given.
    """
    notes = before_search.make_required_checks(problem, runner)
    epsilon, method, runs = how
    scale = math.inf if tests.of_family else epsilon  # the default number of runs excludes 80 % of it
    planned = runs or most_runs(scale)
    budget = search_budget(problem, runner, effort.search_runs, min(usual_runs(problem.claim), planned))
    pair, pool, spent = pool_of(problem, runner, tests, planned, budget)
    again = max(budget // 6, 16)
    # Search runs that chose no event, and are the same for all events.
    tallies = runner.tallies(pair, [found.event for found in pool], again, Role.ESTIMATE)
    pool = [
        replace(found, estimate=(tally.swapped() if found.swapped else tally).estimate)
        for found, tally in zip(pool, tallies, strict=True)
    ]
    planned = runs or runs_to_exclude(pool[0].estimate, again, scale, tests.family.largest(0.0))
    chosen = tests.best_of(pool, again)
    used = sorted(set(chosen))  # only these events are counted
    events = [pool[k].event for k in used]
    # The exact tests need independent sides.
    done = confirm_events(runner, pair, events, planned, coupled=False, look=lambda totals: ("", f"ε = {epsilon:g}"))
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
    totals = dict(zip(used, done.totals, strict=True))
    counts = [totals[k].swapped() if pool[k].swapped else totals[k] for k in chosen]
    values = [
        p_value(count, claim, method=method, seed=runner.seed + place)
        for place, (count, claim) in enumerate(zip(counts, tests.claims, strict=True))
    ]
    asked = runner.notes
    if min(values) < SUSPICIOUS_P_VALUE:
        done = done.unless_interrupted(lambda: check_refutation(runner, pair, events, done.shards))
        asked = done.notes
    described = [problem.described(pool[k].event) for k in chosen]
    made = tuple(
        CurveTest(epsilon=tested, p_value=value, holm=adjusted, event=event, counts=count)
        for tested, value, adjusted, event, count in zip(
            tests.values, values, holm(values), described, counts, strict=True
        )
    )
    line = PValueCurve(epsilon=epsilon, tests=made, pair_label=pair.label, search_runs=spent)
    return line, done.ended, (*notes, *asked, *adjacency_note(problem, pair))


def pool_of(
    problem: Problem, runner: Runner, tests: CurveTests, planned: int, budget: int
) -> tuple[Pair, list[RatedEvent], int]:
    """A pair and at most six different events for all tests, and the search runs spent.

    The event of the largest bound comes first, then the best events at five of the parameters. `planned`: confirm runs;
    `budget`: search runs.
    """
    wide = tests.widest(planned)
    searching = runner.searching()
    promising, spent = search(problem, searching, wide, budget)
    promising = promising[:PROMISING_PAIRS]
    entries = learned(searching, promising, wide, 3)
    ranked, more = compare(searching, entries, wide, budget, Role.COMPARISON) if len(entries) > 1 else (entries, 0)
    best = ranked[0]
    sample = next(one.sample for one in promising if one.pair is best.pair)
    spots = np.unique(np.quantile(tests.values, (0, 0.25, 0.5, 0.75, 1), method="nearest"))
    pool = [best.found, *(learn(sample, _growth(tests.family.at(spot)), most=1)[0] for spot in spots.tolist())]
    different = {(str(found.event.to_json()), found.swapped): found for found in pool}
    return best.pair, list(different.values()), spent + more


def most_runs(epsilon: float) -> int:
    """The largest number of confirm runs of a curve; it grows as 1/ε², like the runs that show a given share of ε."""
    return int(CURVE_RUNS * min(max(1 / max(epsilon, 1e-9), 1.0) ** 2, 15.0))


def runs_to_exclude(estimate: Estimate, runs: int, epsilon: float, delta: float) -> int:
    """The number of confirm runs after which 80 % of ε, or of a smaller shown ε, is `PLANNED_STANDARD_ERRORS` away.

    The D side is thinned by e^ε, as in the test. `runs`: the runs of the estimate, which is lowered by one standard
    error.
    """
    p, q = max(estimate.p - delta, 1e-30), max(estimate.q, 1e-30)
    apparent = math.log(p / q)
    if apparent <= 0:
        return CURVE_RUNS
    thinned = p * math.exp(-0.8 * (epsilon if apparent > 0.8 * epsilon else apparent))
    power = (thinned - q - 1 / runs) / math.sqrt(thinned + q + 1 / runs) - 1 / math.sqrt(runs)
    return int(min(max((PLANNED_STANDARD_ERRORS / max(power, 1e-9)) ** 2, CURVE_RUNS), most_runs(epsilon)))
