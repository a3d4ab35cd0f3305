"""Compares compiled code with Python: the same seeds must give the same outcomes.

Numba checks no types at run time, wraps whole numbers and freezes globals, and its machine code comes from a cache.
None of it may change what is tested unseen.
"""

import math
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import CompiledDisagrees, MechanismError
from dpwitness.events import widen
from dpwitness.events.encoding import TEXTS, Rows, same_outcome
from dpwitness.mechanisms.mechanism import Mechanism, Order, PairedRuns
from dpwitness.neighbours import Data, Pair, shown

#: Paired runs that are compared before a mechanism is used, fewer where they take longer than so many seconds.
RUNS: Final = 16
SECONDS: Final = 0.25
#: Seconds for comparing the pairs of a search.
SECONDS_OF_PAIRS: Final = 0.01
#: Runs with the event on D alone, and on D′, that are compared before a verdict.
EACH: Final = 8
#: Runs in which an event is asked whether its width is what it says.
WIDTH_RUNS: Final = 64
#: Outcomes that differ relatively by less begin with the same digits; a difference is small beside noise of which it is
#: this share.
SMALL: Final = 1e-6
#: Outcomes that begin with the same digits, from which it is told how far they vary.
FEWEST_ALIKE: Final = 4
#: Differences in last digits that are looked at beside the noise: the largest.
CLOSE: Final = 64
#: Numbers that the outcomes of one input may hold, where such runs are looked for.
ROOM: Final = 1 << 20
#: Each call of many compared runs makes at most so many times as many as the one before.
GROWTH: Final = 4


def first_difference(compiled: Mechanism, plain: Mechanism, pair: Pair, *, runs: int = RUNS) -> str | None:
    """Compare up to `runs` runs of both inputs in about `SECONDS`.

    Says in one line how the first that differs does, None where all are the same.
    """
    rng, own = np.random.Generator(np.random.SFC64(0)), np.random.Generator(np.random.SFC64())
    one = PairedRuns.d_first(pair, 1, coupled=False)
    began = time.perf_counter()
    made: list[Rows] = []

    def compared() -> Iterator[tuple[int, Unlike | None]]:
        for run in range(runs):
            own.bit_generator.state = rng.bit_generator.state
            made.append(compiled.pair_outcomes(one, rng))
            for side, data in enumerate(pair.sides):
                yield side, _unlike(compiled, plain, data, own, made[-1][side, 0], run)
            if time.perf_counter() - began > SECONDS:
                break

    return _first_noticeable(compared(), made)


