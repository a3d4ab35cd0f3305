"""The smallest witness that still refutes on fresh runs: fewer coordinates, smaller round numbers, a simpler event.

Each step is tried on search runs of its own, which are then thrown away; the last is confirmed on fresh runs.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpwitness.claim import Claim
from dpwitness.counts import Counts
from dpwitness.errors import MechanismError
from dpwitness.events import Box, Event, Interval, OutcomeSet
from dpwitness.evidence import Estimate, log_e_value
from dpwitness.learn import Found, learn_events
from dpwitness.mechanism import Mechanism, Rows
from dpwitness.neighbours import Bits, Data, Histogram, Pair, Queries, Relation, as_input
from dpwitness.objectives import GrowthAt
from dpwitness.runs import confirm, sample, tally

#: Search runs of one step: compiled or vectorised code, and plain Python.
MANY: Final = 200_000
FEW: Final = 10_000
#: Where plain Python is so slow that not so many steps of so many runs fit in the time, nothing is tried.
STEPS: Final = 20
LEAST: Final = 100
#: A step must promise to refute within this share of the runs there are.
SHARE: Final = 0.5
_KEY: Final = 1 << 21  # apart from the streams of the search and its playoff


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """A smaller witness: the pair, the event, and the fresh runs that confirmed it."""

    pair: Pair
    found: Found
    counts: Counts
    log_e_value: float
    search_runs: int


@dataclass(slots=True)
class _Shrinker:
    """One shrinking: what is fixed, what was spent."""

    mechanism: Mechanism
    objective: GrowthAt
    needed: float  # nats a run
    seed: int
    workers: int
    deadline: float
    runs: int = 16  # of one step
    steps: int = 0
    spent: int = 0

    @property
    def in_time(self) -> bool:
        return time.monotonic() < self.deadline

    def _key(self) -> tuple[int, int]:
        self.steps += 1
        self.spent += self.runs
        return _KEY, self.steps

    def promise(self, pair: Pair, event: Event) -> tuple[float, Estimate]:
        """What an event promises, on runs of its own."""
        n10, n11, n01, _ = tally(
            self.mechanism,
            pair,
            event,
            self.runs,
            seed=self.seed,
            key=self._key(),
            workers=self.workers,
            deadline=self.deadline,
        )
        p, q, both = ((n10 + n11) / self.runs, (n01 + n11) / self.runs, n11 / self.runs)
        value = float(self.objective(np.array([p]), np.array([q]), self.runs, 1.0, np.array([both]))[0])
        return value, Estimate(p=float(p), q=float(q), both=float(both))

    def outcomes(self, pair: Pair) -> tuple[Rows, Rows]:
        """Fresh search runs of a pair."""
        return sample(
            self.mechanism,
            pair,
            self.runs,
            seed=self.seed,
            key=self._key(),
            workers=self.workers,
            deadline=self.deadline,
        )

    def holds(self, pair: Pair) -> bool:
        """Whether some event of this pair promises enough; a mechanism that rejects the inputs has none."""
        try:
            x, y = self.outcomes(pair)
        except MechanismError:
            return False  # it rejects such inputs, or the time is over: the pair stays as it was
        return learn_events(x, y, self.objective, thorough=False, most=1)[0].value >= self.needed

    def greedy(self, pair: Pair, moves: Callable[[Pair], Iterator[Pair]]) -> Pair:
        """Take the first smaller pair that holds, and begin again, until none does or the time is over."""
        while True:
            for smaller in moves(pair):
                if not self.in_time:
                    return pair
                if self.holds(smaller):
                    pair = smaller
                    break
            else:
                return pair

    def events(self, pair: Pair, event: Event) -> tuple[Pair, list[Event]]:
        """The pair in its better direction, and candidates for its event, simplest first.

        They are learned anew, then the one there was, and parts of each.
        """
        x, y = self.outcomes(pair)
        learned = learn_events(x, y, self.objective)
        turned = learned[0].swapped
        wholes = [found.event for found in learned if found.swapped == turned]
        if not turned and event.width <= x.shape[1]:
            wholes.append(event)
        parts = [part for whole in wholes for part in _parts(whole)]
        return pair.swapped() if turned else pair, sorted([*parts, *wholes], key=_complexity)


def smallest(
    mechanism: Mechanism,
    relation: Relation,
    pair: Pair,
    event: Event,
    *,
    claim: Claim,
    alpha: float,
    seed: int,
    max_runs: int,
    max_time: float,
    workers: int = 1,
) -> Shrunk | None:
    """Shrink a witness that refutes `claim`; None where nothing smaller was confirmed in time.

    Inputs shrink only within relations that say what else is neighbouring: queries, histograms and bits. `seed` must
    not be that of the runs that made the witness: the result is confirmed at the same `alpha` on fresh runs.
    """
    deadline = time.monotonic() + max_time
    bar = math.log(1 / alpha)
    objective = GrowthAt(epsilon=claim.epsilon, delta=claim.delta, planned=max_runs, log_bar=bar)
    shrinker = _Shrinker(mechanism, objective, bar / (SHARE * max_runs), seed, workers, deadline)
    if mechanism.threads or mechanism.shard > 1000:
        shrinker.runs = MANY
    else:
        started = time.perf_counter()
        shrinker.promise(pair, event)
        cost = (time.perf_counter() - started) / shrinker.runs
        # A power of ten, as for the search, so that a small change of speed changes nothing.
        shrinker.runs = int(min(FEW, 10 ** math.floor(math.log10(max_time / STEPS / cost))))
        if shrinker.runs < LEAST:
            return None
    small = pair
    if isinstance(relation, Queries | Histogram | Bits):
        small = shrinker.greedy(small, _shorter)
        if isinstance(relation, Queries):
            small = shrinker.greedy(small, _calmer)
        small = shrinker.greedy(small, _rounder)
    try:
        chosen = _simplest(shrinker, small, event)
    except MechanismError:
        return None  # the time is over: the witness there was stays
    if chosen is None:
        return None
    turned, simple, estimate = chosen
    if small is pair and _complexity(simple) > _complexity(event):
        return None
    counts, log_e = Counts(), 0.0
    for (counts,) in confirm(
        mechanism, turned, [simple], seed=seed, max_runs=max_runs, workers=workers, deadline=deadline
    ):
        log_e = log_e_value(counts, claim, estimate)
        if log_e >= bar:
            return Shrunk(
                pair=turned,
                found=Found(event=simple, swapped=False, estimate=estimate, value=math.nan),
                counts=counts,
                log_e_value=log_e,
                search_runs=shrinker.spent,
            )
    return None


def _simplest(shrinker: _Shrinker, pair: Pair, event: Event) -> tuple[Pair, Event, Estimate] | None:
    """The simplest event that promises enough, with the roundest threshold that promises half as much."""
    pair, candidates = shrinker.events(pair, event)
    for candidate in candidates:
        if not shrinker.in_time:
            return None
        value, estimate = shrinker.promise(pair, candidate)
        if value < shrinker.needed:
            continue
        for rounder in _rounded(candidate):
            rounded, its_estimate = shrinker.promise(pair, rounder)
            if rounded >= max(shrinker.needed, value / 2):
                return pair, rounder, its_estimate
        return pair, candidate, estimate
    return None


def _shorter(pair: Pair) -> Iterator[Pair]:
    """Without some of the coordinates: halves, quarters, … single ones."""
    size = pair.data.size
    if pair.data.ndim != 1:
        return
    chunk = size // 2
    while chunk:
        for start in range(0, size, chunk):
            keep = np.ones(size, bool)
            keep[start : start + chunk] = False
            if np.any(pair.data[keep] != pair.neighbour[keep]):
                yield _pair(pair.data[keep], pair.neighbour[keep])
        chunk //= 2


def _calmer(pair: Pair) -> Iterator[Pair]:
    """With one coordinate fewer that differs."""
    for i in np.flatnonzero(pair.data != pair.neighbour):
        changed = pair.neighbour.copy()
        changed[i] = pair.data[i]
        if np.any(changed != pair.data):
            yield _pair(pair.data, changed)


def _rounder(pair: Pair) -> Iterator[Pair]:
    """Nearer to zero, or on rounder numbers; what differs keeps its difference."""
    base = np.minimum(pair.data, pair.neighbour)
    shifts = [base, np.full_like(base, base.min() if base.min() > 0 else base.max())]
    shifts += [np.where(np.arange(base.size) == i, base, 0) for i in range(base.size if base.size <= 16 else 0)]
    shifts += [np.where(np.abs(base) >= 2, base - np.round(base / 2), 0), base - np.round(base)]
    for shift in shifts:
        smaller = _pair(pair.data - shift, pair.neighbour - shift)
        if _numbers(smaller) < _numbers(pair):
            yield smaller


def _numbers(pair: Pair) -> tuple[float, int]:
    """How large, then how long, the numbers of a pair are; less is better."""
    digits = sum(len(f"{value:g}") for side in (pair.data, pair.neighbour) for value in side.ravel())
    return float(np.abs(pair.data).sum() + np.abs(pair.neighbour).sum()), digits


def _pair(data: Data, neighbour: Data) -> Pair:
    return Pair(as_input(data), as_input(neighbour), "shrunk")


def _parts(event: Event) -> list[Event]:
    """Simpler events made of parts of this one."""
    match event:
        case Box():
            return list(event.sides)
        case OutcomeSet() if len(event.rows) > 1:
            return [OutcomeSet(event.rows[i : i + 1]) for i in range(min(len(event.rows), 8))]
        case Interval() if math.isfinite(event.low) and math.isfinite(event.high):
            return [
                Interval(coordinate=event.coordinate, low=event.low),
                Interval(coordinate=event.coordinate, high=event.high),
            ]
    return []


def _complexity(event: Event) -> tuple[int, int]:
    """Less is simpler to say: one outcome, one bound, an interval, a box, several outcomes, a score."""
    match event:
        case OutcomeSet():
            return (0, event.width) if len(event.rows) == 1 else (2, len(event.rows))
        case Interval():
            return 0, 1 + int(math.isfinite(event.low) and math.isfinite(event.high))
        case Box():
            return 1, len(event.sides)
    return 3, event.width


def _rounded(event: Event) -> Iterator[Any]:
    """An interval or a box with bounds of 1, 2 and 3 digits; nothing where they are as round as that already."""
    sides = event.sides if isinstance(event, Box) else (event,) if isinstance(event, Interval) else ()
    for digits in (1, 2, 3):
        rounded = []
        for side in sides:
            low, high = (float(f"{bound:.{digits}g}") for bound in (side.low, side.high))
            if not low < high:
                break
            rounded.append(Interval(coordinate=side.coordinate, low=low, high=high))
        else:
            if sides and tuple(rounded) != tuple(sides):
                yield Box(tuple(rounded)) if isinstance(event, Box) else rounded[0]
