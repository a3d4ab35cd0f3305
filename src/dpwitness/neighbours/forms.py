"""How a dataset is handed to the mechanism: an array, a list, a DataFrame, columns, features and labels, a record.

Neighbours differ in their records and in nothing else. So both are built in one layout, which comes from an example or
from the domain, never from the records that happen to be there.
"""

import copy
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
from typing_extensions import override

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.domains import NOT_IN_DOMAIN, Domain, Numbers, Value, key_of
from dpwitness.neighbours.fields import Fields, Record
from dpwitness.neighbours.inputs import Array, Data

DType = np.dtype[Any]
Column = Any  # an array, a list, or an array or a Series of pandas, which has no types
Frame = Any  # a DataFrame
Index = Any  # that of a DataFrame
#: Types of columns that an array can hold.
NUMERIC: Final = ("float64", "int64", "bool")


class Layout(ABC):
    """A form, and what a dataset in it is besides its records: class, types of columns, index, order in memory.

    Two datasets of a form are alike besides their records if and only if their layouts are equal.
    """

    __slots__ = ()

    @staticmethod
    def needs(fields: Fields) -> str | None:
        """What the form asks of records and these fields do not give; None where they do."""
        return None

    @staticmethod
    @abstractmethod
    def read(fields: Fields, data: Data) -> list[Record] | None:
        """The flat records of a dataset; None for another form, or where one of them does not belong."""

    @classmethod
    def of(cls, data: Data) -> Self:
        """The layout of a dataset in this form."""
        return cls()

    @classmethod
    def usual(cls, fields: Fields) -> Self:
        """The layout of datasets without an example."""
        return cls()

    def fitted(self, fields: Fields) -> "Layout":
        """The same, with the domain's own type wherever a type cannot hold all that the domain does."""
        return self

    @abstractmethod
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        """A dataset of these records.

        `without`: rows with labels of their own have those of a dataset of so many records more, without these.
        """


def _read_all(fields: Fields, records: Sequence[object]) -> list[Record] | None:
    """The flat records; None where one of them does not belong."""
    flat_records = []
    for record in records:
        flat = fields.read(record)
        if flat is None:
            return None
        flat_records.append(flat)
    return flat_records


def _read_columns(fields: Fields, columns: Sequence[Sequence[Value]]) -> list[Record] | None:
    """The flat records of columns of equal length; None where one of them does not belong."""
    if len({len(column) for column in columns}) != 1:
        return None
    records, domains = [], fields.domains
    for row in zip(*columns, strict=True):
        record = tuple(domain.read(_flag(domain, value)) for domain, value in zip(domains, row, strict=True))
        if any(value is NOT_IN_DOMAIN for value in record):
            return None
        records.append(record)
    return records


def _flag(domain: Domain, value: Value) -> Value:
    """A flag that an array of numbers holds as 0 or 1."""
    return bool(value) if domain.dtype == "bool" and isinstance(value, int | float) and value in (0, 1) else value


def _columns(fields: Fields, records: Sequence[Record]) -> list[list[Value]]:
    return [[record[k] for record in records] for k in range(len(fields.domains))]


def _is_numeric(fields: Fields) -> bool:
    """Whether a record is a number, or a tuple of numbers."""
    return fields.flat and fields.kind != "dict" and all(domain.dtype in NUMERIC for domain in fields.domains)


def _array(dtype: DType | None, domain: Domain, values: Sequence[Value]) -> Column:
    """A column as an array of that type, or as a list where there is none."""
    if dtype is None:
        return list(values)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):  # beyond a narrow type it is infinite, which no domain holds
            array = np.array([np.nan if value is None else value for value in values], np.float64).astype(dtype)
        if dtype.itemsize < np.dtype(np.float64).itemsize:
            for place, value in enumerate(array.tolist()):
                if not domain.holds(value):  # rounding took it out of its domain: the next one towards the middle
                    array[place] = np.nextafter(array[place], array.dtype.type(domain.middle()))
        return array
    if dtype.kind == "O":
        array = np.empty(len(values), object)
        for place, value in enumerate(values):  # one by one: a list is an entry, not an axis
            array[place] = value
        return array
    return np.array(list(values), dtype)