def difference_in_many(
    compiled: Mechanism, plain: Mechanism, pair: Pair, rng: np.random.Generator, seconds: float
) -> str | None:
    """Compare as many runs of both inputs as Python makes in about so many seconds, many a call; as `first_difference`.

    A path of probability p that Python alone takes is missed by N runs with probability (1 − p)^N.
    """
    own = np.random.Generator(np.random.SFC64())
    deadline = time.perf_counter() + seconds
    made: list[Rows] = []

    def compared() -> Iterator[tuple[int, Unlike | None]]:
        done, n, of_run = 0, 1, math.inf
        while n > 0:
            began = time.perf_counter()
            runs = PairedRuns(pair=pair, order=np.zeros(n, np.uint8), coupled=False, start=done)
            rows, found = _many_compared(compiled, plain, runs, rng, own)
            if sum(part.size for part in made) < ROOM:
                made.append(rows)
            yield from found
            done += n
            now = time.perf_counter()
            of_run = min(of_run, (now - began) / n)  # a call has costs of its own, and the machine may be busy
            n = int(min(GROWTH * n, (deadline - now) / of_run, max(ROOM // rows.shape[2], 1)))

    return _first_noticeable(compared(), made)


def require_same(difference: str | None) -> None:
    """Raise `CompiledDisagrees` for what one of these found."""
    if difference is not None:
        raise CompiledDisagrees(difference)


class Agreement:
    """Compares compiled code with Python on the pairs of a search, a run of each, as long as that takes little time."""

    def __init__(self) -> None:
        self._pairs: set[frozenset[Hashable]] = set()
        self._left = SECONDS_OF_PAIRS
        self._difference: str | None = None
        self._lock = threading.Lock()

    def require(self, compiled: Mechanism, pair: Pair) -> None:
        """Raise `CompiledDisagrees` where they differ on this pair, or did on one before."""
        if compiled.plain is None:
            return
        with self._lock:
            if self._left > 0 and self._difference is None and pair.key not in self._pairs:
                self._pairs.add(pair.key)
                began = time.perf_counter()
                self._difference = first_difference(compiled, compiled.plain, pair, runs=1)
                self._left -= time.perf_counter() - began
        require_same(self._difference)


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

    `streams`: the generator of each, and which side of its runs comes first; all that there are, since the first run
    with the event may be far. Compiled code that is wrong on rare paths alone is caught where it matters: in the runs
    that are evidence.
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
        compared = _compared_one_by_one(compiled, plain, runs, rng, sorted(chosen), began + SECONDS)
        difference = _first_noticeable(compared, [rows])
        if difference is not None or chosen:
            return difference
    return f"{compiled.name} runs as plain Python: no run with the event was found again, to compare it with Python"


def looks_beyond(compiled: Mechanism, pair: Pair, contains: Callable[[Rows], NDArray[np.bool_]], width: int) -> bool:
    """Whether an event that says that it looks at so many entries is another one where no more of them is written.

    Compiled code writes one entry more than the events say, where runs are counted.
    """
    runs = PairedRuns.d_first(pair, WIDTH_RUNS, coupled=False)
    for rows in compiled.pair_outcomes(runs, np.random.Generator(np.random.SFC64(0))):
        if not np.array_equal(contains(rows), contains(np.ascontiguousarray(rows[:, : width + 1]))):
            return True
    return False


def _compared_one_by_one(
    compiled: Mechanism,
    plain: Mechanism,
    runs: PairedRuns,
    rng: np.random.Generator,
    numbers: Sequence[int],
    deadline: float,
) -> Iterator[tuple[int, "Unlike | None"]]:
    """Compare the runs of these numbers, which `rng` is at the beginning of: the side of each, and its difference."""
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
            yield side, _unlike(compiled, plain, runs.pair.sides[side], own, rows[side, 0], runs.start + run)
        if time.perf_counter() > deadline:
            break


@dataclass(frozen=True, slots=True)
class Unlike:
    """Outcomes of one seed that differ at least in the last digits: of compiled code, and of Python.

    `expected`: None where Python raised, or returned more; `seen` says what then.
    """

    name: str
    data: Data
    run: int
    row: Rows
    expected: Rows | None
    seen: str = ""

    @property
    def text(self) -> str:
        """The difference in one line."""
        gave, seen = _shown(self.row), self.seen
        if self.expected is not None:
            seen = _shown(self.expected)
            if gave == seen:  # in the digits that people compare
                gave, seen = _shown(self.row, digits=17), _shown(self.expected, digits=17)
        return (
            f"{self.name} runs as plain Python: compiled by numba, run {self.run} on the input {shown(self.data)} gave "
            f"{gave}, in Python: {seen}"
        )

    @property
    def certain(self) -> bool:
        """Whether they differ by more than the rounding of an exponential."""
        return self.expected is None or not same_outcome(self.row, self.expected)

    @property
    def share(self) -> float:
        """The largest relative difference of two entries, where all of them are numbers."""
        assert self.expected is not None
        with np.errstate(all="ignore"):
            shares = np.abs(self.row - self.expected) / np.abs(self.row)
        return float(np.max(shares, where=self.row != self.expected, initial=0.0))

    def beside(self, outcomes: Sequence[Rows]) -> bool:
        """Whether it is a difference beside the noise, too, by outcomes on the same input.

        Noise may be smaller than the last digits of a large number. Of outcomes that begin with the same digits it is
        seen how far they vary; where they do not, the number is a constant of this input.
        """
        assert self.expected is not None
        for j in np.flatnonzero((self.row != self.expected) & ~np.isnan(self.row)):
            value = self.row[j]
            entries = np.concatenate([rows[:, j] for rows in outcomes if rows.shape[1] > j])
            near = entries[np.abs(entries - value) <= SMALL * abs(value)]
            # A few may be near by chance, and nearer than the noise is wide.
            alike = len(near) >= max(FEWEST_ALIKE, len(entries) // 16)
            if alike and abs(value - self.expected[j]) > SMALL * np.ptp(near):
                return True
        return False


def _first_noticeable(compared: Iterable[tuple[int, Unlike | None]], made: Sequence[Rows]) -> str | None:
    """The first difference that is certain, else the first in last digits that is one beside the noise.

    `compared`: the side of each run, and its difference. `made`: all runs in the end, each of shape (2, n, width).
    """
    close: list[tuple[int, Unlike]] = []
    try:
        for side, found in compared:
            if found is not None and found.certain:
                return found.text
            close += [] if found is None else [(side, found)]
    except CompiledDisagrees as error:  # what it raised Python did not
        return str(error)
    sides = [[rows[side] for rows in made] for side in (0, 1)]
    close = nlargest(CLOSE, close, key=lambda one: one[1].share)
    return next((found.text for side, found in close if found.beside(sides[side])), None)


def _unlike(
    compiled: Mechanism, plain: Mechanism, data: Data, rng: np.random.Generator, row: Rows, run: int
) -> Unlike | None:
    """Run once in Python and compare with the row of compiled code; None where all is the same to the last digit."""
    expected = np.empty((1, len(row)))
    try:
        with np.errstate(all="ignore"):  # a hash that wraps on purpose is no error in compiled code either
            length = plain.fill(data, rng, expected, run)
    except MechanismError as error:
        return Unlike(compiled.name, data, run, row, None, str(error))
    if length > len(row):
        return Unlike(compiled.name, data, run, row, None, _shown(expected[0]))
    if np.array_equal(row, expected[0], equal_nan=True):
        return None
    return Unlike(compiled.name, data, run, row, expected[0])


def _many_compared(
    compiled: Mechanism, plain: Mechanism, runs: PairedRuns, rng: np.random.Generator, own: np.random.Generator
) -> tuple[Rows, Sequence[tuple[int, Unlike | None]]]:
    """Outcomes of compiled code, and where those of Python from the same draws differ; `own`: a generator to use."""
    state = rng.bit_generator.state
    rows = compiled.pair_outcomes(runs, rng)
    own.bit_generator.state = state
    try:
        with np.errstate(all="ignore"):  # as above
            expected = plain.pair_outcomes(runs, own)
    except MechanismError:  # in which run, on which side?
        rng.bit_generator.state, half = state, len(runs) // 2
        if not half:
            return rows, list(_compared_one_by_one(compiled, plain, runs, rng, (0,), math.inf))
        parts = (runs.part(0, half), runs.part(half, len(runs)))
        return rows, [found for part in parts for found in _many_compared(compiled, plain, part, rng, own)[1]]
    width = max(rows.shape[2], expected.shape[2])
    rows, expected = widen(rows, width), widen(expected, width)
    unlike = np.any((rows != expected) & ~(np.isnan(rows) & np.isnan(expected)), axis=2)
    return rows, [
        (side, Unlike(compiled.name, runs.pair.sides[side], runs.start + run, rows[side, run], expected[side, run]))
        for side, run in np.argwhere(unlike).tolist()
    ]


def _shown(row: Rows, digits: int = 10) -> str:
    present = row[: int(np.sum(~np.isnan(row)))].tolist()
    texts = [TEXTS.get(entry) or f"{entry:.{digits}g}" for entry in present[:12]]
    return f"({', '.join(texts)}{', …' if len(present) > 12 else ''})"
