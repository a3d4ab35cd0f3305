"""What replay and shrink share: a witness as a problem of its own, about its pair."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpwitness.checks import brief
from dpwitness.claims import Claim
from dpwitness.errors import InvalidWitness
from dpwitness.mechanisms.resolve import How
from dpwitness.neighbours import Data, Pairs, Relation, as_relation, taken
from dpwitness.problem import Problem, Statement
from dpwitness.results.profile import Profile
from dpwitness.results.result import WitnessedResult
from dpwitness.results.witness import Witness

#: What stands for a witness: one, a result that has one, its file, or what a file holds.
AnyWitness = Witness | WitnessedResult | Profile | str | os.PathLike[str] | Mapping[str, Any]


def as_witness(given: AnyWitness) -> Witness:
    """The witness that is meant. Raises `InvalidWitness` where there is none, and as `Witness.load`."""
    if isinstance(given, WitnessedResult | Profile):
        if given.witness is None:
            raise InvalidWitness(f"witness={brief(given)} has none: nothing was refuted")
        return given.witness
    if isinstance(given, str | os.PathLike):
        return Witness.load(given)
    if isinstance(given, Mapping):
        return Witness.from_json(given)
    if not isinstance(given, Witness):
        raise InvalidWitness(f"witness={brief(given)} must be a witness, a verdict, a file, or what a file holds")
    return given


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


def relation_of(
    witness: Witness, neighbours: Relation | Sequence[Any] | None, data: Any
) -> tuple[Relation, Data | None]:
    """The relation and D that a witness is judged by: those given, else its own, else its pair alone.

    With a relation given, the witness's own data count for nothing: they would decide which lengths are adjacent.
    """
    relation = witness.relation or Pairs((witness.pair,)) if neighbours is None else as_relation(neighbours)
    if data is not None:
        return relation, taken(relation, data)
    return relation, witness.data if neighbours is None else None
