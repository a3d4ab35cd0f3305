"""What is asked before a claim is called refuted: whether the runs are independent, and the noise drawn anew.

Compiled code keeps nothing from run to run but the module-level values that were compiled into it: only these are
compared.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.clock import Deadline
from dpwitness.counts import Counts
from dpwitness.errors import DependentRuns
from dpwitness.events import Event
from dpwitness.health import fresh
from dpwitness.health.independence import LEVEL, calls_p_value, fisher_p_value, pairs_p_value
from dpwitness.job import Job
from dpwitness.mechanisms.mechanism import Rows
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.neighbours import Data, Pair
from dpwitness.runs import HEALTH, generator, ordered

#: Further calls on each input, of a vectorised mechanism and of plain Python; and shards of the confirm runs, which
#: are calls too, that are looked at beside them.
CALLS: Final = 32
PLAIN_CALLS: Final = 8
SHARDS: Final = 64
#: Runs of compiled code that are looked at for outcomes that never vary.
FEW: Final = 256
#: Seconds for these calls on each input, and for all of it at most.
SECONDS: Final = 1.0
PATIENCE: Final = 10.0
#: Streams of their own among those of the health checks.
CALLED: Final = 2

ADVICE: Final = "draw fresh noise for every run from the generator given (in a vectorised mechanism: one draw a row)"
REMEMBERED: Final = "draw fresh noise for every run, and let it read no variable that is set after its file is imported"

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


@dataclass(frozen=True, slots=True)
class _Seen:
    """Further calls on one input: the hits of each event call by call, and the outcome if it was always the same."""

    hits: list[list[Hits]]  # [event][call], one flag a row
    always: tuple[float, ...] | None


def examine(job: Job, pair: Pair, events: Sequence[Event], shards: Shards) -> tuple[str, ...]:
    """Ask whether what `events` showed on `pair` in the confirm runs can be believed; notes for people.

    Raises `DependentRuns` where the runs of
    a call depend on each other, or where noise is remembered; of a mechanism of independent runs with probability 1e-9
    at most for the one and for the other.
    """
    mechanism = job.mechanism
    if not isinstance(mechanism, PythonMechanism):
        return _compiled(job, pair)
    task = partial(_further, job, pair, events)
    seen = next(ordered([task], 1, Deadline(time.monotonic() + PATIENCE)))
    if seen is None:
        return ("its runs were not compared with each other: they took too long",)
    _refuse_dependent(job.mechanism.name, len(events), shards, seen)
    return _compared(job, mechanism, pair, events, seen, shards)


def _compiled(job: Job, pair: Pair) -> tuple[str, ...]:
    """Notes on inputs on which compiled code always returns the same.

    Raises `DependentRuns` where a module-level value that it uses is another in a new process.
    """
    function = job.mechanism.signature.function
    with suppress(fresh.CannotLoad):  # a function of this process alone: its constants are what they are
        if not fresh.same_constants(function):
            raise DependentRuns(
                f"{job.mechanism.name} may remember its noise: a module-level number or array that it uses has another "
                "value in a new process; draw fresh noise for every run, and give what was changed as a parameter"
            )
    notes = []
    for side, data in enumerate((pair.data, pair.neighbour)):
        rows = job.mechanism.outcomes(data, generator(job.seed, HEALTH, CALLED, side), FEW)
        if np.array_equal(rows, np.broadcast_to(rows[:1], rows.shape), equal_nan=True):
            always = tuple(float(value) for value in rows[0] if not np.isnan(value))
            notes.append(
                f"on {('D', 'D′')[side]} every one of {FEW} runs returned {_shown(always)}: it may add no noise"
            )
    return tuple(notes)


def examine_pass(job: Job, shards: Shards) -> None:
    """Ask whether the confirm runs of a pass were independent, by their shards alone.

    Of runs that depend on each other it is not known what they would have caught either. Raises `DependentRuns`.
    """
    if isinstance(job.mechanism, PythonMechanism) and shards.kept:
        _refuse_dependent(job.mechanism.name, len(shards.totals), shards, ())


def _further(job: Job, pair: Pair, events: Sequence[Event]) -> list[_Seen]:
    return [_calls(job, data, side, events) for side, data in enumerate((pair.data, pair.neighbour))]


def _calls(job: Job, data: Data, side: int, events: Sequence[Event]) -> _Seen:
    """Calls of as many rows as a shard of confirm runs has, or as fit in the time."""
    mechanism = job.mechanism
    vectorised = mechanism.signature.size is not None
    calls, size = (CALLS if vectorised else PLAIN_CALLS), mechanism.shard
    rows = min(size, 64)
    hits: list[list[Hits]] = [[] for _ in events]
    first: Rows | None = None
    same = True
    width = max(event.width for event in events)
    end = time.monotonic() + SECONDS
    for call in range(calls):
        started = time.monotonic()
        rng = generator(job.seed, HEALTH, CALLED, side, call)
        block = mechanism.outcomes(data, rng, rows, least=width)
        first = block[:1] if first is None else first
        same = same and first.shape[1] == block.shape[1]
        same = same and np.array_equal(block, np.broadcast_to(first, block.shape), equal_nan=True)
        for event, flags in zip(events, hits, strict=True):
            flags.append(event.contains(block))
        now = time.monotonic()
        if now > end:
            break
        cost = (now - started) / rows
        rows = int(min(size, max(rows, (end - now) / (calls - call) / cost)))
    always = None
    if same and first is not None:
        always = tuple(float(value) for value in first[0] if not np.isnan(value))
    return _Seen(hits, always)


def _refuse_dependent(name: str, events: int, shards: Shards, seen: Sequence[_Seen]) -> None:
    """Raise `DependentRuns` where hits cluster in calls, or in pairs of rows; `seen` is empty or has both sides."""
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


def _side(counts: Counts, side: int) -> int:
    return counts.neighbour_hits if side else counts.hits


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


def _compared(
    job: Job,
    mechanism: PythonMechanism,
    pair: Pair,
    events: Sequence[Event],
    seen: Sequence[_Seen],
    shards: Shards,
) -> tuple[str, ...]:
    """Ask a new process for the same: remembered noise is another there."""
    name = mechanism.name
    never_varies = [side for side in (0, 1) if seen[side].always is not None]
    try:
        question = fresh.request(
            mechanism.signature.original or mechanism.signature.function,
            mechanism.outcome,
            mechanism.signature.given,
            pair,
            [event.to_json() for event in events],
            vectorised=mechanism.signature.size is not None,
            interpreted=mechanism.signature.original is not None,
            seed=job.seed,
        )
        told = fresh.ask(question)
    except fresh.CannotLoad as error:
        if not never_varies:
            return (f"not compared with a new process, where noise that is remembered would be another: {error}",)
        raise DependentRuns(
            f"{name} returned {_shown(seen[never_varies[0]].always)} on every run on one input: whether it adds no "
            f"noise or remembers it can be told only in a new process, and there it cannot be loaded ({error}): put "
            "the function at the top level of a file"
        ) from error
    notes = []
    for side in (0, 1):
        where, here, there = ("D", "D′")[side], seen[side], told[side]
        if here.always is not None:
            if here.always != there.always:
                raise DependentRuns(
                    f"{name} remembers its noise or a setting: on {where} it returned {_shown(here.always)} "
                    f"on every run, and {_shown(there.always) if there.always is not None else 'various outcomes'} "
                    f"in a new process; {REMEMBERED}"
                )
            notes.append(
                f"on {where} every run returned {_shown(here.always)}, in a new process too: it adds no noise, or "
                "seeds its generator itself"
            )
            continue
        for event in range(len(events)):
            hits, runs = _side(shards.totals[event], side), shards.totals[event].runs
            if fisher_p_value(hits, runs, there.hits[event], there.runs) < LEVEL / (2 * len(events)):
                raise DependentRuns(
                    f"{name} remembers its noise or a setting: on {where} the event happened in {hits} of {runs} runs, "
                    f"and in {there.hits[event]} of {there.runs} in a new process; {REMEMBERED}"
                )
    return tuple(notes)


def _shown(values: tuple[float, ...] | None) -> str:
    """An outcome on one line."""
    shown = [f"{value:.6g}" for value in (values or ())[:6]]
    return f"[{', '.join(shown)}{', …' if values and len(values) > 6 else ''}]"
