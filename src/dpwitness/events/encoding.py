"""Outcomes as rows of numbers: outcomes that differ have rows that differ.

A number is itself. Other values, and values that a float cannot tell apart, have entries of their own:

========================  =====================================================================================
``True``, ``False``       `TRUE`, `FALSE`: next to 1 and 0, so that cuts between the two work as for numbers
``-0.0``                  `NEGATIVE_ZERO`, the largest number below 0 that is not subnormal
NaN                       `NOT_A_NUMBER`; a row's own NaN says that there is no entry
``None``                  `NONE`
a whole number ≥ 2^53     two entries: the number without its last 11 bits, and these bits
text                      a code of its own (`text_code`), a number that no mechanism returns
anything else             a code for its kind, or for all of it (`symbol`), and entries for what it holds
an exception              a code for its class (`exception_code`)
a nested sequence         a value for its length (`nested`), then its entries
========================  =====================================================================================

A list of numbers has one entry a number; absent entries lie behind the end. How containers, dates, exact numbers and
other objects become entries is for `mechanisms.outcomes` to say. Compiled code writes the same rows (see
`mechanisms.compiled.driver.place`).
"""

import hashlib
import math
import numbers
from typing import Annotated, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import brief
from dpwitness.codec import Codec

#: TRUE is the entry of True, the float after 1, so that cuts between 0 and 1 work for flags as for numbers.
TRUE: Final = float(np.nextafter(1.0, 2.0))
#: FALSE is the entry of False, the smallest normal float, which lies next to 0.
FALSE: Final = float(np.finfo(np.float64).tiny)
#: NEGATIVE_ZERO is the entry of −0.0, the largest number below 0 that is not subnormal.
NEGATIVE_ZERO: Final = -FALSE
#: NOT_A_NUMBER is the entry of a NaN that a mechanism returned, below every number that a mechanism returns but −∞.
NOT_A_NUMBER: Final = -1.75e308
#: NONE is the entry of None, below every number that a mechanism returns but −∞.
NONE: Final = -1.70e308
#: NESTED is the entry of an empty nested sequence; `nested` multiplies it by up to 1.25 for longer ones.
NESTED: Final = -1.2e308
#: TEXT is the highest of the 2^48 codes of texts, all of them between `SYMBOL` and `nested`.
TEXT: Final = -1.51e308
#: SYMBOL is the highest of the 2^48 codes of symbols, all of them between `EXCEPTION` and `TEXT`.
SYMBOL: Final = -1.57e308
#: EXCEPTION is the highest of the 2^48 codes of exceptions, all of them between `NONE` and `SYMBOL`.
EXCEPTION: Final = -1.63e308
#: CODE_STEP is the distance from one code to the next, that of neighbouring floats of this size.
CODE_STEP: Final = 2.0**971
#: LEAST_NUMBER lies above all special values of this file and below every number that a mechanism returns but −∞.
LEAST_NUMBER: Final = -1.1e308
#: EXACT_INTEGER_LIMIT bounds the integers that a float holds exactly; larger ones take two entries.
EXACT_INTEGER_LIMIT: Final = 2**53
#: LOW_BITS is the number of last bits of a larger integer that have an entry of their own: 64 − 53.
LOW_BITS: Final = 11

#: TEXTS has the special values as people read them.
TEXTS: Final = {TRUE: "⊤", FALSE: "⊥", NEGATIVE_ZERO: "−0", NOT_A_NUMBER: "nan", NONE: "None"}
#: _JSON has the special values as JSON writes them.
_JSON: Final[dict[float, bool | str]] = {
    TRUE: True,
    FALSE: False,
    NEGATIVE_ZERO: "-0.0",
    NOT_A_NUMBER: "nan",
    NONE: "none",
    math.inf: "inf",
    -math.inf: "-inf",
}
#: _FROM_JSON has the texts of `_JSON` and their values, for reading.
_FROM_JSON: Final = {text: value for value, text in _JSON.items() if isinstance(text, str)}

#: Rows is an array of outcomes, one a row, NaN where an entry is absent.
Rows = NDArray[np.float64]


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
    """The entry that stands before those of a nested sequence of that length, below 2^30."""
    return NESTED * (1.0 + length * 2.0**-32)


def _whole(value: int) -> list[float]:
    if abs(value) < EXACT_INTEGER_LIMIT:
        return [float(value)]
    if -(2**63) <= value < 2**64:
        return [float(value >> LOW_BITS << LOW_BITS), float(value & (1 << LOW_BITS) - 1)]
    # Larger than any fixed-width integer: as near as a float comes, and a hash.
    nearest = float(value) if value.bit_length() < 1024 else math.inf if value > 0 else -math.inf
    return [nearest, symbol("whole number", hex(value))]  # decimal digits are limited to 4,300 by Python


def array_rows(values: NDArray[Any]) -> Rows | None:
    """Rows of an (n, k) array of flags or numbers at once; None where a number takes two entries."""
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
    """An entry for a text: the same in every process, so that counts can be merged."""
    return TEXT - _hash(text)


def symbol(kind: str, content: str = "") -> float:
    """The entry of a kind of value; with a text that distinguishes values of the kind, the entry of one value."""
    return SYMBOL - _hash(f"{kind}\0{content}")


def exception_code(name: str) -> float:
    """An entry for a run that raised an exception of a class of that name."""
    return EXCEPTION - _hash(name)


def is_code(entry: float) -> bool:
    """Whether an entry stands for a text, a symbol or an exception: its place among others has no meaning."""
    return _lowest(EXCEPTION) < entry <= TEXT


def is_text(entries: Any) -> Any:
    """Whether an entry stands for a text. Broadcasts."""
    return (entries > _lowest(TEXT)) & (entries <= TEXT)


def is_length(entry: float) -> bool:
    """Whether an entry is the length of a nested sequence."""
    return TEXT < entry <= NESTED


def is_exception(entries: Any) -> Any:
    """Whether an entry says that the run raised an exception. Broadcasts."""
    return (entries > _lowest(EXCEPTION)) & (entries <= EXCEPTION)


def is_no_number(entries: Rows) -> NDArray[np.bool_]:
    """Whether each entry stands for NaN, None, a text, a symbol or an exception."""
    return (entries < LEAST_NUMBER) & (entries > -math.inf)


def _lowest(base: float) -> float:
    """A bound below the 2^48 codes that go downwards from a base."""
    return base - CODE_STEP * 2.0**48


def _hash(text: str) -> float:
    """A hash of 48 bits, times `CODE_STEP`."""
    code = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return int.from_bytes(code) * CODE_STEP


def entry_to_json(entry: float) -> float | bool | str | None:
    """One entry of a row as a JSON value: null where it is absent, true and false, infinities as texts."""
    return None if math.isnan(entry) else _JSON.get(entry, entry)


def entry_from_json(value: object, name: str = "entry") -> float:
    """The reverse of `entry_to_json`, of an unchecked value. Raises `ValueError`."""
    if value is None:
        return math.nan
    if isinstance(value, bool):
        return TRUE if value else FALSE
    if isinstance(value, str) and value in _FROM_JSON:
        return _FROM_JSON[value]
    if isinstance(value, str) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(
            f"{name}={brief(value)} must be a finite number, true, false, null or one of {', '.join(_FROM_JSON)}"
        )
    return float(value)


#: Entry is the type of an entry of a row, with its form in JSON.
Entry: TypeAlias = Annotated[
    float,
    Codec(
        entry_to_json,
        lambda name, value: entry_from_json(value, name),
        lambda _: {"anyOf": [{"type": ["number", "boolean", "null"]}, {"enum": list(_FROM_JSON)}]},
    ),
]
