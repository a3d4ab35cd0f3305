"""Values that hold others, as entries of a row."""

from collections import deque
from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from dpwitness.events.encoding import nested, symbol
from dpwitness.mechanisms.outcomes.row import Place, Row, append, append_entries, key_codes


@append.register
def _(value: Mapping, row: Row, place: Place) -> None:  # type: ignore[type-arg]  # what is dispatched on has no arguments
    names = [*value]
    codes = [key_codes(name, row) for name in names]
    row.put(symbol("mapping", repr(codes)), place, f"keys {', '.join(map(repr, names[:5]))}"[:80])
    for number in sorted(range(len(names)), key=codes.__getitem__):
        within = (place, "key", names[number])
        for code in codes[number]:
            row.put(code, within)
        row.add(value[names[number]], within)


@append.register
def _(value: Set, row: Row, place: Place) -> None:  # type: ignore[type-arg]  # as above
    row.put(symbol("set"), place, "set")
    row.put(nested(len(value)), (place, "number of", "elements"))
    for number, codes in enumerate(sorted(key_codes(element, row) for element in value), 1):
        for code in codes:
            row.put(code, (place, "element", number))


@append.register(tuple)
@append.register(list)
@append.register(deque)
@append.register(range)
@append.register(np.ndarray)
def _(value: Any, row: Row, place: Place) -> None:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        row.add(value.tolist() if isinstance(value, np.ma.MaskedArray) else value[()], place)
        return
    row.put(nested(len(value)), place)
    append_entries(value, row, place)


@append.register
def _(value: np.void, row: Row, place: Place) -> None:
    if value.dtype.names is None:
        append(value.tobytes(), row, place)
        return
    row.put(symbol("record", repr(value.dtype.names)), place, "record")
    for name in value.dtype.names:
        row.add(value[name], (place, "field", name))
