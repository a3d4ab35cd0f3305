"""What a publication says of a table: counts, means and medians of people who satisfy a condition, from files.

JSON lines, in any order; `where` is optional, and null stands for a suppressed figure:

    {"people": 7}
    {"attribute": "age", "range": [0, 125]}
    {"attribute": "sex", "values": ["F", "M"]}
    {"where": {"sex": ["F"], "age": {"at_least": 18, "below": 65}}, "count": 4}
    {"where": {"race": ["W"], "sex": ["F"]}, "count": null, "below": 3}
    {"of": "age", "where": {"sex": ["F"]}, "count": 4, "mean": 33.5, "median": 30, "decimals": 1}
    {"by": ["sex", "race"], "counts": [[3, 1], [1, null]], "below": 3}

Or CSV with a column "count" and one for each attribute: a row is a count of the people who have these values. An empty
count is suppressed, "<3" is one below 3; values that no row has are not said anything of.
"""

import itertools
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias, cast

import numpy as np

from dpwitness.checks import brief, json_value, near
from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.files import read_rows, read_text, shown, typed_column
from dpwitness.reconstruction.table_builder.tables import IntArray, Table, Value, values_named

#: Attribute → the values that people may have.
Where: TypeAlias = Mapping[str, tuple[Value, ...]]

