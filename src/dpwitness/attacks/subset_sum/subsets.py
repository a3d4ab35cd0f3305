"""Many subsets of people, a bit each: what both adversaries need of the matrix that has one row a subset.

As numbers the matrix of n·ln²n subsets takes 2 GB for 2,048 people, as bits 30 MB; it is unpacked block by block.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter

__all__ = ["Subsets"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Numbers of the matrix that are unpacked at once.
BLOCK = 1 << 22


class Subsets:
    """Who is in which subset; as a matrix it is Q, of ones and zeros, shape (subsets, people).

    Parameters
    ----------
    packed
        Eight people a byte, the first in the lowest bit, shape (subsets, ⌈people/8⌉), uint8.
    people
        How many people there are.
    """

    def __init__(self, packed: NDArray[np.uint8], people: int) -> None:
        self.packed, self.people = packed, people

    @classmethod
    def of(cls, subsets: "Subsets | NDArray[Any]") -> "Subsets":
        """The same from flags, shape (subsets, people). Raises `InvalidParameter` for another shape or none at all."""
        if isinstance(subsets, Subsets):
            return subsets
        if subsets.ndim != 2 or not subsets.size:
            raise InvalidParameter(f"subsets {subsets.shape} do not fit: give flags of shape (subsets, people)")
        return cls(np.packbits(subsets.astype(np.bool_), axis=1, bitorder="little"), subsets.shape[1])

    @classmethod
    def drawn(cls, rng: np.random.Generator, number: int, people: int) -> "Subsets":
        """Random subsets: each person is in each with probability 1/2."""
        return cls(rng.integers(0, 256, (number, -(-people // 8)), np.uint8), people)

    def __len__(self) -> int:
        return len(self.packed)

    def __iter__(self) -> Iterator[Flags]:
        return (self.rows(slice(place, place + 1))[0] for place in range(len(self)))

    def part(self, rows: slice | NDArray[Any]) -> "Subsets":
        """Some of the subsets."""
        return Subsets(self.packed[rows], self.people)

    def rows(self, chosen: slice | NDArray[Any]) -> Flags:
        """Rows of the matrix, shape (chosen, people)."""
        return np.unpackbits(self.packed[chosen], axis=1, count=self.people, bitorder="little").view(np.bool_)

    def sums(self, values: Floats) -> Floats:
        """Q·values: the sum of each subset, shape (subsets,)."""
        return np.concatenate([block @ values for _, block in self._blocks(np.float64)])

    def moments(self, answers: Floats) -> Floats:
        """Qᵀ·answers, shape (people,)."""
        found = np.zeros(self.people)
        for rows, block in self._blocks(np.float64):
            found += block.T @ answers[rows]
        return found

    def gram(self) -> Floats:
        """QᵀQ: in how many subsets two people are together, shape (people, people)."""
        found = np.zeros((self.people, self.people))
        for _, block in self._blocks(np.float32):  # exact: a block has fewer than 2²⁴ rows
            found += block.T @ block
        return found

    def _blocks(self, kind: type[np.floating[Any]]) -> Iterator[tuple[slice, NDArray[Any]]]:
        step = max(BLOCK // self.people, 1)
        for first in range(0, len(self), step):
            rows = slice(first, min(first + step, len(self)))
            yield rows, self.rows(rows).astype(kind)
