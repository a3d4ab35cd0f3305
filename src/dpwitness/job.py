"""What check, bound, curve and replay share: a mechanism made ready (see `preparation`), and everything left of ‖."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from dpwitness.attacks.candidate import Candidate
from dpwitness.attacks.registry import attack_named
from dpwitness.claim import Claim
from dpwitness.clock import Deadline
from dpwitness.counts import Counts
from dpwitness.errors import CompiledDisagrees, MechanismTimeout
from dpwitness.events import Event
from dpwitness.evidence import Estimate
from dpwitness.mechanisms.compiled.compare import difference_in_event, first_difference
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.neighbours import Data, Pair, Pairs, Relation, adjacent, require_adjacent
from dpwitness.results.witness import Witness
from dpwitness.runs import CONFIRM, PLAYOFF, generator, ordered, tally
from dpwitness.search.learners.learn import Found, Learner
from dpwitness.search.objectives import BoundAt, Objective
from dpwitness.search.search import Entry, Promising, estimated, playoff, search
from dpwitness.targets import target_of

#: Called with a stage ("search", "confirm"), what is done of it, its size, and a note for people.
Progress = Callable[[str, int, int, str], None]

MAX_TIME: Final = 60.0
#: Shards of confirm runs in which runs with the event are looked for, to compare them with Python.
COMPARED_SHARDS: Final = 4
#: Seconds for comparing runs of a pass: 2 % of a check.
PASS_SECONDS: Final = 0.02
RECOUNT: Final = 1 << 20  # a stream apart from those of the playoff's candidates


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What check, bound and curve share: a mechanism made ready, its neighbours, its seeds and limits."""

    mechanism: Mechanism
    reference: str
    relation: Relation
    own_relation: bool  # the target's own, so that its attack may propose inputs too
    data: Data | None
    centre: float
    scale: float
    seed: int
    workers: int
    began: float  # when the preparation began, by `time.monotonic`
    deadline: Deadline
    max_time: float

    @property
    def seconds(self) -> float:
        """The time spent, preparing and compiling included."""
        return time.monotonic() - self.began

    @property
    def search_deadline(self) -> Deadline:
        """The end of the search: the other half of the time belongs to the proof."""
        return self.deadline.earlier(self.max_time / 2)

    def require_agreement(self, pair: Pair, event: Event | None = None, *, longer: bool = False) -> None:
        """Compare compiled code with Python on a pair: in its first runs, or in confirm runs that fell into an event.

        `longer`: in as many runs as fit in `PASS_SECONDS`, for a pass, of which no run is evidence.

        Raises `CompiledDisagrees` where an outcome differs. Nothing to do for mechanisms that run as Python.
        """
        compiled, plain = self.mechanism, self.mechanism.plain
        if plain is None:
            return
        if event is None and longer:
            rng = generator(self.seed, CONFIRM)
            difference = first_difference(compiled, plain, pair, rng, runs=1 << 20, seconds=PASS_SECONDS)
        elif event is None:
            difference = first_difference(compiled, plain, pair)
        else:
            streams = (generator(self.seed, CONFIRM, shard) for shard in range(COMPARED_SHARDS))
            difference = difference_in_event(compiled, plain, pair, event.contains, streams)
        if difference is not None:
            raise CompiledDisagrees(difference)

    def restarted(self) -> "Job":
        """The same, with all of its time to spend."""
        now = time.monotonic()
        return replace(self, began=now, deadline=Deadline(now + self.max_time))

    def search(
        self, objective: Objective, budget: int, progress: Progress | None, stop_value: float = np.inf
    ) -> tuple[list[Promising], int]:
        """The best pairs with all outcomes of both sides, and the runs spent."""
        return search(
            self.mechanism,
            self.relation,
            objective,
            data=self.data,
            centre=self.centre,
            scale=self.scale,
            seed=self.seed,
            budget=budget,
            stop_value=stop_value,
            workers=self.workers,
            deadline=self.search_deadline,
            progress=None if progress is None else lambda done: progress("search", done, budget, ""),
        )

    def learned(
        self, finalists: Sequence[Promising], learners: Sequence[Learner], objective: Objective, most: int
    ) -> list[Entry]:
        """The events that the finalists' outcomes show, each finalist on a thread."""
        learned = ordered((partial(learner.events, objective, most) for learner in learners), self.workers)
        return [
            Entry(arm.pair, found, place)
            for place, (arm, events) in enumerate(zip(finalists, learned, strict=True))
            for found in events or ()
        ]

    def playoff(self, entries: Sequence[Entry], objective: Objective, budget: int) -> tuple[Entry, int]:
        """The best of several pairs with events, and the runs spent."""
        return playoff(
            self.mechanism,
            entries,
            objective,
            seed=self.seed,
            budget=budget,
            workers=self.workers,
            deadline=self.search_deadline,
        )

    def recounted(self, pair: Pair, pool: Sequence[Found], runs: int) -> list[Found]:
        """The same events with estimates from search runs that none of them was chosen by."""
        fresh = []
        for number, found in enumerate(pool):
            cells = tally(
                self.mechanism,
                pair.swapped() if found.swapped else pair,
                found.event,
                runs,
                seed=self.seed,
                key=(PLAYOFF, RECOUNT, number),
                workers=self.workers,
                deadline=self.deadline,
            )
            fresh.append(replace(found, estimate=estimated(cells)))
        return fresh

    def witness(self, claim: Claim, alpha: float, pair: Pair, found: Found, counts: Counts) -> Witness:
        """Everything that is needed to show it again.

        Where an attack asked other questions about the given data than they answer themselves, this very pair is all
        that is known to be neighbouring.
        """
        judged = adjacent(self.relation, pair, self.data)
        return Witness(
            mechanism=self.reference,
            parameters=dict(self.mechanism.signature.parameters),
            claim=claim,
            alpha=alpha,
            relation=self.relation if judged else Pairs((pair,), self.relation.noun),
            data=self.data if judged else None,
            pair=pair,
            event=found.event,
            description=found.event.describe(self.relation.noun, self.mechanism.label),
            counts=counts,
            estimate=found.estimate,
            seed=self.seed,
        )


