"""Single values as entries of a row."""

import datetime
import enum
import fractions
import math
import numbers
from decimal import Decimal
from typing import Any, Final

import numpy as np

from dpwitness.events.encoding import NOT_A_NUMBER, entries, symbol
from dpwitness.mechanisms.outcomes.row import Place, Row, append

#: Bytes of a value that have an entry each.
BYTES: Final = 32
EPOCH: Final = datetime.datetime(1970, 1, 1)


@append.register
def _(value: numbers.Number, row: Row, place: Place) -> None:
    if isinstance(value, enum.Enum):
        append.dispatch(enum.Enum)(value, row, place)
        return
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        row.put(symbol("complex"), place, "complex")
        row.add(value.real, row.at(place, "part", "real"))
        row.add(value.imag, row.at(place, "part", "imaginary"))
        return
    for entry in entries(value):
        row.put(entry, place)
    if isinstance(value, np.longdouble) and math.isfinite(value) and float(value) != value:
        row.put(symbol("long double", repr(value)), place, str(value))


@append.register(np.bool_)
@append.register(str)
def _(value: Any, row: Row, place: Place) -> None:
    if isinstance(value, enum.Enum):
        append.dispatch(enum.Enum)(value, row, place)
    else:
        row.put(entries(value)[0], place, str(value) if isinstance(value, str) else None)


@append.register(Decimal)
@append.register(fractions.Fraction)
def _(value: Any, row: Row, place: Place) -> None:
    try:
        row.add(float(value), place)
    except OverflowError:  # of a fraction
        row.put(math.inf if value > 0 else -math.inf, place)
    except ValueError:  # a signalling NaN
        row.put(NOT_A_NUMBER, place)
    row.put(symbol(type(value).__name__, f"{value!s}"), place, str(value))


@append.register
def _(value: enum.Enum, row: Row, place: Place) -> None:
    name = f"{type(value).__qualname__}.{value.name or value.value}"  # a combination of flags may have no name
    row.put(symbol("enum", name), place, name)


@append.register(bytes)
@append.register(bytearray)
@append.register(memoryview)
def _(value: Any, row: Row, place: Place) -> None:
    held = bytes(value)
    row.put(symbol("bytes", held.hex()), place, repr(held) if len(held) <= BYTES else f"{len(held)} bytes")
    row.length(len(held), place, "bytes")
    row.extend(held[:BYTES], place, "byte")


@append.register(datetime.date)
@append.register(datetime.time)
@append.register(datetime.timedelta)
def _(value: Any, row: Row, place: Place) -> None:
    if value != value:  # pandas' NaT is of such a type
        row.put(symbol("missing", str(value)), place, str(value))
        return
    if isinstance(value, datetime.timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, datetime.datetime):
        seconds = (value.replace(tzinfo=None) - EPOCH).total_seconds()
    elif isinstance(value, datetime.date):
        seconds = 86_400.0 * (value.toordinal() - EPOCH.toordinal())
    else:
        seconds = value.hour * 3600.0 + value.minute * 60 + value.second + value.microsecond / 1e6
    exact = repr(value) if isinstance(value, datetime.timedelta) else value.isoformat()
    row.add(seconds, place)
    row.put(symbol("time", f"{exact} {getattr(value, 'fold', 0)}"), place, str(value))


@append.register(np.datetime64)
@append.register(np.timedelta64)
def _(value: Any, row: Row, place: Place) -> None:
    if np.isnat(value):
        row.put(symbol("missing", "NaT"), place, "NaT")
        return
    row.add(int(value.astype(np.int64)), place)
    row.put(symbol("time", value.dtype.str), place, value.dtype.str)