#: People at most: sums of values, with their decimals, stay exact in 64 bits.
MOST_PEOPLE: Final = 1 << 24
#: Of a count that is not limited from above.
NO_LIMIT: Final = 1 << 40
#: Values of one attribute, and entries of one table of counts, at most.
MOST_VALUES: Final = 10_000
MOST_ENTRIES: Final = 1_000_000
#: Means, medians, and values that they are of, are smaller, and have so many decimals at most.
LARGEST: Final = 10**9
MOST_DECIMALS: Final = 6
#: Characters of a number with a decimal point.
MOST_DIGITS: Final = 25
#: What a line may have, by what it is about.
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "people": ("people",),
    "attribute": ("attribute", "values", "range"),
    "counts": ("by", "counts", "where", "at_least", "below"),
    "figures": ("where", "count", "at_least", "below", "of", "mean", "median", "decimals"),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Marginal:
    """Counts: how many people of `where` have each combination of the values of the attributes `by`.

    `low` and `high`: limits of these counts, both included, an axis an attribute; of no axis without attributes.
    `place` is where it is said, for messages.
    """

    by: tuple[str, ...] = ()
    where: Where = field(default_factory=dict)
    low: IntArray
    high: IntArray
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The mean or the median of a numeric attribute over the people of `where`: from `low` to `high`."""

    of: str
    where: Where
    low: Fraction
    high: Fraction
    place: str


class Mean(Figure):
    """A mean."""

    __slots__ = ()


class Median(Figure):
    """A median; of an even number of people the mean of the two in the middle."""

    __slots__ = ()


Statement: TypeAlias = Marginal | Mean | Median


@dataclass(frozen=True, slots=True)
class Publication:
    """The attributes of a table, each with the values that it may have, and what is published of it."""

    attributes: Mapping[str, tuple[Value, ...]]
    statements: Sequence[Statement]

    @property
    def most_people(self) -> int:
        """How many people there are at most, as far as one statement says; `NO_LIMIT` where none does."""
        totals = (int(one.high.sum()) for one in self.statements if isinstance(one, Marginal) and not one.where)
        return min((total for total in totals if total < NO_LIMIT), default=NO_LIMIT)

    @property
    def people(self) -> int | None:
        """How many people there are, where one statement says it."""
        for one in self.statements:
            if isinstance(one, Marginal) and not one.where and np.array_equal(one.low, one.high):
                return int(one.low.sum())
        return None

    def positions(self, where: Where) -> dict[int, IntArray]:
        """A condition by positions: of each attribute named, where its values stand."""
        names = list(self.attributes)
        return {
            names.index(name): np.array([self.attributes[name].index(value) for value in values], np.int64)
            for name, values in where.items()
        }


def published_marginals(table: Table, ways: int) -> Publication:
    """All counts of a table by so many of its attributes; raises `InvalidParameter` for more than it has."""
    names = list(table.values)
    if not 1 <= ways <= len(names):
        raise InvalidParameter(
            f"--publish {ways}-way: --data has {len(names)} attributes; publish counts by 1 to {len(names)} of them"
        )
    statements = []
    for by in itertools.combinations(range(len(names)), ways):
        shape = tuple(len(table.values[names[axis]]) for axis in by)
        _check_entries(math.prod(shape), f"--publish {ways}-way")
        counts = np.zeros(shape, np.int64)
        np.add.at(counts, tuple(table.codes[:, by].T), table.counts)
        place = f"counts by {', '.join(names[axis] for axis in by)}"
        statements.append(Marginal(by=tuple(names[axis] for axis in by), low=counts, high=counts, place=place))
    return Publication(table.values, statements)


def read_publication(paths: Sequence[str | Path]) -> Publication:
    """What files say, JSON lines or, where the name ends in .csv, CSV. Raises `InvalidData`, with file and line."""
    lines: list[tuple[str, dict[str, Any]]] = []
    tables: list[tuple[str, list[str], list[tuple[str, list[str], str]]]] = []
    for path in paths:
        if str(path).lower().endswith(".csv"):
            tables.append(_read_csv(path))
        else:
            lines += _read_lines(path)
    attributes: dict[str, tuple[Value, ...]] = {}
    for place, line in lines:
        if "attribute" in line:
            name, values = _attribute(line, place)
            if name in attributes:
                _refuse(place, f"attribute {name!r} is given twice; leave one of them out")
            attributes[name] = values
    cells: dict[str, dict[str, str]] = {}  # of each attribute in CSV files, its texts and where they stand
    for _, names, rows in tables:
        for column, name in enumerate(names):
            cells.setdefault(name, {}).update((values[column], here) for here, values, _ in rows)
    for name, found in cells.items():
        if name not in attributes:  # typed as one column, whichever files it is in
            attributes[name] = _column(name, found)
    named = {name: values_named(attributes[name], found) for name, found in cells.items()}
    place = shown(paths[0])
    if not attributes:
        _refuse(place, 'it has no attribute; give lines as {"attribute": "sex", "values": ["F", "M"]}, or CSV')
    for name, values in attributes.items():
        if len(values) > MOST_VALUES:
            _refuse(place, f"attribute {name!r} has {len(values):,} values; give at most {MOST_VALUES:,}")
    statements: list[Statement] = []
    for place, line in lines:
        if "attribute" not in line:
            statements += _Line(line, place, attributes).statements()
    statements += [_marginal(*table, attributes, named) for table in tables]
    if not statements:
        _refuse(shown(paths[0]), "nothing is published; give counts, means or medians")
    return Publication(attributes, statements)


def _refuse(place: str, message: str) -> NoReturn:
    raise InvalidData(f"{place}: {message}")


def _check_entries(size: int, place: str) -> None:
    if size > MOST_ENTRIES:
        _refuse(place, f"a table of {size:,} counts is too large; give at most {MOST_ENTRIES:,} counts a table")


def _read_lines(path: str | Path) -> list[tuple[str, dict[str, object]]]:
    """The lines of a file that are not empty, as objects with known keys."""
    found = []
    for number, text in enumerate(read_text(path).splitlines(), 1):
        if not text.strip():
            continue
        place = f"{shown(path)}, line {number}"
        try:
            line = json_value(text, parse_float=_decimal, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            _refuse(place, f'{brief(text)} is not JSON ({error.msg}); give a line as {{"people": 7}}')
        except ValueError as error:
            _refuse(place, f"{error}")
        if not isinstance(line, dict) or not line:
            _refuse(place, f'{brief(line)} is no statement; give an object, such as {{"people": 7}}')
        about = next((key for key in ("people", "attribute", "counts") if key in line), "figures")
        for key in line:
            if key not in KEYS[about]:
                what = "a line" if about == "figures" else f"a line with {about!r}"
                _refuse(
                    place, f"{key!r} is unknown in {what}; it may have {', '.join(KEYS[about])}{near(key, KEYS[about])}"
                )
        found.append((place, line))
    return found


def _decimal(text: str) -> Decimal:
    """With all its digits; raises `ValueError` for many more than a figure has: 1e999999999 would fill the memory."""
    value = float(text)
    if len(text) > MOST_DIGITS or "e" in text.lower() or not abs(value) <= LARGEST:
        raise ValueError(f"{text:.40} must be written with at most {MOST_DIGITS} digits, and lie within ±{LARGEST:,}")
    return Decimal(text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _attribute(line: Mapping[str, object], place: str) -> tuple[str, tuple[Value, ...]]:
    """The name and the values of an attribute."""
    name = line["attribute"]
    if not isinstance(name, str) or not name or name == "count":
        _refuse(place, f'attribute {brief(name)} must be a name, and not "count"')
    if ("values" in line) == ("range" in line):
        _refuse(place, f"attribute {name!r} needs either values, a list, or range, its least and largest whole number")
    if "range" in line:
        ends = line["range"]
        if not isinstance(ends, list) or len(ends) != 2 or not all(type(end) is int for end in ends):
            _refuse(place, f"range {brief(ends)} must be two whole numbers, as [0, 125]")
        low, high = ends
        if not (-LARGEST <= low <= high <= LARGEST and high - low < MOST_VALUES):
            _refuse(place, f"range {brief(ends)} must go up, by fewer than {MOST_VALUES:,}, within ±{LARGEST:,}")
        return name, tuple(range(low, high + 1))
    values = line["values"]
    if not isinstance(values, list) or not 1 <= len(values) <= MOST_VALUES:
        _refuse(place, f"values {brief(values)} must be a list of 1 to {MOST_VALUES:,} values")
    found = tuple(_value(value, place) for value in values)
    if len(set(found)) != len(found):
        twice = next(value for k, value in enumerate(found) if value in found[:k])
        _refuse(place, f"value {brief(twice)} of {name!r} is given twice; leave one of them out")
    return name, found


def _value(value: object, place: str) -> Value:
    """A number or a text."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, str) or (type(value) is int and abs(value) <= LARGEST):
        return value
    _refuse(place, f"value {brief(value)} must be a text, or a number within ±{LARGEST:,}")


