"""Checks of single values, in one place: the message is a line that names the value and says what it must be."""

import math
import numbers
import re
from typing import Any

from dpwitness.errors import BadInput, InvalidParameter

__all__ = ["brief", "finite", "number", "text", "whole"]


def brief(value: Any) -> str:
    """A value of any kind on one line of at most 80 characters, for messages; of an object no address in memory."""
    try:
        return re.sub(r" at 0x[0-9A-Fa-f]+", "", " ".join(repr(value).split()))[:80]
    except (RecursionError, ValueError):  # nested too deeply, or an integer of too many digits
        return f"of type {type(value).__name__}"


def number(name: str, value: Any, error: type[BadInput] = InvalidParameter) -> float:
    """A number, infinities and NaN included; no flag. Raises `error`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise error(f"{name}={brief(value)} must be a number")
    try:
        return float(value)
    except OverflowError as cause:
        raise error(f"{name}={brief(value)} is too large") from cause


def finite(name: str, value: Any, error: type[BadInput] = InvalidParameter) -> float:
    """A number that is neither infinite nor NaN. Raises `error`."""
    found = number(name, value, error)
    if not math.isfinite(found):
        raise error(f"{name}={brief(value)} must be a finite number")
    return found


def whole(name: str, value: Any, least: int, most: int | None = None, error: type[BadInput] = InvalidParameter) -> int:
    """A whole number from `least` to `most`; 1e6 is one. Raises `error` where it is not in the range."""
    found = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(found, bool) or not isinstance(found, numbers.Integral):
        raise InvalidParameter(f"{name}={brief(value)} must be a whole number")
    if int(found) < least or (most is not None and int(found) > most):
        limits = f"at least {least}" if most is None or most > 1 << 64 else f"from {least} to {most}"
        raise error(f"{name}={brief(value)} must be a whole number {limits}")
    return int(found)


def text(name: str, value: Any, error: type[BadInput] = InvalidParameter) -> str:
    """A text that a UTF-8 file can hold. Raises `error`."""
    if not isinstance(value, str):
        raise error(f"{name}={brief(value)} must be text")
    try:
        value.encode()
    except UnicodeEncodeError as cause:  # half of a surrogate pair
        raise error(f"{name}={brief(value)} cannot be written to a file: {cause.reason}") from cause
    return value
