"""A table of people and attributes, kept as distinct rows (profiles) and the number of people who have each."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dpwitness.arrays import Booleans, Integers
from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.files import number_in, shown
from dpwitness.reconstruction.people import LARGEST_COUNT, read_people
from dpwitness.reconstruction.people import AttributeValue as AttributeValue

#: A sub-population: the values that its people may have of each named attribute.
Where: TypeAlias = Mapping[str, Collection[AttributeValue]]


class Table:
    """A table of people, each of whom has one value of every attribute.

    Attributes
    ----------
    values
        The values of each attribute, in the order of selections; a value may belong to no person.
    codes
        The profiles as positions in `values`; shape (profiles, attributes).
    counts
        The number of people with each profile, at least 1; shape (profiles,).
    """

    def __init__(self, values: Mapping[str, Sequence[AttributeValue]], codes: Integers, counts: Integers) -> None:
        self.values: dict[str, tuple[AttributeValue, ...]] = {name: tuple(v) for name, v in values.items()}
        profiles, index = np.unique(codes, axis=0, return_inverse=True)
        people = np.bincount(index.ravel(), weights=counts).astype(np.int64)
        self.codes, self.counts = profiles[people > 0], people[people > 0]
        if not len(self.counts):
            raise InvalidData("the table holds no people: all counts are 0")

    @property
    def people(self) -> int:
        """The number of people in the table."""
        return int(self.counts.sum())

    @classmethod
    def from_counts(
        cls, counts: ArrayLike, values: Sequence[AttributeValue] | None = None, name: str = "value"
    ) -> "Table":
        """A table of one attribute, from the number of people with each value."""
        array = np.asarray(counts, np.int64)
        labels = range(len(array)) if values is None else values
        return cls({name: labels}, np.arange(len(array))[:, None], array)

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, Sequence[AttributeValue]], counts: Sequence[int] | None = None
    ) -> "Table":
        """A table from one or more columns of equal length; a row stands for one person, or for `counts` people."""
        values: dict[str, list[AttributeValue]] = {}
        codes = []
        for name, column in columns.items():
            values[name] = sorted(set(column), key=lambda value: (isinstance(value, str), value))  # numbers first
            place = {value: i for i, value in enumerate(values[name])}
            codes.append([place[value] for value in column])
        weights = np.ones(len(codes[0]), np.int64) if counts is None else np.asarray(counts, np.int64)
        return cls(values, np.array(codes, np.int64).T, weights)

    def only(self, attributes: Collection[str]) -> "Table":
        """A table of the same people with the given attributes alone."""
        places = {name: self.column(name) for name in attributes}
        return Table({name: self.values[name] for name in places}, self.codes[:, list(places.values())], self.counts)

    def histogram(self, attribute: str, where: Where | None = None) -> Integers:
        """The true number of people with each value of the attribute; shape (values,)."""
        inside = self.profiles(where or {})
        code = self.codes[inside, self.column(attribute)]
        size = len(self.values[attribute])
        return np.bincount(code, weights=self.counts[inside], minlength=size).astype(np.int64)

    def column(self, attribute: str) -> int:
        """The attribute's position; raises `InvalidParameter` for an unknown attribute."""
        require_attribute(self.values, attribute)
        return list(self.values).index(attribute)

    def positions(self, attribute: str, chosen: Collection[AttributeValue]) -> Integers:
        """The positions of values among the attribute's values; raises `InvalidParameter` for an unknown value."""
        require_attribute(self.values, attribute)
        place = {value: i for i, value in enumerate(self.values[attribute])}
        for value in chosen:
            if value not in place:
                raise InvalidParameter(f"attribute {attribute!r} has no value {value!r}")
        return np.array([place[value] for value in chosen], np.int64)

    def profiles(self, where: Where) -> Booleans:
        """Flags of the profiles in the sub-population, shape (profiles,)."""
        inside = np.ones(len(self.counts), np.bool_)
        for attribute, chosen in where.items():
            inside &= np.isin(self.codes[:, self.column(attribute)], self.positions(attribute, chosen))
        return inside


def require_attribute(values: Mapping[str, object], attribute: str) -> None:
    """Raise `InvalidParameter` for an unknown attribute."""
    if attribute not in values:
        raise InvalidParameter(f"there is no attribute {attribute!r}; the attributes are {', '.join(values)}")


def read_table(path: str | Path) -> Table:
    """Read a table from a CSV file with a header line; a row is one person, or the number of people in column "count".

    Raises `InvalidData` for counts that are not whole numbers from 0 to 2⁴⁰, and where `read_people` does.
    """
    columns: dict[str, Sequence[AttributeValue]] = {**read_people(path)}
    counts = columns.pop("count", None)
    if counts is None:
        return Table.from_columns(columns)
    people = []
    for count in counts:
        number = number_in(str(count))  # one text makes the column texts
        if number is None or not (0 <= number <= LARGEST_COUNT and number == int(number)):
            raise InvalidData(f"{shown(path)}: count {count} must be a whole number from 0 to 2^40")
        people.append(int(number))
    return Table.from_columns(columns, people) if columns else Table.from_counts(people)
