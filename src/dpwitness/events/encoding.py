"""Outcomes as rows of numbers: outcomes that differ have rows that differ.

A number is itself. What is no number, and what a float cannot tell apart, has a value of its own:

========================  =====================================================================================
``True``, ``False``       `TRUE`, `FALSE`: next to 1 and 0, so that cuts between the two work as for numbers
``-0.0``                  `NEGATIVE_ZERO`, the largest number below 0 that is not subnormal
NaN                       `NOT_A_NUMBER`; a row's own NaN says that there is no entry
``None``                  `NONE`
a whole number ≥ 2^53     two entries: the number without its last 11 bits, and these bits (see `WHOLE`)
text                      a code of its own (`text_code`), which is no number that a mechanism returns
anything else             a code for its kind, or for all of it (`symbol`), and entries for what it holds
an exception              a code for its class (`exception_code`)
a nested sequence         a value for its length (`nested`), then its entries
========================  =====================================================================================

A run of numbers is one entry a number; what is not there lies behind the end. How containers, dates, exact numbers and
other objects become entries is for `mechanisms.outcomes` to say. Compiled code writes the same rows (see
`mechanisms.compiled.driver.place`).
"""

import hashlib
import math
import numbers
from functools import lru_cache
from typing import Annotated, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import brief
from dpwitness.codec import Codec

TINY: Final = float(np.finfo(np.float64).tiny)
TRUE: Final = float(np.nextafter(1.0, 2.0))
FALSE: Final = TINY
NEGATIVE_ZERO: Final = -TINY
#: Below every number that a mechanism returns, −∞ apart.
NOT_A_NUMBER: Final = -1.75e308
NONE: Final = -1.70e308
#: What `nested` multiplies; what comes of it is no number that a mechanism returns either.
NESTED: Final = -1.2e308
#: Codes of texts, of symbols and of exceptions: 2^48 of each downwards from here, all between `NONE` and `nested`.
TEXT: Final = -1.51e308
SYMBOL: Final = -1.57e308
EXCEPTION: Final = -1.63e308
#: The distance of neighbouring floats there: from one code to the next.
CODE_STEP: Final = 2.0**971
CODE_BYTES: Final = 6
#: Texts of up to so many characters are hashed once.
REMEMBERED: Final = 64
#: Above all of these codes, below every number that a mechanism returns, −∞ apart.
LEAST_NUMBER: Final = -1.1e308
#: From here on a float does not hold every whole number: the last `LOW_BITS` bits get an entry of their own.
WHOLE: Final = 2**53
LOW_BITS: Final = 11

#: How each special value is said, and written as JSON.
TEXTS: Final = {TRUE: "⊤", FALSE: "⊥", NEGATIVE_ZERO: "−0", NOT_A_NUMBER: "nan", NONE: "None"}
_JSON: Final[dict[float, bool | str]] = {
    TRUE: True,
    FALSE: False,
    NEGATIVE_ZERO: "-0.0",
    NOT_A_NUMBER: "nan",
    NONE: "none",
    math.inf: "inf",
    -math.inf: "-inf",
}
_FROM_JSON: Final = {text: value for value, text in _JSON.items() if isinstance(text, str)}

Rows = NDArray[np.float64]


def entries(value: object) -> list[float]:
    """The entries of one number, flag, text or None. Raises `TypeError` for anything else."""
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
    raise TypeError(f"{value!r} is no number, flag, text or None")


def nested(length: int) -> float:
    """The entry that stands before those of a nested sequence of that length, below 2^30."""
    return NESTED * (1.0 + length * 2.0**-32)


def _whole(value: int) -> list[float]:
    if abs(value) < WHOLE:
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
        return None if int(high) >= WHOLE or int(low) <= -WHOLE else values.astype(np.float64)
    rows = values.astype(np.float64)
    rows[np.isnan(rows)] = NOT_A_NUMBER
    rows[(rows == 0) & np.signbit(rows)] = NEGATIVE_ZERO
    return rows


def text_code(text: str) -> float:
    """An entry for a text: the same in every process, so that counts can be merged."""
    return TEXT - _hash(text)


def symbol(kind: str, content: str = "") -> float:
    """An entry that says of what kind a value is, or, by a text that tells it from others of its kind, which one."""
    return SYMBOL - _hash(f"{kind}\0{content}")


def exception_code(name: str) -> float:
    """An entry for a run that raised an exception of a class of that name."""
    return EXCEPTION - _hash(name)


def is_code(entry: float) -> bool:
    """Whether an entry stands for a text, a symbol or an exception: its place among others has no meaning."""
    return _lowest(EXCEPTION) < entry <= TEXT


def is_text(entries: Any) -> Any:
    """Whether an entry stands for a text; of an array, which do."""
    return (entries > _lowest(TEXT)) & (entries <= TEXT)


def is_length(entry: float) -> bool:
    """Whether an entry is the length of a nested sequence."""
    return TEXT < entry <= NESTED


def is_exception(entries: Any) -> Any:
    """Whether an entry says that the run raised an exception; of an array, which do."""
    return (entries > _lowest(EXCEPTION)) & (entries <= EXCEPTION)


def is_no_number(entries: Rows) -> NDArray[np.bool_]:
    """Which entries stand for what is no number: NaN, None, texts, symbols, exceptions."""
    return (entries < LEAST_NUMBER) & (entries > -math.inf)


def _lowest(base: float) -> float:
    """Below all codes that are counted downwards from a base."""
    return base - CODE_STEP * 2.0 ** (8 * CODE_BYTES)


def _hash(text: str) -> float:
    """A multiple of `CODE_STEP`, 2^48 of them from 0 on."""
    return _remembered(text) if len(text) <= REMEMBERED else _computed(text)


def _computed(text: str) -> float:
    code = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=CODE_BYTES).digest()
    return int.from_bytes(code) * CODE_STEP


_remembered = lru_cache(maxsize=1 << 14)(_computed)


def entry_to_json(entry: float) -> float | bool | str | None:
    """One entry of a row as a JSON value: null where there is none, true and false, infinities as texts."""
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


#: An entry of a row with its form in JSON.
Entry: TypeAlias = Annotated[
    float,
    Codec(
        entry_to_json,
        lambda name, value: entry_from_json(value, name),
        lambda _: {"anyOf": [{"type": ["number", "boolean", "null"]}, {"enum": list(_FROM_JSON)}]},
    ),
]
