"""Comparison of compiled code with Python: the same seeds must give the same outcomes.

Numba does not check types at run time, wraps integers and freezes globals, and its machine code comes from a cache. The
comparison finds mechanisms whose outcomes are changed by this.
"""

import math
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final

import numpy as np

from dpwitness.arrays import RELATIVE_ROUNDING, Booleans, Rows
from dpwitness.errors import CompiledDisagrees, MechanismError
from dpwitness.events import of_one_width, stack, widen
from dpwitness.events.encoding import CODE_TEXTS
from dpwitness.mechanisms.mechanism import Mechanism, Order, PairedRuns
from dpwitness.neighbours import Pair, shown

#: The seconds after which a comparison run by run makes no more runs.
COMPARISON_SECONDS: Final = 0.25
#: The largest difference of equal outcomes as a share of the spread of outcomes, and the relative difference of
#: outcomes whose leading digits are the same.
SPREAD_SHARE: Final = 1e-6
#: The largest number of entries in the outcomes of one input that are in memory at once.
MOST_NUMBERS: Final = 1 << 20


def first_difference(compiled: Mechanism, plain: Mechanism, pair: Pair, *, runs: int = 16) -> str | None:
    """The first difference in up to `runs` runs on both inputs, in about `COMPARISON_SECONDS`; None if all agree.

    A difference is a line of text: the run, its input, and both outcomes.
    """
    end, rng = time.perf_counter() + COMPARISON_SECONDS, np.random.Generator(np.random.SFC64(0))
    all_runs = PairedRuns.d_first(pair, runs, coupled=False)
    return _difference_one_by_one(compiled, plain, all_runs, rng, range(runs), end)


