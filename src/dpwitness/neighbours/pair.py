"""A pair of inputs, and the properties besides records in which its inputs differ."""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import ClassVar, Final

import numpy as np

from dpwitness.frames import frames_of
from dpwitness.neighbours.difference import difference
from dpwitness.neighbours.inputs import Data, Input, as_finite_numbers, input_key, require_shallow, shown

#: The beginning of the label of a pair that an attack proposes; the rest explains the inputs and the event.
ATTACK_PREFIX: Final = "attack: "


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two neighbouring inputs, of any kind, and the reason for which they were proposed.

    Raises `InvalidNeighbours` for an input that holds itself, or is nested too deep, and for a frame with two columns
    of one name.
    """

    json_keys: ClassVar[tuple[str, ...]] = ("input: data", "neighbour", "label")

    data: Input
    neighbour: Input
    label: str = field(default="given", metadata={"json": "optional"})
    # The value of `digests` once it is computed.
    _digests: tuple[bytes, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        for side in self.sides:
            require_shallow(side)
            if frames := frames_of(side):
                frames.require_names(side)

    @property
    def sides(self) -> tuple[Data, Data]:
        """The inputs D and D′."""
        return self.data, self.neighbour

    @property
    def digests(self) -> tuple[bytes, ...]:
        """A digest of 128 bits of each input, computed once; equal inputs have equal digests."""
        if not self._digests:
            object.__setattr__(self, "_digests", tuple(map(digest_of, self.sides)))
        return self._digests

    @property
    def key(self) -> frozenset[bytes]:
        """A key that pairs of the same inputs share, in either direction."""
        return frozenset(self.digests)

    def swapped(self) -> "Pair":
        """The pair of D′ and D."""
        made = object.__new__(Pair)  # without `require_shallow`, which takes long for many records
        for name, value in zip(
            Pair.__slots__, (self.neighbour, self.data, self.label, self._digests[::-1]), strict=True
        ):
            object.__setattr__(made, name, value)
        return made

    def __str__(self) -> str:
        first, second = shown(self.data), shown(self.neighbour)
        if first == second and len(self.key) == 1:
            return f"{first}, twice"
        return f"{first} and {second if first != second else difference(self.data, self.neighbour)}"


def make_pair(data: object, neighbour: object, label: str) -> Pair:
    """A pair of inputs of finite numbers. Raises `InvalidNeighbours` for any other input."""
    return Pair(as_finite_numbers(data), as_finite_numbers(neighbour), label)


def digest_of(data: Data) -> bytes:
    """A digest of 128 bits of an input's key."""
    return blake2b(repr(input_key(data)).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def holds(pair: Pair, data: Data) -> bool:
    """Whether one input of a pair equals `data` in values, types and shape."""
    return digest_of(data) in pair.digests


def alike(pair: Pair) -> bool:
    """Whether both inputs are arrays of one shape that hold finite numbers of one kind (integers or floats)."""
    first, second = pair.sides
    return (
        isinstance(first, np.ndarray)
        and isinstance(second, np.ndarray)
        and first.shape == second.shape
        and first.dtype.kind == second.dtype.kind
        and first.dtype.kind in "iuf"
        and bool(np.all(np.isfinite(first)) and np.all(np.isfinite(second)))
    )


def unlike(pair: Pair) -> str | None:
    """The first property besides records in which two arrays or frames differ; None without a difference.

    A verdict may rest on that property alone. The relations of this package make no pair with such a difference; a
    user's pair may have one.
    """
    first, second = map(_schema, pair.sides)
    if set(map(len, (first, second))) == {1} or any(getattr(side, "ndim", 1) == 0 for side in pair.sides):
        return None  # neither is an array or a frame, or one is a number
    texts = ((what, first.get(what, "none"), second.get(what, "none")) for what in {**first, **second})
    return next((f"{what} ({one:.60} and {other:.60})" for what, one, other in texts if one != other), None)


def _schema(data: Data) -> dict[str, str]:
    """The properties of an input besides its records, as texts by name; for most objects the type alone."""
    if isinstance(data, np.ndarray):
        return {"their type": "ndarray", "the type of their arrays": str(data.dtype)}
    frames = frames_of(data)
    return {"their type": type(data).__name__} if frames is None else {"their type": frames.noun, **frames.schema(data)}
