"""Settings that users give, checked: one clear line for what cannot be used."""

import numbers
from typing import Any

from dpwitness.errors import BadInput, InvalidParameter


def whole(name: str, value: Any, least: int, most: int | None = None, error: type[BadInput] = InvalidParameter) -> int:
    """A setting that must be a whole number from `least` to `most`; 1e6 is one. Raises `error`."""
    given = value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidParameter(f"{name}={given!r} must be a whole number")
    if int(value) < least or (most is not None and int(value) > most):
        limits = f"at least {least}" if most is None or most > 1 << 64 else f"from {least} to {most}"
        raise error(f"{name}={given!r} must be a whole number {limits}")
    return int(value)


def number(name: str, value: Any) -> float:
    """A setting that must be a number. Raises `InvalidParameter`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidParameter(f"{name}={value!r} must be a number")
    try:
        return float(value)
    except OverflowError as error:
        raise InvalidParameter(f"{name}={value!r:.80} is too large") from error
