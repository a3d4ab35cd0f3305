"""Relations, which propose pairs of inputs and say whether a claim calls a pair neighbouring.

The search spends most runs on the best proposed pairs, and uses each pair in both directions.
"""

from dpwitness.neighbours.domains import categories as categories
from dpwitness.neighbours.domains import flags as flags
from dpwitness.neighbours.domains import integers as integers
from dpwitness.neighbours.domains import numbers as numbers
from dpwitness.neighbours.domains import text as text
from dpwitness.neighbours.examples import like as like
from dpwitness.neighbours.inputs import Data as Data
from dpwitness.neighbours.inputs import as_array as as_array
from dpwitness.neighbours.inputs import as_finite_numbers as as_finite_numbers
from dpwitness.neighbours.inputs import as_input as as_input
from dpwitness.neighbours.inputs import copier as copier
from dpwitness.neighbours.inputs import input_from_json as input_from_json
from dpwitness.neighbours.inputs import input_key as input_key
from dpwitness.neighbours.inputs import input_to_json as input_to_json
from dpwitness.neighbours.inputs import shown as shown
from dpwitness.neighbours.number_lists import Bits as Bits
from dpwitness.neighbours.number_lists import Histogram as Histogram
from dpwitness.neighbours.number_lists import Queries as Queries
from dpwitness.neighbours.number_lists import bits as bits
from dpwitness.neighbours.number_lists import histogram as histogram
from dpwitness.neighbours.number_lists import queries as queries
from dpwitness.neighbours.pair import Pair as Pair
from dpwitness.neighbours.pair import make_pair as make_pair
from dpwitness.neighbours.records import Records as Records
from dpwitness.neighbours.records import records as records
from dpwitness.neighbours.relation import Pairs as Pairs
from dpwitness.neighbours.relation import Relation as Relation
from dpwitness.neighbours.relation import adjacent as adjacent
from dpwitness.neighbours.relation import adjacent_candidates as adjacent_candidates
from dpwitness.neighbours.relation import adjacent_unusual as adjacent_unusual
from dpwitness.neighbours.relation import adjacent_variations as adjacent_variations
from dpwitness.neighbours.relation import alternatives as alternatives
from dpwitness.neighbours.relation import as_relation as as_relation
from dpwitness.neighbours.relation import pairs as pairs
from dpwitness.neighbours.relation import proposed_pairs as proposed_pairs
from dpwitness.neighbours.relation import register_relation as register_relation
from dpwitness.neighbours.relation import relation_from_json as relation_from_json
from dpwitness.neighbours.relation import relation_to_json as relation_to_json
from dpwitness.neighbours.relation import require_adjacent as require_adjacent
from dpwitness.neighbours.relation import same_relation as same_relation
from dpwitness.neighbours.relation import smaller as smaller
from dpwitness.neighbours.relation import taken as taken
