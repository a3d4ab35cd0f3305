"""The random draws of single runs of plain Python, which both sides of a paired run can share."""

import ctypes
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.arrays import Rows

#: The length of SFC64's state in 64-bit words: four, the last of them a counter of draws, and the buffered half-word.
STATE_WORDS: Final = 5


def state_address(rng: np.random.Generator) -> int:
    """The address of the live state of an SFC64 generator. Raises `TypeError` for other generators."""
    bits = rng.bit_generator
    if not isinstance(bits, np.random.SFC64):
        raise TypeError(f"coupled and compiled runs need an SFC64 generator, not {type(bits).__name__}")
    return int(bits.ctypes.state_address)


def sfc64_state(rng: np.random.Generator) -> NDArray[np.uint64]:
    """The live state of an SFC64 generator, of shape (`STATE_WORDS`,). Raises `TypeError` for other generators."""
    return np.ctypeslib.as_array((ctypes.c_uint64 * STATE_WORDS).from_address(state_address(rng)))


class Draws:
    """The random draws of single runs: from one stream for all runs in turn, or from one stream for each run.

    The stream of a run begins from 256 random bits: runs are independent of each other, and the run with the same
    number on the other input draws the same noise.
    """

    def __init__(self, rng: np.random.Generator, runs: int, *, own_streams: bool, global_too: bool) -> None:
        """Prepare `runs` runs; `global_too`: the generators of `random` and `numpy.random` are seeded for each run."""
        #: The generator of all runs, which `begin` sets to the stream of a run.
        self.generator = rng
        self._noted_state: Any = None
        self._words: NDArray[np.uint64] | None = None
        if not own_streams and not global_too:
            return
        self._words = np.zeros((runs, STATE_WORDS), np.uint64)
        self._words[:, :4] = rng.integers(0, 1 << 64, (runs, 4), np.uint64)
        # Seeded by the words, for mechanisms that call `spawn`: a fixed seed gives the same children in each batch.
        self.generator = np.random.Generator(np.random.SFC64(self._words[:1, :4].ravel()))
        self._state, self._start = state_address(self.generator), self._words.ctypes.data
        self._global_too = global_too

    @property
    def begin(self) -> Callable[[int], object] | None:
        """A function that sets the generator to the stream of run 0, 1, …; None if runs draw in turn."""
        if self._words is None:
            return None
        move, state, start, size = ctypes.memmove, self._state, self._start, 8 * STATE_WORDS
        if not self._global_too:
            return lambda run: move(state, start + size * run, size)

        def seed_all(run: int) -> None:
            move(state, start + size * run, size)
            words = self._words[run, :4]  # type: ignore[index]  # not None here
            random.seed(int(words[0]) << 64 | int(words[1]))
            np.random.seed(words.view(np.uint32))  # noqa: NPY002  # the mechanism may draw from it

        return seed_all

    def of_run(self, run: int) -> np.random.Generator:
        """The generator, set to the stream of a run."""
        if (begin := self.begin) is not None:
            begin(run)
        return self.generator

    def remember(self) -> None:
        """Note the state of the one stream of all runs."""
        if self._words is None:
            self._noted_state = self.generator.bit_generator.state

    def rewind(self) -> None:
        """Go back to the noted state, so that runs that are made again draw the same noise."""
        if self._words is None:
            self.generator.bit_generator.state = self._noted_state


@contextmanager
def global_states_restored() -> Iterator[None]:
    """Restore the states of the generators of `random` and `numpy.random` at the end of the context."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002


def repeats(outcomes: Callable[[np.random.Generator], Rows]) -> bool:
    """Whether `outcomes(generator)`, rows of shape (2, runs, width), vary among runs and repeat from the same seed."""
    first, again = (outcomes(np.random.Generator(np.random.SFC64(0))) for _ in range(2))
    varies = any(not np.array_equal(side, np.broadcast_to(side[:1], side.shape), equal_nan=True) for side in first)
    return varies and first.shape == again.shape and np.array_equal(first, again, equal_nan=True)
