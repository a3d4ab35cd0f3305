"""Courses of wealth: on each pair of inputs a careful and a bold portfolio, rebuilt from all runs before every epoch.

The careful one bets on one graded event that its events make up, the bold one on each event by itself.

The wealth of a check is spread evenly over a fixed number of pairs from the start, so their mean is an e-value, whoever
gets the runs. The next epoch belongs to the pair whose wealth, less a charge for its runs or its time, is largest.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.candidate import Candidate, Estimate
from dpwitness.claims import Claim
from dpwitness.events import Event, Interval, OutcomeSet
from dpwitness.events.encoding import LEAST_NUMBER, is_no_number
from dpwitness.evidence.counts import NO_COUNTS, Counts, CountsTable
from dpwitness.evidence.portfolio import Epoch, log_e_values_of
from dpwitness.neighbours import Pair
from dpwitness.runs import Runner, stack
from dpwitness.search.graded import flags_of, graded
from dpwitness.search.learners import Proposal
from dpwitness.search.learners.learning import LEARNERS, learn
from dpwitness.search.objectives import GrowthAt
from dpwitness.search.portfolio import (
    BOLD,
    CAREFUL,
    NOTHING,
    Family,
    Portfolio,
    portfolio,
    proposed,
)
from dpwitness.search.ranges import COLUMNS, Ranges, cuts_of, moved_entries
from dpwitness.search.samples import sample_of

Rows = NDArray[np.float64]

#: An epoch is a sixteenth of the runs so far: half of an epoch more than needed are made.
SHARE: Final = 16
#: Nats that a run costs a pair in the choice of the next one, at most; .01 to .03 make no difference, 0 stays with
#: chance. And what part of the best pair's promise a run, where that is less: else slow growth is never stayed with.
CHARGE: Final = 0.02
PART_OF_BEST: Final = 4
#: Runs of a pair are charged by their seconds from so many a paired run on, if they are so many times those of the
#: fastest pair. Below, timing must not decide: the same seed gives the same counts.
LONG: Final = 0.1
SLOWER: Final = 8.0
#: Runs from which on learners are asked, and from which on thoroughly; and by how much more runs they and the cuts of
#: columns are renewed.
LEARNED: Final = 32
THOROUGH: Final = 512
RENEWED: Final = 1.25
#: Runs up to which narrow rows are cut anew before every epoch: it saves a twentieth of the runs, and is cheap.
CUT_ANEW: Final = 256
#: Numbers that the outcomes of one pair may hold in memory, both sides together.
ROOM: Final = 1 << 23
#: Runs that an event which promises nothing must hold, for a pass to rest on it.
SEVERAL: Final = 3
#: Outcomes of so few kinds are events of their own.
FEW: Final = 16


@dataclass(slots=True, kw_only=True)
class Course:
    """A pair, the outcomes of its runs, and what was bet on it.

    `epochs` has two lists, of the careful portfolio, as one graded event, and of the bold one.
    """

    pair: Pair
    index: int
    x: Rows = field(default_factory=lambda: np.empty((0, 1)))
    y: Rows = field(default_factory=lambda: np.empty((0, 1)))
    epochs: tuple[list[Epoch], list[Epoch]] = field(default_factory=lambda: ([], []))
    log_wealth: Rows = field(default_factory=lambda: np.zeros(2))
    portfolios: list[Portfolio] = field(default_factory=list)
    numbers: dict[Event, int] = field(default_factory=dict)  # of the events of the last epoch, in `seen`
    seen: CountsTable = NO_COUNTS  # in the epochs for which an event was chosen without a break
    coming: list[Portfolio] = field(default_factory=list)  # what will be bet in the next epoch
    seconds_per_run: float = math.inf  # of a paired run, in the fastest epoch
    renewed_at: int = 0
    _ranges: Ranges = field(default_factory=lambda: Ranges({}))
    _proposals: list[Proposal] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """The paired runs so far."""
        return len(self.x)

    @property
    def full(self) -> bool:
        """Whether memory has no room for outcomes of more runs."""
        return self.x.size + self.y.size >= ROOM

    @property
    def wealth(self) -> float:
        """The logarithm of the mean of both portfolios' wealth."""
        return float(np.logaddexp.reduce(self.log_wealth)) - math.log(2)

    @property
    def promise(self) -> float:
        """The logarithm of what was to be won in its runs by whoever had known them; at least 0."""
        return max((0.0, *(chosen.promise for chosen in self.coming)))

    def charged(self, fastest: float) -> float:
        """Its runs; of a pair that takes much longer than `fastest`, in seconds a run, as many as fit in its time."""
        # In one epoch code may have been compiled, or processes started: two tell what the runs take.
        seconds = self.seconds_per_run if self.runs and len(self.epochs[0]) > 1 else 0.0
        return self.runs * (seconds / fastest if seconds >= max(LONG, SLOWER * fastest) else 1.0)

    def advance(
        self, runner: Runner, claim: Claim, n: int, label: Callable[[float], str | None], *, coupled: bool = True
    ) -> int:
        """Bet on n fresh runs, and learn from them; return how many there were, fewer at the deadline.

        `label`: the text behind a number of an outcome, None where it is a number. `coupled`: whether the sides of a
        run share their random draws.
        """
        self.portfolios = self.coming or [NOTHING, NOTHING]
        numbers = {event: k for k, event in enumerate(dict.fromkeys(e for p in self.portfolios for e in p.events))}
        started = time.perf_counter()
        counts, x, y = runner.epoch(self.pair, list(numbers), n, self.index, len(self.epochs[0]), coupled=coupled)
        if len(x):
            self.seconds_per_run = min(self.seconds_per_run, (time.perf_counter() - started) / len(x))
        made = []
        for chosen in self.portfolios:
            places = np.array([numbers[event] for event in chosen.events], np.int64)
            flags = None if chosen.stakes.fractions is None else flags_of(chosen.events, chosen.swapped, x, y)
            made.append(Epoch(stakes=chosen.stakes, counts=counts.directed(places, chosen.swapped), flags=flags))
        for epochs, epoch in zip(self.epochs, made, strict=True):
            epochs.append(epoch)
        self.log_wealth += log_e_values_of(made, claim)
        places = np.array([self.numbers.get(event, -1) for event in numbers], np.int64)
        self.numbers, self.seen = numbers, counts.plus(self.seen, places)
        self.x, self.y = (stack([self.x, x]), stack([self.y, y])) if self.runs else (x, y)
        families = self._families(claim, label) if self.runs else []
        self.coming = [self._careful(families, claim), portfolio(families, claim, BOLD)]
        return len(x)

    def _careful(self, families: Sequence[Family], claim: Claim) -> Portfolio:
        """The careful portfolio; where it has several events, all of it on the graded event that they make up."""
        chosen = portfolio(families, claim, CAREFUL)
        if len(chosen.events) < 2:
            return chosen
        flags = flags_of(chosen.events, chosen.swapped, self.x, self.y)
        return replace(chosen, stakes=graded(chosen, flags, claim, CAREFUL))

    def _families(self, claim: Claim, label: Callable[[float], str | None]) -> list[Family]:
        renewed = self.runs >= RENEWED * self.renewed_at
        if renewed or (self.runs < CUT_ANEW and self.x.shape[1] <= COLUMNS):
            cuts = cuts_of(self.x, self.y)
            texts = [c for c in cuts if any(label(value) for value in self.x[:FEW, c].tolist())]  # they have no order
            moved = moved_entries(self.pair, self.x.shape[1])
            self._ranges = Ranges({column: places for column, places in cuts.items() if column not in texts}, moved)
        if renewed:
            self.renewed_at = self.runs
            self._proposals = self._learned(claim) if self.runs >= LEARNED else []
        families = [self._ranges.seen(self.x, self.y), self._outcomes()]
        if self._proposals:
            half = self.renewed_at // 2  # what learners did not see
            families.append(proposed(self._proposals, self.x[half:], self.y[half:]))
        return [family for family in families if len(family.events)]

    def _learned(self, claim: Claim) -> list[Proposal]:
        """What learners propose, of the first half of the runs."""
        sample, objective = sample_of(self.x, self.y), GrowthAt(claim=claim)
        thorough = self.runs >= THOROUGH
        return [proposal for learner in LEARNERS for proposal in learner.propose(sample, objective, thorough=thorough)]

    def _outcomes(self) -> Family:
        """Single outcomes, all of few, or those that come again: their priors do not hang on what they promise."""
        rows = [row for side in (self.x, self.y) for row in side[: 2 * FEW]]
        times = Counter(row.tobytes() for row in rows)
        frequent = {row.tobytes(): row for row in rows if len(times) <= FEW or times[row.tobytes()] > 1}
        single = [Proposal(event=OutcomeSet(row[None])) for row in list(frequent.values())[:FEW]]
        return proposed(single, self.x, self.y)

    def candidate(self, claim: Claim, planned: int) -> Candidate | None:
        """The event with the largest stake, or what learners like best where betting has won nothing; None without any.

        `planned`: the runs in which it will be tested. An event that all runs so far are in, or none, gives way to one
        that some are in; so does one of a single run that promises nothing.
        """
        if self.wealth <= 0 and self.runs > 1:
            objective = GrowthAt(claim=claim, planned=planned)
            learned = learn(sample_of(self.x, self.y), objective, thorough=self.runs >= THOROUGH, most=1)[0]
            pair = self.pair.swapped() if learned.swapped else self.pair
            found = Candidate(pair=pair, event=learned.event, estimate=learned.estimate)
            return found if self.tells(found.event, 1 if learned.value > 0 else SEVERAL) else self.ordinary() or found
        staked = self._staked()
        kept = staked is not None and self.wealth > 0 and self.tells(staked.event)
        return staked if kept else self.ordinary() or staked

    def tells(self, event: Event, least: int = 1) -> bool:
        """Whether so many runs at least were in an event, and were not; of few runs, one."""
        hits = int(np.count_nonzero(event.contains(self.x)) + np.count_nonzero(event.contains(self.y)))
        least = min(least, max(self.runs // 4, 1))
        return least <= hits <= 2 * self.runs - least

    def ordinary(self) -> Candidate | None:
        """The event of one entry that comes nearest to half of all runs so far; None where all were the same."""
        if not self.runs:
            return None
        events = [event for column in range(self.x.shape[1]) for event in _halves(self.x, self.y, column)]
        shares = [(event.contains(self.x), event.contains(self.y)) for event in events]
        far = [abs((float(a.mean()) + float(b.mean())) / 2 - 0.5) for a, b in shares]
        if not far or min(far) >= 0.5:
            return None
        k = int(np.argmin(far))
        a, b = shares[k]
        estimate = Estimate(p=float(a.mean()), q=float(b.mean()), both=float((a & b).mean()))
        return Candidate(pair=self.pair, event=events[k], estimate=estimate)

    def _staked(self) -> Candidate | None:
        """The event with the largest stake."""
        chosen = self.portfolios[int(np.argmax(self.log_wealth))] if self.portfolios else NOTHING
        if not chosen.events:
            return None
        k = chosen.best
        stakes = chosen.stakes
        estimate = Estimate(p=float(stakes.p[k]), q=float(stakes.q[k]), both=float(stakes.both[k]))
        pair = self.pair.swapped() if chosen.swapped[k] else self.pair
        return Candidate(pair=pair, event=chosen.events[k], estimate=estimate)

    def outcomes_of(self, candidate: Candidate) -> tuple[Rows, Rows]:
        """The outcomes so far, D first as in the candidate."""
        return (self.x, self.y) if candidate.pair.data is self.pair.data else (self.y, self.x)

    def counts(self, candidate: Candidate) -> Counts:
        """What the epochs showed of an event since it was chosen, D first as in the candidate."""
        number = self.numbers.get(candidate.event)
        seen = Counts() if number is None else self.seen.of(number)
        return seen if candidate.pair.data is self.pair.data else seen.swapped()


def _halves(x: Rows, y: Rows, column: int) -> Iterator[Event]:
    """That an entry is there, the upper half of its numbers, and the most frequent of what is no number."""
    yield Interval(coordinate=column)
    values = np.concatenate([x[:, column], y[:, column]])
    codes = values[is_no_number(values)]
    values = np.sort(values[values >= LEAST_NUMBER])
    if len(values) and values[0] < values[-1]:
        middle = values[len(values) // 2]
        yield Interval(coordinate=column, low=float(middle if middle > values[0] else values[values > middle][0]))
    if len(codes):
        kinds, times = np.unique(codes, return_counts=True)
        most = float(kinds[np.argmax(times)])
        yield Interval(coordinate=column, low=most, high=float(np.nextafter(most, np.inf)))


def next_course(courses: Sequence[Course]) -> Course:
    """The course that gets the next epoch: that of the largest wealth, less a charge for its runs or its time."""
    fastest = min(course.seconds_per_run for course in courses)
    best = max((course.promise + 1) / max(course.runs, 1) for course in courses)
    charge = min(CHARGE, best / PART_OF_BEST)
    return max(courses, key=lambda course: course.wealth - charge * course.charged(fastest))


def runs_of_next_epoch(course: Course, least: int) -> int:
    """How many runs: a sixteenth of those so far."""
    return max(least, course.runs // SHARE)
