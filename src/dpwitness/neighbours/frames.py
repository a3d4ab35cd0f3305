"""DataFrames of pandas: types of columns, index, attributes and class are those of an example, or of the domain."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from typing_extensions import override

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.domains import Domain, Value
from dpwitness.neighbours.fields import Fields, Record
from dpwitness.neighbours.inputs import Data
from dpwitness.neighbours.layouts import NUMERIC, Column, Layout, NamedLayout, array_of, columns_of, fits, read_columns
from dpwitness.tables import installed, is_frame

Frame = Any  # a DataFrame
Index = Any  # that of a DataFrame


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
        return read_columns(fields, [series_entries(data[name]) for name in fields.names])

    @classmethod
    @override
    def of(cls, data: Data) -> Self:
        return cls(blank=data.iloc[:0], labels=data.index)

    @classmethod
    @override
    def usual(cls, fields: Fields) -> Self:
        pd = installed("pandas", "form='dataframe'")

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
            if not fits(dtype, domain, _series_values, entries):
                blank = self.blank.copy() if blank is self.blank else blank
                blank.isetitem(k, pd.Series([], index=blank.index, dtype=_series_type(domain)))
        return replace(self, blank=blank)

    @override
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        import pandas as pd

        index = self._index(len(records), without)
        types = zip(self.blank.dtypes, fields.domains, columns_of(fields, records), strict=True)
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
        return array_of(dtype, domain, values)
    if getattr(dtype, "kind", "") == "f":  # numbers beside a mask
        values = array_of(dtype.numpy_dtype, domain, values)
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
