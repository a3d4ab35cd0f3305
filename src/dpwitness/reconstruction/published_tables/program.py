"""Statements as an integer program, and the tables that solve it: one unknown a possible row, how many people have it.

Counts are sums of unknowns, and a rounded mean limits a weighted sum from both sides. A median is said by whole numbers
that are 0 or 1: whether the lower one, and whether the upper one, of the two people in the middle has at least a value.

HiGHS finds a table. All others have, of some row of it, fewer people, or are larger: so the rest falls into as many
parts as it has rows, and one more, each with other limits of the unknowns alone, and each is searched in the same way.
HiGHS computes in floating point; whether a table agrees is then decided in whole numbers.
"""

import bisect
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np

from dpwitness.errors import InvalidData
from dpwitness.machine import Deadline
from dpwitness.reconstruction.published_tables.statements import NO_LIMIT, Figure, Marginal, Mean, Publication, Where
from dpwitness.reconstruction.table_builder.tables import BoolArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

T = TypeVar("T")

#: Possible rows, and numbers in all sums, at most: some hundred bytes each.
MOST_ROWS: Final = 200_000
MOST_TERMS: Final = 20_000_000
#: A limit of a sum that is none.
NONE: Final = 1 << 62


class TooLarge(Exception):  # no error: a program is one of two ways to attack
    """More possible rows, or more terms of sums, than a solver can take."""


class Sum(NamedTuple):
    """A sum of unknowns with whole coefficients, or one for all, its limits, and the statement it is of (−1: none)."""

    columns: IntArray
    coefficients: IntArray | int
    low: int
    high: int
    source: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """All tables that agree with a publication: the whole numbers within limits whose sums are within limits.

    Attributes
    ----------
    cells
        The possible rows by positions of values, shape (cells, attributes): all that no published 0 excludes.
    lower, upper
        Limits of the unknowns: of the cells, then of the number of people, then of what says where medians lie.
    matrix, low, high
        The sums and their limits, ±`NONE` where there is none.
    source
        The statement that each sum is of; −1: of none.
    """

    cells: IntArray
    lower: IntArray
    upper: IntArray
    matrix: "csr_array"
    low: IntArray
    high: IntArray
    source: IntArray

    @property
    def people(self) -> int:
        """The unknown that is the number of people."""
        return len(self.cells)

    def agrees(self, values: IntArray) -> bool:
        """Whether these values of the unknowns satisfy everything, exactly."""
        sums = self.matrix @ values
        within = np.all(sums >= self.low) and np.all(sums <= self.high)
        return bool(within and np.all(values >= self.lower) and np.all(values <= self.upper))

    def of_first(self, statements: int) -> "Program":
        """The same with the sums of the first so many statements alone."""
        kept = self.source < statements
        matrix, low, high, source = self.matrix[kept], self.low[kept], self.high[kept], self.source[kept]
        return replace(self, matrix=matrix, low=low, high=high, source=source)


