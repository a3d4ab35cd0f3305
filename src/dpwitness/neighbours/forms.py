"""How a dataset is handed to the mechanism: an array, a list, a DataFrame, columns, features and labels, a record."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.domains import NOT_IN_DOMAIN, Fields, Record
from dpwitness.neighbours.layouts import (
    NUMERIC,
    ArrayLayout,
    ColumnsLayout,
    FrameLayout,
    ListLayout,
    RecordLayout,
    XYLayout,
    entries,
    flag,
    is_frame,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A way to write a dataset: what it asks of a record (None where it is met), its layouts, how it is read back.

    A layout builds datasets; `layout.of(data)` is that of a dataset of the form, `layout.usual(fields)` that of a
    domain without an example.
    """

    refuses: Callable[[Fields], str | None]
    layout: Any
    read: Callable[[Fields, Any], list[Record] | None]


def _read_all(fields: Fields, records: Sequence[Any]) -> list[Record] | None:
    """The flat records; None where one of them does not belong."""
    found = []
    for record in records:
        flat = fields.read(record)
        if flat is None:
            return None
        found.append(flat)
    return found


def _from_columns(fields: Fields, columns: Sequence[Sequence[Any]]) -> list[Record] | None:
    """The flat records of columns of equal length."""
    if len({len(column) for column in columns}) != 1:
        return None
    found, domains = [], fields.domains
    for row in zip(*columns, strict=True):
        record = tuple(domain.read(flag(domain, value)) for domain, value in zip(domains, row, strict=True))
        if any(value is NOT_IN_DOMAIN for value in record):
            return None
        found.append(record)
    return found


def _is_numeric(fields: Fields) -> bool:
    """Whether a record is a number, or a tuple of numbers."""
    flat = not any(isinstance(part, Fields) for part in fields.parts)
    return flat and fields.kind != "dict" and all(domain.dtype in NUMERIC for domain in fields.domains)


def _array_refuses(fields: Fields) -> str | None:
    return None if _is_numeric(fields) else "records that are numbers, or tuples of numbers"


def _read_array(fields: Fields, data: Any) -> list[Record] | None:
    width = len(fields.domains)
    shape = (len(data),) if fields.kind == "value" and np.ndim(data) else (len(data) if np.ndim(data) else 0, width)
    if not isinstance(data, np.ndarray) or data.shape != shape or data.dtype.kind not in "biuf":
        return None
    return _from_columns(fields, data.reshape(-1, width).T.tolist())


def _read_list(fields: Fields, data: Any) -> list[Record] | None:
    return _read_all(fields, data) if isinstance(data, list) else None


def _named_refuses(fields: Fields) -> str | None:
    flat = not any(isinstance(part, Fields) for part in fields.parts)
    return (
        None
        if flat and fields.kind == "dict"
        else "records that are dicts of single values: their names become columns"
    )


def _read_frame(fields: Fields, data: Any) -> list[Record] | None:
    if not is_frame(data) or list(data.columns) != list(fields.names):
        return None
    return _from_columns(fields, [entries(data[name]) for name in fields.names])


def _read_columns(fields: Fields, data: Any) -> list[Record] | None:
    if not isinstance(data, Mapping) or list(data) != list(fields.names):
        return None
    if not all(
        isinstance(column, list) or (isinstance(column, np.ndarray) and column.ndim == 1) for column in data.values()
    ):
        return None
    return _from_columns(fields, [list(column) for column in data.values()])


def _xy_refuses(fields: Fields) -> str | None:
    if fields.kind == "tuple" and len(fields.parts) == 2 and not isinstance(fields.parts[1], Fields):
        features = fields.parts[0]
        if _is_numeric(features) if isinstance(features, Fields) else features.dtype in NUMERIC:
            return None
    return "records ((x1, …, xk), y) of numbers x and a label y"


def _read_xy(fields: Fields, data: Any) -> list[Record] | None:
    width = len(fields.domains) - 1
    if not _is_xy(data):
        return None
    features, labels = data[0], np.asarray(data[1], None if isinstance(data[1], np.ndarray) else object)
    if features.ndim != 2 or labels.ndim != 1 or features.shape != (len(labels), width):
        return None
    return _from_columns(fields, [*features.T.tolist(), labels.tolist()])


def _is_xy(data: Any) -> bool:
    """Whether it is a tuple of an array of features and an array or a list of labels."""
    both = type(data) is tuple and len(data) == 2
    return both and isinstance(data[0], np.ndarray) and isinstance(data[1], np.ndarray | list)


def _read_record(fields: Fields, data: Any) -> list[Record] | None:
    # A number is held as an array without axes.
    return _read_all(fields, [data.item() if isinstance(data, np.ndarray) and data.ndim == 0 else data])


def _anything(fields: Fields) -> str | None:
    return None


#: The forms by name.
FORMS: Final[dict[str, Form]] = {
    "array": Form(refuses=_array_refuses, layout=ArrayLayout, read=_read_array),
    "list": Form(refuses=_anything, layout=ListLayout, read=_read_list),
    "dataframe": Form(refuses=_named_refuses, layout=FrameLayout, read=_read_frame),
    "columns": Form(refuses=_named_refuses, layout=ColumnsLayout, read=_read_columns),
    "xy": Form(refuses=_xy_refuses, layout=XYLayout, read=_read_xy),
    "record": Form(refuses=_anything, layout=RecordLayout, read=_read_record),
}


def usual_form(fields: Fields) -> str:
    """The form of records where none was given: (X, y), an array of numbers, else a list of records."""
    if isinstance(fields.parts[0], Fields) and _xy_refuses(fields) is None:
        return "xy"
    return "array" if _is_numeric(fields) and fields.kind != "list" else "list"


def form_of_data(data: Any) -> str:
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


def check_form(form: Any, fields: Fields) -> None:
    """Raise `InvalidNeighbours` unless it is a form for such records."""
    if not isinstance(form, str) or form not in FORMS:
        raise InvalidNeighbours(f"form={brief(form)} must be one of {', '.join(FORMS)}")
    needs = FORMS[form].refuses(fields)
    if needs is not None:
        raise InvalidNeighbours(f"form={form!r} needs {needs}, not {fields!s:.80}")
