"""The errors for a mechanism that raised: on which run, on which input, and whether on its neighbour, too."""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import is_failure, text_of
from dpwitness.errors import MechanismError, MechanismRaised
from dpwitness.mechanisms.compiled.driver import reason
from dpwitness.neighbours import Data, Pair, shown

#: The method `fill` of a mechanism: of an input, a generator, rows and the number of the first run, the longest length.
Fill = Callable[[Data, np.random.Generator, NDArray[np.float64], int], int]


def raised_error(name: str, error: BaseException, run: int, data: Data, *, used_up: bool = False) -> MechanismRaised:
    """The error for a mechanism that raised, with its name, the number of the run and the input."""
    text = next((line for line in text_of(error).splitlines() if line.strip()), "no message")
    if type(error).__module__.partition(".")[0] == "numba":  # whose first line says in which step of numba's, not why
        text = reason(str(error))
    message = f"{name} raised {type(error).__name__} ({text}) on run {run}, on the input {shown(data)}"
    if used_up:
        message += (
            ", and now also on inputs on which it ran before: something that it holds is used up; make a "
            "new one for each run: make=, or within the function"
        )
    result = MechanismRaised(message)
    result.used_up = used_up
    return result


def always_raises(run: Callable[[int], object], kind: type[BaseException]) -> bool:
    """Whether each of eight runs raises an exception of a kind; `run` takes the number of the run."""
    for number in range(8):
        try:
            run(number)
        except BaseException as error:
            if not is_failure(error):
                raise
            if isinstance(error, kind):
                continue
        return False
    return True


def describe_both_inputs(fill: Fill, pair: Pair, error: MechanismRaised) -> MechanismRaised:
    """The error with how often each input of the pair raises: an exception on one side alone tells them apart.

    `fill` is that of a `Mechanism`; it is called for single runs.
    """
    if pair.data is pair.neighbour or error.used_up:
        return error
    try:
        raised, runs = _raised_of_each(fill, pair)
    except MechanismError:  # of another kind: the first error is reported
        return error
    side = int(raised[1] > raised[0])
    often, here, there = raised[side], ("D", "D′")[side], ("D′", "D")[side]
    if not often or raised[1 - side]:
        always = raised == [runs, runs]  # a mistake in the call, which cannot be an outcome
        result = MechanismRaised(str(error) if always else f"{error}; errors='outcome' counts exceptions as outcomes")
        result.on_both_inputs = always
        return result
    message = f"{error}: it raised in {often} of {runs} runs on {here} but in none of {runs} on {there}"
    if often < 5:  # five fall on one of two equal sides in 1 of 16 cases
        return MechanismRaised(f"{message}; errors='outcome' tests whether that is chance")
    return MechanismRaised(f"{message}, which is a difference between neighbours; errors='outcome' tests it")


def _raised_of_each(fill: Fill, pair: Pair) -> tuple[list[int], int]:
    """The runs of each input that raised, and the runs of each: 32 in a random order, or as many as take 0.5 s."""
    rngs = [np.random.Generator(np.random.SFC64(side)) for side in (0, 1)]
    row, order = np.empty((1, 1)), np.random.Generator(np.random.SFC64(2)).integers(0, 2, 32)
    counts, runs = [0, 0], 0
    end = time.monotonic() + 0.5
    while runs < len(order) and (not runs or time.monotonic() < end):
        for side in (1, 0) if order[runs] else (0, 1):
            try:
                fill(pair.sides[side], rngs[side], row, runs)
            except MechanismRaised:
                counts[side] += 1
        runs += 1
    return counts, runs