def program_of(published: Publication) -> Program:
    """The program of a publication.

    Raises `TooLarge`, and `InvalidData` where nothing limits the number of people or numbers are too large to be exact.
    """
    cells = possible_rows(published)
    people = len(cells)
    sums: list[Sum] = []
    most = np.full(people, published.most_people)
    exact: dict[bytes, int] = {}  # the number of people of a set of cells, where it is published
    figures: list[tuple[int, Figure]] = []
    for source, statement in enumerate(published.statements):
        if not isinstance(statement, Marginal):
            figures.append((source, statement))
            continue
        axes = [list(published.attributes).index(name) for name in statement.by]
        inside = np.flatnonzero(inside_of(cells, published, statement.where))
        entries = np.zeros(len(inside), np.int64)
        if axes:
            places = tuple(cells[inside, axis] for axis in axes)
            entries = np.asarray(np.ravel_multi_index(places, statement.low.shape), np.int64)
        low, high = statement.low.ravel(), statement.high.ravel()
        most[inside] = np.minimum(most[inside], high[entries])
        order = np.argsort(entries, kind="stable")
        parts = np.split(inside[order], np.searchsorted(entries[order], np.arange(1, len(low))))
        for part, least, largest in zip(parts, low.tolist(), high.tolist(), strict=True):
            if least == largest:
                exact[part.tobytes()] = least
            if (least, largest) != (0, NO_LIMIT) and (len(part) or least):
                sums.append(Sum(part, 1, least, largest, source))
        _check_terms(sums)
    if np.any(most >= NO_LIMIT):
        raise InvalidData(
            f"{published.statements[0].place.partition(', line')[0]}: nothing limits how many people there are; give "
            'a line as {"people": 7}, or a table of all counts'
        )
    total = min(published.most_people, int(most.sum()))
    sums.append(Sum(np.arange(people + 1), np.append(np.ones(people, np.int64), -1), 0, 0))
    ends = [(0, limit) for limit in [*most.tolist(), total]]
    for source, figure in figures:
        inside = np.flatnonzero(inside_of(cells, published, figure.where))
        sums.append(Sum(inside, 1, 1, total, source))  # of nobody there is no mean
        column = list(published.attributes).index(figure.of)
        values = [Fraction(str(value)) for value in published.attributes[figure.of]]
        having = cells[inside, column]
        number = exact.get(inside.tobytes())
        if isinstance(figure, Mean):
            made = _sums_of_mean(inside, having, values, figure, number, total)
        else:
            made = _sums_of_median(inside, having, values, figure, number, total, ends)
        sums.extend(one._replace(source=source) for one in made)
        _check_terms(sums)
    limits = np.array(ends, np.int64)
    return _program(cells, limits[:, 0], limits[:, 1], sums)


def _program(cells: IntArray, lower: IntArray, upper: IntArray, sums: Sequence[Sum]) -> Program:
    from scipy.sparse import csr_array  # 0.2 s

    columns = [one.columns for one in sums]
    coefficients = [np.broadcast_to(np.asarray(one.coefficients, np.int64), one.columns.shape) for one in sums]
    starts = np.concatenate([[0], np.cumsum([len(some) for some in columns])])
    matrix = csr_array((np.concatenate(coefficients), np.concatenate(columns), starts), shape=(len(sums), len(lower)))
    low, high, source = np.array([(one.low, one.high, one.source) for one in sums], np.int64).T
    return Program(cells, lower, upper, matrix, low, high, source)


def _check_terms(sums: Sequence[Sum]) -> None:
    if sum(len(one.columns) for one in sums) > MOST_TERMS:
        raise TooLarge(f"the statements are sums of more than {MOST_TERMS:,} terms")


def possible_rows(published: Publication) -> IntArray:
    """All rows that no published count of 0 excludes, by positions of values, shape (rows, attributes).

    Attributes are added one by one, so that of many attributes the rows that are excluded need no memory.
    Raises `TooLarge`.
    """
    sizes = [len(values) for values in published.attributes.values()]
    names = list(published.attributes)
    empty = [one for one in published.statements if isinstance(one, Marginal) and not one.high.all()]
    needs = [max(map(names.index, {*one.by, *one.where}), default=0) for one in empty]
    rows = np.zeros((1, 0), np.int64)
    for axis, size in enumerate(sizes):
        if len(rows) * size > MOST_ROWS * max(16, size):
            raise TooLarge(f"there are more than {MOST_ROWS:,} possible rows")
        rows = np.column_stack([np.repeat(rows, size, axis=0), np.tile(np.arange(size), len(rows))])
        for statement, last in zip(empty, needs, strict=True):
            if last == axis:
                inside = inside_of(rows, published, statement.where)
                entries = tuple(rows[:, names.index(name)] for name in statement.by)
                rows = rows[~(inside & (statement.high[entries] == 0))]
        if len(rows) > MOST_ROWS:
            raise TooLarge(f"there are more than {MOST_ROWS:,} possible rows")
    return rows


def inside_of(rows: IntArray, published: Publication, where: Where) -> BoolArray:
    """Which rows satisfy a condition on attributes that they have."""
    inside = np.ones(len(rows), np.bool_)
    for axis, positions in published.positions(where).items():
        inside &= np.isin(rows[:, axis], positions)
    return inside


