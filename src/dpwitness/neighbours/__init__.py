"""Which inputs a claim calls neighbouring: relations, each a generator of candidate pairs and the judge of any pair.

A relation proposes few pairs that give broken mechanisms away; the search spends runs where they promise most. Every
pair is used in both directions, so mirror images need not be listed.
"""

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
    as_relation,
    pairs,
    register_relation,
    relation_from_json,
    relation_to_json,
    require_adjacent,
    same_relation,
    smaller,
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
    "text",
]
