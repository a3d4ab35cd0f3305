"""Outcomes as rows of numbers: different outcomes have different rows.

The entry of a number is the number itself. Other values, and numbers that a float cannot tell apart, are encoded:

========================  =====================================================================================
``True``, ``False``       `TRUE`, `FALSE`: next to 1 and 0, so that cuts between the two work as for numbers
``-0.0``                  `NEGATIVE_ZERO`, next to 0
NaN                       `NOT_A_NUMBER`; a NaN in a row marks an absent entry
``None``                  `NONE`
a whole number ≥ 2^53     two entries: the number without its last 11 bits, and these bits
text                      a code (`text_code`), a number that no mechanism returns
an exception              a code of its class (`exception_code`)
a nested sequence         a code of its length (`nested`), then its entries
any other value           a code of its kind or of its whole content (`symbol`), then the entries of its parts
========================  =====================================================================================

A list of numbers has one entry per number, and absent entries after its end. `mechanisms.outcomes` makes the entries
of containers, dates, exact numbers and other objects; `mechanisms.compiled.driver.place` writes the same rows.
"""

import hashlib
import math
import numbers
from typing import Annotated, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.arrays import Booleans, Rows
from dpwitness.checks import brief
from dpwitness.codec import Codec

#: TRUE is the entry of True, the float after 1.
TRUE: Final = float(np.nextafter(1.0, 2.0))
#: FALSE is the entry of False, the smallest float above 0 that is not subnormal.
FALSE: Final = float(np.finfo(np.float64).tiny)
#: NEGATIVE_ZERO is the entry of −0.0, the largest float below 0 that is not subnormal.
NEGATIVE_ZERO: Final = -FALSE
#: NOT_A_NUMBER is the entry of a NaN that a mechanism returned, below every finite number that mechanisms return.
NOT_A_NUMBER: Final = -1.75e308
#: NONE is the entry of None, below every finite number that mechanisms return.
NONE: Final = -1.70e308
#: NESTED_SEQUENCE is the entry of an empty nested sequence; `nested` multiplies it by up to 1.25 for longer sequences.
NESTED_SEQUENCE: Final = -1.2e308
#: TEXT is the highest of the 2^48 codes of texts, all of them between `SYMBOL` and the entries of nested sequences.
TEXT: Final = -1.51e308
#: SYMBOL is the highest of the 2^48 codes of symbols, all of them between `EXCEPTION` and `TEXT`.
SYMBOL: Final = -1.57e308
#: EXCEPTION is the highest of the 2^48 codes of exceptions, all of them between `NONE` and `SYMBOL`.
EXCEPTION: Final = -1.63e308
#: CODE_STEP is the distance between neighbouring codes, one unit in the last place of floats of this size.
CODE_STEP: Final = 2.0**971
#: LEAST_NUMBER lies below every finite number that mechanisms return, above NaN, None, all codes and list lengths.
LEAST_NUMBER: Final = -1.1e308
#: EXACT_INTEGER_LIMIT bounds the integers that a float holds exactly; larger integers take two entries.
EXACT_INTEGER_LIMIT: Final = 2**53
#: LOW_BITS is the number of last bits of a larger integer that form its second entry: 64 − 53.
LOW_BITS: Final = 11

#: CODE_TEXTS has the text of each special value.
CODE_TEXTS: Final = {TRUE: "⊤", FALSE: "⊥", NEGATIVE_ZERO: "−0", NOT_A_NUMBER: "nan", NONE: "None"}
#: _JSON_VALUES has the JSON value of each special value.
_JSON_VALUES: Final[dict[float, bool | str]] = {
    TRUE: True,
    FALSE: False,
    NEGATIVE_ZERO: "-0.0",
    NOT_A_NUMBER: "nan",
    NONE: "none",
    math.inf: "inf",
    -math.inf: "-inf",
}
#: _SPECIAL_VALUES has the special values by their JSON texts.
_SPECIAL_VALUES: Final = {text: value for value, text in _JSON_VALUES.items() if isinstance(text, str)}


