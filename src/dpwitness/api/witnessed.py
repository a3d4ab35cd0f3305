"""What replay and shrink share: a witness as a problem of its own, about its pair."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpwitness.claims import Claim
from dpwitness.mechanisms.resolve import How
from dpwitness.neighbours import Data, Pairs, Relation, taken
from dpwitness.problem import Problem, Statement
from dpwitness.results.witness import Witness


def statement_of(
    witness: Witness, mechanism: Any, *, claim: Claim, parameters: Mapping[str, Any], reference: str | None, **more: Any
) -> Statement:
    """What a witness states: the mechanism is made ready on its pair, not on a candidate of another shape.

    `reference`: the name under which the mechanism was found; by default the witness's where the function is called so.
    """
    name = getattr(mechanism, "name", None) or getattr(mechanism, "__name__", None)
    named = witness.mechanism.rpartition(":")[2].rpartition(".")[2] == name
    pair = Pairs((witness.pair,), "value" if witness.relation is None else witness.relation.noun)
    return Statement(
        mechanism=mechanism, claim=claim, neighbours=pair, parameters=parameters,
        reference=reference or (witness.mechanism if named else None), **more,
    )  # fmt: skip


def rows_of(witness: Witness) -> How:
    """What a witness says of the rows that its event looks at."""
    return How(layout=witness.layout, by_position=witness.by_position, texts=witness.texts)


def about(problem: Problem, relation: Relation, data: Data | None) -> Problem:
    """The problem with the relation and the data by which its pair is judged."""
    return replace(problem, relation=relation, data=data)


def relation_of(witness: Witness, neighbours: Relation | None, data: Any) -> tuple[Relation, Data | None]:
    """The relation and D that a witness is judged by: those given, else its own, else its pair alone.

    With a relation given, the witness's own data count for nothing: they would decide which lengths are adjacent.
    """
    relation = neighbours or witness.relation or Pairs((witness.pair,))
    if data is not None:
        return relation, taken(relation, data)
    return relation, witness.data if neighbours is None else None
