"""Compares compiled code with Python: the same seeds must give the same outcomes.

Numba checks no types at run time, wraps whole numbers and freezes globals; our driver adds scratch memory and machine
code from a cache. None of it may change what is tested unseen.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import MechanismError
from dpwitness.events.encoding import TEXTS, Rows, same_outcome
from dpwitness.mechanisms.mechanism import Mechanism, Order, PairedRuns
from dpwitness.neighbours import Data, Pair, shown

#: Paired runs that are compared before a mechanism is used, fewer where they take longer than so many seconds.
RUNS: Final = 16
SECONDS: Final = 0.25
#: Runs with the event on D alone, and on D′, that are compared before a verdict.
EACH: Final = 8
#: Runs in which an event is asked whether its width is what it says.
WIDTH_RUNS: Final = 64
#: Numbers that the outcomes of one input may hold, where such runs are looked for.
ROOM: Final = 1 << 20


def first_difference(
    compiled: Mechanism,
    plain: Mechanism,
    pair: Pair,
    rng: np.random.Generator | None = None,
    *,
    runs: int = RUNS,
    seconds: float = SECONDS,
) -> str | None:
    """Compare up to `runs` runs of both inputs in about so many seconds.

    Says in one line how the first that differs does, None where all are the same.
    """
    rng = rng or np.random.Generator(np.random.SFC64(0))
    one = PairedRuns.d_first(pair, 1, coupled=False)
    own = np.random.Generator(np.random.SFC64())
    began = time.perf_counter()
    for run in range(runs):
        own.bit_generator.state = rng.bit_generator.state
        rows = compiled.pair_outcomes(one, rng)
        for side, data in enumerate(pair.sides):
            if difference := _difference(compiled, plain, data, own, rows[side], run):
                return difference
        if time.perf_counter() - began > seconds:
            break
    return None


def difference_in_event(
    compiled: Mechanism,
    plain: Mechanism,
    pair: Pair,
    contains: Callable[[Rows], NDArray[np.bool_]],
    streams: Iterable[tuple[np.random.Generator, Order]],
    *,
    coupled: bool = True,
) -> str | None:
    """Compare runs that fell into an event, found at the beginning of streams of paired runs; as `first_difference`.

    `streams`: the generator of each, and which side of its runs comes first. Compiled code that is wrong on rare paths
    alone is caught where it matters: in the runs that are evidence.
    """
    began = time.perf_counter()
    for rng, order in streams:
        start = rng.bit_generator.state
        n = min(len(order), max(ROOM // max(compiled.width, 1), EACH))
        runs = PairedRuns(pair=pair, order=order[:n], coupled=coupled)
        rows = compiled.pair_outcomes(runs, rng)
        here, there = contains(rows[0]), contains(rows[1])
        chosen = {*np.flatnonzero(here & ~there)[:EACH].tolist(), *np.flatnonzero(there)[:EACH].tolist()}
        rng.bit_generator.state = start
        difference = _difference_in_runs(compiled, plain, runs, rng, sorted(chosen), began + SECONDS)
        if difference is not None:
            return difference
        if chosen or time.perf_counter() - began > SECONDS:
            break
    return None


def looks_beyond(compiled: Mechanism, pair: Pair, contains: Callable[[Rows], NDArray[np.bool_]], width: int) -> bool:
    """Whether an event that says that it looks at so many entries is another one where no more of them is written.

    Compiled code writes one entry more than the events say, where runs are counted.
    """
    runs = PairedRuns.d_first(pair, WIDTH_RUNS, coupled=False)
    for rows in compiled.pair_outcomes(runs, np.random.Generator(np.random.SFC64(0))):
        if not np.array_equal(contains(rows), contains(np.ascontiguousarray(rows[:, : width + 1]))):
            return True
    return False


def _difference_in_runs(
    compiled: Mechanism,
    plain: Mechanism,
    runs: PairedRuns,
    rng: np.random.Generator,
    numbers: Sequence[int],
    deadline: float,
) -> str | None:
    """Compare the runs of these numbers, which `rng` is at the beginning of."""
    own = np.random.Generator(np.random.SFC64())
    done = 0
    for run in numbers:
        if run > done:
            compiled.pair_outcomes(runs.part(done, run), rng)
        own.bit_generator.state = state = rng.bit_generator.state
        rows = compiled.pair_outcomes(runs.part(run, run + 1), rng)
        done = run + 1
        for side in (1, 0) if runs.order[run] else (0, 1):
            if runs.coupled:  # both sides begin alike; else the second draws behind the first
                own.bit_generator.state = state
            if difference := _difference(compiled, plain, runs.pair.sides[side], own, rows[side], run):
                return difference
        if time.perf_counter() > deadline:
            break
    return None


def _difference(
    compiled: Mechanism, plain: Mechanism, data: Data, rng: np.random.Generator, row: Rows, run: int
) -> str | None:
    """Run once in Python and compare."""
    expected = np.empty((1, row.shape[1]))
    try:
        with np.errstate(all="ignore"):  # a hash that wraps on purpose is no error in compiled code either
            length = plain.fill(data, rng, expected, run)
    except MechanismError as error:
        seen = str(error)
    else:
        if length <= row.shape[1] and same_outcome(row[0], expected[0]):
            return None
        seen = _shown(expected[0])
    return (
        f"{compiled.name} runs as plain Python: compiled by numba, run {run} on the input {shown(data)} gave "
        f"{_shown(row[0])}, in Python: {seen}"
    )


def _shown(row: Rows) -> str:
    present = row[: int(np.sum(~np.isnan(row)))].tolist()
    texts = [TEXTS.get(entry) or f"{entry:.10g}" for entry in present[:12]]
    return f"({', '.join(texts)}{', …' if len(present) > 12 else ''})"