def _whole(numbers: Sequence[Fraction], people: int, figure: Figure) -> tuple[IntArray, int]:
    """The numbers times the least number that makes them whole, and that; raises `InvalidData` for too large ones."""
    factor = math.lcm(*(number.denominator for number in numbers))
    scaled = [int(number * factor) for number in numbers]
    if max(map(abs, scaled), default=0) * (people + 1) * 2 >= NONE:
        raise InvalidData(
            f"{figure.place}: values of {figure.of!r} with their decimals, summed over {people:,} people, are too "
            "large to be exact; give fewer decimals"
        )
    return np.array(scaled, np.int64), factor


def _sums_of_mean(
    inside: IntArray, having: IntArray, values: list[Fraction], mean: Figure, number: int | None, people: int
) -> Iterator[Sum]:
    """Σ value from low·n to high·n; for an unknown n, Σ (value − low) ≥ 0 and Σ (value − high) ≤ 0."""
    if number is not None:
        weights, factor = _whole(values, people, mean)
        low, high = math.ceil(mean.low * number * factor), math.floor(mean.high * number * factor)
        yield Sum(inside, weights[having], low, high)
        return
    for end, low, high in ((mean.low, 0, NONE), (mean.high, -NONE, 0)):
        weights, _ = _whole([value - end for value in values], people, mean)
        yield Sum(inside, weights[having], low, high)


def _sums_of_median(
    inside: IntArray,
    having: IntArray,
    values: list[Fraction],
    median: Figure,
    number: int | None,
    people: int,
    ends: list[tuple[int, int]],
) -> Iterator[Sum]:
    """Twice those below a value, less all: at most −1 if the lower middle has at least it, at most 0 if the upper has.

    `number`: how many people there are in it, None where that is not known; `ends`: limits of all unknowns, to which
    those of this median are added.
    """
    if number is not None and number % 2:  # one person is in the middle
        for outside in (having_less(having, values, median.low), ~having_less(having, values, median.high, also=True)):
            yield Sum(inside, np.where(outside, 1, -1), -NONE, -1)
        return
    steps = sorted({values[k] for k in np.unique(having).tolist()})
    most = people if number is None else number
    first = len(ends)  # of the lower middle, then of the upper one, whether it is steps[1], steps[2], … or more
    # The lower middle is not above the median, the upper one not below it.
    ends.extend((0, 0 if step > median.high else 1) for step in steps[1:])
    ends.extend((1 if step <= median.low else 0, 1) for step in steps[1:])
    for k, step in enumerate(steps[1:]):
        signs = np.where(having_less(having, values, step), 1, -1)
        for upper, column in enumerate((first + k, first + k + len(steps) - 1)):
            yield Sum(np.append(inside, column), np.append(signs, most + 1 - upper), -NONE, most)
            yield Sum(np.append(inside, column), np.append(signs, most + upper), upper, NONE)
    # Their mean is within limits: where the lower one is steps[k] or more, the upper one is at most 2·high − steps[k];
    # where it is steps[k] or less, the upper one is at least 2·low − steps[k].
    last = len(steps) - 1
    for k, step in enumerate(steps):
        above = [first + k - 1] if k else []
        beyond = bisect.bisect_right(steps, 2 * median.high - step)
        if beyond <= last:
            columns = above + ([first + last + beyond - 1] if beyond else [])
            yield Sum(np.array(columns, np.int64), 1, -NONE, len(above) + (beyond > 0) - 1)
        above = [first + k] if k < last else []
        least = bisect.bisect_left(steps, 2 * median.low - step)
        if least:
            columns = above + ([first + last + least - 1] if least <= last else [])
            yield Sum(np.array(columns, np.int64), 1, 1, NONE)


def having_less(having: IntArray, values: Iterable[Fraction], limit: Fraction, *, also: bool = False) -> BoolArray:
    """Which people have a value below the limit; `also`: or of it."""
    less = np.array([value < limit or (also and value == limit) for value in values])
    return less[having]


#: HiGHS takes a whole number for one that is off by less.
TOLERANCE: Final = 1e-5
#: What scipy's `milp` says of a program that has no solution.
INFEASIBLE: Final = 2


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
