"""Which inputs a claim calls neighbouring: relations, each a generator of candidate pairs and the judge of any pair.

A relation proposes few pairs that give broken mechanisms away; the search spends runs where they promise most. Every
pair is used in both directions, so mirror images need not be listed.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.domains import categories, flags, integers, numbers, text
from dpwitness.neighbours.examples import like
from dpwitness.neighbours.inputs import (
    Data,
    as_array,
    as_finite_numbers,
    as_input,
    copier,
    input_from_json,
    input_key,
    input_to_json,
    shown,
)
from dpwitness.neighbours.number_lists import Bits, Histogram, Queries, bits, histogram, queries
from dpwitness.neighbours.pair import Pair, make_pair
from dpwitness.neighbours.records import Records, records
from dpwitness.neighbours.relation import (
    Pairs,
    Relation,
    adjacent,
    adjacent_candidates,
    adjacent_variations,
    alternatives,
    as_relation,
    large,
    pairs,
    relation_to_json,
    require_adjacent,
    same_relation,
    smaller,
    taken,
)

__all__ = [
    "Bits",
    "Data",
    "Histogram",
    "Pair",
    "Pairs",
    "Queries",
    "Records",
    "Relation",
    "adjacent",
    "adjacent_candidates",
    "adjacent_variations",
    "alternatives",
    "as_array",
    "as_finite_numbers",
    "as_input",
    "as_relation",
    "bits",
    "categories",
    "copier",
    "flags",
    "histogram",
    "input_from_json",
    "input_key",
    "input_to_json",
    "integers",
    "large",
    "like",
    "make_pair",
    "numbers",
    "pairs",
    "queries",
    "records",
    "register_relation",
    "relation_from_json",
    "relation_to_json",
    "require_adjacent",
    "same_relation",
    "shown",
    "smaller",
    "taken",
    "text",
]

Reader = Callable[[Mapping[str, Any]], Relation]

_READERS: Final[dict[str, Reader]] = {
    "queries": Queries.from_json,
    "histogram": Histogram.from_json,
    "bits": Bits.from_json,
    "pairs": Pairs.from_json,
    "records": Records.from_json,
}


def register_relation(kind: str, reader: Reader) -> None:
    """Let `relation_from_json`, and so witness files, hold another kind of relation.

    `kind` is what its `to_json` writes under that key, `reader` gets the rest and raises `InvalidNeighbours`.
    """
    _READERS[kind] = reader


def relation_from_json(value: Any) -> Relation:
    """Build a relation from parsed JSON that nobody has checked; it decides about no code that runs.

    Raises `InvalidNeighbours`.
    """
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if not isinstance(kind, str) or kind not in _READERS:
        raise InvalidNeighbours(f"relation {brief(value)} must be an object whose kind is one of {', '.join(_READERS)}")
    return _READERS[kind]({name: item for name, item in value.items() if name != "kind"})
