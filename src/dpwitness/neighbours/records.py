"""Datasets of records: neighbours differ in one record, or in all records of one unit."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Annotated, Any, ClassVar, Final

import numpy as np
from typing_extensions import override

from dpwitness.checks import brief
from dpwitness.codec import OMITTED_VALUE, Codec, checked, write_fields
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.dataset_pairs import Proposals
from dpwitness.neighbours.dataset_steps import Steps
from dpwitness.neighbours.domains import in_turn, plain
from dpwitness.neighbours.examples import Like, from_strategy, is_strategy, like
from dpwitness.neighbours.fields import DescribedFields, Fields, Record, fields_of
from dpwitness.neighbours.forms import FORMS, Layout, check_form, form_of_data, usual_form
from dpwitness.neighbours.groups import GroupChange, Groups, same_record
from dpwitness.neighbours.inputs import Data, as_input, exact_key, require_shallow
from dpwitness.neighbours.pair import Pair
from dpwitness.neighbours.relation import Relation, written_by_fields
from dpwitness.values import value_from_json, value_to_json

#: The number of records of a dataset: one number, the least and the greatest number, or None for any number.
Size = int | tuple[int, int] | None
#: The codec of `Size`: a pair is a list in JSON.
_SIZE_CODEC: Final[Codec[Size]] = Codec(
    lambda size: list(size) if isinstance(size, tuple) else size,
    lambda _, size: tuple(size) if isinstance(size, list) else size,  # type: ignore[arg-type,return-value]  # see `_check_size`
    lambda _: {"anyOf": [{"type": ["integer", "null"]}, {"type": "array", "items": {"type": "integer"}}]},
)

#: The field that names the unit of a record: its name, or its number from 0 if fields have no names.
Unit = str | int | None
#: The codec of `Unit`.
_UNIT_CODEC: Final[Codec[Any]] = checked(lambda _, unit: unit, type=["string", "integer", "null"])  # see `Groups.of`

#: Numbers of records in the larger dataset of a candidate, the most promising number first.
SIZES: Final = (10, 2, 100, 1000, 3)
#: The largest number of records that `size` may demand of a dataset, since all records are made.
MOST_RECORDS: Final = 1_000_000


def _check_size(size: object) -> None:
    """Raise `InvalidNeighbours` unless `size` is a `Size` of datasets that may differ in a record."""
    if size is None:
        return
    ends = size if isinstance(size, tuple) else (size, size)
    whole = len(ends) == 2 and all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
    if not (whole and 0 <= ends[0] <= ends[1]):
        raise InvalidNeighbours(f"size={brief(size)} must be a number of records, (least, most), or None")
    if ends[0] > MOST_RECORDS:
        raise InvalidNeighbours(f"size={brief(size)}: give at most {MOST_RECORDS} records, all of which are made")
    if ends[1] < 1:
        raise InvalidNeighbours(f"size={brief(size)}: neighbours need a record that differs: give at least 1")


def _allowed(size: Size, first: int, second: int) -> bool:
    """Whether datasets of `first` and `second` records may be neighbours."""
    if isinstance(size, tuple):
        return size[0] <= min(first, second) and max(first, second) <= size[1]
    return size is None or size in (first, second)


def _sizes_to_try(size: Size) -> tuple[int, ...]:
    """Numbers of records in the larger dataset of a candidate."""
    if size is None:
        return SIZES
    if isinstance(size, int):
        return (size, size + 1)
    least, most = size
    usual = [n for n in SIZES if least < n <= most]
    return tuple(dict.fromkeys([*usual, min(least + 1, most), min(most, max(*SIZES, least + 1))]))


#: The names of the adjacencies of datasets.
ADJACENCIES: Final = ("add-remove", "replace-one")


@written_by_fields
@dataclass(frozen=True, slots=True, kw_only=True)
class Records(Relation):
    """Datasets of records of one domain; neighbours differ in one record or unit, and order all other records alike.

    The search starts from the records `base`, but the relation also holds for other datasets. If `size` is one number,
    one of the two datasets has this size. See `records` for all other parameters.
    """

    kind: ClassVar[str] = "records"
    judged: ClassVar[bool] = True
    json_keys: ClassVar[tuple[str, ...]] = (
        "kind", "domain: fields", "adjacency", "size", "form", "unit", "at_most", "empty",
    )  # fmt: skip

    fields: DescribedFields
    adjacency: str | None = "add-remove"
    size: Annotated[Size, _SIZE_CODEC] = None
    form: str = "list"
    base: tuple[Record, ...] | None = None
    layout: Layout
    unit: Annotated[Unit, _UNIT_CODEC] = field(default=None, metadata={"json": "sparse"})
    at_most: int | None = field(default=None, metadata={"json": "sparse"})
    _groups: Groups = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.adjacency is not None and not (isinstance(self.adjacency, str) and self.adjacency in ADJACENCIES):
            raise InvalidNeighbours(
                f"adjacency={brief(self.adjacency)} must be 'add-remove', 'replace-one' or None for either"
            )
        check_form(self.form, self.fields)
        _check_size(self.size)
        if self.form == "record" and (self.adjacency != "replace-one" or self.size != 1 or self.unit is not None):
            raise InvalidNeighbours(
                "form='record' hands over one record alone: give adjacency='replace-one' and size=1; leave out unit="
            )
        object.__setattr__(self, "_groups", Groups.of(self.fields, self.unit, self.at_most))
        self._require_bound("base", self.base or ())
        object.__setattr__(self, "layout", self.layout.fitted(self.fields))

    def _require_bound(self, name: str, records: Sequence[Record]) -> None:
        """Raise `InvalidNeighbours` if a unit has more records than `at_most`."""
        found = self._groups.too_many(records)
        if found is not None:
            raise InvalidNeighbours(f"{name} holds {found}: give data within the bound, or a larger at_most=")

    def __str__(self) -> str:
        """The call that makes the relation, without parameters at their defaults."""
        settings = [f"adjacency={self.adjacency!r}"]
        settings += [f"size={self.size}"] if self.size is not None else []
        settings += [f"form={self.form!r}"] if self.form != usual_form(self.fields) else []
        settings += [f"unit={self.unit!r}"] if self.unit is not None else []
        settings += [f"at_most={self.at_most}"] if self.at_most is not None else []
        return f"records({', '.join([str(self.fields), *settings])})"

    @override
    def alternatives(self) -> "tuple[Records, ...]":
        """The relation itself; if the adjacency is left open, a relation for each adjacency."""
        if self.adjacency is not None:
            return (self,)
        return tuple(replace(self, adjacency=adjacency) for adjacency in ADJACENCIES)

    @override
    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs with outliers, special or unique values, duplicates or no records; a pair of each kind in turn.

        The datasets have several sizes. `data`, if given, are an input of every pair. Raises `InvalidNeighbours` for
        data of another form or domain.
        """
        base, layout = self.base, self.layout
        if data is not None:
            base, layout = tuple(self._taken(data, self.form)), self._layout_of(data)
        proposed = self._proposals(base, layout, _sizes_to_try(self.size), pinned=data is not None)
        for change in self._sized((iter(p) for p in proposed), 64):  # so few that each pair gets runs
            pair = self._pair(change, layout)
            if self._contains(pair, data, built=True):
                yield pair

    def _sized(self, kinds: Iterable[Iterator[GroupChange]], most: int) -> Iterator[GroupChange]:
        """The first `most` changes between datasets of allowed sizes, one change of each kind in turn."""
        changes = in_turn([*kinds])
        return islice((change for change in changes if _allowed(self.size, *map(len, change.datasets))), most)

    def _proposals(
        self, base: tuple[Record, ...] | None, layout: Layout, sizes: tuple[int, ...], *, pinned: bool = False
    ) -> Iterator[Proposals]:
        for relation in self.alternatives():
            yield Proposals(
                groups=self._groups,
                replace=relation.adjacency == "replace-one",
                sizes=sizes,
                base=base,
                pinned=pinned,
                missing=layout.missing,
            )

    @override
    def unusual(self, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs with each value of a small domain, with special numbers of other domains, and of many sizes."""
        proposed = self._proposals(self.base, self.layout, _sizes_to_try(self.size))
        for change in self._sized((p.unusual(scale) for p in proposed), 160):  # each pair gets few runs
            if change.differs:
                yield self._pair(change, self.layout)

    @override
    def variations(self, pair: Pair, *, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs with other values or another place of the differing record, other records, or more or fewer records."""
        yield from self._changed(pair, Steps.varied)

    @override
    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """Pairs with fewer records, fewer differing fields, or rounder values."""
        yield from self._changed(pair, Steps.simpler)

    def _changed(self, pair: Pair, steps: Callable[[Steps, GroupChange], Iterator[GroupChange]]) -> Iterator[Pair]:
        """The pairs that `steps` make of a pair, in its layout; no pairs if the relation does not contain the pair."""
        first, second = map(self._read, pair.sides)
        if first is None or second is None or not (change := self._groups.change_between(first, second)):
            return
        layout = self._layout_of(pair.data if len(first) > len(second) else pair.neighbour)
        # Where a unit's records are replaced, equal values may be different objects, such as 0.0 and −0.0.
        contains = partial(self._contains, built=self.unit is None)
        yield from filter(contains, (self._pair(step, layout) for step in steps(Steps(groups=self._groups), change)))

    @override
    def take(self, data: object) -> Data:
        """The records of data in any form, in the form that the mechanism gets."""
        if self.form == "record":
            return as_input(data)
        require_shallow(data, "data")
        source = form_of_data("data", data)
        check_form(source, self.fields)
        records = self._taken(data, source)
        return self._build(records, layout=self._layout_of(data) if source == self.form else self.layout)

    def _taken(self, data: Data, form: str) -> list[Record]:
        """The flat records of data in `form`. Raises `InvalidNeighbours` for other data, or a too large unit."""
        records = FORMS[form].read(self.fields, data)
        if records is None:
            raise InvalidNeighbours(f"data={brief(data)} must be a dataset of {self!s:.200}: its form and its records")
        self._require_bound("data", records)
        return records

    @override
    def contains(self, pair: Pair, data: Data | None = None) -> bool:
        """Whether both inputs are datasets of the domain that differ in one record, or unit, and in nothing else.

        The order of records counts, since mechanisms see it. So do types of values (1 is not 1.0), signs of zeros,
        types of columns, the index, and all other properties besides records.
        """
        return self._contains(pair, data)

    def _contains(self, pair: Pair, data: Data | None = None, *, built: bool = False) -> bool:
        """The answer of `contains`; `built`: both sides were built from flat records by one layout."""
        first, second = self._read(pair.data), self._read(pair.neighbour)
        if first is None or second is None or not _allowed(self.size, len(first), len(second)):
            return False
        change = self._groups.change_between(first, second)
        if change is None or self.adjacency not in (None, "replace-one" if change.replaces else "add-remove"):
            return False
        if any(map(self._groups.too_many, (first, second))):
            return False
        form = FORMS[self.form]
        if form.of(pair.data) != form.of(pair.neighbour):
            return False
        if not built:
            first, second = self._exact(first, pair.data), self._exact(second, pair.neighbour)
            if self._groups.change_between(first, second) is None:
                return False
        if data is None:
            return True
        given = self._read(data)
        if given is None:
            return False
        given = given if built else self._exact(given, data)
        return any(len(given) == len(side) and all(map(same_record, given, side)) for side in (first, second))

    def _exact(self, records: list[Record], data: Data) -> list[Record]:
        """The flat records with the exact keys of their rows in the data.

        A domain reads 5 and 5.0 as one value; a mechanism may not.
        """
        rows = map(exact_key, FORMS[self.form].rows(data))
        return [(*record, row) for record, row in zip(records, rows, strict=True)]

    @property
    def empty(self) -> Any:
        """The dataset without records as JSON values; `OMITTED_VALUE` if its layout follows from the domain."""
        usual = self.layout == FORMS[self.form].usual(self.fields)
        return OMITTED_VALUE if usual else value_to_json(self.layout.build(self.fields, []))

    @override
    def to_json(self) -> dict[str, object] | None:
        """The relation without its base as JSON values; None for domains and layouts without a form in JSON."""
        if self.fields.to_json() is None:
            return None
        written = write_fields(self)
        return written if "empty" not in written or self._layout_from_json(written["empty"]) == self.layout else None

    @classmethod
    def from_keys(
        cls, domain: Fields, adjacency: str | None, size: Size, form: str, unit: Unit = None,
        at_most: int | None = None, empty: object = OMITTED_VALUE,
    ) -> "Records":  # fmt: skip
        """Build the relation from the keys of a file. Raises `InvalidNeighbours`."""
        check_form(form, domain)
        relation = cls(
            fields=domain, adjacency=adjacency, size=size, form=form, layout=FORMS[form].usual(domain),
            unit=unit, at_most=at_most,
        )  # fmt: skip
        if empty is OMITTED_VALUE:
            return relation
        layout = relation._layout_from_json(empty)
        if layout is None:
            raise InvalidNeighbours(f"empty={brief(empty)} must be a dataset of {relation!s:.200} without records")
        return replace(relation, layout=layout)

    def _layout_from_json(self, empty: object) -> Layout | None:
        """The layout of a dataset without records in a file; None for any other value."""
        try:
            data = value_from_json(empty)
        except ValueError:
            return None
        return self._layout_of(data) if self.form != "record" and self._read(data) == [] else None

    def _read(self, data: Data) -> list[Record] | None:
        """The records of a dataset; None for a dataset of another form or domain."""
        return FORMS[self.form].read(self.fields, data)

    def _layout_of(self, data: Data) -> Layout:
        """The layout of a dataset in this form, fitted to the whole domain."""
        return FORMS[self.form].of(data).fitted(self.fields)

    def _pair(self, change: GroupChange, layout: Layout) -> Pair:
        """The pair of a change: two datasets of one layout."""
        first, second = map(partial(self._build, layout=layout), change.datasets)
        return Pair(first, second, change.label)

    def _build(self, records: Sequence[Record], *, layout: Layout) -> Data:
        """A dataset in the form that the mechanism gets; numbers and arrays are read-only."""
        data = layout.build(self.fields, records)
        return as_input(data) if isinstance(data, np.ndarray | int | float) else data


def records(
    domain: object = None,
    *,
    adjacency: str | None = "add-remove",
    size: Size = None,
    base: Data = None,
    form: str | None = None,
    unit: str | int | None = None,
    at_most: int | None = None,
) -> Records:
    """Datasets of records, such as `records(numbers(0, 100))`; neighbours differ in one record, or in one unit.

    The order of the records is part of the input: neighbours have all other records in the same order, and a dataset
    with the same records in another order is not a neighbour. Rising, falling and random orders are tried, each with
    one record added or replaced.

    Parameters
    ----------
    domain
        The domain of a record: `numbers(low, high)`, `integers(low, high)`, `categories("a", "b")`, `flags()`,
        `text(max_length)`, a tuple or a dict of domains, `like(examples)`, or a hypothesis strategy, from which the
        records are then drawn. By default `like(base)`.
    adjacency
        "add-remove" (one record more or fewer), "replace-one", or None if the claim does not state an adjacency.
    size
        Number of records in a dataset: a number, (least, most), or None for any number. Candidates then have up to
        1,000 records, or about as many as the base, besides the records of the changed unit.
    base
        A dataset to start from: a list of records, an array, a DataFrame of pandas or of Polars, a LazyFrame, a Table
        of PyArrow, a dict of columns, (X, y).
    form
        The form that the mechanism gets: "array" (one axis for numbers, records by fields for tuples of numbers),
        "list", "dataframe" or "pandas" (a DataFrame of pandas), "polars" or "arrow" (a DataFrame or a Table of that
        library), "polars-lazy" (a LazyFrame, which the mechanism collects), "columns" (a dict of arrays or lists), "xy"
        (a tuple of features and labels, for records ((x1, …, xk), y)), or "record" (one record alone, for local DP). By
        default the form of the base or of the examples; else an array for numbers, (X, y) for records
        ((x1, …, xk), y), and a list for all other records.
    unit
        The field that identifies the unit, such as "person_id", or its number from 0 if fields have no names.
        Neighbours then differ in all records of one unit, at any places. With "add-remove" one of the datasets lacks
        the unit; with "replace-one" any number of other records replace the unit's, of the same unit or of a unit that
        the dataset does not hold.
    at_most
        The contribution bound of the claim: the largest number of records of a unit. None: any number.

    Neighbours differ only in their records. Types of columns, names, index and class come from the
    base or the examples, if they have this form, else from the domain; never from the records present. A type that
    cannot hold the whole domain (`int8` for `integers(0, 1000)`) is replaced by the domain's own. The index of a
    DataFrame must count its rows, and is made anew for any number of rows. In Polars and Arrow a missing number is
    null, and NaN is not tried.

    Raises
    ------
    InvalidNeighbours
        For an invalid argument, and for a base with records outside the domain or more than `at_most` records of a
        unit.
    """
    if domain is None and base is None:
        raise InvalidNeighbours(
            "records(domain) needs a domain, such as numbers(0, 100), or base=, a dataset of such records"
        )
    if form is not None and not isinstance(form, str):
        raise InvalidNeighbours(f"form={brief(form)} must be the name of a form, such as 'list'")
    source = None if base is None else form_of_data("base", base)
    given = like(base) if domain is None else domain
    given = from_strategy(given) if is_strategy(given) else given
    example = given if isinstance(given, Like) else None
    fields = fields_of(given) if example is None else example.fields
    known = source or (None if example is None else example.form)
    form = "dataframe" if form == "pandas" else form or known or usual_form(fields)
    check_form(form, fields)
    layout = example.layout if example is not None and example.form == form else None
    flat = None
    if source is not None:
        check_form(source, fields)
        flat = FORMS[source].read(fields, base)
        if flat is None:
            outside = FORMS[source].outside(fields, base)
            raise InvalidNeighbours(
                f"the records to start from: {outside} is not of the domain {fields!s:.200}: give a wider domain"
            )
        if source == form:
            layout = FORMS[form].of(base)
    return Records(
        fields=fields,
        adjacency=adjacency,
        size=size,
        form=form,
        base=None if flat is None else tuple(flat),
        layout=layout or FORMS[form].usual(fields),
        unit=plain(unit),
        at_most=plain(at_most),
    )
