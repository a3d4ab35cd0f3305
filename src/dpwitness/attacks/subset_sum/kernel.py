"""The weeding phase of the exponential adversary as machine code: a set of people is one machine word."""

import numpy as np
from numpy.typing import NDArray

from dpwitness.jit import compiled


@compiled
def weed(answers: NDArray[np.float64], error: float) -> np.int64:
    """Return the smallest candidate that no answer contradicts by more than `error`, −1 if there is none.

    Bit i of a candidate is person i's. A candidate's sum over a subset is the number of ones in the AND of two words,
    which the compiler makes one instruction of. Nearly every candidate falls after a few subsets, provided that these
    are asked in no order: an odd factor runs through all of them.
    """
    everything = len(answers)
    last = np.uint64(everything - 1)
    for k in range(everything):
        candidate = np.uint64(k)
        place = np.uint64(0)
        fits = True
        for _ in range(everything):
            place = (place + np.uint64(0x9E3779B97F4A7C15)) & last
            x = candidate & place
            x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
            x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
            x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
            ones = np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
            if abs(ones - answers[place]) > error:
                fits = False
                break
        if fits:
            return np.int64(k)
    return np.int64(-1)
