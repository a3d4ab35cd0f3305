"""Statements as an integer program: one unknown a possible row of the table, how many people have it.

Counts are sums of unknowns, and a rounded mean limits a weighted sum from both sides. A median is said by whole numbers
that are 0 or 1: whether the lower one, and whether the upper one, of the two people in the middle has at least a value.
"""

import bisect
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from dpwitness.dataclass import dataclass
from dpwitness.errors import InvalidData
from dpwitness.reconstruction.published_tables.statements import NO_LIMIT, Figure, Marginal, Mean, Publication, Where
from dpwitness.reconstruction.table_builder.tables import BoolArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Possible rows, and numbers in all sums, at most: some hundred bytes each.
MOST_ROWS: Final = 200_000
MOST_TERMS: Final = 20_000_000
#: A limit of a sum that is none.
NONE: Final = 1 << 62


class TooLarge(Exception):  # no error: a program is one of two ways to attack
    """More possible rows, or more terms of sums, than a solver can take."""


class Sum(NamedTuple):
    """A sum of unknowns with whole coefficients, or one for all, and its limits; `source`: the statement it is of."""

    columns: IntArray
    coefficients: IntArray | int
    low: int
    high: int
    source: int


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
    sums.append(Sum(np.arange(people + 1), np.append(np.ones(people, np.int64), -1), 0, 0, -1))
    ends = [(0, limit) for limit in [*most.tolist(), total]]
    for source, figure in figures:
        inside = np.flatnonzero(inside_of(cells, published, figure.where))
        sums.append(Sum(inside, 1, 1, total, source))  # of nobody there is no mean
        column = list(published.attributes).index(figure.of)
        values = [Fraction(str(value)) for value in published.attributes[figure.of]]
        having = cells[inside, column]
        number = exact.get(inside.tobytes())
        if isinstance(figure, Mean):
            sums.extend(_sums_of_mean(inside, having, values, figure, number, total, source))
        else:
            sums.extend(_sums_of_median(inside, having, values, figure, number, total, source, ends))
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
    inside: IntArray,
    having: IntArray,
    values: list[Fraction],
    mean: Figure,
    number: int | None,
    people: int,
    source: int,
) -> Iterator[Sum]:
    """Σ value from low·n to high·n; for an unknown n, Σ (value − low) ≥ 0 and Σ (value − high) ≤ 0."""
    if number is not None:
        weights, factor = _whole(values, people, mean)
        low, high = math.ceil(mean.low * number * factor), math.floor(mean.high * number * factor)
        yield Sum(inside, weights[having], low, high, source)
        return
    for end, low, high in ((mean.low, 0, NONE), (mean.high, -NONE, 0)):
        weights, _ = _whole([value - end for value in values], people, mean)
        yield Sum(inside, weights[having], low, high, source)


def _sums_of_median(
    inside: IntArray,
    having: IntArray,
    values: list[Fraction],
    median: Figure,
    number: int | None,
    people: int,
    source: int,
    ends: list[tuple[int, int]],
) -> Iterator[Sum]:
    """Twice those below a value, less all: at most −1 if the lower middle has at least it, at most 0 if the upper has.

    `number`: how many people there are in it, None where that is not known; `ends`: limits of all unknowns, to which
    those of this median are added.
    """
    if number is not None and number % 2:  # one person is in the middle
        for outside in (having_less(having, values, median.low), ~having_less(having, values, median.high, also=True)):
            yield Sum(inside, np.where(outside, 1, -1), -NONE, -1, source)
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
            yield Sum(np.append(inside, column), np.append(signs, most + 1 - upper), -NONE, most, source)
            yield Sum(np.append(inside, column), np.append(signs, most + upper), upper, NONE, source)
    # Their mean is within limits: where the lower one is steps[k] or more, the upper one is at most 2·high − steps[k];
    # where it is steps[k] or less, the upper one is at least 2·low − steps[k].
    last = len(steps) - 1
    for k, step in enumerate(steps):
        above = [first + k - 1] if k else []
        beyond = bisect.bisect_right(steps, 2 * median.high - step)
        if beyond <= last:
            columns = above + ([first + last + beyond - 1] if beyond else [])
            yield Sum(np.array(columns, np.int64), 1, -NONE, len(above) + (beyond > 0) - 1, source)
        above = [first + k] if k < last else []
        least = bisect.bisect_left(steps, 2 * median.low - step)
        if least:
            columns = above + ([first + last + least - 1] if least <= last else [])
            yield Sum(np.array(columns, np.int64), 1, 1, NONE, source)


def having_less(having: IntArray, values: Iterable[Fraction], limit: Fraction, *, also: bool = False) -> BoolArray:
    """Which people have a value below the limit; `also`: or of it."""
    less = np.array([value < limit or (also and value == limit) for value in values])
    return less[having]