def entries(value: object) -> list[float]:
    """The entries of one number, flag, text or None. Raises `TypeError` for other types."""
    if value is None:
        return [NONE]
    if isinstance(value, bool | np.bool_):
        return [TRUE if value else FALSE]
    if isinstance(value, str):
        return [text_code(value)]
    if isinstance(value, numbers.Integral):
        return _whole(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        if math.isnan(number):
            return [NOT_A_NUMBER]
        return [NEGATIVE_ZERO if number == 0 and math.copysign(1, number) < 0 else number]
    raise TypeError(f"{value!r} must be a number, a flag, a text or None")


def nested(length: int) -> float:
    """The entry that precedes the entries of a nested sequence of `length` < 2^30 values."""
    return NESTED_SEQUENCE * (1.0 + length * 2.0**-32)


def _whole(value: int) -> list[float]:
    if abs(value) < EXACT_INTEGER_LIMIT:
        return [float(value)]
    if -(2**63) <= value < 2**64:
        return [float(value >> LOW_BITS << LOW_BITS), float(value & (1 << LOW_BITS) - 1)]
    # An integer beyond 64 bits has two entries: the nearest float, and a hash of all digits.
    nearest = float(value) if value.bit_length() < 1024 else math.inf if value > 0 else -math.inf
    return [nearest, symbol("whole number", hex(value))]  # decimal digits are limited to 4,300 by Python


def array_rows(values: NDArray[Any]) -> Rows | None:
    """An (n, k) array of flags or numbers as rows; None if a number takes two entries."""
    if values.dtype.kind == "b":
        return np.where(values, TRUE, FALSE)
    if values.dtype.kind in "iu":
        low, high = (values.min(initial=0), values.max(initial=0))
        exact = int(low) > -EXACT_INTEGER_LIMIT and int(high) < EXACT_INTEGER_LIMIT
        return values.astype(np.float64) if exact else None
    rows = values.astype(np.float64)
    rows[np.isnan(rows)] = NOT_A_NUMBER
    rows[(rows == 0) & np.signbit(rows)] = NEGATIVE_ZERO
    return rows


def text_code(text: str) -> float:
    """The entry of a text, equal in all processes: their counts can be merged."""
    return TEXT - _hash(text)


def symbol(kind: str, content: str = "") -> float:
    """The entry of a kind of value or, with `content`, of one value of this kind."""
    return SYMBOL - _hash(f"{kind}\0{content}")


def exception_code(name: str) -> float:
    """The entry of a run that raised an exception of the class `name`."""
    return EXCEPTION - _hash(name)


def is_code(entry: float) -> bool:
    """Whether an entry stands for a text, a symbol or an exception: the order of codes has no meaning."""
    return _lowest(EXCEPTION) < entry <= TEXT


def is_text(entries: Any) -> Any:
    """Whether an entry stands for a text. Arguments broadcast."""
    return (entries > _lowest(TEXT)) & (entries <= TEXT)


def is_length(entry: float) -> bool:
    """Whether an entry encodes the length of a nested sequence."""
    return TEXT < entry <= NESTED_SEQUENCE


def is_exception(entries: Any) -> Any:
    """Whether an entry stands for an exception that the run raised. Arguments broadcast."""
    return (entries > _lowest(EXCEPTION)) & (entries <= EXCEPTION)


def is_no_number(entries: Rows) -> Booleans:
    """Whether each entry stands for NaN, None, a text, a symbol, an exception or a list's length."""
    return (entries < LEAST_NUMBER) & (entries > -math.inf)


def _lowest(base: float) -> float:
    """A bound below the 2^48 codes that descend from `base`."""
    return base - CODE_STEP * 2.0**48


def _hash(text: str) -> float:
    """A hash of 48 bits, times `CODE_STEP`."""
    code = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return int.from_bytes(code) * CODE_STEP


def entry_to_json(entry: float) -> float | bool | str | None:
    """One entry of a row as a JSON value: null where it is absent, true and false, infinities as texts."""
    return None if math.isnan(entry) else _JSON_VALUES.get(entry, entry)


def entry_from_json(value: object, name: str = "entry") -> float:
    """The entry that an unchecked JSON value stands for, the inverse of `entry_to_json`. Raises `ValueError`."""
    if value is None:
        return math.nan
    if isinstance(value, bool):
        return TRUE if value else FALSE
    if isinstance(value, str) and value in _SPECIAL_VALUES:
        return _SPECIAL_VALUES[value]
    if isinstance(value, str) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(
            f"{name}={brief(value)} must be a finite number, true, false, null or one of {', '.join(_SPECIAL_VALUES)}"
        )
    return float(value)


#: RowEntry is the type of an entry of a row, with its form in JSON.
RowEntry: TypeAlias = Annotated[
    float,
    Codec(
        entry_to_json,
        lambda name, value: entry_from_json(value, name),
        lambda _: {"anyOf": [{"type": ["number", "boolean", "null"]}, {"enum": list(_SPECIAL_VALUES)}]},
    ),
]
