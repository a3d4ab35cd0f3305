"""Which pair: spend runs where they promise most. Everything here is thrown away before evidence begins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

import numpy as np
from numpy.typing import NDArray

from dpwitness.clock import Deadline
from dpwitness.errors import InvalidOutcome, MechanismTimeout
from dpwitness.events.encoding import NONE, NOT_A_NUMBER
from dpwitness.evidence import Estimate
from dpwitness.mechanisms.mechanism import Mechanism, Rows
from dpwitness.neighbours import Data, Pair, Relation, adjacent_candidates, adjacent_variations
from dpwitness.runs import CERTAIN, PLAYOFF, ordered, sample, stack, tally
from dpwitness.search.learners import RatedEvent as Found
from dpwitness.search.learners import learn_events, tolerance
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample, counted, sample_of

#: Numbers that the outcomes of one pair may hold in memory, both sides together.
ROOM = 1 << 22
#: Paired runs that are drawn at a time to be counted.
PART = 1 << 17
#: How many pairs go on to the playoff; twice as many where nothing ends the search early: a bound has the runs for it.
FINALISTS = 4
#: By how many standard errors a value in the playoff is lowered: the largest of some 24 noisy values is partly noise.
STANDARD_ERRORS = 1.0
#: How often a winner of the playoff that may owe it to luck is counted again.
RECOUNTS = 2

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Promising:
    """A pair that promised much, and what was seen of it."""

    pair: Pair
    sample: Sample
    certain: Found | None = None  # an event so good, on runs of its own, that the search ended with it


@dataclass(frozen=True, slots=True)
class Entry:
    """A pair and an event in a playoff; `place` says which finalist it came from, −1 for an attack's."""

    pair: Pair
    found: Found
    place: int = -1


@dataclass(slots=True)
class _Arm:
    pair: Pair
    index: int
    x: Rows = field(default_factory=lambda: np.empty((0, 1)))
    y: Rows = field(default_factory=lambda: np.empty((0, 1)))
    found: Found | None = None
    certain: bool = False
    turns: int = 0

    @property
    def value(self) -> float:
        return -np.inf if self.found is None else self.found.value


