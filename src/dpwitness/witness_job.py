"""What replaying and shrinking share: the claim, the relation and the mechanism that a witness is judged by."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpwitness.adapters import Outcome as OutcomeFunction
from dpwitness.claim import Claim
from dpwitness.errors import InvalidParameter
from dpwitness.job import Job, prepare
from dpwitness.mechanism import Mechanism, takes
from dpwitness.neighbours import Data, Pairs, Relation, as_input
from dpwitness.witness import Witness

__all__ = ["check_parameters", "job_of", "relation_of", "replayed_claim"]


def replayed_claim(stated: Claim, claim: Claim | float | None, delta: float | None) -> Claim:
    """The claim of a witness, with what is given in its place."""
    if isinstance(claim, Claim):
        if delta is not None and delta != claim.delta:
            raise InvalidParameter(f"delta={delta!r} is not the δ of claim={claim}: give one of the two")
        return claim
    return Claim(epsilon=stated.epsilon if claim is None else claim, delta=stated.delta if delta is None else delta)


def relation_of(witness: Witness, neighbours: Relation | None, data: Any) -> tuple[Relation, Data | None]:
    """The relation and D that a witness is judged by: those given, else its own, else its pair alone.

    With a relation given, the witness's own data count for nothing: they would decide which lengths are adjacent.
    """
    given = None if data is None else as_input(data)
    if neighbours is not None:
        return neighbours, given
    if witness.relation is not None:
        return witness.relation, witness.data if given is None else given
    return Pairs((witness.pair,)), given


def job_of(
    witness: Witness,
    mechanism: Any,
    relation: Relation,
    data: Data | None,
    *,
    parameters: Mapping[str, Any],
    outcome: OutcomeFunction | None,
    seed: int,
    workers: int | None,
    time: float,
    reference: str | None = None,
) -> Job:
    """A job about a witness's pair: the mechanism is made ready on the pair, not on a candidate of another shape.

    `reference`: the name under which the mechanism was found; by default the witness's where the function is called so.
    """
    name = getattr(mechanism, "name", None) or getattr(mechanism, "__name__", None)
    named = witness.mechanism.rpartition(":")[2].rpartition(".")[2] == name
    reference = reference or (witness.mechanism if named else None)
    pair = Pairs((witness.pair,), relation.noun)
    job = prepare(mechanism, None, pair, None, parameters, outcome, seed, workers, time, reference)
    return replace(job, relation=relation, data=data)


def check_parameters(witness: Witness, mechanism: Any, own: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise `InvalidParameter` where a mechanism cannot be the one that a witness is about."""
    if isinstance(mechanism, Mechanism):
        return  # made ready elsewhere, with its parameters
    for name in witness.unreadable:
        if name not in given:
            raise InvalidParameter(
                f"the parameter {name}={own[name]!r:.80} of {witness.mechanism} is nothing that a file can hold: give "
                f"parameters={{{name!r}: …}}"
            )
    for name in own:
        if not takes(mechanism, name):
            shown = getattr(mechanism, "__name__", type(mechanism).__name__)
            raise InvalidParameter(
                f"{shown} has no parameter {name!r}, which the witness gives to {witness.mechanism}: replay it against "
                "a mechanism with the same parameters"
            )
