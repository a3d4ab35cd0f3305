"""What is said of a mechanism that raised: on which run, on which input, and whether on its neighbour too."""

import time
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import MechanismError, MechanismRaised
from dpwitness.mechanisms.refusals import reason
from dpwitness.neighbours import Data, Pair, shown

#: Runs of each input, and seconds for them, to see whether only one of the two raises.
TRIED: Final = 32
SECONDS: Final = 0.25
#: Runs that all raise, on an input on which one ran well, before something is said to be used up.
AGAIN: Final = 8

Fill = Callable[[Data, np.random.Generator, NDArray[np.float64], int], int]


def raised(name: str, error: Exception, run: int, data: Data, *, used_up: bool = False) -> MechanismRaised:
    """Make the error for a mechanism of that name that raised, with the run's number and the input."""
    text = str(error).splitlines()[0] if str(error) else "no message"
    if type(error).__module__.partition(".")[0] == "numba":  # whose first line says in which step of numba's, not why
        text = reason(str(error))
    told = f"{name} raised {type(error).__name__} ({text}) on run {run}, on the input {shown(data)}"
    if used_up:
        told += (
            ", and raises now on inputs, too, on which it ran well before: something that it holds is used up; make a "
            "new one for each run: make=, or within the function"
        )
    made = MechanismRaised(told)
    made.used_up = used_up
    return made


def always_raises(run: Callable[[int], object], kind: type[Exception]) -> bool:
    """Whether each of a few runs raises an exception of that kind; `run` takes their number."""
    for number in range(AGAIN):
        try:
            run(number)
        except kind:
            continue
        except Exception:
            return False
        return False
    return True


def of_both(fill: Fill, pair: Pair, error: MechanismRaised) -> MechanismRaised:
    """Return the error with what both inputs of the pair do: an exception on one side alone tells them apart.

    `fill` writes runs of one input into rows, as that of a `Mechanism`; it is called for single runs.
    """
    if pair.data is pair.neighbour or error.used_up:
        return error
    try:
        sides = [(*_counted(fill, data, side), "D′" if side else "D") for side, data in enumerate(pair.sides)]
    except MechanismError:  # of another kind: what was raised first is what is told
        return error
    (often, runs, here), (never, others, there) = sorted(sides, reverse=True)
    if often and not never:
        return MechanismRaised(
            f"{error}: it raised in {often} of {runs} runs on {here} but in none of {others} on {there}, which is a "
            "difference between neighbours; errors='outcome' tests it"
        )
    made = MechanismRaised(f"{error}; errors='outcome' takes exceptions for outcomes")
    made.on_both_inputs = (often, never) == (runs, others)
    return made


def _counted(fill: Fill, data: Data, side: int) -> tuple[int, int]:
    """How many runs of an input raised, and how many there were."""
    rng = np.random.Generator(np.random.SFC64(side))
    row = np.empty((1, 1))
    found = runs = 0
    end = time.monotonic() + SECONDS
    while runs < TRIED and (not runs or time.monotonic() < end):
        runs += 1
        try:
            fill(data, rng, row, runs - 1)
        except MechanismRaised:
            found += 1
    return found, runs
