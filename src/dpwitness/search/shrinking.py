"""The smallest candidate that promises to refute: fewer coordinates, smaller round numbers, a simpler event.

Each step is tried on search runs of its own, which are then thrown away. Nothing is confirmed here: what comes out is a
candidate like that of any search, and `rerun.shrink` confirms it like any other.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpwitness.claim import Claim
from dpwitness.errors import MechanismError, MechanismTimeout
from dpwitness.events import Event
from dpwitness.evidence import Estimate
from dpwitness.mechanisms.mechanism import Mechanism, Rows
from dpwitness.neighbours import Data, Pair, Relation
from dpwitness.neighbours import smaller as smaller_pairs
from dpwitness.runs import sample, tally
from dpwitness.search.learners import learn_events
from dpwitness.search.objectives import GrowthAt

#: Search runs of one step: compiled or vectorised code, and plain Python.
MANY: Final = 200_000
FEW: Final = 10_000
#: Where plain Python is so slow that not so many steps of so many runs fit in the time, nothing is tried.
STEPS: Final = 20
LEAST: Final = 100
#: A step must promise to refute within this share of the runs there are.
SHARE: Final = 0.5
_KEY: Final = 1 << 21  # apart from the streams of the search and its playoff
#: Of the time: until when inputs are shrunk, and until when the event is; the rest is for the confirm runs.
INPUTS_UNTIL: Final = 0.5
EVENT_UNTIL: Final = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """A smaller candidate, D first, not confirmed yet; `search_runs`: the paired runs that it took."""

    pair: Pair
    event: Event
    estimate: Estimate
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

    def greedy(self, pair: Pair, steps: Callable[[Pair], Iterator[Pair]]) -> Pair:
        """Take the first smaller pair that holds, and begin again, until none does or the time is over."""
        while True:
            for smaller in steps(pair):
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
        parts = [part for whole in wholes for part in whole.simpler()]
        return pair.swapped() if turned else pair, sorted([*parts, *wholes], key=lambda candidate: candidate.complexity)


def smallest(
    mechanism: Mechanism,
    relation: Relation,
    pair: Pair,
    event: Event,
    *,
    data: Data | None = None,
    claim: Claim,
    alpha: float,
    seed: int,
    max_runs: int,
    max_time: float,
    workers: int = 1,
) -> Shrunk | None:
    """Shrink what refutes `claim`, by the steps of its relation; None where nothing smaller was found in time.

    Where `data` are given the inputs stay as they are, and only the event gets simpler. The candidate promises to
    refute within a share of `max_runs`; whether it does is for confirm runs to say, with a `seed` that is not that of
    the runs which made the witness. Raises `MechanismError` where the mechanism fails on its own inputs.
    """
    started = time.monotonic()
    bar = math.log(1 / alpha)
    objective = GrowthAt(epsilon=claim.epsilon, delta=claim.delta, planned=max_runs, log_bar=bar)
    shrinker = _Shrinker(
        mechanism, objective, bar / (SHARE * max_runs), seed, workers, started + INPUTS_UNTIL * max_time
    )
    try:
        if not _affordable(shrinker, pair, event, max_time):
            return None
        small = shrinker.greedy(pair, lambda larger: smaller_pairs(relation, larger, data))
        shrinker.deadline = started + EVENT_UNTIL * max_time
        chosen = _simplest(shrinker, small, event)
    except MechanismTimeout:
        return None  # the time is over: the witness there was stays
    if chosen is None:
        return None
    turned, simple, estimate = chosen
    if small is pair and simple.complexity > event.complexity:
        return None
    return Shrunk(pair=turned, event=simple, estimate=estimate, search_runs=shrinker.spent)


def _affordable(shrinker: _Shrinker, pair: Pair, event: Event, max_time: float) -> bool:
    """Settle the runs of one step; whether enough steps of enough runs fit into the time."""
    if shrinker.mechanism.threads or shrinker.mechanism.shard > 1000:
        shrinker.runs = MANY
        return True
    started = time.perf_counter()
    shrinker.promise(pair, event)
    cost = (time.perf_counter() - started) / shrinker.runs
    # A power of ten, as for the search, so that a small change of speed changes nothing.
    shrinker.runs = int(min(FEW, 10 ** math.floor(math.log10(max_time / STEPS / cost))))
    return shrinker.runs >= LEAST


def _simplest(shrinker: _Shrinker, pair: Pair, event: Event) -> tuple[Pair, Event, Estimate] | None:
    """The simplest event that promises enough, with the roundest threshold that promises half as much."""
    pair, candidates = shrinker.events(pair, event)
    for candidate in candidates:
        if not shrinker.in_time:
            return None
        value, estimate = shrinker.promise(pair, candidate)
        if value < shrinker.needed:
            continue
        for rounder in candidate.rounded():
            rounded, its_estimate = shrinker.promise(pair, rounder)
            if rounded >= max(shrinker.needed, value / 2):
                return pair, rounder, its_estimate
        return pair, candidate, estimate
    return None
