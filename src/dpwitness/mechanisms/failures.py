"""Errors for a mechanism that raised: the run, the input, and how often each input of the pair raises."""

import time

import numpy as np

from dpwitness.checks import text_of
from dpwitness.errors import MechanismError, MechanismRaised
from dpwitness.mechanisms.compiled.driver import reason
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.neighbours import Data, Pair, shown


def raised_error(name: str, error: BaseException, run: int, data: Data) -> MechanismRaised:
    """The error for the mechanism `name`, which raised `error` on a run on an input."""
    text = next((line for line in text_of(error).splitlines() if line.strip()), "no message")
    if type(error).__module__.partition(".")[0] == "numba":  # the first line names a step of numba's, not the reason
        text = reason(str(error))
    return MechanismRaised(f"{name} raised {type(error).__name__} ({text}) on run {run}, on the input {shown(data)}")


def describe_both_inputs(mechanism: Mechanism, pair: Pair, error: MechanismRaised) -> MechanismRaised:
    """The error, with the number of runs that raise on each input: an exception on one side alone tells them apart."""
    if pair.data is pair.neighbour:
        return error
    try:
        raised, runs = _raised_of_each(mechanism, pair)
    except MechanismError:  # another error, such as `InvalidOutcome`: the first error is reported
        return error
    side = int(raised[1] > raised[0])
    if raised[1 - side] or not raised[side]:
        always = raised == [runs, runs]  # then errors='outcome' would not help
        result = MechanismRaised(str(error) if always else f"{error}; errors='outcome' counts exceptions as outcomes")
        result.on_both_inputs = always
        return result
    here, there = ("D", "D′") if side == 0 else ("D′", "D")
    return MechanismRaised(
        f"{error}: it raised in {raised[side]} of {runs} runs on {here} but in none of {runs} on {there}; "
        "errors='outcome' tests whether that is a difference between neighbours"
    )


def _raised_of_each(mechanism: Mechanism, pair: Pair) -> tuple[list[int], int]:
    """The numbers of runs on D and on D′ that raised, and the runs on each: up to 32, in about 0.5 s."""
    rngs = [np.random.Generator(np.random.SFC64(side)) for side in (0, 1)]
    order = np.random.Generator(np.random.SFC64(2)).integers(0, 2, 32)
    counts, runs = [0, 0], 0
    end = time.monotonic() + 0.5
    while runs < len(order) and (not runs or time.monotonic() < end):
        for side in (1, 0) if order[runs] else (0, 1):
            try:
                mechanism.outcomes(pair.sides[side], rngs[side], 1)
            except MechanismRaised:
                counts[side] += 1
        runs += 1
    return counts, runs
