"""Which pair: spend runs where they promise most. Everything here is thrown away before evidence begins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import numpy as np

from dpwitness.errors import InvalidOutcome, MechanismTimeout
from dpwitness.learn import Objective, learn_event
from dpwitness.mechanism import Mechanism, Rows
from dpwitness.neighbours import Data, Pair, Relation
from dpwitness.runs import ordered, sample, stack

#: Numbers that the outcomes of one pair may hold in memory, both sides together.
ROOM = 1 << 23

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """The pair that promised most, all outcomes seen of it, and the number of paired runs spent on all pairs."""

    pair: Pair
    x: Rows
    y: Rows
    runs: int


@dataclass(slots=True)
class _Arm:
    pair: Pair
    index: int
    x: Rows = field(default_factory=lambda: np.empty((0, 1)))
    y: Rows = field(default_factory=lambda: np.empty((0, 1)))
    value: float = -np.inf
    turns: int = 0


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
    enough: float = np.inf,
    workers: int = 1,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> Searched:
    """Find the pair that promises most: successive halving over the relation's pairs, then over variations of the best.

    `budget` is the total of paired runs; a pair whose value reaches `enough` ends the search at
    once. Raises `InvalidOutcome` if every run of every pair returned the same.
    """
    numbers = count()
    spent = 0

    def halve(arms: list[_Arm], budget: int, keep: int) -> list[_Arm]:
        """Few runs for all, twice the runs for the better half, and so on; the same total in every round."""
        nonlocal spent
        rounds = max((len(arms) - 1) // keep, 0).bit_length() + 1
        for _ in range(rounds):
            spread = len(arms) >= workers and mechanism.threads
            share = max(budget // (rounds * len(arms)), 16)

            def grow(arm: _Arm, share: int = share, alone: bool = not spread, ranked: bool = len(arms) > 1) -> int:
                n = max(min(share, ROOM // (2 * max(arm.pair.data.size, 1)) - len(arm.x)), 0)
                if n:
                    new = [
                        sample(
                            mechanism,
                            data,
                            n,
                            seed=seed,
                            key=(arm.index, arm.turns, side),
                            workers=workers if alone else 1,
                            deadline=deadline if alone else None,
                        )
                        for side, data in enumerate((arm.pair.data, arm.pair.neighbour))
                    ]
                    arm.x, arm.y = stack([arm.x, new[0]]), stack([arm.y, new[1]])
                    arm.turns += 1
                if ranked:
                    arm.value = learn_event(arm.x, arm.y, objective, thorough=False).value
                return n

            for n in ordered(
                (partial(grow, arm) for arm in arms), workers if spread else 1, deadline if spread else None
            ):
                if n is None:
                    raise MechanismTimeout(f"{mechanism.name} did not finish the search in time: give more time")
                spent += n
                if progress is not None:
                    progress(spent)
            arms = sorted(arms, key=lambda arm: -arm.value)[: max((len(arms) + 1) // 2, keep)]
            if arms[0].value >= enough:
                return arms[:1]
        return arms[:keep]

    arms = [_Arm(pair, next(numbers)) for pair in relation.candidates(data, centre=centre, scale=scale)]
    first = list(arms)
    if len(arms) > 1:
        arms = halve(arms, budget // 2, 2)
        _refuse_constant(mechanism, first)
        if arms[0].value < enough:
            arms += [_Arm(v, next(numbers)) for arm in arms for v in relation.variations(arm.pair, scale=scale)]
            arms = halve(arms, budget - spent, 1)
    else:
        arms = halve(arms, budget, 1)
        _refuse_constant(mechanism, first)
    best = arms[0]
    return Searched(pair=best.pair, x=best.x, y=best.y, runs=spent)


def _refuse_constant(mechanism: Mechanism, arms: Sequence[_Arm]) -> None:
    """Raise `InvalidOutcome` for a mechanism that returns nothing but NaN, or always the same."""
    parts = [part for arm in arms for part in (arm.x, arm.y)]
    total = sum(map(len, parts))
    if all(np.isnan(part).all() for part in parts):
        raise InvalidOutcome(
            f"{mechanism.name} returned NaN or nothing on each of its first {total} runs: there is nothing to test"
        )
    first = parts[0][:1]
    if all(
        part.shape[1] == first.shape[1] and np.all((part == first) | np.isnan(part) & np.isnan(first)) for part in parts
    ):
        raise InvalidOutcome(
            f"{mechanism.name} returned {first[0].tolist()} on each of its first {total} runs, "
            "on every input: there is nothing to test"
        )
