"""The fields of evaluation in NIST SP 800-226 (2025), filled in from a result as far as possible."""

from typing import Final

from dpwitness.neighbours import Relation
from dpwitness.results.bound import Bound
from dpwitness.results.curve import Curve
from dpwitness.results.profile import Profile
from dpwitness.results.saved import Shown
from dpwitness.results.text import at_least
from dpwitness.results.verdict import NotRefuted, Violation

#: OTHER_FIELDS names the fields of an evaluation that no run of a mechanism can fill in.
OTHER_FIELDS: Final = (
    "Side channels: time, memory and power used by a run. Composition with other releases from the same data. Utility. "
    "Bias: systemic, human and statistical. Trust model: central, local or distributed. Query model: who may ask, and "
    "how often. Data security and access control. Data collection exposure."
)


def fields(result: Shown) -> list[tuple[str, str]]:
    """The fields of evaluation, each with the result's statement about it."""
    relation = None if result.witness is None else result.witness.relation
    adjacency = (
        "Not known: the result holds no relation."
        if relation is None
        else f"Neighbouring inputs: {relation.described:.200}. {_unit(relation)}"
    )
    return [
        ("Privacy parameter", _parameter(result)),
        ("Variant of differential privacy", _variant(result)),
        ("Unit of privacy", adjacency),
        ("Mechanism", result.call),
        ("Algorithm and its correctness", "Tested by running it, not proved. This report says what was found."),
        ("Implementation: finite precision", _precision(result)),
        ("Not evaluated, or not known to a test", OTHER_FIELDS),
    ]


def _unit(relation: Relation) -> str:
    if relation.unit is not None:
        return f"They differ in all records of one {relation.unit if isinstance(relation.unit, str) else 'unit'}."
    return "The unit that one record stands for (a person, a household, an event) is not known."


def _parameter(result: Shown) -> str:
    match result:
        case Violation():
            return f"Claimed: {result.claim}. Lower bound found: {result.exceeded}."
        case NotRefuted():
            return f"Claimed: {result.claim}. Lower bound found: {result.parameter} ≥ {at_least(result.lower_bound)}."
        case Bound():
            return f"Lower bound found: {result.parameter} ≥ {at_least(result.lower_bound)}. No claim was tested."
        case Curve() | Profile():
            return "No claim was tested." if result.claim is None else f"Claimed: {result.claim}."


def _variant(result: Shown) -> str:
    claim = result.witness.claim if isinstance(result, Bound) else result.claim
    return "Not stated: no claim was tested." if claim is None else f"{claim.short}, {claim.variant}."


def _precision(result: Shown) -> str:
    match result:
        case Violation() if result.by_bits:
            return "Refuted: the last bits of floating-point outcomes tell the inputs apart."
        case NotRefuted() if result.bits_refuted is not None:
            return "Refuted: the last bits of floating-point outcomes tell the inputs apart; see the warnings."
        case _:
            return "No finding in this result; that is no proof."