def difference_in_many(
    compiled: Mechanism, plain: Mechanism, pair: Pair, rng: np.random.Generator, seconds: float
) -> str | None:
    """The first difference of compiled and plain code in about `seconds` of runs; None if they agree in all runs.

    A branch that Python alone takes, with probability p, is missed by N runs with probability (1 − p)^N.
    """
    own = np.random.Generator(np.random.SFC64())
    deadline = time.perf_counter() + seconds
    made, done, n, per_run = np.empty((2, 0, 1)), 0, 1, math.inf
    while n > 0:
        began, state = time.perf_counter(), rng.bit_generator.state
        runs = PairedRuns(pair=pair, order=np.zeros(n, np.uint8), coupled=False, start=done)
        own.bit_generator.state = state
        try:
            rows = compiled.pair_outcomes(runs, rng)
            with np.errstate(all="ignore"):  # wrapped integers, as of a hash, raise no error in compiled code either
                expected = plain.pair_outcomes(runs, own)
        except CompiledDisagrees as error:  # compiled code raised an error that Python did not raise
            return str(error)
        except MechanismError:  # the run and the side are found run by run
            rng.bit_generator.state = state
            return _difference_one_by_one(compiled, plain, runs, rng, range(n), math.inf)
        if made.size < MOST_NUMBERS:
            made = stack([made, rows])
        if (difference := _difference(compiled.name, runs, range(n), rows, expected, made)) is not None:
            return difference
        done += n
        now = time.perf_counter()
        per_run = min(per_run, (now - began) / n)  # the least: a call has fixed costs, and the machine may be busy
        n = int(min(4 * n, (deadline - now) / per_run, max(MOST_NUMBERS // rows.shape[2], 1)))
    return None


def require_same(difference: str | None) -> None:
    """Raise `CompiledDisagrees` unless the difference is None."""
    if difference is not None:
        raise CompiledDisagrees(difference)


class Agreement:
    """A comparison of compiled code with Python: one run of each pair of a search, 0.01 s of CPU time in all."""

    def __init__(self) -> None:
        self._pairs: set[frozenset[Hashable]] = set()
        self._left = 0.01  # seconds of CPU time
        self._difference: str | None = None
        self._lock = threading.Lock()

    def require(self, compiled: Mechanism, pair: Pair) -> None:
        """Raise `CompiledDisagrees` if compiled code and Python differ on this pair, or differed on an earlier pair."""
        if compiled.plain is None:
            return
        with self._lock:
            if self._left > 0 and self._difference is None and pair.key not in self._pairs:
                self._pairs.add(pair.key)
                began = time.thread_time()  # CPU time: a busy machine must not end the comparisons
                self._difference = first_difference(compiled, compiled.plain, pair, runs=1)
                self._left -= time.thread_time() - began
        require_same(self._difference)


def difference_in_event(
    compiled: Mechanism,
    plain: Mechanism,
    pair: Pair,
    contains: Callable[[Rows], Booleans],
    streams: Iterable[tuple[np.random.Generator, Order]],
    *,
    coupled: bool = True,
) -> str | None:
    """The first difference between machine code and Python in runs whose outcome lies in an event; None if all agree.

    Up to 8 runs fall into the event on D alone, and up to 8 on D′. These runs are evidence, in which an error of
    compiled code in a rare branch matters. `streams`: the generator and the order of each stream of paired runs, until
    a stream has runs with the event.
    """
    began = time.perf_counter()
    for rng, order in streams:
        start = rng.bit_generator.state
        n = min(len(order), max(MOST_NUMBERS // max(compiled.width, 1), 8))
        runs = PairedRuns(pair=pair, order=order[:n], coupled=coupled)
        rows = compiled.pair_outcomes(runs, rng)
        here, there = contains(rows[0]), contains(rows[1])
        chosen = {*np.flatnonzero(here & ~there)[:8].tolist(), *np.flatnonzero(there)[:8].tolist()}
        rng.bit_generator.state = start
        if chosen:
            return _difference_one_by_one(compiled, plain, runs, rng, sorted(chosen), began + COMPARISON_SECONDS, rows)
    return f"{compiled.name} runs as plain Python: no run with the event was found again, to compare it with Python"


def _difference_one_by_one(
    compiled: Mechanism,
    plain: Mechanism,
    runs: PairedRuns,
    rng: np.random.Generator,
    numbers: Sequence[int],
    deadline: float,
    outcomes: Rows | None = None,
) -> str | None:
    """The first difference between compiled and plain code in the runs `numbers`, made one by one; None if all agree.

    `rng`: the generator at the start of `runs`; `outcomes`: compiled rows (2, n, width), for the spread of outcomes.
    """
    own = np.random.Generator(np.random.SFC64())
    made, expected = list[Rows](), list[Rows]()
    done = 0
    for run in numbers:
        try:
            if run > done:
                compiled.pair_outcomes(runs.part(done, run), rng)
            own.bit_generator.state = state = rng.bit_generator.state
            rows = compiled.pair_outcomes(runs.part(run, run + 1), rng)
        except CompiledDisagrees as error:  # compiled code raised an error that Python did not raise
            return str(error)
        done, sides = run + 1, [rows[0], rows[1]]
        for side in (1, 0) if runs.order[run] else (0, 1):
            if runs.coupled:  # both sides begin from one state; else the second side draws behind the first
                own.bit_generator.state = state
            try:
                with np.errstate(all="ignore"):  # wrapped integers raise no error in compiled code either
                    sides[side] = plain.outcomes(runs.pair.sides[side], own, 1, start=runs.start + run)
            except MechanismError as error:
                return _text(compiled.name, runs, run, side, _shown(rows[side, 0]), str(error))
        made.append(rows)
        expected.append(np.stack(of_one_width(sides[0], sides[1])))
        if time.perf_counter() > deadline:
            break
    found = stack(made)
    return _difference(compiled.name, runs, numbers, found, stack(expected), found if outcomes is None else outcomes)


def _difference(
    name: str, runs: PairedRuns, numbers: Sequence[int], rows: Rows, expected: Rows, outcomes: Rows
) -> str | None:
    """The first difference between `rows` of compiled code and `expected` rows; arrays of shape (2, n, width)."""
    width = max(array.shape[2] for array in (rows, expected, outcomes))
    rows, expected, outcomes = (widen(array, width) for array in (rows, expected, outcomes))
    unlike = np.stack([differing(rows[side], expected[side], outcomes[side]) for side in (0, 1)], axis=1)
    for i, side in np.argwhere(unlike)[:1].tolist():
        gave, seen = (_shown(array[side, i]) for array in (rows, expected))
        if gave == seen:  # in the first ten digits
            gave, seen = (_shown(array[side, i], digits=17) for array in (rows, expected))
        return _text(name, runs, numbers[i], side, gave, seen)
    return None


def differing(rows: Rows, expected: Rows, outcomes: Rows) -> Booleans:
    """Flags of the rows that differ from the expected rows; arrays of shape (n, width), `outcomes` with any n.

    Flags, texts, lengths and integers must be equal; reals may differ by a relative 10⁻⁹ and by less than the noise.
    The noise on a large number may change its last digits alone: the spread of outcomes with the same leading digits,
    at least four of them, shows its size. If these outcomes do not vary, the number is a constant of this input, and
    must be equal.
    """
    unlike: Booleans = ~((rows == expected) | (np.isnan(rows) & np.isnan(expected)))
    exact = (
        np.isin(rows, [*CODE_TEXTS]) | np.isin(expected, [*CODE_TEXTS]) | ~(np.isfinite(rows) & np.isfinite(expected))
    )
    exact |= (rows == np.floor(rows)) & (expected == np.floor(expected))
    for column in np.flatnonzero((unlike & ~exact).any(axis=0)):
        at = np.flatnonzero((unlike & ~exact)[:, column])
        a, b = rows[at, column], expected[at, column]
        ordered = np.sort(outcomes[np.isfinite(outcomes[:, column]), column])
        first = np.searchsorted(ordered, a - SPREAD_SHARE * np.abs(a))
        end = np.searchsorted(ordered, a + SPREAD_SHARE * np.abs(a), side="right")
        # Fewer outcomes may be near by chance.
        alike = end - first >= max(4, len(ordered) // 16)
        ends = np.append(ordered, 0.0)
        spread = np.where(alike, ends[end - 1] - ends[first], math.inf)
        allowed = np.minimum(RELATIVE_ROUNDING * np.maximum(np.abs(a), np.abs(b)), SPREAD_SHARE * spread)
        unlike[at, column] = np.abs(a - b) > allowed
    return np.asarray(unlike.any(axis=1))


def _text(name: str, runs: PairedRuns, run: int, side: int, gave: str, seen: str) -> str:
    return (
        f"{name} runs as plain Python: compiled by numba, run {runs.start + run} on the input "
        f"{shown(runs.pair.sides[side])} gave {gave}, in Python: {seen}"
    )


def _shown(row: Rows, digits: int = 10) -> str:
    present = row[: int(np.sum(~np.isnan(row)))].tolist()
    texts = [CODE_TEXTS.get(entry) or f"{entry:.{digits}g}" for entry in present[:12]]
    return f"({', '.join(texts)}{', …' if len(present) > 12 else ''})"
