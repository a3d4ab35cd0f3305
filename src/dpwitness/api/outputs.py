"""Both distributions of what an event looks at, for people: of runs that are no evidence, or that were it already."""

import math
import time
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.candidate import Candidate
from dpwitness.checks import class_and_text
from dpwitness.errors import DPWitnessError
from dpwitness.events import Event, OutcomeSet, Statistic, outcomes_of, statistic_of, widen
from dpwitness.events.encoding import LEAST_NUMBER, TEXTS
from dpwitness.events.event import number_text, text_at
from dpwitness.machine import Deadline, warn
from dpwitness.problem import Problem
from dpwitness.results.verdict import Outputs
from dpwitness.runs import Role, Runner

Rows = NDArray[np.float64]

#: Bins of a histogram; values up to which each is a bin, and the most frequent ones that are shown of others.
BINS: Final = 36
SINGLE: Final = 20
FREQUENT: Final = 16
#: Further paired runs, of cheap ones and of others; numbers that their outcomes may hold, both sides together.
RUNS: Final = 1_000
RUNS_IF_INTERPRETED: Final = 200
ROOM: Final = 1 << 21
#: They may take so many seconds, or such a share of the time so far.
SECONDS: Final = 0.05
SHARE: Final = 0.03
#: Fewer runs show nothing.
FEWEST: Final = 50
#: What a histogram leaves out at either end; how far an end of the event may lie behind it, in widths, to be shown.
TAIL: Final = 0.005
BEHIND: Final = 1.0


