"""What a relation is, and the questions that are asked of any of them, a third party's included.

A class of another package needs `noun`, `candidates` and `variations`. Without `contains` no pair is known to be
adjacent but those it proposes itself; without `smaller` its inputs are never shrunk; without `to_json` a witness file
holds null for it; without `take` data that are lists of numbers come as arrays; without `large` inputs of tens of
thousands of records are not tried. With `alternatives`, each of the relations that it returns has a verdict of its own.

Shrinking steps that the relations share. They know nothing of adjacency: each relation keeps those inside it.

Explicit pairs: what is neighbouring is said one by one.
"""

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import brief, items
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.inputs import Data, as_array, as_input, input_from_json, input_to_json
from dpwitness.neighbours.pair import Pair, check_keys, check_noun, holds, make_pair

#: Candidates that are looked through for a pair, of a relation that has no `contains`.
LOOKED_THROUGH: Final = 10_000


class Relation(Protocol):
    """What calls two inputs neighbouring; `noun` names one entry of an output for people.

    The search starts from `candidates` and goes on from the best of them to their `variations`; a witness is shrunk by
    the steps of `smaller`. All of these stay within what `contains` says.
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

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """Shrinking steps: pairs that are simpler to read than this one, the largest steps first."""

    def contains(self, pair: Pair, data: Data | None = None) -> bool:
        """Whether the claim calls the two inputs adjacent; symmetric in D and D′, and False for equal inputs.

        With `data` one of the two must be it: the same numbers, of the same kind and shape.
        """

    def take(self, data: object) -> Data:
        """Data as a user gives them, as they are passed to the other methods. Raises `InvalidNeighbours`."""

    def to_json(self) -> dict[str, Any] | None:
        """Everything needed to build it again, as JSON values, or None; see `relation_from_json`."""


def adjacent(relation: Relation, pair: Pair, data: Data | None = None) -> bool:
    """Whether a relation calls the two inputs of a pair adjacent; one of them must be `data` where data are given."""
    judge = getattr(relation, "contains", None)
    if judge is not None:
        try:
            return bool(judge(pair, data))
        except RecursionError as error:
            raise InvalidNeighbours("an input holds itself, or is nested too deep") from error
    return any(pair.key == proposed.key for proposed in islice(relation.candidates(data), LOOKED_THROUGH))


def require_adjacent(relation: Relation, pair: Pair, data: Data | None = None, *, what: str = "the pair") -> None:
    """Raise `InvalidNeighbours`, which names pair and relation, where `adjacent` is False."""
    if not adjacent(relation, pair, data):
        given = "" if data is None else " with the given data"
        raise InvalidNeighbours(
            f"{what} {pair} is not one that {relation!s:.200} calls neighbouring{given}: "
            "give the relation of the claim, or a pair of it"
        )


def adjacent_candidates(
    relation: Relation, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0
) -> Iterator[Pair]:
    """The candidates of a relation. Raises `InvalidNeighbours` at the first that the relation does not contain."""
    judged = hasattr(relation, "contains")
    for pair in relation.candidates(data, centre=centre, scale=scale):
        if judged:
            require_adjacent(relation, pair, data, what="the candidate")
        yield pair


def adjacent_variations(
    relation: Relation, pair: Pair, data: Data | None = None, *, scale: float = 1.0
) -> Iterator[Pair]:
    """Those variations of a pair that stay in the relation and, where data are given, keep the data."""
    return (varied for varied in relation.variations(pair, scale=scale) if adjacent(relation, varied, data))


def smaller(relation: Relation, pair: Pair, data: Data | None = None) -> Iterator[Pair]:
    """Shrinking steps of a pair, each within the relation; none where data are given, since these stay as they are."""
    steps = getattr(relation, "smaller", None)
    if steps is None or data is not None:
        return iter(())
    return (step for step in steps(pair) if adjacent(relation, step))


def large(relation: Relation, size: int, data: Data | None = None) -> Iterator[Pair]:
    """A few pairs of datasets of so many records, for mechanisms that are fast; none where the relation has none.

    Whoever uses one asks first whether it is `adjacent`: that reads every record.
    """
    propose = getattr(relation, "large", None)
    return iter(()) if propose is None else iter(propose(size, data))


def relation_to_json(relation: Relation | None) -> dict[str, Any] | None:
    """A relation as JSON values; None for one of another package that cannot be written down."""
    write = getattr(relation, "to_json", None)
    written = None if write is None else write()
    return None if written is None else dict(written)


def same_relation(first: Relation | None, second: Relation | None) -> bool:
    """Whether two relations call the same pairs adjacent, as far as what they write of themselves shows it."""
    written = relation_to_json(first)
    # As texts: 1 and 1.0 are equal, but integers and floats are different inputs.
    return first is second or (
        written is not None
        and json.dumps(written, sort_keys=True) == json.dumps(relation_to_json(second), sort_keys=True)
    )


def alternatives(relation: Relation) -> tuple[Relation, ...]:
    """The relations of which each has a verdict of its own: more than one where the adjacency is left open."""
    ask = getattr(relation, "alternatives", None)
    return (relation,) if ask is None else tuple(ask())


def taken(relation: Relation, data: object) -> Data:
    """The data that a user gives, as the relation takes them: by its `take`, where it has one.

    A relation without one gets lists of numbers as arrays, and anything else as `as_input` keeps it. Raises
    `InvalidNeighbours`.
    """
    take = getattr(relation, "take", None)
    try:
        if take is not None:
            return take(data)
        array = as_array(data)
        return as_input(data if array is None else array)
    except RecursionError as error:
        raise InvalidNeighbours(f"data={brief(data)} holds itself, or is nested too deep") from error


LABEL = "shrunk"


def drop_coordinate(pair: Pair) -> Iterator[Pair]:
    """Without some of the coordinates of a list: halves, quarters, … single ones."""
    if pair.data.ndim != 1:
        return
    for dropped in _chunks(np.arange(pair.data.size)):
        keep = np.ones(pair.data.size, bool)
        keep[dropped] = False
        if np.any(pair.data[keep] != pair.neighbour[keep]):
            yield make_pair(pair.data[keep], pair.neighbour[keep], LABEL)


def drop_differing_coordinate(pair: Pair) -> Iterator[Pair]:
    """With fewer coordinates that differ: without half of them, a quarter, … a single one."""
    differing = np.flatnonzero(pair.data != pair.neighbour)
    for places in _chunks(differing):
        if len(places) < len(differing):
            changed = pair.neighbour.copy()
            changed.flat[places] = pair.data.flat[places]
            yield make_pair(pair.data, changed, LABEL)


def nearer_to_zero(pair: Pair) -> Iterator[Pair]:
    """Smaller or rounder numbers; what differs keeps its difference, and integers stay integers."""
    base: Data = np.minimum(*pair.sides).ravel()
    shifts: list[Data] = [base, np.full_like(base, base.min() if base.min() > 0 else base.max())]
    shifts += [np.where(np.arange(base.size) == i, base, 0) for i in range(base.size if 1 < base.size <= 16 else 0)]
    shifts += [np.where(np.abs(base) >= 2, base - _rounded(base / 2, base), 0), base - _rounded(base, base)]
    for move in shifts:
        shift = move.reshape(pair.data.shape).astype(base.dtype)
        smaller = make_pair(pair.data - shift, pair.neighbour - shift, LABEL)
        if _length(smaller) < _length(pair):
            yield smaller


def _chunks(places: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Halves of some places, quarters, … single ones."""
    chunk = len(places) // 2
    while chunk:
        for start in range(0, len(places), chunk):
            yield places[start : start + chunk]
        chunk //= 2


def _rounded(values: Data, like: Data) -> Data:
    """Whole numbers of the same kind as another array."""
    return np.round(values).astype(like.dtype)


def _length(pair: Pair) -> tuple[float, int]:
    """How large, then how long to write, the numbers of a pair are; less is simpler."""
    digits = sum(len(f"{value:g}") for side in pair.sides for value in side.ravel())
    return float(sum(np.abs(side.astype(np.float64)).sum() for side in pair.sides)), digits


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
