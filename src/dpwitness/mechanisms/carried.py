"""The claim to test: what the user says of a mechanism, and what an object says in its place."""

import numbers
from dataclasses import dataclass
from typing import Any, cast

from dpwitness.checks import brief
from dpwitness.claims import ApproxDP, Claim, is_claim
from dpwitness.errors import InvalidClaim, InvalidParameter
from dpwitness.mechanisms.accountants import Accountant, as_claim
from dpwitness.mechanisms.libraries import library_of
from dpwitness.mechanisms.libraries.library import Library
from dpwitness.targets import target_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """The claim to test, and what goes to parameters of the mechanism that are named after ε and δ."""

    claim: Claim
    epsilon: float | None  # nats; None leaves the mechanism its own
    delta: float | None


def stated_claim(
    thing: Any,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    claim: Claim | Accountant | float | str | None = None,
    d_in: Any = None,
) -> Stated:
    """Return what is claimed of a mechanism: as given, else as the object carries it.

    Parameters
    ----------
    thing
        The user's mechanism.
    epsilon
        The mechanism's own parameter, and the claim unless `claim` says another. Nats.
    delta
        The δ of both.
    claim
        The claim alone, or its ε in nats, a text as the command line has it, or an accountant that states it.
    d_in
        The distance between neighbours that the object's claim is for, where its library states claims for distances.

    Raises
    ------
    InvalidClaim
        Where there is no claim, or one that makes no sense.
    InvalidParameter
        For a distance `d_in` given to an object whose claim is for none.
    """
    claim, library = as_claim(claim), library_of(thing)
    name = getattr(thing, "__name__", type(thing).__name__)
    if d_in is not None and not library.takes_distance:
        raise InvalidParameter(f"d_in={brief(d_in)} is for OpenDP measurements, and {name} is none: leave it out")
    whole_claim = claim if is_claim(claim) else None
    for key, value in (("epsilon", epsilon), ("claim", claim)):
        if (
            value is not None
            and value is not whole_claim
            and (isinstance(value, bool) or not isinstance(value, numbers.Real))
        ):
            raise InvalidClaim(f"{key}={brief(value)} must be a number")
    if epsilon is not None and not 0 < epsilon <= 700:
        raise InvalidClaim(f"epsilon={brief(epsilon)} must be positive and finite (at most 700)")
    if is_claim(claim):
        if delta is not None:
            raise InvalidClaim(f"claim={claim} says it all: leave delta={brief(delta)} out")
        return Stated(claim=claim, epsilon=None if epsilon is None else float(epsilon), delta=None)
    given = cast("float | None", epsilon if claim is None else claim)  # a number: it is no claim
    if given is None:
        carried = library.claim(thing, d_in)
        if carried is None:
            raise InvalidClaim(f"no claim to test: give epsilon=…, {name} carries none itself")
        if delta is not None and getattr(carried, "delta", None) is None:
            raise InvalidClaim(
                f"{name} claims {carried}, which has no δ: leave delta={brief(delta)} out, or give epsilon=… too"
            )
        tested = carried if delta is None else ApproxDP(carried.parameter, delta)
    else:
        tested = _of_epsilon(thing, library, given, delta, d_in, own=claim is None)
    return Stated(claim=tested, epsilon=None if epsilon is None else float(epsilon), delta=delta)


def _of_epsilon(thing: Any, library: Library, epsilon: float, delta: float | None, d_in: Any, *, own: bool) -> Claim:
    """What a given ε claims; `own`: it is the mechanism's parameter too, and a target says what that means."""
    target = target_of(thing)
    if target is not None and target.states is not None and own and delta is None:
        return target.states(float(epsilon))
    if delta is None:
        delta = library.delta(thing, d_in) if target is None else target.delta
    return ApproxDP(epsilon, delta)