def _fits(
    dtype: object,
    domain: Domain,
    build: Callable[[Any, Domain, Sequence[Value]], Column] = _array,
    entries: Callable[[Column], list[Value]] = list,
) -> bool:
    """Whether a column of a type gives back what a domain holds; numbers may be rounded, but stay in their range."""
    values = domain.samples()
    try:
        again = [_flag(domain, value) for value in entries(build(dtype, domain, values))]
    except (OverflowError, TypeError, ValueError):  # what NumPy and pandas raise for values that a type does not hold
        return False
    if isinstance(domain, Numbers) and getattr(dtype, "kind", "") == "f":
        return True
    pairs = zip(values, again, strict=True)
    return all(key_of(domain.read(one)) == key_of(domain.read(other)) for one, other in pairs)


def _column_type(domain: Domain) -> DType | None:
    """The type of an array of such values; None where they stand in a list."""
    return np.dtype(domain.dtype) if domain.dtype in NUMERIC else None


def _fitted_column(dtype: DType | None, domain: Domain) -> DType | None:
    return dtype if dtype is None or _fits(dtype, domain) else _column_type(domain)


def _matrix(dtype: DType, order: str, domains: Sequence[Domain], records: Sequence[Record]) -> Array:
    """Records by fields."""
    matrix = np.empty((len(records), len(domains)), dtype, order="F" if order == "F" else "C")
    for k, domain in enumerate(domains):
        matrix[:, k] = _array(dtype, domain, [record[k] for record in records])
    return matrix


def _matrix_type(domains: Sequence[Domain]) -> DType:
    """Floats where one of the fields needs them, integers otherwise."""
    return np.dtype(np.float64 if any(domain.dtype == "float64" for domain in domains) else np.int64)


def _fitted_matrix(dtype: DType, domains: Sequence[Domain]) -> DType:
    fits = all(_fits(dtype, domain, entries=lambda column: column.tolist()) for domain in domains)
    return dtype if fits else _matrix_type(domains)


