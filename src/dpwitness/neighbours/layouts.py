"""What a dataset is besides its records: its class, the types of its columns, its index, its order in memory.

Neighbours differ in their records and in nothing else. So both are built in one layout, which comes from an example or
from the domain, never from the records that happen to be there.

What a DataFrame is besides its rows: its class, the types of its columns, their names, its index, its attributes.
"""

import copy
import itertools
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.domains import NOT_IN_DOMAIN, Domain, Fields, Record, key_of

#: Types of columns that an array can hold.
NUMERIC: Final = ("float64", "int64", "bool")

Make = Callable[[Any, Domain, Sequence[Any]], Any]


class Layout(Protocol):
    """How a form is filled in. Two datasets are alike besides their records if and only if their layouts are equal."""

    def fitted(self, fields: Fields) -> "Layout":
        """The same, with the domain's own type wherever a type cannot hold all that the domain does."""

    def build(self, fields: Fields, records: Sequence[Record], without: int | None = None) -> Any:
        """A dataset of these records.

        `without`: rows with labels of their own have those of a dataset of one record more, without this one.
        """


def transposed(fields: Fields, records: Sequence[Record]) -> list[list[Any]]:
    """The columns of flat records."""
    return [[record[k] for record in records] for k in range(len(fields.domains))]


def samples(domain: Domain) -> list[Any]:
    """Values of every kind that a domain holds: all where they are listed, else those that are worth trying."""
    listed = getattr(domain, "values", ())
    return [*(listed if isinstance(listed, tuple) else ()), *domain.ends(), *domain.odd(), domain.middle()]


def holds(dtype: Any, domain: Domain, make: Make, read: Callable[[Any], list[Any]]) -> bool:
    """Whether a column of a type gives back what a domain holds; numbers may be rounded, but stay in their range."""
    values = samples(domain)
    try:
        found = [flag(domain, value) for value in read(make(dtype, domain, values))]
    except (OverflowError, TypeError, ValueError):  # what NumPy and pandas raise for values that a type does not hold
        return False
    rounded = getattr(dtype, "kind", "") == "f" and isinstance(domain.middle(), float) and not hasattr(domain, "values")
    return all(
        rounded or key_of(domain.read(again)) == key_of(domain.read(value))
        for value, again in zip(values, found, strict=True)
    )


def flag(domain: Domain, value: Any) -> Any:
    """A flag that an array of numbers holds as 0 or 1."""
    return bool(value) if domain.dtype == "bool" and isinstance(value, int | float) and value in (0, 1) else value


def array_of(dtype: Any, domain: Domain, values: Sequence[Any]) -> Any:
    """A column as an array of that type, or as a list where there is none."""
    if dtype is None:
        return list(values)
    if dtype.kind == "f":
        filled = [np.nan if value is None else value for value in values]
        with np.errstate(over="ignore"):  # beyond a narrow type it is infinite, which no domain holds
            made = np.array(filled, np.float64).astype(dtype)
        return made if dtype.itemsize >= np.dtype(np.float64).itemsize else _within(made, domain)
    if dtype.kind == "O":
        made = np.empty(len(values), object)
        for place, value in enumerate(values):  # one by one: a list is an entry, not an axis
            made[place] = value
        return made
    return np.array(list(values), dtype)


def _within(made: Any, domain: Domain) -> Any:
    """Numbers of a narrow type; where rounding took one out of its domain, the next one towards the middle."""
    for place, value in enumerate(made.tolist()):
        if domain.read(value) is NOT_IN_DOMAIN:
            made[place] = np.nextafter(made[place], made.dtype.type(domain.middle()))
    return made


def array_type(domain: Domain) -> np.dtype[Any] | None:
    """The type of an array of such values; None where they stand in a list."""
    return np.dtype(domain.dtype) if domain.dtype in NUMERIC else None


def matrix_type(domains: Sequence[Domain]) -> np.dtype[Any]:
    """Floats where one of the fields needs them, integers otherwise."""
    return np.dtype(np.float64 if any(domain.dtype == "float64" for domain in domains) else np.int64)


def order_of(array: Any) -> str:
    """In which order the entries lie in memory; "C" where an array of one row or column has both."""
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def _matrix(dtype: np.dtype[Any], order: str, domains: Sequence[Domain], records: Sequence[Record]) -> Any:
    """Records by fields."""
    made = np.empty((len(records), len(domains)), dtype, order="F" if order == "F" else "C")
    for k, domain in enumerate(domains):
        made[:, k] = array_of(dtype, domain, [record[k] for record in records])
    return made