def _limits(value: object, least: object, below: object, place: str) -> tuple[int, int]:
    """The least and the largest count that a published one stands for."""
    if value is not None:
        count = _whole("count", value, 0, MOST_PEOPLE, place)
        return count, count
    low = 0 if least is None else _whole("at_least", least, 0, MOST_PEOPLE, place)
    high = NO_LIMIT if below is None else _whole("below", below, 1, MOST_PEOPLE, place) - 1
    if low > high:
        _refuse(place, f"at_least {low} is not below {high + 1}; no count is")
    return low, high


def _whole(name: str, value: object, least: int, most: int, place: str) -> int:
    if type(value) is not int or not least <= value <= most:
        _refuse(place, f"{name} {brief(value)} must be a whole number from {least} to {most:,}")
    return value


class _Line:
    """A line that is no attribute's, as statements."""

    def __init__(self, line: Mapping[str, object], place: str, attributes: Mapping[str, tuple[Value, ...]]) -> None:
        self.line, self.place, self.attributes = line, place, attributes

    def statements(self) -> list[Statement]:
        """One of each figure that is given."""
        line, place = self.line, self.place
        if "people" in line:
            people = np.array(_whole("people", line["people"], 1, MOST_PEOPLE, place))
            return [Marginal(low=people, high=people, place=place)]
        where = self._where(line.get("where", {}))
        if "counts" in line:
            return [self._table(where)]
        found: list[Statement] = []
        if "count" in line:
            low, high = _limits(line["count"], line.get("at_least"), line.get("below"), place)
            found.append(Marginal(where=where, low=np.array(low), high=np.array(high), place=place))
        for name, kind in (("mean", Mean), ("median", Median)):
            if line.get(name) is not None:
                of, (least, largest) = self._numeric(), self._rounded(name, line[name])
                found.append(kind(of=of, where=where, low=least, high=largest, place=place))
        if not found and not {"mean", "median"} & set(line):
            _refuse(place, "nothing is said; give count, counts, mean, median, people or attribute")
        return found

    def _where(self, given: object) -> Where:
        """Of each attribute the values, in the order in which the attribute has them."""
        if not isinstance(given, dict):
            _refuse(self.place, f'where {brief(given)} must be an object, as {{"sex": ["F"]}}')
        return {self._name(name): self._chosen(name, part) for name, part in given.items()}

    def _name(self, name: object) -> str:
        if not isinstance(name, str) or name not in self.attributes:
            known = ", ".join(self.attributes)
            _refuse(self.place, f"there is no attribute {brief(name)}; there are {known}{near(name, self.attributes)}")
        return name

    def _chosen(self, name: str, part: object) -> tuple[Value, ...]:
        values = self.attributes[name]
        if isinstance(part, dict):
            limits = {key: part.get(key) for key in ("at_least", "below")}
            numbers = [one for one in limits.values() if one is not None]
            if not part or not set(part) <= set(limits) or not all(type(one) in (int, Decimal) for one in numbers):
                _refuse(self.place, f'{brief(part)} must be values, or limits as {{"at_least": 18, "below": 65}}')
            self._require_numbers(name)
            low, high = limits["at_least"], limits["below"]
            inside = cast(Sequence[float], values)
            return tuple(v for v in inside if (low is None or v >= low) and (high is None or v < high))
        if not isinstance(part, list) or not part:
            _refuse(
                self.place, f"{brief(part)} must be a list of values of {name!r}, as {json.dumps(list(values[:2]))}"
            )
        chosen = {_known(_value(value, self.place), name, self.attributes, self.place) for value in part}
        return tuple(value for value in values if value in chosen)

    def _require_numbers(self, name: str) -> None:
        text = next((value for value in self.attributes[name] if isinstance(value, str)), None)
        if text is not None:
            _refuse(self.place, f"attribute {name!r} has the value {text!r}, which is no number; list values instead")

    def _numeric(self) -> str:
        if "of" not in self.line:
            _refuse(self.place, 'whose mean or median is it? give "of", an attribute of numbers')
        name = self._name(self.line["of"])
        self._require_numbers(name)
        return name

    def _rounded(self, name: str, value: object) -> tuple[Fraction, Fraction]:
        """What a published figure may have been before it was rounded, either way at a half."""
        if type(value) not in (int, Decimal) or not abs(cast(Decimal, value)) <= LARGEST:
            _refuse(self.place, f"{name} {brief(value)} must be a number within ±{LARGEST:,}, or null")
        exact = Fraction(cast(Decimal, value))
        written = -int(cast(int, Decimal(cast(Decimal, value)).as_tuple().exponent))
        if written == 1 and exact.denominator == 1:  # 38.0 may be what a program writes for 38
            written = 0
        decimals = self.line.get("decimals", written)
        if type(decimals) is not int or not 0 <= decimals <= MOST_DECIMALS or (exact * 10**decimals).denominator > 1:
            _refuse(
                self.place,
                f"{name} {value} with decimals {brief(decimals)}: give as many as it has, at most {MOST_DECIMALS}",
            )
        half = Fraction(1, 2 * 10**decimals)
        return exact - half, exact + half

    def _table(self, where: Where) -> Marginal:
        by = self.line.get("by")
        if not isinstance(by, list) or not by:
            _refuse(self.place, f'by {brief(by)} must be a list of attributes, as ["sex", "race"]')
        names = tuple(self._name(name) for name in by)
        if len(set(names)) != len(names) or set(names) & set(where):
            _refuse(self.place, f"by {brief(by)} must name attributes once, and none that where names")
        shape = tuple(len(self.attributes[name]) for name in names)
        _check_entries(math.prod(shape), self.place)
        entries = self._entries(self.line["counts"], names, shape)
        limits = [_limits(one, self.line.get("at_least"), self.line.get("below"), self.place) for one in entries]
        low, high = np.array(limits, np.int64).reshape(*shape, 2).transpose(-1, *range(len(shape)))
        return Marginal(by=names, where=where, low=low, high=high, place=self.place)

    def _entries(self, counts: object, names: Sequence[str], shape: Sequence[int]) -> list[object]:
        level = [counts]
        for name, size in zip(names, shape, strict=True):
            for one in level:
                if not isinstance(one, list) or len(one) != size:
                    what = f"{len(one)} entries" if isinstance(one, list) else brief(one)
                    _refuse(self.place, f"counts: {what} where {name!r} has {size} values; give one a value, in order")
            level = [entry for one in cast(list[list[object]], level) for entry in one]
        return level


