"""Names for people of the entries of an outcome."""

from typing import Any, Final

import numpy as np

from dpwitness.mechanisms.outcomes.row import Row, is_sequence, place_name, row_of

#: Types of values that are one entry without a name.
SCALARS: Final = (float, int, bool, str, type(None), np.generic)


def is_plain(value: Any) -> bool:
    """Whether a value, or the sequence that it is, holds nothing whose entries have names of their own."""
    if not is_sequence(value):
        return isinstance(value, SCALARS)
    if isinstance(value, np.ndarray):
        return value.dtype.names is None and value.ndim == 1
    return not hasattr(value, "_fields") and all(isinstance(item, SCALARS) for item in value)


def places_of(value: Any, attributes: tuple[str, ...] = ()) -> dict[int, str]:
    """Names of those entries of an outcome that have one, by coordinate.

    `attributes`: those of which the outcome is the value, or of several the values.
    """
    row = Row(places=[])
    row_of(value, row)
    named = {}
    for coordinate, place in enumerate(row.places or ()):
        if place is not None and (attributes or place[0] is not None or place[1] != "value"):
            named[coordinate] = place_name(_with_attribute(place, attributes))
    return named


def _with_attribute(place: Any, names: tuple[str, ...]) -> Any:
    """A place in the values of several attributes, or of one, with the name of the attribute for its number."""
    if not names:
        return place
    outer, word, name = place
    if outer is not None:
        return _with_attribute(outer, names), word, name
    if len(names) > 1:
        return None, "attribute", names[name - 1]
    return (None, "attribute", names[0]), word, name