def _order(array: Array) -> str:
    """In which order the entries lie in memory; "C" where an array of one row or column has both."""
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLayout(Layout):
    """A list of records."""

    kind: type = list

    @staticmethod
    @override
    def read(fields: Fields, data: Data) -> list[Record] | None:
        return _read_all(fields, data) if isinstance(data, list) else None

    @classmethod
    @override
    def of(cls, data: Data) -> Self:
        return cls(kind=type(data))

    @override
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        items = [fields.build(record) for record in records]
        return items if self.kind is list else self.kind(items)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLayout(Layout):
    """One record alone."""

    @staticmethod
    @override
    def read(fields: Fields, data: Data) -> list[Record] | None:
        # A number is held as an array without axes.
        return _read_all(fields, [data.item() if isinstance(data, np.ndarray) and data.ndim == 0 else data])

    @override
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        return fields.build(records[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayLayout(Layout):
    """An array of numbers, of one axis or of records by fields."""

    dtype: DType
    order: str = field(default="C", compare=False)  # which one cannot be told of a single row

    @staticmethod
    @override
    def needs(fields: Fields) -> str | None:
        return None if _is_numeric(fields) else "records that are numbers, or tuples of numbers"

    @staticmethod
    @override
    def read(fields: Fields, data: Data) -> list[Record] | None:
        if not isinstance(data, np.ndarray) or not data.ndim or data.dtype.kind not in "biuf":
            return None
        width = len(fields.domains)
        if data.shape != ((len(data),) if fields.kind == "value" else (len(data), width)):
            return None
        return _read_columns(fields, data.reshape(-1, width).T.tolist())

    @classmethod
    @override
    def of(cls, data: Data) -> Self:
        return cls(dtype=data.dtype, order=_order(data))

    @classmethod
    @override
    def usual(cls, fields: Fields) -> Self:
        return cls(dtype=_matrix_type(fields.domains))

    @override
    def fitted(self, fields: Fields) -> Layout:
        return replace(self, dtype=_fitted_matrix(self.dtype, fields.domains))

    @override
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        if fields.kind == "value":
            return _array(self.dtype, fields.domains[0], [record[0] for record in records])
        return _matrix(self.dtype, self.order, fields.domains, records)


class NamedLayout(Layout):
    """Columns with names."""

    __slots__ = ()

    @staticmethod
    @override
    def needs(fields: Fields) -> str | None:
        named = fields.flat and fields.kind == "dict"
        return None if named else "records that are dicts of single values: their names become columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsLayout(NamedLayout):
    """A dict of arrays and lists."""

    dtypes: tuple[DType | None, ...]  # None: a list
    kind: type = dict
    empty: Data = field(default_factory=dict, compare=False)

    @staticmethod
    @override
    def read(fields: Fields, data: Data) -> list[Record] | None:
        if not isinstance(data, Mapping) or list(data) != list(fields.names):
            return None
        columns = list(data.values())
        if not all(isinstance(c, list) or (isinstance(c, np.ndarray) and c.ndim == 1) for c in columns):
            return None
        return _read_columns(fields, list(map(list, columns)))

    @classmethod
    @override
    def of(cls, data: Data) -> Self:
        empty: Data = {}
        if isinstance(data, MutableMapping):
            empty = copy.copy(data)  # its settings, such as what a defaultdict makes
            empty.clear()
        dtypes = tuple(column.dtype if isinstance(column, np.ndarray) else None for column in data.values())
        return cls(dtypes=dtypes, kind=type(empty), empty=empty)

    @classmethod
    @override
    def usual(cls, fields: Fields) -> Self:
        return cls(dtypes=tuple(map(_column_type, fields.domains)))

    @override
    def fitted(self, fields: Fields) -> Layout:
        return replace(self, dtypes=tuple(map(_fitted_column, self.dtypes, fields.domains)))

    @override
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        columns = copy.copy(self.empty)
        arrays = map(_array, self.dtypes, fields.domains, _columns(fields, records))
        for name, array in zip(fields.names, arrays, strict=True):
            columns[name] = array
        return columns


@dataclass(frozen=True, slots=True, kw_only=True)
class XYLayout(Layout):
    """A tuple of an array of features and an array or a list of labels."""

    features: DType
    labels: DType | None
    order: str = field(default="C", compare=False)

    @staticmethod
    @override
    def needs(fields: Fields) -> str | None:
        if fields.kind == "tuple" and len(fields.parts) == 2 and not isinstance(fields.parts[1], Fields):
            features = fields.parts[0]
            if _is_numeric(features) if isinstance(features, Fields) else features.dtype in NUMERIC:
                return None
        return "records ((x1, …, xk), y) of numbers x and a label y"

    @staticmethod
    @override
    def read(fields: Fields, data: Data) -> list[Record] | None:
        if not _is_xy(data):
            return None
        features, labels = data[0], np.asarray(data[1], None if isinstance(data[1], np.ndarray) else object)
        if features.ndim != 2 or labels.ndim != 1 or features.shape != (len(labels), len(fields.domains) - 1):
            return None
        return _read_columns(fields, [*features.T.tolist(), labels.tolist()])

    @classmethod
    @override
    def of(cls, data: Data) -> Self:
        labels = data[1].dtype if isinstance(data[1], np.ndarray) else None
        return cls(features=data[0].dtype, labels=labels, order=_order(data[0]))

    @classmethod
    @override
    def usual(cls, fields: Fields) -> Self:
        *features, label = fields.domains
        return cls(features=_matrix_type(features), labels=_column_type(label))

    @override
    def fitted(self, fields: Fields) -> Layout:
        *features, label = fields.domains
        return replace(
            self, features=_fitted_matrix(self.features, features), labels=_fitted_column(self.labels, label)
        )

    @override
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        *domains, label = fields.domains
        features = _matrix(self.features, self.order, domains, [record[:-1] for record in records])
        return features, _array(self.labels, label, [record[-1] for record in records])


def _is_xy(data: Data) -> bool:
    """Whether it is a tuple of an array of features and an array or a list of labels."""
    both = type(data) is tuple and len(data) == 2
    return both and isinstance(data[0], np.ndarray) and isinstance(data[1], np.ndarray | list)


def is_frame(data: object) -> bool:
    """Whether it is a DataFrame or of a class derived from it; pandas is not imported for the question."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas" for kind in type(data).__mro__
    )


def series_entries(column: Column) -> list[Value]:
    """The entries of a column; None for what is missing by a mark of pandas' own."""
    import pandas as pd  # type: ignore[import-untyped]  # no stubs; 0.5 s

    return [None if value is pd.NA or value is pd.NaT else value for value in column.tolist()]


def row_labels(frame: Frame) -> list[Value] | None:
    """The labels of the rows; None where they are counted."""
    import pandas as pd

    return None if isinstance(frame.index, pd.RangeIndex) else frame.index.tolist()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameLayout(NamedLayout):
    """A DataFrame: `blank` is one without rows, `labels` are the index of the example.

    An index that counts the rows counts those that are there. One of labels belongs to the rows: a row that is removed
    takes its label with it, and a row that is added gets one of the same kind that no other has.
    """

    blank: Frame
    labels: Index

    @staticmethod
    @override
    def read(fields: Fields, data: Data) -> list[Record] | None:
        if not is_frame(data) or list(data.columns) != list(fields.names):
            return None
        return _read_columns(fields, [series_entries(data[name]) for name in fields.names])

    @classmethod
    @override
    def of(cls, data: Data) -> Self:
        return cls(blank=data.iloc[:0], labels=data.index)

    @classmethod
    @override
    def usual(cls, fields: Fields) -> Self:
        import pandas as pd

        columns = {k: pd.Series([], dtype=_series_type(domain)) for k, domain in enumerate(fields.domains)}
        blank = pd.DataFrame(columns, index=pd.RangeIndex(0))
        blank.columns = pd.Index(fields.names)
        return cls(blank=blank, labels=blank.index)

    @override
    def fitted(self, fields: Fields) -> Layout:
        import pandas as pd

        def entries(column: Column) -> list[Value]:
            return series_entries(pd.Series(column, dtype=column.dtype))

        blank = self.blank
        for k, (dtype, domain) in enumerate(zip(self.blank.dtypes, fields.domains, strict=True)):
            if not _fits(dtype, domain, _series_values, entries):
                blank = self.blank.copy() if blank is self.blank else blank
                blank.isetitem(k, pd.Series([], index=blank.index, dtype=_series_type(domain)))
        return replace(self, blank=blank)

    @override
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        import pandas as pd

        index = self._index(len(records), without)
        types = zip(self.blank.dtypes, fields.domains, _columns(fields, records), strict=True)
        columns = {
            # With its type: pandas would take texts in an object column for a column of texts.
            k: pd.Series(_series_values(dtype, domain, values), index=index, dtype=dtype)
            for k, (dtype, domain, values) in enumerate(types)
        }
        frame = pd.DataFrame(columns, index=index)
        frame.columns = self.blank.columns
        kind = type(self.blank)
        if kind is not pd.DataFrame:
            try:
                frame = kind(frame)
            except Exception as error:  # whatever that class raises
                raise InvalidNeighbours(
                    f"a {kind.__name__} cannot be made of a DataFrame ({brief(str(error))}): give pandas.DataFrame(…)"
                ) from error
        return frame.__finalize__(self.blank)

    def _index(self, n: int, without: tuple[int, ...]) -> Index:
        """The index of so many rows."""
        import pandas as pd

        first = self.labels
        if isinstance(first, pd.RangeIndex):
            return pd.RangeIndex(first.start, first.start + n * first.step, first.step, name=first.name)
        return _continued(first, n + len(without)).delete(list(without)) if without else _continued(first, n)

    @property
    def key(self) -> tuple[object, ...]:
        """What layouts have in common if and only if they are equal, the labels of single rows aside."""
        import pandas as pd

        frame, index = self.blank, self.labels
        counted = (index.start, index.step) if isinstance(index, pd.RangeIndex) else ()
        dtypes = tuple(map(_described, [*frame.dtypes, frame.columns.dtype, index.dtype]))
        names = (*frame.columns, frame.columns.name, *index.names)
        return type(frame), dtypes, tuple(map(repr, names)), type(index), counted, repr(frame.attrs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrameLayout) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _described(dtype: Any) -> str:
    """A type with all its settings: the categories of one in their order."""
    categories = getattr(dtype, "categories", None)
    if categories is None:
        return repr(dtype)
    return f"{dtype!r} {categories.dtype!r} {categories.tolist()!r} {dtype.ordered}"


def _series_type(domain: Domain) -> object:
    """The type that pandas takes for values of the whole domain; it must not follow from those that are present."""
    import pandas as pd

    return np.dtype(domain.dtype) if domain.dtype in NUMERIC else pd.Series(domain.samples()).dtype


def _series_values(dtype: Any, domain: Domain, values: Sequence[Value]) -> Column:
    """The values of a column of that type, as an array of NumPy or of pandas."""
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        codes = {category: code for code, category in enumerate(dtype.categories.tolist())}
        return pd.Categorical.from_codes([codes.get(value, -1) for value in values], dtype=dtype)
    if isinstance(dtype, np.dtype) and dtype.kind not in "mM":
        return _array(dtype, domain, values)
    if getattr(dtype, "kind", "") == "f":  # numbers beside a mask
        values = _array(dtype.numpy_dtype, domain, values)
    return pd.array(list(values), dtype=dtype)


def _continued(labels: Index, n: int) -> Index:
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


def _following(labels: Index, count: int) -> list[Value] | None:
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


def _without_step(labels: Index) -> Index:
    """An index of times that does not say that they are evenly spaced: without one row they are not."""
    import pandas as pd

    if isinstance(labels, pd.DatetimeIndex | pd.TimedeltaIndex) and labels.freq is not None:
        labels = labels.copy()
        labels.freq = None
    return labels


#: The forms by name.
FORMS: Final[dict[str, type[Layout]]] = {
    "array": ArrayLayout,
    "list": ListLayout,
    "dataframe": FrameLayout,
    "columns": ColumnsLayout,
    "xy": XYLayout,
    "record": RecordLayout,
}


def usual_form(fields: Fields) -> str:
    """The form of records where none was given: (X, y), an array of numbers, else a list of records."""
    if isinstance(fields.parts[0], Fields) and XYLayout.needs(fields) is None:
        return "xy"
    return "array" if _is_numeric(fields) and fields.kind != "list" else "list"


def form_of_data(data: object) -> str:
    """The form in which a dataset was given. Raises `InvalidNeighbours`."""
    if is_frame(data):
        return "dataframe"
    if isinstance(data, np.ndarray) and data.ndim in (1, 2):
        return "array"
    if isinstance(data, list):
        return "list"
    if isinstance(data, Mapping):
        return "columns"
    if _is_xy(data):
        return "xy"
    raise InvalidNeighbours(
        f"base={brief(data)} must be a list of records, an array, a DataFrame, a dict of columns, "
        "or a tuple (X, y) of arrays"
    )


def check_form(form: object, fields: Fields) -> None:
    """Raise `InvalidNeighbours` unless it is a form for such records."""
    if not isinstance(form, str) or form not in FORMS:
        raise InvalidNeighbours(f"form={brief(form)} must be one of {', '.join(FORMS)}")
    needs = FORMS[form].needs(fields)
    if needs is not None:
        raise InvalidNeighbours(f"form={form!r} needs {needs}, not {fields!s:.80}")