def _known(value: Value, name: str, attributes: Mapping[str, Collection[Value]], place: str) -> Value:
    if value not in attributes[name]:
        _refuse(place, f"{name!r} has no value {brief(value)}{near(value, attributes[name])}; list it among its values")
    return value


def _column(name: str, cells: Mapping[str, str]) -> tuple[Value, ...]:
    """The values of an attribute, from its texts in CSV files and where each of them stands."""
    values: Sequence[Value] = typed_column(list(cells))
    for value, here in zip(values, cells.values(), strict=True):
        if not isinstance(value, str) and not abs(value) <= LARGEST:
            _refuse(here, f"{brief(value)} of {name!r} must be a text, or a number within ±{LARGEST:,}")
    return tuple(sorted(set(values)))


def _read_csv(path: str | Path) -> tuple[str, list[str], list[tuple[str, list[str], str]]]:
    """The place, the attributes, and of each row its place, its cells and its count as it stands."""
    rows, place = read_rows(path), shown(path)
    header = [cell.strip() for cell in rows[0][1]] if rows else []
    if len(set(header)) != len(header) or "" in header or "count" not in header or len(header) < 2 or len(rows) < 2:
        _refuse(place, "give a header line with attributes and 'count', each once, and a line for each count")
    at = header.index("count")
    found = []
    for number, row in rows[1:]:
        here = f"{place}, line {number}"
        cells = [cell.strip() for cell in row]
        if len(cells) != len(header):
            _refuse(here, f"{len(cells)} values for {len(header)} columns")
        values = [cell for name, cell in zip(header, cells, strict=True) if name != "count"]
        if "" in values:
            name = next(name for name, cell in zip(header, cells, strict=True) if name != "count" and not cell)
            _refuse(here, f"the value of {name!r} is missing; fill it in or leave the row out")
        found.append((here, values, cells[at]))
    return place, [name for name in header if name != "count"], found


