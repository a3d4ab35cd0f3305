"""Random streams: runs of different roles never share a stream."""

from enum import Enum

import numpy as np
from numpy.typing import NDArray


class Role(Enum):
    """The purpose of runs. Runs of one role never repeat runs of another role with the same seed.

    The value is the first part of the keys of the role's streams; of runs in shards, the shard's number is the last.
    """

    SEARCH = (0,)  # next part: the number of the pair
    COMPARISON = (0, 1 << 20)
    ESTIMATE = (0, 1 << 20, 1 << 20)  # estimates of events that were chosen by other runs
    CHECK_OF_SEARCH = (0, 1 << 21)  # an estimate of an event that was the best of many
    SHRINK = (0, (1 << 21) + 1)
    CELLS = (0, (1 << 21) + 2)  # next part: 0 for runs from which cells are learned, 1 for estimates of these cells
    ATTACK = (0, (1 << 21) + 4)  # a comparison of an attack's candidates, whose best one COMPARISON compares again
    SENSITIVITY = (0, (1 << 21) + 5)  # runs that order the pairs; all pairs have the same stream
    BITS = (0, (1 << 21) + 9)  # outcomes whose last bits may tell D from D′; next: the pair, or MOST_PAIRS to count
    EPOCH = (3,)  # evidence, then the sample for the next bet; next parts: the numbers of the pair and of the epoch
    CONFIRM = (1,)  # evidence
    ORDER = (4,)  # no runs, but the order of the sides of runs; next part: the key of the runs
    OUTPUTS = (5,)  # outcomes of the candidate, for a figure
    HEALTH_FIRST_RUNS = (2, 0)
    HEALTH_SAME_DRAWS = (2, 1)
    HEALTH_FURTHER_CALLS = (2, 2)
    HEALTH_NEW_PROCESS = (2, 3)
    HEALTH_PROCESSES = (2, 4)  # runs by which processes are compared
    HEALTH_EXPLANATION = (2, 5)  # recorded runs of a violation; next part: the number of the paired run

    @property
    def evidence(self) -> bool:
        """Whether runs of this role are evidence."""
        return self in (Role.EPOCH, Role.CONFIRM)


def seed_after(seed: int, *key: int) -> int:
    """The seed of 64 bits that follows from another seed and a key, for all streams of a further result."""
    return int(np.random.SeedSequence((seed, *key)).generate_state(1, np.uint64)[0])


def generator(seed: int, role: Role, *key: int) -> np.random.Generator:
    """The generator of the stream of a role and a key; SFC64, which coupled runs need."""
    return np.random.Generator(_bits(seed, role, *key))


def _bits(seed: int, role: Role, *key: int) -> np.random.SFC64:
    return np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(*role.value, *key)))


def order(seed: int, role: Role, *key: int, runs: int) -> NDArray[np.uint8]:
    """The order of the sides of each paired run of a stream: 1 if D′ runs first, else 0, with equal probability.

    The order is independent of the mechanism's draws, since it has a stream of its own.
    """
    # `Generator.bytes` takes seven times as long as `random_raw`.
    words = _bits(seed, Role.ORDER, *role.value, *key).random_raw(-(-runs // 64))
    return np.unpackbits(np.asarray(words, "<u8").view(np.uint8), count=runs)
