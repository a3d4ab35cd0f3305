"""All tables that agree with a program, or some of them, and the rows that are in every one.

HiGHS finds a table. All others have, of some row of it, fewer people, or are larger: so the rest falls into as many
parts as it has rows, and one more, each with other limits of the unknowns alone, and each is searched in the same way.
HiGHS computes in floating point; whether a table agrees is then decided in whole numbers.
"""

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import field
from typing import Any, Final, TypeVar

import numpy as np

from dpwitness.dataclass import dataclass
from dpwitness.machine import Deadline
from dpwitness.reconstruction.published_tables.program import NONE, Program
from dpwitness.reconstruction.table_builder.tables import IntArray

#: HiGHS takes a whole number for one that is off by less.
TOLERANCE: Final = 1e-5
#: What scipy's `milp` says of a program that has no solution.
INFEASIBLE: Final = 2

T = TypeVar("T")


@dataclass(slots=True)
class Agreeing:
    """Tables that agree, as far as they are known.

    Attributes
    ----------
    tables
        Different ones, each by the number of people of each cell.
    complete
        Whether there are no others.
    certain
        How many people at least have each cell, in every table that agrees; 0 where that is not known.
    decided
        Whether it is known of all cells.
    """

    tables: list[IntArray] = field(default_factory=list)
    complete: bool = False
    certain: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    decided: bool = False


class Unsolved(Exception):  # no error: what is known so far stays
    """HiGHS came to no result, or not in time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Optimum:
    """A solution of a program, and a limit of the objective from below, the same where the time sufficed."""

    values: IntArray
    least: float


class Solver:
    """Solves a program within limits of its unknowns."""

    def __init__(self, program: Program) -> None:
        from scipy.optimize import LinearConstraint  # 0.2 s

        self.program = program
        # Means have coefficients of many digits: each sum is scaled, since tolerances are absolute.
        scale = np.ones(program.matrix.shape[0])
        np.maximum.at(scale, program.matrix.tocoo().coords[0], np.abs(program.matrix.data).astype(float))
        low = np.where(program.low == -NONE, -np.inf, program.low / scale)
        high = np.where(program.high == NONE, np.inf, program.high / scale)
        matrix = program.matrix.astype(float).multiply(1 / scale[:, None]).tocsr()
        self.constraint = LinearConstraint(matrix, low, high)

    def solve(
        self, lower: IntArray, upper: IntArray, deadline: Deadline, objective: IntArray | None = None
    ) -> Optimum | None:
        """A solution, the best one as far as time allows; None where there is none. Raises `Unsolved`."""
        from scipy.optimize import Bounds, milp

        if np.any(lower > upper) or np.any(self.program.low > self.program.high):
            return None
        if not deadline.left:
            raise Unsolved
        found: Any = interruptible(
            lambda: milp(
                np.zeros(len(lower)) if objective is None else objective,
                integrality=np.ones(len(lower), np.int64),
                bounds=Bounds(lower, upper),
                constraints=self.constraint,
                options={"time_limit": deadline.left},
            )
        )
        if found.status == INFEASIBLE:
            return None
        if found.x is None:
            raise Unsolved
        bound = found.mip_dual_bound
        least = 0.0 if bound is None or not math.isfinite(bound) else bound  # no objective here is below 0
        return Optimum(values=np.rint(found.x).astype(np.int64), least=least)


def interruptible(call: Callable[[], T]) -> T:
    """What a call gives that knows nothing of Ctrl-C: it goes on by itself if that comes."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # to be raised where it was called
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result()


def find_tables(solver: Solver, found: Agreeing, most: int, deadline: Deadline) -> Iterator[None]:
    """Add tables to those found until there are so many, or no others; pauses after each.

    What is known by then is in `found` also where the time is over, or where it is left early.
    """
    program = solver.program
    lower, upper = program.lower.copy(), program.upper.copy()
    path: list[Iterator[bool]] = []  # of each table on the way here, the parts of the rest

    def parts(values: IntArray) -> Iterator[bool]:
        """Limit the unknowns to one part of the other tables after another; at the end the limits are as before."""
        support = np.flatnonzero(values[: program.people] > lower[: program.people])
        least, total = lower[support], lower[program.people]
        for cell in support:
            largest = upper[cell]
            upper[cell] = values[cell] - 1
            yield True
            upper[cell] = largest
            lower[cell] = values[cell]  # from here on as many as in the table
        lower[program.people] = values[program.people] + 1
        yield True
        lower[program.people] = total
        lower[support] = least

    def descend() -> None:
        optimum = solver.solve(lower, upper, deadline)
        if optimum is None:
            return
        if program.agrees(optimum.values):
            found.tables.append(optimum.values[: program.people])
        path.append(parts(optimum.values))

    try:
        descend()
        yield
        while path and len(found.tables) < most:
            if not next(path[-1], False):
                path.pop()
                continue
            before = len(found.tables)
            descend()
            if len(found.tables) > before:
                yield
    except Unsolved:
        return
    found.complete = not path


def find_certain_rows(solver: Solver, found: Agreeing, deadline: Deadline) -> None:
    """Set how many people at least have each cell; where the time is over before, some of it stays unknown.

    The tables found are limits from above. Each that is not 0 is minimised; a table that comes out
    excludes others, too.
    """
    program = solver.program
    found.certain = np.zeros(program.people, np.int64)
    if not found.tables:
        return
    least = np.min(found.tables, axis=0)
    if found.complete:
        found.certain, found.decided = least, True
        return
    cells = set(np.flatnonzero(least).tolist())
    together = True  # the first time all of them at once
    try:
        while cells:
            objective = np.zeros(len(program.lower), np.int64)
            cell = min(cells)
            objective[list(cells) if together else cell] = 1
            optimum = solver.solve(program.lower, program.upper, deadline, objective)
            if optimum is None:  # there are solutions: HiGHS is at its limits
                return
            if program.agrees(optimum.values):
                least = np.minimum(least, optimum.values[: program.people])
            if not together:
                found.certain[cell] = max(math.ceil(optimum.least - TOLERANCE), 0)
                cells.discard(cell)
            cells -= set(np.flatnonzero(least == 0).tolist())
            together = False
    except Unsolved:
        return
    found.decided = True