def find(
    job: Job,
    *,
    function: Any,
    claim: Claim,
    runs: int,
    objective: Objective,
    budget: int,
    stop_value: float = np.inf,
    progress: Progress | None = None,
) -> tuple[Pair, Found, int]:
    """Left of ‖: the best of what the target's attack proposes and of what the search finds; D first."""
    entries, spent = [], 0
    for candidate in _proposed(job, function, claim, runs):
        found = Found(event=candidate.event, swapped=False, estimate=Estimate(p=0.0, q=0.0), value=0.0)
        entries.append(Entry(candidate.pair, found))
    if entries:
        best, spent = job.playoff([*entries, entries[0]], objective, budget // 4)  # at least two: all are counted
        if best.found.lower_value >= stop_value:
            return best.pair, best.found, spent
        entries = [best]
    try:
        finalists, searched = job.search(objective, budget, progress, stop_value)
    except MechanismTimeout:
        if not entries:
            raise
        finalists, searched = [], 0  # too slow to search: what the attack proposes can still be confirmed
    spent += searched
    certain = [Entry(arm.pair, arm.certain, place) for place, arm in enumerate(finalists) if arm.certain]
    learners = [Learner(arm.sample) for arm in finalists]
    most = 6 if isinstance(objective, BoundAt) else 2  # a bound has the runs to tell many apart
    entries += certain + job.learned(finalists, learners, objective, most)
    del finalists
    best = certain[0] if certain else max(entries, key=lambda entry: entry.found.value)
    if len(entries) > 1 and (certain or best.found.lower_value < stop_value):
        plenty = math.isinf(stop_value) and job.mechanism.threads  # slow code: the budget is all that fits
        share = budget // 5 if certain else max(budget, runs // 2 if plenty else 0)
        try:
            best, more = job.playoff(entries, objective, share)
        except MechanismTimeout:
            more = 0  # it only refines: the best of the search stays, and half of the time is left to confirm it
        spent += more
    return (best.pair.swapped() if best.found.swapped else best.pair), best.found, spent


def _proposed(job: Job, function: Any, claim: Claim, runs: int) -> list[Candidate]:
    """What the attack that a target names proposes; nothing where the user says which inputs are neighbours."""
    own = target_of(plain_function(function))
    if own is None or own.attack is None or not job.own_relation:
        return []
    propose = attack_named(own.attack)
    proposed = list(propose(dict(job.mechanism.signature.parameters), job.data, claim, runs))
    for candidate in proposed:
        if not adjacent(job.relation, candidate.pair, job.data):  # about given data other questions may be asked, too
            require_adjacent(job.relation, candidate.pair, what="the attack's candidate")
    return proposed


def plain(value: Any) -> Any:
    """A parameter as a JSON value for people; infinities, and what JSON cannot hold, are texts."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if isinstance(value, bool | int | float | str | type(None)) else repr(value)


def plain_function(function: Any) -> Any:
    """The user's own callable behind a `Mechanism`."""
    if isinstance(function, Mechanism):
        return function.signature.original or function.signature.function
    return function