def drawn_outputs(problem: Problem, runner: Runner, candidate: Candidate) -> Outputs | None:
    """Those of a few hundred further runs; None where these would take more than a few percent of the time."""
    cost = problem.mechanism.cost
    n = RUNS if cost.cheap_in_bulk else RUNS_IF_INTERPRETED
    n = max(min(n, ROOM // (2 * max(problem.mechanism.width, 1))), FEWEST)
    seconds = max(SECONDS, SHARE * runner.seconds)
    if 2 * n * cost.seconds_per_run > seconds or not _has_one(candidate.event):
        return None
    late = replace(runner, deadline=Deadline(time.monotonic() + 2 * seconds))
    try:
        x, y = late.sample(candidate.pair, n, Role.OUTPUTS, coupled=candidate.coupled)
    except DPWitnessError:  # the verdict is there without them
        return None
    return outputs_of(problem, candidate.event, x, y)


def _has_one(event: Event) -> bool:
    return outcomes_of(event) is not None or statistic_of(event) is not None


def outputs_of(problem: Problem, event: Event, x: Rows, y: Rows) -> Outputs | None:
    """The histogram of outcomes of D and of D′, shapes (n, any width); None for an event of several values."""
    if len(x) < FEWEST or not _has_one(event):
        return None
    try:
        with np.errstate(all="ignore"):  # of numbers near the largest one
            return _outputs_of(problem, event, x, y)
    except Exception as error:  # of another package's event: no verdict is lost to a figure
        message = f"the report has no histogram of outcomes: {event} raised {class_and_text(error)}"
        warn(message, RuntimeWarning, stacklevel=2)
        return None


def _outputs_of(problem: Problem, event: Event, x: Rows, y: Rows) -> Outputs | None:
    width = max(x.shape[1], y.shape[1], event.width, 1)
    x, y = widen(x, width), widen(y, width)
    statistic = statistic_of(event)
    if statistic is None:
        return _of_rows(problem, event, x, y)
    values = statistic.value(x), statistic.value(y)
    numbers = np.concatenate(values)
    numbers = np.sort(numbers[numbers >= LEAST_NUMBER])
    different = len(np.unique(numbers))
    if math.isnan(statistic.low) or different <= SINGLE:
        return _of_values(problem, event, statistic, (x, y), values)
    return _histogram(problem, statistic, numbers, values)


def _of_rows(problem: Problem, event: Event, x: Rows, y: Rows) -> Outputs:
    """The most frequent outcomes, each as a whole."""
    both = np.ascontiguousarray(np.concatenate([x, y])) + 0.0  # no negative zeros
    both[np.isnan(both)] = np.nan  # one pattern of bits: rows are compared by theirs
    _, first, places = np.unique(both.view(f"V{both.itemsize * both.shape[1]}")[:, 0], return_index=True,
                                 return_inverse=True)  # fmt: skip
    kinds, noun = both[first], problem.noun
    shown = _most_frequent(places, len(kinds))
    shown = shown[np.lexsort(kinds[shown].T[::-1])]
    texts = [OutcomeSet(kinds[k : k + 1]).texts(noun, problem.mechanism.label)[0] for k in shown]
    return _counted("outcome", texts, event.contains(kinds[shown]), places, shown, len(x))


def _of_values(
    problem: Problem, event: Event, statistic: Statistic, rows: tuple[Rows, Rows], values: tuple[Rows, Rows]
) -> Outputs | None:
    """The most frequent values, in their order."""
    both = np.concatenate(values)
    kinds, first, places = np.unique(both, return_index=True, return_inverse=True)
    shown = _most_frequent(places, len(kinds))
    shown = shown[~np.isnan(kinds[shown])]
    if not len(shown):
        return None
    label = problem.mechanism.label
    said = text_at(statistic.coordinate, problem.noun)
    texts = [label(kinds[k]) or said(kinds[k]) for k in shown.tolist()]
    if said is number_text and np.isfinite(kinds[shown]).all() and (kinds[shown] >= LEAST_NUMBER).all():
        short = [TEXTS.get(kinds[k]) or f"{kinds[k]:.4g}".replace("-", "−") for k in shown.tolist()]
        texts = short if len(set(short)) == len(short) else texts
    inside = event.contains(np.concatenate(rows)[first[shown]])
    return _counted(statistic.describe(problem.noun, label), texts, inside, places, shown, len(values[0]))


def _most_frequent(places: NDArray[np.int64], kinds: int) -> NDArray[np.int64]:
    """Which of so many kinds are shown, in their order."""
    times = np.bincount(places, minlength=kinds)
    most = SINGLE if kinds <= SINGLE else FREQUENT
    return np.sort(np.argsort(-times, kind="stable")[:most])


def _counted(
    name: str, texts: list[str], inside: NDArray[np.bool_], places: NDArray[np.int64], shown: NDArray[np.int64],
    runs: int,
) -> Outputs:  # fmt: skip
    sides = [np.bincount(side, minlength=int(shown.max()) + 1)[shown] for side in (places[:runs], places[runs:])]
    return Outputs(
        statistic=name,
        values=tuple(texts),
        inside=tuple(map(bool, inside)),
        on_data=tuple(map(int, sides[0])),
        on_neighbour=tuple(map(int, sides[1])),
        runs=runs,
    )


def _histogram(problem: Problem, statistic: Statistic, numbers: Rows, values: tuple[Rows, Rows]) -> Outputs | None:
    """Bins of one width, but for those at the ends of the event, which are ends of bins too."""
    finite = numbers[np.isfinite(numbers)]
    low, high = np.quantile(finite, [TAIL, 1 - TAIL]) if len(finite) else (0.0, 0.0)
    wide = float(high - low)
    if not 0 < wide < math.inf:
        return None
    ends = [end for end in (statistic.low, statistic.high) if low - BEHIND * wide <= end <= high + BEHIND * wide]
    low, high = min([low, *ends]), max([high, *ends])
    grid = np.linspace(low, high, BINS + 1)
    # No sliver beside an end of the event: few runs would decide its height.
    kept = [edge for edge in grid.tolist() if all(abs(edge - end) > (high - low) / BINS / 2 for end in ends)]
    edges = np.unique([low, high, *kept, *ends])
    middles = (edges[:-1] + edges[1:]) / 2
    inside = ((middles >= statistic.low) & (middles < statistic.high)) != statistic.outside
    sides = []
    for side in values:
        bins = np.searchsorted(edges, side[(side >= low) & (side < high)], side="right") - 1
        sides.append(np.bincount(bins, minlength=len(middles)))
    return Outputs(
        statistic=statistic.describe(problem.noun, problem.mechanism.label),
        edges=tuple(map(float, edges)),
        date_unit=problem.noun.date_unit(statistic.coordinate),
        inside=tuple(map(bool, inside)),
        on_data=tuple(map(int, sides[0])),
        on_neighbour=tuple(map(int, sides[1])),
        runs=len(values[0]),
    )
