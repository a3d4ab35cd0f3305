"""What a domain is: which values one field of a record may take, and which of them give broken code away."""

from collections.abc import Iterator
from typing import Any, Final, Protocol

import numpy as np

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours

__all__ = ["NOT_IN_DOMAIN", "Domain", "is_missing", "key_of", "plain"]


class NotInDomain:
    """The type of `NOT_IN_DOMAIN`."""

    def __repr__(self) -> str:
        """Its name."""
        return "NOT_IN_DOMAIN"


#: What `Domain.read` gives for a value that the domain does not hold.
NOT_IN_DOMAIN: Final = NotInDomain()


class Domain(Protocol):
    """The values of one field. A value has one form inside: what `read` makes of it."""

    @property
    def dtype(self) -> str:
        """The NumPy type of a column of such values; "object" where there is none of its own."""

    def ends(self) -> tuple[Any, ...]:
        """Values to try, the most promising first; the first two are far apart."""

    def inside(self, end: Any) -> Any:
        """A value near an end, but not at it; the end itself where there is no such thing as near."""

    def odd(self) -> tuple[Any, ...]:
        """Values that code stumbles over: a missing one, one outside a range, a new category, an empty text."""

    def middle(self) -> Any:
        """An ordinary value."""

    def draw(self, rng: np.random.Generator) -> Any:
        """A value as real data may hold it."""

    def near(self, value: Any) -> Iterator[Any]:
        """Other values to try in the place of one that turned out well."""

    def simpler(self, value: Any) -> Iterator[Any]:
        """Values that are shorter to write or nearer to zero, the largest steps first."""

    def read(self, value: Any) -> Any:
        """The value as it is held inside, a NumPy scalar unwrapped; `NOT_IN_DOMAIN` for what does not belong."""

    def to_json(self) -> dict[str, Any] | None:
        """Everything needed to build it again, as JSON values; None where it cannot be written."""


def plain(value: Any) -> Any:
    """A NumPy scalar as a Python value; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def is_missing(value: Any) -> bool:
    """Whether a value stands for a missing one: None, NaN, and the marks of pandas and NumPy."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither equal nor different; an array is no single value
        return type(value).__name__ == "NAType"


def key_of(value: Any) -> Any:
    """What equal values of a field have in common: their type, and NaN is equal to NaN."""
    if isinstance(value, float) and value != value:
        return "NaN"
    try:
        hash(value)
    except TypeError:
        return type(value), repr(value)
    return type(value), value


def required(name: str, value: Any, kind: type) -> None:
    """Raise `InvalidNeighbours` unless a setting of a domain is of a type."""
    if not isinstance(value, kind):
        raise InvalidNeighbours(f"{name}={brief(value)} must be a {kind.__name__}")
