"""Values that hold others, as entries of a row."""

from collections import deque
from collections.abc import Mapping, Set
from typing import Any, Final

import numpy as np

from dpwitness.events.encoding import symbol
from dpwitness.mechanisms.outcomes.row import Place, Row, append, append_entries, key_codes, listed

#: What stands at the place of an element of a set.
PRESENT: Final = symbol("element")
#: Types of elements that come again, so that each has a place of its own.
NAMES: Final = (str, bytes, int, type(None))


@append.register
def _(value: Mapping, row: Row, place: Place) -> None:  # type: ignore[type-arg]  # what is dispatched on has no arguments
    names = [*value]
    codes = [key_codes(name, row) for name in names]
    order = symbol("mapping", repr(codes))
    if row.keyed:
        row.put(symbol("mapping"), place, "a dict")
        for name in names:
            row.add(value[name], row.at(place, "key", name))
        row.put(order, row.at(place, "order of", "keys"), listed(names))
        return
    row.structured = True
    row.put(order, place, f"keys {', '.join(map(repr, names[:5]))}"[:80])
    for number in sorted(range(len(names)), key=codes.__getitem__):
        for code in codes[number]:
            row.put(code, None)
        row.add(value[names[number]], None)


@append.register
def _(value: Set, row: Row, place: Place) -> None:  # type: ignore[type-arg]  # as above
    row.put(symbol("set"), place, "a set")
    row.length(len(value), place, "elements")
    if row.keyed:
        elements = sorted(value, key=lambda element: key_codes(element, row))
        for element in elements:
            if isinstance(element, NAMES):
                row.put(PRESENT, row.at(place, "element", element), "present")
        # A place for each pair or number that was ever drawn would be seen once: these stand by their order.
        row.extend([element for element in elements if not isinstance(element, NAMES)], place, "other element")
        return
    for codes in sorted(key_codes(element, row) for element in value):
        for code in codes:
            row.put(code, None)


@append.register(tuple)
@append.register(list)
@append.register(deque)
@append.register(range)
@append.register(np.ndarray)
def _(value: Any, row: Row, place: Place) -> None:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        row.add(value.tolist() if isinstance(value, np.ma.MaskedArray) else value[()], place)
        return
    if row.keyed:
        row.put(symbol("list"), place, "a list")  # so that what holds nothing is there, too
    row.length(len(value), place)
    append_entries(value, row, place)


@append.register
def _(value: np.void, row: Row, place: Place) -> None:
    if value.dtype.names is None:
        append(value.tobytes(), row, place)
        return
    row.put(symbol("record", repr(value.dtype.names)), place, "record")
    for name in value.dtype.names:
        row.add(value[name], row.at(place, "field", name))
