"""What a relation is, and the questions that are asked of any of them, a third party's included.

A class of another package needs `noun`, `candidates` and `variations`. Without `contains` no pair is known to be
adjacent but those it proposes itself; without `smaller` its inputs are never shrunk; without `to_json` a witness file
holds null for it; without `take` data that are lists of numbers come as arrays; without `large` inputs of tens of
thousands of records are not tried. With `alternatives`, each of the relations that it returns has a verdict of its own.
"""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, Protocol

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.inputs import Data, as_array, as_input
from dpwitness.neighbours.pair import Pair

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