def search(
    mechanism: Mechanism,
    relation: Relation,
    objective: Objective,
    *,
    data: Data | None = None,
    centre: float = 0.0,
    scale: float = 1.0,
    seed: int,
    budget: int,
    stop_value: float = np.inf,
    coupled: bool = True,
    workers: int = 1,
    deadline: Deadline | float | None = None,
    progress: Progress | None = None,
) -> tuple[list[Promising], int]:
    """Find the pairs that promise most: successive halving over the relation's pairs, then over variations of the best.

    Returns the finalists, best first, and the paired runs spent, in total about `budget`. A pair whose value surely
    reaches `stop_value` ends the search at once; where none is given and outcomes repeat, as many runs again are spent
    on the finalists. At the deadline it ends with what was drawn until then. Raises `InvalidOutcome` if every run of
    every pair returned the same, and `MechanismTimeout` if no run was done in time.
    """
    numbers = count()
    spent = 0
    late = False
    thorough = np.isinf(stop_value) and mechanism.threads
    finalists = 2 * FINALISTS if thorough else FINALISTS

    def halve(arms: list[_Arm], budget: int, keep: int) -> list[_Arm]:
        """Few runs for all, twice the runs for the better half, and so on; the same total in every round."""
        nonlocal spent, late
        rounds = max((len(arms) - 1) // keep, 0).bit_length() + 1
        for _ in range(rounds):
            spread = len(arms) >= workers and mechanism.threads
            share = max(budget // (rounds * len(arms)), 8)

            # Nothing is written to the arm here: a thread that is left behind at the deadline must change nothing.
            def grown(
                arm: _Arm, share: int = share, alone: bool = not spread, ranked: bool = len(arms) > 1
            ) -> tuple[int, int, Rows, Rows, Found | None]:
                n = max(min(share, ROOM // (2 * max(arm.pair.data.size, 1)) - len(arm.x)), 0)
                x, y, drawn = arm.x, arm.y, 0
                if n:
                    new = sample(
                        mechanism,
                        arm.pair,
                        n,
                        seed=seed,
                        key=(arm.index, arm.turns),
                        coupled=coupled,
                        workers=workers if alone else 1,
                        deadline=deadline if alone else None,
                        partial_too=True,
                    )
                    x, y, drawn = stack([x, new[0]]), stack([y, new[1]]), len(new[0])
                found = learn_events(x, y, objective, thorough=False, most=1)[0] if ranked else arm.found
                return n, drawn, x, y, found

            tasks = (partial(grown, arm) for arm in arms)
            results = ordered(tasks, workers if spread else 1, deadline if spread else None)
            try:
                for arm in arms:
                    result = next(results)
                    if result is None:
                        late = True
                        break
                    n, drawn, arm.x, arm.y, arm.found = result
                    arm.turns += n > 0
                    spent += drawn
                    if progress is not None:
                        progress(spent)
                    if drawn < n:
                        late = True
                        break
            except MechanismTimeout:
                late = True
            if late:
                seen = sorted((arm for arm in arms if len(arm.x)), key=lambda arm: -arm.value)
                if not seen:
                    raise MechanismTimeout(
                        f"{mechanism.name} did not finish one run of the search in time: give more time"
                    )
                return seen[:keep]
            arms = sorted(arms, key=lambda arm: -arm.value)[: max((len(arms) + 1) // 2, keep)]
            recount(arms[0])
            if arms[0].certain:
                return arms[:1]
        return arms[:keep]

    def recount(arm: _Arm) -> None:
        """Try an event that seems good enough on fresh runs: the best of so many looks may be luck."""
        nonlocal spent, late
        if arm.found is None or arm.found.lower_value < stop_value:
            return
        pair = arm.pair.swapped() if arm.found.swapped else arm.pair
        n = max(budget // 10, 64)
        key = (CERTAIN, arm.index, arm.turns)
        try:
            cells = tally(mechanism, pair, arm.found.event, n, seed=seed, key=key, workers=workers, deadline=deadline)
        except MechanismTimeout:
            late = True
            return
        spent += n
        arm.found = _counted(arm.found, cells, objective)
        arm.certain = arm.found.lower_value >= stop_value

    def deepened(arm: _Arm, n: int) -> Sample:
        """What was seen of a pair; n fresh runs, which need no room, where outcomes repeat."""
        nonlocal spent
        rows = sample_of(arm.x, arm.y)
        if late or not rows.repeats or n <= len(arm.x):
            return rows
        parts = 2 * -(-n // (2 * PART))
        each = -(-n // parts)
        draw = partial(
            sample, mechanism, arm.pair, each, seed=seed, coupled=coupled, workers=workers, deadline=deadline
        )
        try:
            table = counted((draw(key=(arm.index, arm.turns + turn)) for turn in range(parts)), rows.width, n)
        except MechanismTimeout:
            return rows
        spent += parts * each
        return table or rows

    proposed = adjacent_candidates(relation, data, centre=centre, scale=scale)
    arms = [_Arm(pair, next(numbers)) for pair in proposed]
    first = list(arms)
    if len(arms) > 1:
        arms = halve(arms, budget // 2, finalists)
        _refuse_constant(mechanism, first, late)
        if not arms[0].certain and not late:
            varied = [v for arm in arms[:2] for v in adjacent_variations(relation, arm.pair, data, scale=scale)]
            arms += [_Arm(pair, next(numbers)) for pair in varied]
            arms = halve(arms, budget - spent, finalists)
    else:
        arms = halve(arms, budget, 1)
        _refuse_constant(mechanism, first, late)
    found = []
    for arm in arms:
        more = budget // len(arms) if thorough else 0
        seen = deepened(arm, more)
        found.append(Promising(pair=arm.pair, sample=seen, certain=arm.found if arm.certain else None))
    return found, spent


def playoff(
    mechanism: Mechanism,
    entries: Sequence[Entry],
    objective: Objective,
    *,
    seed: int,
    budget: int,
    workers: int = 1,
    deadline: Deadline | float | None = None,
) -> tuple[Entry, int]:
    """The best of several pairs with events, each counted on search runs of its own; halving again.

    Counting needs no memory, so this tells apart what the rows of the search could not. Returns the winner with its new
    estimate, and the paired runs spent. Of the last two the simpler one wins if it is nearly as good. A winner that
    promises something, but not three standard errors lower, is counted once more; if that was luck, another one wins.
    """
    rounds = max(len(entries) - 1, 0).bit_length()
    spent = 0
    latest = list(entries)
    alive = list(range(len(entries)))
    cells = np.zeros((len(entries), 4), np.int64)

    def count_on(number: int, turn: int, n: int) -> None:
        """Count an event on n more runs, and value it anew."""
        nonlocal spent
        entry = entries[number]
        pair = entry.pair.swapped() if entry.found.swapped else entry.pair
        key = (PLAYOFF, number, turn)
        cells[number] += tally(
            mechanism, pair, entry.found.event, n, seed=seed, key=key, workers=workers, deadline=deadline
        )
        spent += n
        latest[number] = replace(entry, found=_counted(entry.found, cells[number], objective))

    def value(number: int) -> float:
        return latest[number].found.value

    for turn in range(rounds):
        n = max(budget // (rounds * len(alive)), 8)
        for number in alive:
            count_on(number, turn, n)
        alive.sort(key=lambda number: -value(number))
        if turn < rounds - 1:
            alive = alive[: (len(alive) + 1) // 2]
    recounted: set[int] = set()
    while True:
        best = value(alive[0])
        good = [number for number in alive if value(number) >= best - tolerance(best)]
        winner = min(good, key=lambda number: latest[number].found.event.complexity)
        lucky = latest[winner].found.lower_value <= 0 < value(winner) and winner not in recounted
        if not lucky or len(recounted) == RECOUNTS:
            return latest[winner], spent
        recounted.add(winner)
        cells[winner] = 0  # the runs by which it won
        count_on(winner, rounds, max(budget // 5, 8))
        alive = sorted(range(len(entries)), key=lambda number: -value(number))


def estimated(cells: NDArray[np.int64]) -> Estimate:
    """The shares that counts show, in the order of `tally`."""
    n10, n11, n01, _ = cells
    runs = int(cells.sum())
    return Estimate(p=float((n10 + n11) / runs), q=float((n01 + n11) / runs), both=float(n11 / runs))


def _counted(found: Found, cells: NDArray[np.int64], objective: Objective) -> Found:
    """An event with the estimate and the value of fresh counts."""
    estimate, runs = estimated(cells), int(cells.sum())
    p, q, both = np.array([estimate.p]), np.array([estimate.q]), np.array([estimate.both])
    value, lower = (float(objective(p, q, runs, errors, both)[0]) for errors in (STANDARD_ERRORS, 3.0))
    return replace(found, estimate=estimate, value=value, lower_value=lower)


def _refuse_constant(mechanism: Mechanism, arms: Sequence[_Arm], late: bool) -> None:
    """Raise `InvalidOutcome` for a mechanism that returns nothing but NaN, or always the same.

    Not when the search ended `late`: the few runs of a slow mechanism may be the same by chance.
    """
    parts = [part for arm in arms for part in (arm.x, arm.y) if len(part)]
    total = sum(map(len, parts))
    first = parts[0][:1]
    if late or not all(
        part.shape[1] == first.shape[1] and np.all((part == first) | np.isnan(part) & np.isnan(first)) for part in parts
    ):
        return
    if np.all(np.isnan(first) | (first == NOT_A_NUMBER) | (first == NONE)):
        raise InvalidOutcome(
            f"{mechanism.name} returned NaN or nothing on each of its first {total} runs: there is nothing to test"
        )
    raise InvalidOutcome(
        f"{mechanism.name} returned {first[0].tolist()} on each of its first {total} runs, "
        "on every input: there is nothing to test"
    )
