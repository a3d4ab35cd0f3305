"""Checks of the numbers that claims are made of."""

from collections.abc import Mapping
from typing import Any

from dpwitness.checks import brief, number
from dpwitness.errors import InvalidClaim


def in_range(claim: object, name: str, least: float, most: float, *, above: bool = False) -> None:
    """Make a claim's field a float, and raise `InvalidClaim` unless it lies from `least` (or above it) to `most`."""
    value = number(name, getattr(claim, name), InvalidClaim)
    if not (least < value if above else least <= value) or not value <= most:
        limits = f"above {least:g} and at most {most:g}" if above else f"from {least:g} to {most:g}"
        raise InvalidClaim(f"{name}={value!r} must be a number {limits}")
    object.__setattr__(claim, name, value)  # a NumPy scalar is no JSON value


def shown(value: float) -> str:
    """A number in six digits; in all of them where six say 1 of what is not 1, such as a δ a little below."""
    digits = f"{value:g}"
    return repr(value) if digits == "1" and value != 1 else digits


def from_fields(value: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    """The fields of a claim's object, all of them there. Raises `InvalidClaim`."""
    for name in names:
        if name not in value:
            raise InvalidClaim(f"the claim lacks {name!r}")
    return tuple(value[name] for name in names)


def points_of(name: str, value: Any) -> list[tuple[float, float]]:
    """A list of at least one pair of numbers. Raises `InvalidClaim`."""
    try:
        pairs = [tuple(point) for point in value]
    except TypeError as error:
        raise InvalidClaim(f"{name}={brief(value)} must be a list of pairs of numbers") from error
    if not pairs:
        raise InvalidClaim(f"{name}=[] must hold at least one pair of numbers")
    for pair in pairs:
        if len(pair) != 2:
            raise InvalidClaim(f"{name}: {brief(pair)} must be a pair of numbers")
    return [(number(name, x, InvalidClaim), number(name, y, InvalidClaim)) for x, y in pairs]
