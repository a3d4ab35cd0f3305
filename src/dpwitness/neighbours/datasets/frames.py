"""What a DataFrame is besides its rows: its class, the types of its columns, their names, its index, its attributes."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.datasets.domain import Domain
from dpwitness.neighbours.datasets.fields import Fields, Record
from dpwitness.neighbours.datasets.layouts import NUMERIC, array_of, holds, samples, transposed

__all__ = ["FrameLayout", "entries", "is_frame", "labels_of"]


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
