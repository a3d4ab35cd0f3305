"""The random draws of single runs of plain Python, which both sides of a run can share."""

import ctypes
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray


def sfc64_state(rng: np.random.Generator) -> NDArray[np.uint64]:
    """The living state of an SFC64 generator as five words: four, of which the last counts draws, and a 32-bit rest."""
    bits = rng.bit_generator
    if not isinstance(bits, np.random.SFC64):
        raise TypeError(f"coupled and compiled runs need an SFC64 generator, not {type(bits).__name__}")
    memory = (ctypes.c_uint64 * 5).from_address(bits.ctypes.state_address)
    return np.ctypeslib.as_array(memory)


class Draws:
    """The draws of runs one by one: those of one stream in turn, or of a stream of its own for each run.

    Streams of their own begin from 256 random bits each: runs are independent of each other, and a run that is made
    twice, once on each input, draws the same both times.
    """

    def __init__(self, rng: np.random.Generator, runs: int, *, own_streams: bool, global_too: bool) -> None:
        """For so many runs. `global_too`: seed the generators of `random` and `numpy.random` for each run."""
        self._rng = rng
        self._global_too = global_too
        self._words: NDArray[np.uint64] | None = None
        if own_streams or global_too:
            self._words = rng.integers(0, 1 << 64, (runs, 4), np.uint64)
            self._rng = np.random.Generator(np.random.SFC64(0))
            self._state = sfc64_state(self._rng)

    def of_run(self, run: int) -> np.random.Generator:
        """The generator for a run, ready to draw from."""
        if self._words is not None:
            words = self._words[run]
            self._state[:4], self._state[4] = words, 0
            if self._global_too:
                random.seed(int(words[0]) << 64 | int(words[1]))
                np.random.seed(words.view(np.uint32))  # noqa: NPY002  # what the mechanism draws from
        return self._rng


@contextmanager
def global_states_restored() -> Iterator[None]:
    """Put the states of the generators of `random` and `numpy.random` back in the end."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002


def repeats(outcomes: Callable[[np.random.Generator], NDArray[np.float64]]) -> bool:
    """Whether outcomes on both inputs, of shape (2, runs, width), vary, and are the same again from the same seed."""
    first, again = (outcomes(np.random.Generator(np.random.SFC64(0))) for _ in range(2))
    varies = any(not np.array_equal(side, np.broadcast_to(side[:1], side.shape), equal_nan=True) for side in first)
    return varies and first.shape == again.shape and np.array_equal(first, again, equal_nan=True)
