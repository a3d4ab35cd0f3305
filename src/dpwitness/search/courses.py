"""Courses of wealth: on each pair of inputs a careful and a bold portfolio, rebuilt from all runs before every epoch.

The wealth of a check is spread evenly over a fixed number of pairs from the start, so their mean is an e-value, whoever
gets the runs. The next epoch belongs to the pair whose wealth, less a charge for its runs, is largest.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.candidate import Candidate, Estimate
from dpwitness.claims import Claim
from dpwitness.events import Event, OutcomeSet
from dpwitness.evidence.counts import Counts
from dpwitness.evidence.portfolio import Epoch
from dpwitness.neighbours import Pair
from dpwitness.runs import Runner, stack
from dpwitness.search.learners import Proposal
from dpwitness.search.learners.learning import LEARNERS, learn
from dpwitness.search.objectives import GrowthAt
from dpwitness.search.portfolio import (
    BOLD,
    CAREFUL,
    NOTHING,
    Family,
    Portfolio,
    cuts_of,
    intervals,
    portfolio,
    proposed,
)
from dpwitness.search.samples import sample_of

Rows = NDArray[np.float64]

#: An epoch is a tenth of the runs so far.
SHARE: Final = 10
#: Nats that a run costs a pair in the choice of the next one; .01 to .03 make no difference, 0 stays with chance.
CHARGE: Final = 0.02
#: Runs from which on learners are asked, and from which on thoroughly; and by how much more runs they and the cuts of
#: columns are renewed.
LEARNED: Final = 32
THOROUGH: Final = 512
RENEWED: Final = 1.25
#: Outcomes of so few kinds are events of their own.
FEW: Final = 16


@dataclass(slots=True, kw_only=True)
class Course:
    """A pair, the outcomes of its runs, and what was bet on it.

    `epochs` has two lists, of the careful and of the bold portfolio.
    """

    pair: Pair
    index: int
    x: Rows = field(default_factory=lambda: np.empty((0, 1)))
    y: Rows = field(default_factory=lambda: np.empty((0, 1)))
    epochs: tuple[list[Epoch], list[Epoch]] = field(default_factory=lambda: ([], []))
    log_wealth: list[float] = field(default_factory=lambda: [0.0, 0.0])
    portfolios: list[Portfolio] = field(default_factory=list)
    seen: dict[Event, Counts] = field(default_factory=dict)  # in the epochs for which an event was chosen before
    renewed_at: int = 0
    _cuts: dict[int, Rows] = field(default_factory=dict)
    _proposals: list[Proposal] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """The paired runs so far."""
        return len(self.x)

    @property
    def wealth(self) -> float:
        """The logarithm of the mean of both portfolios' wealth."""
        return float(np.logaddexp.reduce(self.log_wealth)) - math.log(2)

    def advance(self, runner: Runner, claim: Claim, n: int, label: Callable[[float], str | None]) -> int:
        """Bet on n fresh runs, and learn from them; return how many there were, fewer at the deadline."""
        families = self._families(claim, label) if self.runs else []
        self.portfolios = [portfolio(families, claim, imagined, 0.0) for imagined in (CAREFUL, BOLD)]
        events = list(dict.fromkeys(event for chosen in self.portfolios for event in chosen.events))
        counts, x, y = runner.epoch(self.pair, events, n, self.index, len(self.epochs[0]))
        found = dict(zip(events, counts, strict=True))
        for side, chosen in enumerate(self.portfolios):
            directed = [
                found[event].swapped() if swapped else found[event]
                for event, swapped in zip(chosen.events, chosen.swapped, strict=True)
            ]
            epoch = Epoch(stakes=chosen.stakes, counts=tuple(directed))
            self.epochs[side].append(epoch)
            self.log_wealth[side] += epoch.log_e_value(claim)
        self.seen = {event: self.seen.get(event, Counts()) + found[event] for event in events}
        self.x, self.y = (stack([self.x, x]), stack([self.y, y])) if self.runs else (x, y)
        return len(x)

    def _families(self, claim: Claim, label: Callable[[float], str | None]) -> list[Family]:
        if self.runs >= RENEWED * self.renewed_at:
            self.renewed_at = self.runs
            self._cuts = {
                column: cuts
                for column, cuts in cuts_of(self.x, self.y).items()
                if not any(label(value) for value in self.x[:FEW, column].tolist())  # texts have no order
            }
            self._proposals = self._learned(claim) if self.runs >= LEARNED else []
        families = [intervals(self._cuts, self.x, self.y), self._outcomes()]
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

        `planned`: the runs in which it will be tested.
        """
        if self.wealth <= 0 and self.runs > 1:
            objective = GrowthAt(claim=claim, planned=planned)
            learned = learn(sample_of(self.x, self.y), objective, thorough=self.runs >= THOROUGH, most=1)[0]
            pair = self.pair.swapped() if learned.swapped else self.pair
            return Candidate(pair=pair, event=learned.event, estimate=learned.estimate)
        chosen = self.portfolios[int(np.argmax(self.log_wealth))] if self.portfolios else NOTHING
        if not chosen.events:
            return None
        k = chosen.best
        stakes = chosen.stakes
        estimate = Estimate(p=float(stakes.p[k]), q=float(stakes.q[k]), both=float(stakes.both[k]))
        pair = self.pair.swapped() if chosen.swapped[k] else self.pair
        return Candidate(pair=pair, event=chosen.events[k], estimate=estimate)

    def counts(self, candidate: Candidate) -> Counts:
        """What the epochs showed of an event since it was chosen, D first as in the candidate."""
        seen = self.seen.get(candidate.event, Counts())
        return seen if candidate.pair.data is self.pair.data else seen.swapped()


def next_course(courses: Sequence[Course]) -> Course:
    """The course that gets the next epoch."""
    return max(courses, key=lambda course: course.wealth - CHARGE * course.runs)


def runs_of_next_epoch(course: Course, least: int) -> int:
    """How many runs: a tenth of those so far."""
    return max(least, course.runs // SHARE)
