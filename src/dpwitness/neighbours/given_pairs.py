"""Explicit pairs: what is neighbouring is said one by one."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np

from dpwitness.checks import brief, items
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.inputs import Data, as_input, input_from_json, input_to_json
from dpwitness.neighbours.pair import Pair, check_keys, check_noun, holds
from dpwitness.neighbours.relation import Relation

__all__ = ["Pairs", "as_relation", "pairs"]

_FIELDS: Final = ("given", "noun")
#: Pairs that are shown to people one by one.
SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Pairs:
    """Exactly the pairs that the user gives, in either direction."""

    given: tuple[Pair, ...]
    noun: str = "value"
    _keys: frozenset[Hashable] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_noun(self.noun)
        given = items("given", self.given, InvalidNeighbours)
        if not all(isinstance(pair, Pair) for pair in given):
            raise InvalidNeighbours(
                f"given={brief(given)} must hold pairs as pairs(…) makes them: give pairs((D, D′), …)"
            )
        object.__setattr__(self, "given", tuple(given))
        object.__setattr__(self, "_keys", frozenset(pair.key for pair in self.given))

    def __str__(self) -> str:
        """As in a call, shortened."""
        parts = [f"({str(pair).replace(' and ', ', ')})" for pair in self.given[:SHOWN]]
        more = [f"and {len(self.given) - SHOWN} more"] if len(self.given) > SHOWN else []
        return f"pairs({', '.join([*parts, *more])})"

    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Yield the given pairs as they are. Raises `InvalidNeighbours` where data are given, too."""
        if data is not None:
            raise InvalidNeighbours("explicit pairs already hold the data: give either pairs or data")
        yield from self.given

    def variations(self, pair: Pair, *, scale: float = 1.0) -> Iterator[Pair]:
        """None: the candidates are all there is to try."""
        return iter(())

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """None: what else is neighbouring is not known."""
        return iter(())

    def take(self, data: object) -> Data:
        """As in `Relation`: as given."""
        return as_input(data)

    def contains(self, pair: Pair, data: Data | None = None) -> bool:
        """Whether it is one of the given pairs, in either direction."""
        if data is not None and not holds(pair, data):
            return False
        return pair.key in self._keys

    def to_json(self) -> dict[str, Any]:
        """As in `Relation`; the labels of the pairs are left out."""
        given = [[input_to_json(pair.data), input_to_json(pair.neighbour)] for pair in self.given]
        return {"kind": "pairs", "given": given, "noun": self.noun}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Pairs":
        """Build it from what `to_json` wrote, its kind left out. Raises `InvalidNeighbours`."""
        check_keys("pairs", value, _FIELDS)
        given = value["given"]
        if not isinstance(given, list):
            raise InvalidNeighbours(f"given={brief(given)} must be a list of pairs")
        read = (list(map(input_from_json, pair)) if isinstance(pair, list) else pair for pair in given)
        return cls(pairs(*read).given, value["noun"])


def _equal_numbers(pair: Pair) -> bool:
    """Whether both are arrays of the same numbers, though perhaps of different kinds."""
    return all(isinstance(side, np.ndarray) for side in pair.sides) and np.array_equal(*pair.sides)


def pairs(*given: Sequence[Any]) -> Pairs:
    """Explicit pairs of inputs of any kind: `pairs(([1, 1], [2, 0]), …)`. Raises `InvalidNeighbours` for equal inputs.

    The mechanism gets each input as it is given here; machine code gets lists of numbers as arrays.
    """
    found: list[Pair] = []
    # The usual slip: D and D′ given as if each were a pair.
    hint = f": for one pair of two inputs give pairs(({brief(given[0])}, {brief(given[1])}))" if len(given) == 2 else ""
    for pair in given:
        if isinstance(pair, Pair):
            found.append(pair)
            continue
        if not isinstance(pair, Sequence | np.ndarray) or isinstance(pair, str | bytes):
            raise InvalidNeighbours(f"a pair is two inputs, not {brief(pair)}" + (hint or ": give pairs((D, D′), …)"))
        count = 1 if isinstance(pair, np.ndarray) and not pair.ndim else len(pair)
        if count != 2:
            raise InvalidNeighbours(f"a pair is two inputs, not {count}, {brief(pair)}{hint}")
        made = Pair(as_input(pair[0]), as_input(pair[1]))
        try:
            same = len(made.key) == 1
        except RecursionError as error:
            raise InvalidNeighbours("a pair holds an input that holds itself, or is nested too deep") from error
        if same or _equal_numbers(made):
            raise InvalidNeighbours(f"pair {made}: both inputs are the same, so nothing could ever be found{hint}")
        found.append(made)
    if not found:
        raise InvalidNeighbours("no pair was given")
    return Pairs(tuple(found))


def as_relation(given: Relation | Sequence[Any]) -> Relation:
    """A relation that was given, or a list of pairs as one. Raises `InvalidNeighbours` for what is neither."""
    if isinstance(given, list | tuple):
        for pair in given:
            if not isinstance(pair, Pair) and (not isinstance(pair, list | tuple) or len(pair) != 2):
                raise InvalidNeighbours(
                    f"neighbours={brief(given)}: a list must hold pairs (D, D′), not {brief(pair)[:40]}"
                )
        return pairs(*given)
    if isinstance(given, type) or not (
        callable(getattr(given, "candidates", None)) and callable(getattr(given, "variations", None))
    ):
        raise InvalidNeighbours(
            f"neighbours={brief(given)} is no relation: give one, such as records(…) or queries(…), or a list of pairs"
        )
    return cast(Relation, given)
