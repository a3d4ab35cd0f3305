"""Random streams: each role of runs has streams of its own."""

from enum import Enum

import numpy as np
from numpy.typing import NDArray


class Role(Enum):
    """The purpose of runs. Runs of one role never repeat runs of another role with the same seed.

    The value begins the key of the role's streams; the caller adds numbers, such as those of a pair and a shard.
    """

    SEARCH = (0,)  # then the number of the pair
    COMPARISON = (0, 1 << 20)
    ESTIMATE = (0, 1 << 20, 1 << 20)  # of events that were chosen already
    CHECK_OF_SEARCH = (0, 1 << 21)  # of an event that was the best of many
    SHRINK = (0, (1 << 21) + 1)
    CELLS = (0, (1 << 21) + 2)  # of a partition: 0 to learn it from, 1 to estimate it
    ATTACK = (0, (1 << 21) + 4)  # as COMPARISON, for candidates of an attack: the winner is judged again by COMPARISON
    BITS = (0, (1 << 21) + 9)  # to learn from which last bits tell D from D′: the number of the pair, then 1 to count
    EPOCH = (3,)  # then the number of the pair and of the epoch: evidence first, then the sample of the next bet
    CONFIRM = (1,)  # then the number of the shard: evidence, as those of an epoch are
    ORDER = (4,)  # then the key of the runs: which side of each comes first
    OUTPUTS = (5,)  # of the candidate, for a figure
    HEALTH_FIRST_RUNS = (2, 0)
    HEALTH_SAME_DRAWS = (2, 1)
    HEALTH_FURTHER_CALLS = (2, 2)
    HEALTH_NEW_PROCESS = (2, 3)
    HEALTH_PROCESSES = (2, 4)  # by which processes are compared
    HEALTH_EXPLANATION = (2, 5)  # recorded runs of a violation: the number of the pair of runs

    @property
    def evidence(self) -> bool:
        """Whether its runs are bet on."""
        return self in (Role.EPOCH, Role.CONFIRM)


def generator(seed: int, role: Role, *key: int) -> np.random.Generator:
    """The generator of a stream, named by a role and further numbers; SFC64, as coupled runs need."""
    return np.random.Generator(_bits(seed, role, *key))


def _bits(seed: int, role: Role, *key: int) -> np.random.SFC64:
    return np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(*role.value, *key)))


def order(seed: int, role: Role, *key: int, runs: int) -> NDArray[np.uint8]:
    """The order of the sides of each paired run of a stream: 1 if D′ runs first, else 0, with equal probability.

    The order has a stream of its own, on which the draws of the mechanism do not depend.
    """
    # The words themselves: `Generator.bytes` gives the same bytes in seven times the time.
    words = _bits(seed, Role.ORDER, *role.value, *key).random_raw(-(-runs // 64))
    return np.unpackbits(np.asarray(words, "<u8").view(np.uint8), count=runs)
