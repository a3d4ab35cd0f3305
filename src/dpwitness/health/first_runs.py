"""A few runs of each input before the search: whether they vary, and whether they are independent of each other."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.events import widen
from dpwitness.health.common import ADVICE, SECONDS
from dpwitness.health.findings import Finding
from dpwitness.health.independence import LEVEL, fisher_p_value
from dpwitness.mechanisms.mechanism import Rows
from dpwitness.neighbours import Data, Pair, shown
from dpwitness.problem import Problem
from dpwitness.runs import Role, Runner, Threads, generator

#: Calls of a vectorised mechanism that are looked at on each input, and rows of each.
CALLS: Final = 64
ROWS: Final = 64
#: Runs of plain Python on each input; fewer could not tell anything at the level that is asked for.
RUNS: Final = 248
FEWEST: Final = 128
#: Runs of plain Python between two looks at the clock.
FEW: Final = 8
#: Columns that are compared by themselves.
COLUMNS: Final = 20
#: The share of all time that these runs may take.
SHARE: Final = 1 / 20
#: The draw by which rows of a call are paired at random; any other would do.
PAIRING: Final = 20_011


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRuns:
    """A few runs of each input of a pair: rows of shape (calls, rows, width), NaN where there is no value."""

    pair: Pair
    left: Rows
    right: Rows


def first_runs(problem: Problem, runner: Runner) -> FirstRuns | None:
    """Run the relation's first pair a few times; None where that would take too long."""
    pair = problem.first
    draw: Callable[[], FirstRuns | None] = partial(_drawn, runner, pair)
    return next(Threads(1).ordered([draw], runner.searching().deadline))


def _drawn(runner: Runner, pair: Pair) -> FirstRuns | None:
    """As many runs as fit in the time, an even number of calls on each side."""
    cost = runner.mechanism.cost
    if cost.slow:
        return None
    limit = min(SECONDS, SHARE * runner.max_time) / 2  # of each side
    if cost.batched:
        sides = [_calls(runner, data, side, limit) for side, data in enumerate(pair.sides)]
    else:
        sides = [_call(runner, data, side, limit) for side, data in enumerate(pair.sides)]
    if not all(sides):
        return None
    calls, rows = (min(len(side) for side in sides), min(len(block) for side in sides for block in side))
    width = max(block.shape[1] for side in sides for block in side)
    left, right = (np.stack([widen(block[:rows], width) for block in side[:calls]]) for side in sides)
    return FirstRuns(pair=pair, left=left, right=right)


def _calls(runner: Runner, data: Data, side: int, limit: float) -> list[Rows]:
    """Up to `CALLS` calls of `ROWS` runs, a multiple of four, in so many seconds."""
    blocks: list[Rows] = []
    started = time.perf_counter()
    while len(blocks) < CALLS and (len(blocks) % 4 or not blocks or time.perf_counter() - started <= limit):
        rng = generator(runner.seed, Role.HEALTH_FIRST_RUNS, side, len(blocks))
        blocks.append(runner.mechanism.outcomes(data, rng, ROWS))
    return blocks


def _call(runner: Runner, data: Data, side: int, limit: float) -> list[Rows]:
    """Up to `RUNS` runs as one block in so many seconds; none where `FEWEST` would take longer."""
    rng = generator(runner.seed, Role.HEALTH_FIRST_RUNS, side, 0)
    blocks = [np.empty((0, 1))]
    started = time.perf_counter()
    runs = RUNS
    for done in range(0, RUNS, FEW):
        if done >= runs:
            break
        blocks.append(runner.mechanism.outcomes(data, rng, FEW, start=done))
        seconds = (time.perf_counter() - started) / (done + FEW)
        if done == 0 and seconds * RUNS > limit:
            runs = int(limit / seconds) // FEW * FEW
            if runs < FEWEST:
                return []
    return [np.concatenate([widen(block, blocks[-1].shape[1]) for block in blocks])]


