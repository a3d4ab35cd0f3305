"""Which inputs a claim calls neighbouring: relations, each a generator of candidate pairs.

A relation proposes few pairs that give broken mechanisms away; the search spends runs where they promise most. Every
pair is used in both directions, so mirror images need not be listed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidNeighbours

__all__ = ["Bits", "Data", "Histogram", "Pair", "Pairs", "Queries", "Relation", "bits", "histogram", "pairs", "queries"]

Data = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two neighbouring inputs, read-only arrays of one shape, and why they were proposed."""

    data: Data
    neighbour: Data
    label: str = "given"

    def swapped(self) -> "Pair":
        """D′ and D."""
        return Pair(self.neighbour, self.data, self.label)


class Relation(Protocol):
    """What calls two inputs neighbouring; `noun` names one entry of an output for people.

    The search starts from `candidates` and goes on from the best of them to their `variations`.
    """

    @property
    def noun(self) -> str:
        """What one entry of an output is called."""

    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs to try, the most promising kinds first.

        `data`: D as given by the user, or None; `centre`: the value that the mechanism compares with (a threshold);
        `scale`: the size of its noise, roughly.
        """

    def variations(self, pair: Pair, *, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs like this one, to try when it turns out well."""


def as_input(values: Any) -> Data:
    """An input as a read-only array: integers stay integers, everything else becomes floats.

    Raises `InvalidNeighbours` for text, nesting of unequal lengths, NaN or infinities.
    """
    try:
        array = np.array(values)
    except ValueError as error:
        raise InvalidNeighbours(f"input {values!r} must be a number or a list of numbers of one depth") from error
    if array.dtype.kind not in "biuf":
        raise InvalidNeighbours(f"input {values!r} must hold numbers only")
    if not np.all(np.isfinite(array)):
        raise InvalidNeighbours(f"input {values!r} must hold finite numbers only")
    array = array.astype(np.int64 if array.dtype.kind in "biu" else np.float64)
    array.flags.writeable = False
    return array


def _whole(name: str, value: int) -> None:
    if not (isinstance(value, int) and value >= 1):
        raise InvalidNeighbours(f"{name}={value!r} must be a whole number of at least 1")


