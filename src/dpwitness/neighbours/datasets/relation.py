"""Datasets of records: neighbours differ in one record, which is added, removed or replaced."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

import numpy as np

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.datasets.changes import Change, change_between, same_record
from dpwitness.neighbours.datasets.fields import Fields, Record, fields_from_json
from dpwitness.neighbours.datasets.forms import FORMS, check_form, form_of_data, usual_form
from dpwitness.neighbours.datasets.proposals import MOST, Proposals, in_turn
from dpwitness.neighbours.datasets.sizes import Size, allowed, check_size, sizes_to_try
from dpwitness.neighbours.datasets.walking import simpler_changes, varied_changes
from dpwitness.neighbours.inputs import as_input
from dpwitness.neighbours.pair import Pair, check_keys

__all__ = ["ADD_REMOVE", "Records"]

ADD_REMOVE: Final = "add-remove"
REPLACE_ONE: Final = "replace-one"
ADJACENCIES: Final = (ADD_REMOVE, REPLACE_ONE)
_FIELDS: Final = ("domain", "adjacency", "size", "form")


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Datasets of records of one domain; neighbours differ in one record, all others in their order.

    Attributes
    ----------
    fields
        What a record is made of, and which values may come.
    adjacency
        "add-remove": one has a record more, anywhere; "replace-one": one record is another; None: either.
    size
        How many records a dataset has: a number (one of the two has so many), the least and the most (both), or None
        for any number.
    form
        How a dataset is handed to the mechanism; see `records`.
    base
        Records that the search starts from; the relation is not about them alone.
    """

    fields: Fields
    adjacency: str | None = ADD_REMOVE
    size: Size = None
    form: str = "list"
    base: tuple[Record, ...] | None = None
    noun: str = "value"

    def __post_init__(self) -> None:
        if self.adjacency is not None and self.adjacency not in ADJACENCIES:
            raise InvalidNeighbours(
                f"adjacency={brief(self.adjacency)} must be 'add-remove', 'replace-one' or None for either"
            )
        check_form(self.form, self.fields)
        check_size(self.size)
        if self.form == "record" and (self.adjacency != REPLACE_ONE or self.size != 1):
            raise InvalidNeighbours(
                "form='record' hands over one record alone: give adjacency='replace-one' and size=1"
            )

    def __str__(self) -> str:
        """As in a call, without what is as usual."""
        settings = [f"adjacency={self.adjacency!r}"]
        settings += [f"size={self.size}"] if self.size is not None else []
        settings += [f"form={self.form!r}"] if self.form != usual_form(self.fields) else []
        return f"records({', '.join([str(self.fields), *settings])})"

    def alternatives(self) -> "tuple[Records, ...]":
        """Itself; where the adjacency is left open, a relation for each, so that each has a verdict of its own."""
        if self.adjacency is not None:
            return (self,)
        return tuple(replace(self, adjacency=adjacency) for adjacency in ADJACENCIES)

    def candidates(self, data: Any = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Outliers, special values, lone values, duplicates and the empty dataset, of several sizes, kinds in turn.

        With `data`, neighbours of these alone. Raises `InvalidNeighbours` for data of another form or domain.
        """
        base = self.base if data is None else self._read_or_raise(data, "data")
        found = []
        for relation in self.alternatives():
            proposals = Proposals(
                fields=self.fields,
                replace=relation.adjacency == REPLACE_ONE,
                sizes=sizes_to_try(self.size),
                base=base,
                pinned=data is not None,
                none_is_nan=self.form not in ("list", "record"),
            )
            found.append(iter(proposals))
        sized = (change for change in in_turn(found) if allowed(self.size, *map(len, change.datasets)))
        for change in islice(sized, MOST):
            pair = self._pair(change)
            if self.contains(pair, data):
                yield pair

    def large(self, size: int, data: Any = None) -> Iterator[Pair]:
        """Two pairs of so many records; none where no dataset has so many, or `data` are given."""
        if data is not None or not allowed(self.size, size - 1, size):
            return
        proposals = Proposals(fields=self.fields, replace=self.adjacency == REPLACE_ONE, sizes=(size,))
        yield from map(self._pair, proposals.plain())

    def variations(self, pair: Pair, *, scale: float = 1.0) -> Iterator[Pair]:
        """Other values of the record that differs, other records beside it, other numbers of them, another place."""
        change = self._change(pair)
        if change is not None:
            yield from filter(self.contains, map(self._pair, varied_changes(self.fields, change)))

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """Fewer records, fewer fields that differ, rounder values."""
        change = self._change(pair)
        if change is not None:
            yield from filter(self.contains, map(self._pair, simpler_changes(self.fields, change)))

    def take(self, data: Any) -> Any:
        """As in `Relation`: records in any form, in that in which the mechanism gets them."""
        if self.form == "record":
            return as_input(data)
        source = form_of_data(data)
        check_form(source, self.fields)
        found = FORMS[source].read(self.fields, data)
        if found is None:
            raise InvalidNeighbours(f"data={brief(data)} must be a dataset of {self!s:.200}")
        return self._built(found)

    def contains(self, pair: Pair, data: Any = None) -> bool:
        """Whether both are datasets of the domain that differ in exactly one record, the order of the others the same.

        Order counts, since mechanisms see it: the same records in another order are another dataset.
        """
        first, second = self._read(pair.data), self._read(pair.neighbour)
        if first is None or second is None or not allowed(self.size, len(first), len(second)):
            return False
        change = change_between(first, second)
        if change is None or self.adjacency not in (None, REPLACE_ONE if change.before is not None else ADD_REMOVE):
            return False
        if data is None:
            return True
        given = self._read(data)
        return given is not None and any(_equal(given, side) for side in (first, second))

    def to_json(self) -> dict[str, Any] | None:
        """As in `Relation`; None for domains that have no form in JSON. The base is left out: pairs hold the data."""
        domain = self.fields.to_json()
        if domain is None:
            return None
        size = list(self.size) if isinstance(self.size, tuple) else self.size
        return {"kind": "records", "domain": domain, "adjacency": self.adjacency, "size": size, "form": self.form}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Records":
        """Build it from what `to_json` wrote, its kind left out. Raises `InvalidNeighbours`."""
        check_keys("records", value, _FIELDS)
        size = value["size"]
        return cls(
            fields=fields_from_json(value["domain"]),
            adjacency=value["adjacency"],
            size=tuple(size) if isinstance(size, list) else size,
            form=value["form"],
        )

    def _read(self, data: Any) -> list[Record] | None:
        """The records of a dataset; None where it is of another form or holds other records."""
        return FORMS[self.form].read(self.fields, data)

    def _read_or_raise(self, data: Any, what: str) -> tuple[Record, ...]:
        found = self._read(data)
        if found is None:
            raise InvalidNeighbours(
                f"{what}={brief(data)} must be a dataset of {self!s:.200}: its form and its records"
            )
        return tuple(found)

    def _change(self, pair: Pair) -> Change | None:
        """What differs in a pair; None where it does not belong to the relation."""
        first, second = self._read(pair.data), self._read(pair.neighbour)
        return None if first is None or second is None else change_between(first, second)

    def _pair(self, change: Change) -> Pair:
        first, second = map(self._built, change.datasets)
        return Pair(first, second, change.label)

    def _built(self, records: Sequence[Record]) -> Any:
        """A dataset in the form in which the mechanism gets it; numbers and arrays read-only."""
        data = FORMS[self.form].build(self.fields, records)
        return as_input(data) if isinstance(data, np.ndarray | int | float) else data


def _equal(first: list[Record], second: list[Record]) -> bool:
    """Whether two datasets hold the same records in the same order."""
    return len(first) == len(second) and all(map(same_record, first, second))
