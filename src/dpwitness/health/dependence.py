"""Whether runs of one call depend on each other, by what events show call by call; exact tests, see `independence`."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.clock import Deadline
from dpwitness.errors import DependentRuns
from dpwitness.events import Event
from dpwitness.evidence import Counts
from dpwitness.health.common import ADVICE, SECONDS, Outcomes
from dpwitness.health.independence import LEVEL, calls_p_value, pairs_p_value
from dpwitness.neighbours import Data, Pair
from dpwitness.runs import Role, Runner, Threads, generator

#: Further calls on each input, of a mechanism that makes many runs a call and of one that makes one; and shards of the
#: confirm runs, which are calls too, that are looked at beside them.
CALLS: Final = 32
CALLS_ONE_BY_ONE: Final = 8
SHARDS: Final = 64
#: Rows of the first call; the others are as long as fits in the time.
ROWS: Final = 64
#: Seconds for all of it at most.
MOST_SECONDS: Final = 10.0

Hits = NDArray[np.bool_]
Shard = tuple[int, int, int]  # hits on D, hits on D′, paired runs


@dataclass(slots=True)
class Shards:
    """What shards of confirm runs showed one by one: at most `SHARDS` of them, evenly spread, and the sum of all.

    Which are kept is decided by their number, never by what they show.
    """

    totals: tuple[Counts, ...] = ()
    kept: list[tuple[Shard, ...]] = field(default_factory=list)
    stride: int = 1
    count: int = 0

    def add(self, totals: tuple[Counts, ...]) -> None:
        """Take the counts of every event after one more shard."""
        if self.count % self.stride == 0:
            before = self.totals or tuple(Counts() for _ in totals)
            self.kept.append(
                tuple(
                    (now.hits - then.hits, now.neighbour_hits - then.neighbour_hits, now.runs - then.runs)
                    for now, then in zip(totals, before, strict=True)
                )
            )
            if len(self.kept) > SHARDS:
                self.kept, self.stride = self.kept[::2], 2 * self.stride
        self.totals, self.count = totals, self.count + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherCalls:
    """Further calls on one input: the hits of each event call by call, and the outcome if it was always the same."""

    hits: list[list[Hits]]  # [event][call], one flag a row
    always: tuple[float, ...] | None

    @property
    def runs(self) -> int:
        """The runs of all calls."""
        return sum(len(flags) for flags in self.hits[0])


def further_calls(runner: Runner, pair: Pair, events: Sequence[Event]) -> list[FurtherCalls] | None:
    """Call the mechanism again on D and on D′, from streams of their own; None where that takes too long."""
    task: Callable[[], list[FurtherCalls]] = partial(_both_sides, runner, pair, events)
    return next(Threads(1).ordered([task], Deadline(time.monotonic() + MOST_SECONDS)))


def _both_sides(runner: Runner, pair: Pair, events: Sequence[Event]) -> list[FurtherCalls]:
    return [_calls(runner, data, side, events) for side, data in enumerate(pair.sides)]


def _calls(runner: Runner, data: Data, side: int, events: Sequence[Event]) -> FurtherCalls:
    """Calls of as many rows as a shard of confirm runs has, or as fit in the time."""
    mechanism = runner.mechanism
    calls, size = (CALLS if mechanism.cost.batched else CALLS_ONE_BY_ONE), mechanism.shard
    rows = min(size, ROWS)
    hits: list[list[Hits]] = [[] for _ in events]
    outcomes = Outcomes()
    width = max(event.width for event in events)
    end = time.monotonic() + SECONDS
    for call in range(calls):
        started = time.monotonic()
        rng = generator(runner.seed, Role.HEALTH_FURTHER_CALLS, side, call)
        block = mechanism.outcomes(data, rng, rows, least=width)
        outcomes.add(block)
        for event, flags in zip(events, hits, strict=True):
            flags.append(event.contains(block))
        now = time.monotonic()
        if now > end:
            break
        rows = int(min(size, max(rows, (end - now) / (calls - call) / ((now - started) / rows))))
    return FurtherCalls(hits=hits, always=outcomes.always)


def refuse_dependent(name: str, events: int, shards: Shards, seen: Sequence[FurtherCalls]) -> None:
    """Raise `DependentRuns` where hits cluster in calls, or in pairs of rows.

    Of a mechanism of independent runs that happens with probability `LEVEL` at most, where the number of runs was fixed
    before.

    Parameters
    ----------
    name
        The mechanism's, for the message.
    events
        The number of events.
    shards
        The shards of the confirm runs.
    seen
        Further calls on D and on D′, or nothing.
    """
    tests = 2 * (1 + len(ORDERS)) * events
    for event, side in product(range(events), (0, 1)):
        calls = seen[side].hits[event] if seen else []
        drawn = [(shard[event][side], shard[event][2]) for shard in shards.kept]
        drawn += [(int(flags.sum()), len(flags)) for flags in calls]
        on = ("D", "D′")[side]
        if calls_p_value([h for h, _ in drawn], [n for _, n in drawn]) < LEVEL / tests:
            shares = sorted(h / n for h, n in drawn)
            raise DependentRuns(
                f"the runs of {name} are not independent: on {on} the event happened in {shares[0]:.3%} of one call's "
                f"runs and in {shares[-1]:.3%} of another's, further apart or closer together than by chance: {ADVICE}"
            )
        for what, order in ORDERS if calls else ():
            both, total, pairs = (sum(counts) for counts in zip(*(order(flags) for flags in calls), strict=True))
            if pairs_p_value(both, total, pairs) < LEVEL / tests:
                raise DependentRuns(
                    f"the runs of {name} are not independent: on {on} the event happened in both of two rows {what} in "
                    f"{both} of {pairs} pairs, with {total} hits in all: {ADVICE}"
                )


def _beside(flags: Hits) -> tuple[int, int, int]:
    """Pairs of rows 1 and 2, 3 and 4, …: both hits, hits, pairs."""
    pairs = len(flags) // 2
    return _paired(flags[0 : 2 * pairs : 2], flags[1 : 2 * pairs : 2])


def _beside_shifted(flags: Hits) -> tuple[int, int, int]:
    """Pairs of rows 2 and 3, 4 and 5, …: what is kept for two runs may begin at any of them."""
    return _beside(flags[1:])


def _apart(flags: Hits) -> tuple[int, int, int]:
    """Pairs of a row of the first half of a call and the row at its place in the second."""
    pairs = len(flags) // 2
    return _paired(flags[:pairs], flags[pairs : 2 * pairs])


def _paired(a: Hits, b: Hits) -> tuple[int, int, int]:
    return int((a & b).sum()), int(a.sum() + b.sum()), len(a)


ORDERS: Final = (
    ("beside each other", _beside),
    ("beside each other", _beside_shifted),
    ("half a call apart", _apart),
)