def deterministic_output(name: str, seen: FirstRuns | None) -> Finding | None:
    """Return `deterministic_output` where every run returned the same, on both inputs."""
    if seen is None:
        return None
    first = seen.left[0, 0]
    if not all(
        np.array_equal(rows, np.broadcast_to(first, rows.shape), equal_nan=True) for rows in (seen.left, seen.right)
    ):
        return None
    count = 2 * seen.left.shape[0] * seen.left.shape[1]
    return Finding(
        name="deterministic_output",
        text=f"{name} returned {first[~np.isnan(first)].tolist()} on each of {count} runs, on both "
        f"{shown(seen.pair.data)} and {shown(seen.pair.neighbour)}: does it add noise, does it use its input?",
    )


def stuck_generator(name: str, seen: FirstRuns | None) -> Finding | None:
    """Return `stuck_generator` where runs are not independent, so that nothing counted would be evidence.

    Rows of one call (for plain Python: runs that follow each other) equal one another more often, or less often, than
    rows of different calls (runs far apart). Every row is in one comparison only, so under independence the comparisons
    are independent trials of one probability, and Fisher's exact test is exact.
    """
    if seen is None:
        return None
    where = ("in one call", "in different calls") if seen.left.shape[0] > 1 else ("that follow each other", "far apart")
    sides, width = (seen.left, seen.right), seen.left.shape[2]
    columns = [slice(None), *(slice(j, j + 1) for j in range(min(width, COLUMNS)))]
    tested = 2 * 2 * len(columns)  # at most two kinds of pairs on two sides
    for rows in sides:
        *close, far = _matched(rows)
        for near, column in product(close, columns):
            counts = [(int(_equal(a[:, column], b[:, column]).sum()), len(a)) for a, b in (near, far)]
            (same, of), (same_far, of_far) = counts
            if fisher_p_value(same, of, same_far, of_far) < LEVEL / tested:
                what = "whole rows" if column == slice(None) else f"value {column.start + 1}"
                return Finding(
                    name="stuck_generator",
                    text=f"the runs of {name} are not independent: {what} of two runs {where[0]} were "
                    f"equal in {same} of {of} comparisons, {where[1]} in {same_far} of {of_far}; {ADVICE}",
                )
    return None


def _matched(rows: Rows) -> list[tuple[Rows, Rows]]:
    """Disjoint pairs of rows of one call, and last of different calls; the first and the second of each."""
    calls, count, width = rows.shape
    if calls == 1:  # plain Python: runs that follow each other, from an even and from an odd one on; then far ones
        runs, n = rows[0], (count - 1) // 6
        even, odd, late = runs[: 2 * n], runs[2 * n + 1 : 4 * n + 1], runs[4 * n + 1 : 6 * n + 1]
        return [(even[0::2], even[1::2]), (odd[0::2], odd[1::2]), (late[:n], late[n:])]
    within, across = rows[: calls // 2], rows[calls // 2 : calls // 2 * 2]
    # Rows beside each other, the two halves of a call, and pairs at random: dependence takes many forms.
    random = np.random.default_rng(PAIRING)
    orders = (
        np.arange(count),
        np.arange(count).reshape(2, -1).T.ravel(),
        random.permutation(count),
        random.permutation(count),
    )
    matched = np.stack([call[orders[k % 4]] for k, call in enumerate(within)])
    flat = (-1, width)
    half = len(across) // 2
    return [
        (matched[:, 0::2].reshape(flat), matched[:, 1::2].reshape(flat)),
        (across[:half].reshape(flat), across[half : 2 * half].reshape(flat)),
    ]


def _equal(a: Rows, b: Rows) -> NDArray[np.bool_]:
    """Which rows are equal throughout, absent values included."""
    return np.asarray(np.all((a == b) | (np.isnan(a) & np.isnan(b)), axis=1))
