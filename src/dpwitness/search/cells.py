"""Cells for a candidate: a partition by a learned score, used where it shows more of a divergence than one event.

Cells come from search runs and are never evidence. One sample gives the score and the cuts; another gives the table
that chooses the order, the hyperplane and the bet.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpwitness.arrays import Floats, Rows
from dpwitness.candidate import MOST_NATS, Candidate, CellsEstimate, Estimate, Tally
from dpwitness.claims.renyi import DivergenceClaim, Hyperplane
from dpwitness.errors import MechanismTimeout
from dpwitness.events import Cells, of_one_width
from dpwitness.evidence.bet import best_cell_bet, largest_cell_bet
from dpwitness.roots import halved
from dpwitness.runs import Role, Runner
from dpwitness.runs.shards import tally_of_rows
from dpwitness.search.objectives import Objective, value_of
from dpwitness.search.samples import score_of, telling_entries

#: The number of halvings of the range of parameters, which leave less than 10⁻¹² nats.
PARAMETER_HALVINGS: Final = 50
#: The largest number of cells of a learned partition.
MOST_LEARNED_CELLS: Final = 24
#: The largest number of entries of the learning runs' outcomes in memory, both sides together: 32 MiB.
LEARNING_ENTRIES: Final = 1 << 22
#: Shares of the values of an entry in each tail at which a bin ends.
TAIL_SHARES: Final = np.array([1e-5, 4e-5, 2e-4, 1e-3, 4e-3])
#: Shares of the values of an entry at which a bin ends.
BIN_SHARES: Final = np.unique(np.concatenate([TAIL_SHARES, np.arange(1, 128) / 128, 1 - TAIL_SHARES]))
#: The largest number of different values of an entry for which each value has a bin.
MOST_BINNED_VALUES: Final = 256
#: The number of bins of each entry if several entries tell D from D′.
COARSE_BINS: Final = 32
#: The least number of learning runs of D′ in the first cell, and of D in the last cell.
LEAST_HITS: Final = 30
#: The least number of paired learning runs, if all outcomes are given.
LEAST_LEARNING_RUNS: Final = 200
#: The least ratio of the value of cells to the value of the event at which cells replace the event: people understand
#: an event better.
LEAST_RATIO: Final = 1.05
#: The share of the wealth that is bet on the event beside the cells, since the growth of rare cells is overestimated.
EVENT_SHARE: Final = 0.25
#: Limits (nats) at which the log-ratios of cells are clipped. The large ratio of a rare cell increases the largest loss
#: of a run, and so decreases all bets, by more than its few runs gain.
LOG_RATIO_LIMITS: Final = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """The aim of a search for cells: evidence against a claim or, if `of_bound`, a lower bound of the parameter.

    `planned`: the number of paired confirm runs; `log_threshold`: log(1/α).
    """

    claim: DivergenceClaim
    planned: int
    log_threshold: float
    of_bound: bool


def better(runner: Runner, candidate: Candidate, aim: Aim, objective: Objective, budget: int) -> tuple[Candidate, int]:
    """The candidate, whose event is replaced by cells if the cells' value is larger; and the paired search runs spent.

    At most about `budget` runs are spent. `objective`: the objective that chose the candidate, in the unit of the aim's
    values. The candidate stays if the time is over, or if it reaches the stop value.
    """
    promised = _promised(candidate, objective)
    if promised >= objective.stop_value:
        return candidate, 0
    width = max(runner.mechanism.width, 1)
    learning = max(min(budget // 3, LEARNING_ENTRIES // (2 * width)), 16)
    left, spent = max(budget - learning, 16), 0
    try:
        x, y = runner.sample(candidate.pair, learning, Role.CELLS, 0)
        spent = learning
        event = _learned(x, y)
        if event is None:
            return candidate, spent
        (tally,) = runner.tallies(candidate.pair, [event], left, Role.CELLS, 1)
    except MechanismTimeout:
        return candidate, spent
    # The event was the best of many, so it is overestimated: its rates come from fresh runs if any fresh run hits it.
    seen = tally_of_rows(candidate.event, x, y)
    fresh = candidate.seen(seen) if seen.hits else candidate
    found = _chosen(fresh, event, tally, aim, objective)
    return candidate if found is fresh else found, spent + left


def better_by_rows(x: Rows, y: Rows, candidate: Candidate, aim: Aim, objective: Objective) -> Candidate:
    """The candidate, with cells as its event if cells look better by the outcomes `x` on D and `y` on D′.

    Row i of `x` and of `y` is one paired run; shapes (n, any width). The first half of the runs gives the cells, the
    second half their rates.
    """
    half = len(x) // 2
    event = _learned(x[:half], y[:half]) if half >= LEAST_LEARNING_RUNS else None
    if event is None:
        return candidate
    tally = tally_of_rows(event, *of_one_width(x[half:], y[half:], event.width))
    return _chosen(candidate, event, tally, aim, objective)


def _promised(candidate: Candidate, objective: Objective) -> float:
    """The objective's value of the candidate's event, hardly lowered for the error of the estimate."""
    estimate = candidate.estimate
    assert estimate is not None  # a search gives every candidate an estimate
    return value_of(estimate, objective, 1 << 40)  # for 2^40 runs the deducted error is negligible


def _chosen(candidate: Candidate, event: Cells, tally: Tally, aim: Aim, objective: Objective) -> Candidate:
    """The candidate with the best bet on cells by a table, if the bet has a larger value; else the candidate.

    A share of the wealth stays on the event: the cells above the best cut.
    """
    promised = _promised(candidate, objective)
    bet, promise = _best(tally, aim)
    if bet is None and not aim.of_bound:
        # No bet gains: the bet that would show the largest parameter would detect the smallest excess.
        bet, shown = _best(tally, replace(aim, of_bound=True))
        bet = replace(bet, against=aim.claim.parameter) if bet and _can_gain(bet, aim.claim) else None
        promise = min(shown - aim.claim.parameter, 0.0)
    if bet is None or promise <= max(promised * LEAST_RATIO, promised):
        return candidate
    cut, estimate = _best_cut(event, tally, objective)
    estimate = replace(estimate, cells=replace(bet, event_share=EVENT_SHARE))
    return Candidate(pair=candidate.pair, event=Cells(event.score.exceeding(cut), event.cuts), estimate=estimate)


def _best_cut(event: Cells, tally: Tally, objective: Objective) -> tuple[float, Estimate]:
    """The cut for which the event of all cells above it has the largest value, and the rates of that event."""
    cells = np.arange(event.cells)
    above = [tally.estimate_of(cells > number) for number in range(len(event.cuts))]
    best = int(np.argmax([value_of(one, objective, tally.runs) for one in above]))
    return float(event.cuts[best]), above[best]


def _can_gain(bet: CellsEstimate, claim: DivergenceClaim) -> bool:
    """Whether a run in some observed pair of cells gains evidence against the claim."""
    plane = Hyperplane(order=bet.order, log_ratios=bet.log_ratios)
    pays, costs = plane.sides()
    seen = np.reshape(bet.joint, (len(pays), len(pays))) > 0
    most = np.max((pays[:, None] - costs)[seen])
    return bool(most > plane.allowed(claim.largest_divergence(bet.order, claim.parameter)))


def _learned(x: Rows, y: Rows) -> Cells | None:
    """Cells of the learned score of two samples, shapes (n, any width); None if no entry tells D from D′."""
    x, y = of_one_width(x, y)
    telling = telling_entries(x, y, BIN_SHARES, single_values=MOST_BINNED_VALUES)
    if len(telling) > 1:
        columns = [j for j, *_ in telling]
        shares = np.arange(1, COARSE_BINS) / COARSE_BINS
        telling = telling_entries(x, y, shares, single_values=MOST_BINNED_VALUES, columns=columns) or telling
    if not telling:
        return None
    score = score_of(telling)
    first, second = np.sort(score.score(x)), np.sort(score.score(y))
    cuts = _cuts(first, second)
    if not len(cuts):
        return None
    middle = float(cuts[np.argmin(np.abs(cuts))])  # D is likelier than D′ above a score of 0
    return Cells(score.exceeding(middle), cuts)


def _cuts(first: Floats, second: Floats) -> Floats:
    """Cuts of sorted scores of D and D′: between all values if at most `MOST_LEARNED_CELLS` differ, else evenly spaced.

    `LEAST_HITS` runs of D′ lie below the lowest cut, and `LEAST_HITS` runs of D above the highest cut.
    """
    both = np.sort(np.concatenate([first, second]), kind="stable")
    different: Floats = both[np.append(True, both[1:] != both[:-1])]
    if len(different) <= MOST_LEARNED_CELLS:
        return different[:-1]
    least = min(LEAST_HITS, len(first) // 4)
    low, high = second[least], first[-1 - least]
    cuts = np.unique(np.linspace(low, high, MOST_LEARNED_CELLS - 1))
    # Cuts move to scores that occur, as cells without runs tell nothing.
    places = np.clip(np.searchsorted(different, cuts, side="right") - 1, 0, len(different) - 2)
    kept: Floats = different[np.unique(places)]
    return kept


def _best(tally: Tally, aim: Aim) -> tuple[CellsEstimate | None, float]:
    """The best bet by a table, over all orders and limits of log-ratios, and its value; None and 0.0 without a gain."""
    k = math.isqrt(len(tally.cells))
    table = np.array(tally.cells, np.float64).reshape(k, k)
    joint, n = table.ravel() / tally.runs, tally.runs
    hits, others = table.sum(axis=1), table.sum(axis=0)
    ratios = np.log((hits + 0.5) / (others + 0.5))
    found: CellsEstimate | None = None
    most = 0.0
    for order in aim.claim.orders:
        seen: set[tuple[float, ...]] = set()
        for limit in LOG_RATIO_LIMITS:
            logs = tuple(np.clip(ratios, -limit, limit).tolist())
            if logs in seen:
                continue
            seen.add(logs)
            promise, against = _promise(joint, n, order, logs, aim)
            if promise > most:
                most = promise
                found = CellsEstimate(joint=tuple(joint.tolist()), order=order, log_ratios=logs, against=against)
    return found, most


def _promise(joint: Floats, n: int, order: float, logs: tuple[float, ...], aim: Aim) -> tuple[float, float]:
    """The value of a hyperplane by a table of n runs, and the parameter to bet against.

    The mean payoff is taken as one standard error lower.
    """
    claim = aim.claim
    scale = 0.0 if aim.of_bound else claim.largest_divergence(order, claim.parameter)
    plane = Hyperplane(order=order, log_ratios=logs, scale=scale)
    pays, costs = plane.sides()
    values = (pays[:, None] - costs).ravel()
    mean = float(joint @ values)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = math.sqrt(max(float(joint @ (values - mean) ** 2), 1e-300))
    if not math.isfinite(spread):  # orders in the hundreds, which no number of runs could show
        return 0.0, claim.parameter
    lower = mean - spread / math.sqrt(n)
    if not aim.of_bound:
        allowed = float(plane.allowed(scale))
        if lower <= allowed:
            return 0.0, claim.parameter
        shifted = values - (mean - lower)
        bet = best_cell_bet(joint, shifted - allowed, 0.999 * largest_cell_bet(pays, costs, allowed + mean - lower))
        return float(joint @ np.log1p(bet * (shifted - allowed))), claim.parameter
    threshold = aim.log_threshold + math.log(2)  # as half of the wealth is bet on the estimate
    bet = min(math.sqrt(2 * threshold / aim.planned) / spread, 0.5 * largest_cell_bet(pays, costs, max(mean, 0.0)))
    shown = lower - threshold / (aim.planned * bet) - bet * spread**2 / 2
    parameter = _parameter_of(plane, claim, shown)
    return parameter, parameter


def _parameter_of(plane: Hyperplane, claim: DivergenceClaim, mean: float) -> float:
    """The least parameter at which the hyperplane allows a mean payoff; 0 if every parameter does."""

    def allows_more(parameter: float) -> bool:
        return float(plane.allowed(claim.largest_divergence(plane.order, parameter))) > mean

    return halved(allows_more, 0.0, MOST_NATS, PARAMETER_HALVINGS)[0]