def _array_entries(column: Any) -> list[Any]:
    found: list[Any] = column.tolist()
    return found


def _fitted_matrix(dtype: np.dtype[Any], domains: Sequence[Domain]) -> np.dtype[Any]:
    fits = all(holds(dtype, domain, array_of, _array_entries) for domain in domains)
    return dtype if fits else matrix_type(domains)


def _fitted_column(dtype: np.dtype[Any] | None, domain: Domain) -> np.dtype[Any] | None:
    return dtype if dtype is None or holds(dtype, domain, array_of, list) else array_type(domain)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLayout:
    """A list of records."""

    kind: type = list

    @classmethod
    def of(cls, data: Any) -> "ListLayout":
        """That of a list."""
        return cls(kind=type(data))

    @classmethod
    def usual(cls, fields: Fields) -> "ListLayout":
        """That of any records."""
        return cls()

    def fitted(self, fields: Fields) -> "ListLayout":
        """As in `Layout`: a list holds anything."""
        return self

    def build(self, fields: Fields, records: Sequence[Record], without: int | None = None) -> Any:
        """As in `Layout`."""
        made = [fields.build(record) for record in records]
        return made if self.kind is list else self.kind(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLayout:
    """One record alone."""

    @classmethod
    def of(cls, data: Any) -> "RecordLayout":
        """That of a record."""
        return cls()

    @classmethod
    def usual(cls, fields: Fields) -> "RecordLayout":
        """That of any record."""
        return cls()

    def fitted(self, fields: Fields) -> "RecordLayout":
        """As in `Layout`."""
        return self

    def build(self, fields: Fields, records: Sequence[Record], without: int | None = None) -> Any:
        """As in `Layout`; of one record."""
        return fields.build(records[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayLayout:
    """An array of numbers, of one axis or of records by fields."""

    dtype: np.dtype[Any]
    order: str = field(default="C", compare=False)  # which one cannot be told of a single row

    @classmethod
    def of(cls, data: Any) -> "ArrayLayout":
        """That of an array."""
        return cls(dtype=data.dtype, order=order_of(data))

    @classmethod
    def usual(cls, fields: Fields) -> "ArrayLayout":
        """That of records of numbers."""
        return cls(dtype=matrix_type(fields.domains))

    def fitted(self, fields: Fields) -> "ArrayLayout":
        """As in `Layout`."""
        return replace(self, dtype=_fitted_matrix(self.dtype, fields.domains))

    def build(self, fields: Fields, records: Sequence[Record], without: int | None = None) -> Any:
        """As in `Layout`."""
        if fields.kind == "value":
            return array_of(self.dtype, fields.domains[0], [record[0] for record in records])
        return _matrix(self.dtype, self.order, fields.domains, records)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsLayout:
    """A dict of arrays and lists."""

    dtypes: tuple[np.dtype[Any] | None, ...]  # None: a list
    kind: type = dict
    empty: Any = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, data: Any) -> "ColumnsLayout":
        """That of a dict of columns."""
        empty: Any = {}
        if isinstance(data, MutableMapping):
            empty = copy.copy(data)  # its settings, such as what a defaultdict makes
            empty.clear()
        dtypes = tuple(column.dtype if isinstance(column, np.ndarray) else None for column in data.values())
        return cls(dtypes=dtypes, kind=type(empty), empty=empty)

    @classmethod
    def usual(cls, fields: Fields) -> "ColumnsLayout":
        """That of any records with names."""
        return cls(dtypes=tuple(map(array_type, fields.domains)))

    def fitted(self, fields: Fields) -> "ColumnsLayout":
        """As in `Layout`."""
        return replace(self, dtypes=tuple(map(_fitted_column, self.dtypes, fields.domains)))

    def build(self, fields: Fields, records: Sequence[Record], without: int | None = None) -> Any:
        """As in `Layout`."""
        made = copy.copy(self.empty)
        for name, column in zip(
            fields.names, map(array_of, self.dtypes, fields.domains, transposed(fields, records)), strict=True
        ):
            made[name] = column
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class XYLayout:
    """A tuple of an array of features and an array or a list of labels."""

    features: np.dtype[Any]
    labels: np.dtype[Any] | None
    order: str = field(default="C", compare=False)

    @classmethod
    def of(cls, data: Any) -> "XYLayout":
        """That of a tuple (X, y)."""
        labels = data[1].dtype if isinstance(data[1], np.ndarray) else None
        return cls(features=data[0].dtype, labels=labels, order=order_of(data[0]))

    @classmethod
    def usual(cls, fields: Fields) -> "XYLayout":
        """That of records ((x1, …, xk), y)."""
        *features, label = fields.domains
        return cls(features=matrix_type(features), labels=array_type(label))

    def fitted(self, fields: Fields) -> "XYLayout":
        """As in `Layout`."""
        *features, label = fields.domains
        return replace(
            self, features=_fitted_matrix(self.features, features), labels=_fitted_column(self.labels, label)
        )

    def build(self, fields: Fields, records: Sequence[Record], without: int | None = None) -> Any:
        """As in `Layout`."""
        *domains, label = fields.domains
        features = _matrix(self.features, self.order, domains, [record[:-1] for record in records])
        return features, array_of(self.labels, label, [record[-1] for record in records])


def is_frame(data: Any) -> bool:
    """Whether it is a DataFrame or of a class derived from it; pandas is not imported for the question."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas" for kind in type(data).__mro__
    )


def entries(column: Any) -> list[Any]:
    """The entries of a column; None for what is missing by a mark of pandas' own."""
    import pandas as pd  # type: ignore[import-untyped]  # no stubs; 0.5 s

    return [None if value is pd.NA or value is pd.NaT else value for value in column.tolist()]


def labels_of(frame: Any) -> list[Any] | None:
    """The labels of the rows; None where they are counted."""
    import pandas as pd

    return None if isinstance(frame.index, pd.RangeIndex) else frame.index.tolist()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameLayout:
    """A DataFrame: `blank` is one without rows, `labels` are the index of the example.

    An index that counts the rows counts those that are there. One of labels belongs to the rows: a row that is removed
    takes its label with it, and a row that is added gets one of the same kind that no other has.
    """

    blank: Any
    labels: Any

    @classmethod
    def of(cls, data: Any) -> "FrameLayout":
        """That of a DataFrame."""
        return cls(blank=data.iloc[:0], labels=data.index)

    @classmethod
    def usual(cls, fields: Fields) -> "FrameLayout":
        """That of any records with names."""
        import pandas as pd

        columns = {k: pd.Series([], dtype=_usual(domain)) for k, domain in enumerate(fields.domains)}
        blank = pd.DataFrame(columns, index=pd.RangeIndex(0))
        blank.columns = pd.Index(fields.names)
        return cls(blank=blank, labels=blank.index)

    def fitted(self, fields: Fields) -> "FrameLayout":
        """As in `Layout`."""
        import pandas as pd

        fits = [holds(dtype, domain, _column, _entries_of) for dtype, domain in self._typed(fields)]
        if all(fits):
            return self
        blank = self.blank.copy()
        for k, domain in enumerate(fields.domains):
            if not fits[k]:
                blank.isetitem(k, pd.Series([], index=blank.index, dtype=_usual(domain)))
        return FrameLayout(blank=blank, labels=self.labels)

    def build(self, fields: Fields, records: Sequence[Record], without: int | None = None) -> Any:
        """As in `Layout`."""
        import pandas as pd

        values, index = transposed(fields, records), self._index(len(records), without)
        columns = {
            # With its type: pandas would take texts in an object column for a column of texts.
            k: pd.Series(_column(dtype, domain, values[k]), index=index, dtype=dtype)
            for k, (dtype, domain) in enumerate(self._typed(fields))
        }
        made = pd.DataFrame(columns, index=index)
        made.columns = self.blank.columns
        if type(self.blank) is not pd.DataFrame:
            made = _of_class(type(self.blank), made)
        return made.__finalize__(self.blank)

    def _typed(self, fields: Fields) -> list[tuple[Any, Domain]]:
        return list(zip(self.blank.dtypes, fields.domains, strict=True))

    def _index(self, n: int, without: int | None) -> Any:
        """The index of so many rows."""
        import pandas as pd

        first = self.labels
        if isinstance(first, pd.RangeIndex):
            return pd.RangeIndex(first.start, first.start + n * first.step, first.step, name=first.name)
        return continued(first, n) if without is None else continued(first, n + 1).delete(without)

    @property
    def key(self) -> tuple[object, ...]:
        """What layouts have in common if and only if they are equal."""
        import pandas as pd

        frame, index = self.blank, self.labels
        counted = (index.start, index.step) if isinstance(index, pd.RangeIndex) else ()
        dtypes = tuple(map(_described, [*frame.dtypes, frame.columns.dtype, index.dtype]))
        names = (*frame.columns, frame.columns.name, *index.names)
        return type(frame), dtypes, tuple(map(repr, names)), type(index), counted, repr(frame.attrs)

    def __eq__(self, other: object) -> bool:
        """Whether they differ in nothing, the labels of single rows aside."""
        return isinstance(other, FrameLayout) and self.key == other.key

    def __hash__(self) -> int:
        """As equality asks for it."""
        return hash(self.key)


def _described(dtype: Any) -> str:
    """A type with all its settings: the categories of one in their order."""
    categories = getattr(dtype, "categories", None)
    if categories is None:
        return repr(dtype)
    return f"{dtype!r} {categories.dtype!r} {categories.tolist()!r} {dtype.ordered}"


def _usual(domain: Domain) -> Any:
    """The type that pandas takes for values of the whole domain; it must not follow from those that are present."""
    import pandas as pd

    return np.dtype(domain.dtype) if domain.dtype in NUMERIC else pd.Series(samples(domain)).dtype


def _column(dtype: Any, domain: Domain, values: Sequence[Any]) -> Any:
    """A column of that type."""
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        codes = {category: code for code, category in enumerate(dtype.categories.tolist())}
        return pd.Categorical.from_codes([codes.get(value, -1) for value in values], dtype=dtype)
    if isinstance(dtype, np.dtype) and dtype.kind not in "mM":
        return array_of(dtype, domain, values)
    if getattr(dtype, "kind", "") == "f":  # numbers beside a mask
        values = array_of(dtype.numpy_dtype, domain, values)
    return pd.array(list(values), dtype=dtype)


def _entries_of(column: Any) -> list[Any]:
    """The entries of what `_column` makes."""
    import pandas as pd

    return entries(pd.Series(column, dtype=column.dtype))


def _of_class(kind: Any, frame: Any) -> Any:
    """A DataFrame of a derived class. Raises `InvalidNeighbours`."""
    try:
        return kind(frame)
    except Exception as error:  # whatever that class raises
        raise InvalidNeighbours(
            f"a {kind.__name__} cannot be made of a DataFrame ({brief(str(error))}): give pandas.DataFrame(…)"
        ) from error


def continued(labels: Any, n: int) -> Any:
    """The first `n` labels of an index, and after its last ones others of the same kind, each different.

    Numbers, times and periods go on from the greatest one, texts are numbered. Labels of other kinds, and those that
    repeat, come again from the first. Raises `InvalidNeighbours` where there is none to come again.
    """
    import pandas as pd

    have = len(labels)
    if n <= have:
        return _without_step(labels[:n])
    following = _following(labels, n - have) if labels.is_unique else None
    if following is not None:
        more = labels.append(pd.Index(following, dtype=labels.dtype, name=labels.name))
        return _without_step(pd.Index(more, dtype=labels.dtype))  # again: pandas may make texts of objects
    if not have:
        raise InvalidNeighbours(
            f"the index of a DataFrame without rows is a {type(labels).__name__}, whose labels cannot be made up: give "
            "rows, or reset_index(drop=True)"
        )
    return labels.take(np.arange(n) % have)


def _following(labels: Any, count: int) -> list[Any] | None:
    """So many further labels; None where there is no rule for such."""
    import pandas as pd

    numbers = range(1, count + 1)
    if isinstance(labels, pd.DatetimeIndex | pd.TimedeltaIndex):
        zero = pd.Timedelta(0) if isinstance(labels, pd.TimedeltaIndex) else pd.Timestamp(0, tz=labels.tz)
        last = labels.dropna().max() if len(labels.dropna()) else zero
        return [last + pd.Timedelta(days=k) for k in numbers]
    if isinstance(labels, pd.PeriodIndex) and len(labels):
        return [labels.max() + k for k in numbers]
    if labels.inferred_type in ("string", "empty") and not isinstance(labels, pd.CategoricalIndex):
        known = set(labels)
        free = (str(k) for k in itertools.count(len(labels)) if str(k) not in known)
        return list(itertools.islice(free, count))
    kind = getattr(labels.dtype, "kind", "O")
    if kind not in "iuf" or labels.hasnans:
        return None
    last = labels.max() if len(labels) else 0
    if kind == "f":
        return [last + k for k in numbers]
    most = np.iinfo(getattr(labels.dtype, "numpy_dtype", labels.dtype)).max
    return [int(last) + k for k in numbers] if int(last) + count <= most else None


def _without_step(labels: Any) -> Any:
    """An index of times that does not say that they are evenly spaced: without one row they are not."""
    import pandas as pd

    if isinstance(labels, pd.DatetimeIndex | pd.TimedeltaIndex) and labels.freq is not None:
        labels = labels.copy()
        labels.freq = None
    return labels