def _marginal(
    place: str,
    names: Sequence[str],
    rows: Sequence[tuple[str, Sequence[str], str]],
    attributes: Mapping[str, tuple[Value, ...]],
    named: Mapping[str, Mapping[str, Value]],
) -> Marginal:
    """A table of counts from the rows of a CSV file."""
    shape = tuple(len(attributes[name]) for name in names)
    _check_entries(math.prod(shape), place)
    places = [{value: k for k, value in enumerate(attributes[name])} for name in names]
    low, high = np.zeros(shape, np.int64), np.full(shape, NO_LIMIT)
    seen: set[tuple[int, ...]] = set()
    for here, values, cell in rows:
        found = [
            _known(named[name].get(cell, cell), name, attributes, here)
            for cell, name in zip(values, names, strict=True)
        ]
        key = tuple(known[value] for known, value in zip(places, found, strict=True))
        if key in seen:
            _refuse(here, f"a count of {', '.join(map(str, values))} stands above, too; leave one of them out")
        seen.add(key)
        below = typed_column([cell.removeprefix("<").strip()])[0] if cell.startswith("<") else None
        count = typed_column([cell])[0] if cell and below is None else None
        low[key], high[key] = _limits(count, None, below, here)
    return Marginal(by=tuple(names), low=low, high=high, place=place)