@dataclass(frozen=True, slots=True)
class Queries:
    """Answers to `length` queries, each of sensitivity `sensitivity`.

    `may_move`: on a neighbour "all" answers may move, or only "one". `direction`: "any", or "up" if the answers can
    only move together (adding a person never lowers a count).
    """

    length: int = 10
    sensitivity: float = 1.0
    may_move: str = "all"
    direction: str = "any"
    noun: str = "answer"

    def __post_init__(self) -> None:
        _whole("length", self.length)
        if not 0 < self.sensitivity < float("inf"):
            raise InvalidNeighbours(f"sensitivity={self.sensitivity!r} must be positive and finite")
        if self.may_move not in ("all", "one"):
            raise InvalidNeighbours(f"may_move={self.may_move!r} must be 'all' or 'one'")
        if self.direction not in ("any", "up"):
            raise InvalidNeighbours(f"direction={self.direction!r} must be 'any' or 'up'")

    def moves(self, length: int) -> Iterator[tuple[str, NDArray[np.float64]]]:
        """How the answers may move, in units of the sensitivity."""
        last, first, middle = np.zeros(length), np.zeros(length), np.zeros(length)
        last[-1], first[0], middle[length // 2] = 1, 1, 1
        ones = np.ones(length)
        half = np.where(np.arange(length) < length // 2, 1.0, -1.0)
        if self.may_move == "all" and length > 1:
            if self.direction == "any":
                yield "all up but the last", ones - 2 * last
                yield "half up, half down", half
                yield "all down but the last", 2 * last - ones
                yield "half down, half up", -half
                yield "first up, rest down", 2 * first - ones
                yield "first down, rest up", ones - 2 * first
            yield "all up", ones
            yield "all up, last stays", ones - last
            yield "first half up", (half + 1) / 2
        yield "first up", first
        if length > 1:
            yield "last up", last
        if length > 2:
            yield "middle up", middle

    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """The patterns of StatDP (Ding et al. 2018) and those that move one answer against all others.

        Without data they stand around `centre`, at a few distances of the order of the noise.
        """
        if data is not None:
            if data.ndim != 1 or data.size == 0:
                raise InvalidNeighbours(f"queries need a list of at least one answer, not shape {data.shape}")
            bases = [("the data", data.astype(np.float64))]
        else:
            half = (np.arange(self.length) < self.length // 2) * self.sensitivity
            anchor = float(np.floor(centre))  # whole numbers read better in a witness
            bases = [(f"{anchor:g}", np.full(self.length, anchor))]
            if self.may_move == "all" and self.direction == "any" and self.length > 1:
                yield _pair(anchor + half, anchor + self.sensitivity - half, "X shape")
        for place, base in bases:
            for name, move in self.moves(len(base)):
                yield _pair(base, base + move * self.sensitivity, f"{name} around {place}")
        if data is None:  # far from the centre too, in case the mechanism compares with something else
            step = _step(scale, self.sensitivity)
            for name, move in list(self.moves(self.length))[:2]:
                for k in (-10, 10):
                    base = np.full(self.length, anchor + k * step)
                    yield _pair(base, base + move * self.sensitivity, f"{name} around {anchor + k * step:g}")

    def variations(self, pair: Pair, *, scale: float = 1.0) -> Iterator[Pair]:
        """The same moves split elsewhere, higher and lower, and with the first half of the answers higher or lower."""
        step = _step(scale, self.sensitivity)
        index = np.arange(len(pair.data))
        half = index < len(index) // 2
        move = pair.neighbour - pair.data
        lead = int(np.argmax(move != move[0])) if np.any(move != move[0]) else len(move)
        for cut in (lead - 1, lead + 1, lead + 3):
            if 0 < cut < len(index) and self.may_move == "all" and lead < len(index):
                moved = np.where(index < cut, move[0], move[-1])
                if np.any(moved):
                    yield _pair(pair.data, pair.data + moved, f"{pair.label}, split after {cut}")
        for k in (-1, 1):
            yield _pair(pair.data + k * step, pair.neighbour + k * step, f"{pair.label}, shifted by {k * step:g}")
        for k in (-1, 1):
            shift = k * step * half
            yield _pair(pair.data + shift, pair.neighbour + shift, f"{pair.label}, first half shifted by {k * step:g}")


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts per cell; neighbours differ by one person in one cell."""

    length: int = 5
    noun: str = "cell"

    def __post_init__(self) -> None:
        _whole("length", self.length)

    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """One person more, or fewer, in the first, last, largest, smallest and middle cell."""
        if data is None:
            bases = [np.zeros(self.length, np.int64), np.full(self.length, 10, np.int64)]
        else:
            if data.ndim != 1 or data.size == 0:
                raise InvalidNeighbours(f"a histogram is a list of at least one count, not of shape {data.shape}")
            if np.any(data < 0) or np.any(data != np.floor(data)):
                bad = data[(data < 0) | (data != np.floor(data))][0]
                raise InvalidNeighbours(f"a histogram holds whole counts of at least 0, not {bad:g}")
            bases = [data.astype(np.int64)]
        for base in bases:
            cells = [0, int(base.argmax()), int(base.argmin()), len(base) - 1, len(base) // 2]
            for cell in dict.fromkeys(cells):
                for step in (1, -1):
                    if base[cell] + step >= 0:
                        changed = base.copy()
                        changed[cell] += step
                        sign = "one more" if step == 1 else "one fewer"
                        yield _pair(base, changed, f"{sign} in cell {cell + 1}")

    def variations(self, pair: Pair, *, scale: float = 1.0) -> Iterator[Pair]:
        """None: the candidates are all there is to try."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Bits:
    """One bit a person; neighbours differ in one bit."""

    length: int = 10
    noun: str = "value"

    def __post_init__(self) -> None:
        _whole("length", self.length)

    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """The first, last and middle bit flipped in all zeros, all ones and alternating bits, or in the data."""
        if data is None:
            index = np.arange(self.length)
            bases = [np.zeros(self.length, np.int64), np.ones(self.length, np.int64), index % 2]
        else:
            if data.ndim != 1 or data.size == 0 or not np.all((data == 0) | (data == 1)):
                raise InvalidNeighbours("bits are a list of zeros and ones")
            bases = [data.astype(np.int64)]
        for base in bases:
            for place in dict.fromkeys([0, len(base) - 1, len(base) // 2]):
                changed = base.copy()
                changed[place] = 1 - changed[place]
                yield _pair(base, changed, f"bit {place + 1} flipped")

    def variations(self, pair: Pair, *, scale: float = 1.0) -> Iterator[Pair]:
        """None: the candidates are all there is to try."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Pairs:
    """Exactly the pairs that the user gives."""

    given: tuple[Pair, ...]
    noun: str = "value"

    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Yield the given pairs as they are."""
        if data is not None:
            raise InvalidNeighbours("explicit pairs already hold the data: give either pairs or data")
        yield from self.given

    def variations(self, pair: Pair, *, scale: float = 1.0) -> Iterator[Pair]:
        """None: the candidates are all there is to try."""
        return iter(())


def _step(scale: float, sensitivity: float) -> float:
    """A shift of about the noise, in whole sensitivities: round numbers read better in a witness."""
    return max(1.0, float(np.round(scale / sensitivity))) * sensitivity


def _pair(data: Any, neighbour: Any, label: str) -> Pair:
    return Pair(as_input(data), as_input(neighbour), label)


def queries(length: int = 10, sensitivity: float = 1.0, may_move: str = "all", direction: str = "any") -> Queries:
    """Answers to `length` queries of the given sensitivity; see `Queries`."""
    return Queries(length, sensitivity, may_move, direction)


def histogram(length: int = 5) -> Histogram:
    """A histogram of `length` cells, one person more or fewer in one cell; see `Histogram`."""
    return Histogram(length)


def bits(length: int = 10) -> Bits:
    """`length` bits, one of them flipped; see `Bits`."""
    return Bits(length)


def pairs(*given: Sequence[Any]) -> Pairs:
    """Explicit pairs: `pairs(([1, 1], [2, 0]), …)`. Raises `InvalidNeighbours` for unequal shapes or equal inputs."""
    found = []
    for pair in given:
        if len(pair) != 2:
            raise InvalidNeighbours(f"a pair is two inputs, not {len(pair)}: {pair!r}")
        data, neighbour = as_input(pair[0]), as_input(pair[1])
        if data.shape != neighbour.shape:
            raise InvalidNeighbours(
                f"pair {data.tolist()} and {neighbour.tolist()}: the lengths differ "
                f"({'×'.join(map(str, data.shape)) or 1} and {'×'.join(map(str, neighbour.shape)) or 1}); "
                "neighbours have the same shape"
            )
        if data.dtype != neighbour.dtype:
            data, neighbour = as_input(data.astype(np.float64)), as_input(neighbour.astype(np.float64))
        if np.array_equal(data, neighbour):
            raise InvalidNeighbours(f"pair {data.tolist()}: both inputs are the same, so nothing could ever be found")
        found.append(Pair(data, neighbour))
    if not found:
        raise InvalidNeighbours("no pair was given")
    return Pairs(tuple(found))
