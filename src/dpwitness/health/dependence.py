"""Whether runs of one call depend on each other, by what events show call by call; exact tests, see `independence`."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.clock import Deadline
from dpwitness.errors import DependentRuns
from dpwitness.events import Event, widen
from dpwitness.evidence import Counts
from dpwitness.health.common import ADVICE, SECONDS, Outcomes, outcome_key
from dpwitness.health.independence import (
    LEVEL,
    calls_p_value,
    lags_p_value,
    pairs_p_value,
    parity_p_value,
    repeats_p_value,
)
from dpwitness.mechanisms.mechanism import Rows, Turns
from dpwitness.neighbours import Data, Pair, input_key, shown
from dpwitness.runs import Role, Runner, Threads, generator, stack

#: Further calls on each input, of a mechanism that makes many runs a call and of one that makes one; and shards of the
#: confirm runs, which are calls too, that are looked at beside them.
CALLS: Final = 32
CALLS_ONE_BY_ONE: Final = 8
SHARDS: Final = 64
#: Runs one by one that these calls make in all, since a pool of noise is found once it comes again: at most so many,
#: and after so many seconds no more than the lesser number.
MORE_RUNS: Final = 1 << 15
ENOUGH_RUNS: Final = 1 << 12
ENOUGH_SECONDS: Final = 0.1
#: Runs of one input that are looked at in the order of time, the series of how many inputs, and runs that it takes.
RUNS_IN_ORDER: Final = 1 << 15
SERIES: Final = 4
FEWEST: Final = 16
#: Numbers that the outcomes of further calls on one input may hold.
ROOM: Final = 1 << 22
#: Rows of the first call; the others are as long as fits in the time.
ROWS: Final = 64
#: Seconds for all of it at most.
MOST_SECONDS: Final = 10.0

Hits = NDArray[np.bool_]
Whole = NDArray[np.int64]
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
    series: "tuple[Series, ...]" = ()  # runs whose outcomes are known, as those of epochs

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


@dataclass(frozen=True, slots=True)
class Series:
    """Runs of one input in one process, in the order of time: their outcomes, and their numbers among its runs."""

    data: Data
    rows: Rows
    places: Whole

    @property
    def outcomes(self) -> tuple[bytes, ...]:
        """The outcomes, equal ones by the same bytes in every process."""
        return tuple(map(outcome_key, self.rows))


def series_of(runs: Iterable[tuple[Pair, Rows, Rows, Turns]]) -> tuple[Series, ...]:
    """The longest series of paired runs of several pairs; an input that stands in several pairs is one.

    `runs`: of each pair the outcomes on D, those on D′, and the turns, of no runs where nothing is kept between them.
    """
    found: dict[Any, list[Series]] = {}
    for pair, x, y, turns in runs:
        for data, rows, places in zip(pair.sides, (x, y), turns[1:], strict=True):
            for process in np.unique(turns[0]):
                there = turns[0] == process
                found.setdefault((input_key(data), process), []).append(Series(data, rows[there], places[there]))
    longest = sorted(found.values(), key=lambda parts: -sum(len(part.rows) for part in parts))[:SERIES]
    made = []
    for parts in longest:
        rows, places = stack([part.rows for part in parts]), np.concatenate([part.places for part in parts])
        order = np.argsort(places)[-RUNS_IN_ORDER:]
        if len(order) >= FEWEST:
            made.append(Series(parts[0].data, rows[order], places[order]))
    return tuple(made)


def refuse_series(name: str, events: Sequence[Event], series: Sequence[Series]) -> None:
    """Raise `DependentRuns` where outcomes hang on those before them, as `refuse_dependent` does.

    Looked at are exact repeats of whole outcomes, odd against even runs, and all distances in time: of each event, and
    of the first number of the outcomes, above its median and far from it.
    """
    tests = len(series) * (1 + 2 * (len(events) + 2))
    for one in series:
        keys = one.outcomes
        numbers = {key: k for k, key in enumerate(dict.fromkeys(keys))}
        if repeats_p_value([numbers[key] for key in keys], one.places.tolist()) < LEVEL / tests:
            distance = _usual_distance(keys, one.places)
            raise DependentRuns(
                f"the runs of {name} are not independent: on {shown(one.data)} the same outcome came again {distance} "
                f"{'run' if distance == 1 else 'runs'} later, more often than by chance: {ADVICE}"
            )
        for what, flags in _flags(one.rows, events):
            if parity_p_value(flags, one.places) < LEVEL / tests:
                odd = one.places % 2 == 1
                (a, n), (b, m) = ((int(flags[part].sum()), int(part.sum())) for part in (odd, ~odd))
                raise DependentRuns(
                    f"the runs of {name} are not independent: on {shown(one.data)} {what} in {a} of {n} odd runs and "
                    f"in {b} of {m} even ones: {ADVICE}"
                )
            p, lag = lags_p_value(flags, one.places)
            if p < LEVEL / tests:
                raise DependentRuns(
                    f"the runs of {name} are not independent: on {shown(one.data)} whether {what} depends on the run "
                    f"{lag} before: {ADVICE}"
                )


def _usual_distance(keys: Sequence[bytes], places: Whole) -> int:
    """The distance at which outcomes most often come again."""
    last: dict[bytes, int] = {}
    distances: Counter[int] = Counter()
    for key, place in zip(keys, places.tolist(), strict=True):
        if key in last:
            distances[place - last[key]] += 1
        last[key] = place
    return distances.most_common(1)[0][0]


def _flags(rows: Rows, events: Sequence[Event]) -> Iterator[tuple[str, Hits]]:
    """What is followed through the runs; the median is the same in whatever order they come."""
    for event in events:
        yield "the event happened", event.contains(widen(rows, event.width))
    first = rows[:, 0]
    if not np.isnan(first).all():
        middle = _median(first)
        yield "the outcome was above its median", first > middle
        with np.errstate(over="ignore", invalid="ignore"):  # infinities, and the codes of texts
            away = np.abs(first - middle)
        yield "the outcome was far from its median", away > _median(away)


def _median(values: Rows) -> float:
    """The middle one of the values that are there: never between two, where large codes would overflow."""
    present = np.sort(values[~np.isnan(values)])
    return float(present[len(present) // 2]) if len(present) else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherCalls:
    """Further calls on one input.

    The hits of each event call by call, the outcome if it was always the same, and the first runs one by one.
    """

    hits: list[list[Hits]]  # [event][call], one flag a row
    always: tuple[float, ...] | None
    series: Series | None = None

    @property
    def runs(self) -> int:
        """The runs of all calls."""
        return sum(len(flags) for flags in self.hits[0])


def further_calls(
    runner: Runner, pair: Pair, events: Sequence[Event], *, seconds: float = SECONDS
) -> list[FurtherCalls] | None:
    """Call the mechanism again on D and on D′, from streams of their own; None where that takes too long.

    `seconds`: how long it should take on each.
    """
    task: Callable[[], list[FurtherCalls]] = partial(_both_sides, runner, pair, events, seconds)
    return next(Threads(1).ordered([task], Deadline(time.monotonic() + MOST_SECONDS)))


def _both_sides(runner: Runner, pair: Pair, events: Sequence[Event], seconds: float) -> list[FurtherCalls]:
    return [_calls(runner, data, side, events, seconds) for side, data in enumerate(pair.sides)]


def _calls(runner: Runner, data: Data, side: int, events: Sequence[Event], seconds: float) -> FurtherCalls:
    """Calls of as many rows as a shard of confirm runs has, or as fit in the time."""
    mechanism = runner.mechanism
    calls, size = (CALLS if mechanism.cost.batched else CALLS_ONE_BY_ONE), mechanism.shard
    rows = min(size, ROWS)
    hits: list[list[Hits]] = [[] for _ in events]
    outcomes = Outcomes()
    blocks: list[Rows] = []
    before = mechanism.made
    width = max(mechanism.width, *(event.width for event in events))
    room = max(min(RUNS_IN_ORDER, ROOM // width), FEWEST)
    # Of mechanisms too slow for that the runs of epochs are looked at.
    enough = ENOUGH_RUNS if ENOUGH_RUNS * mechanism.cost.seconds_per_run < seconds else 0
    end = time.monotonic() + seconds
    for call in range(calls if mechanism.cost.batched else max(calls, min(MORE_RUNS, room) // size)):
        started = time.monotonic()
        if call >= calls and call * size >= enough and started > end - seconds + ENOUGH_SECONDS:
            break
        rng = generator(runner.seed, Role.HEALTH_FURTHER_CALLS, side, call)
        block = mechanism.outcomes(data, rng, rows, least=width)
        outcomes.add(block)
        blocks.append(block[:room])
        room -= len(blocks[-1])
        for event, flags in zip(events, hits, strict=True):
            flags.append(event.contains(block))
        now = time.monotonic()
        if now > end:
            break
        rows = int(min(size, max(rows, (end - now) / max(calls - call, 1) / ((now - started) / rows))))
    kept = stack(blocks)
    return FurtherCalls(hits=hits, always=outcomes.always, series=Series(data, kept, before + np.arange(len(kept))))


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
