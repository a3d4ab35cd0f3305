"""What a run of a mechanism costs, measured once; numbers of runs follow from it, not from the kind of mechanism."""

import time
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import MechanismError
from dpwitness.neighbours import Pair

#: Seconds a run from which on 32 paired runs would make one wait: then the e-value is looked at after every 2.
SLOW: Final = 0.02
#: The same for 16,384 paired runs, which take 8 s from here on.
SLOW_IN_NUMBERS: Final = 250e-6

#: Seconds that one timed call shall take at least: where it takes less, it makes more runs, up to so many.
TIMED: Final = 250e-6
MOST_RUNS: Final = 1024
#: The same where one call makes many runs: it may take long for whatever number of them.
TIMED_BATCHED: Final = 0.1
#: Timed calls, and about how many seconds they take together.
CALLS: Final = 5
SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a run costs.

    Attributes
    ----------
    width
        Entries of the longest outcome in the trial runs, at least 1. Later outcomes may be longer.
    seconds_per_run
        Seconds of one run of one input: the least that was measured, since a busy machine must not make a fast
        mechanism look slow. 0.0 where nothing was measured.
    compiled
        Whether it is machine code, which keeps nothing from run to run.
    parallel
        Whether several threads may run it at the same time.
    batched
        Whether one call makes many runs, so that single runs cost as much as hundreds.
    """

    width: int = 1
    seconds_per_run: float = 0.0
    compiled: bool = False
    parallel: bool = False
    batched: bool = False

    @property
    def slow(self) -> bool:
        """Whether a hundred runs are too many to spend on anything but evidence."""
        return self.seconds_per_run > SLOW

    @property
    def in_numbers(self) -> bool:
        """Whether runs are cheap when they are many: of machine code, and of calls that make many."""
        return self.compiled or self.batched

    @property
    def shard(self) -> int:
        """Paired runs that get one seed.

        One of four numbers: the same seed gives the same counts though the measured seconds vary a little.
        """
        if self.slow:
            return 2
        if not self.in_numbers:
            return 32
        return 64 if self.seconds_per_run > SLOW_IN_NUMBERS else 16_384


class Runnable(Protocol):
    """What can be timed: a mechanism."""

    cost: Cost
    width: int

    def fill_pair(
        self, pair: Pair, rng: np.random.Generator, rows: NDArray[np.float64], start: int, *, coupled: bool
    ) -> int:
        """Fill rows of both inputs; return the longest length."""


def measured(mechanism: Runnable, pair: Pair) -> Cost:
    """Run a mechanism on both inputs and return its cost; it takes a few milliseconds, or a few runs of a slow one.

    The first run is not timed: it may import, compile and build what the others use. Raises `MechanismRaised` and
    `InvalidOutcome` where it fails.
    """
    rng = np.random.Generator(np.random.SFC64(0))
    widest = mechanism.fill_pair(pair, rng, np.empty((2, 1, max(mechanism.width, 8))), 0, coupled=False)
    worth = TIMED_BATCHED if mechanism.cost.batched else TIMED
    n = 1
    times: list[float] = []
    began = time.perf_counter()
    while not times or (len(times) < CALLS and time.perf_counter() - began < SECONDS):
        rows = np.empty((2, n, max(widest, 1)))
        started = time.perf_counter()
        try:
            widest = max(widest, mechanism.fill_pair(pair, rng, rows, 0, coupled=False))
        except MechanismError:  # a rare one: it is raised where it counts, with the number of the run that repeats it
            break
        seconds = time.perf_counter() - started
        if seconds < worth and n < MOST_RUNS:
            n *= 4
        else:
            times.append(seconds / (2 * n))
    return replace(mechanism.cost, width=max(widest, 1), seconds_per_run=min(times, default=0.0))
