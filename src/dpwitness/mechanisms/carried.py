"""What an object says of itself: its claim, its inputs; and what the user says in its place."""

import inspect
import math
import numbers
from dataclasses import dataclass
from typing import Any, cast

from dpwitness.claims import ApproxDP, Claim, is_claim
from dpwitness.errors import InvalidClaim, InvalidParameter
from dpwitness.neighbours import Pairs, pairs


def is_measurement(thing: Any) -> bool:
    """Whether it is OpenDP's; opendp is never imported for it."""
    return type(thing).__module__.startswith("opendp.") and hasattr(thing, "input_carrier_type")


def carried_claim(thing: Any, *, d_in: Any = None) -> ApproxDP | None:
    """Return the claim that an object carries: OpenDP's `map(d_in)`, diffprivlib's `.epsilon` and `.delta`; else None.

    `d_in`: the distance between neighbours that an OpenDP measurement's claim is for. Raises `InvalidClaim`.
    """
    if is_measurement(thing):
        if d_in is None:
            raise InvalidClaim(
                "an OpenDP measurement claims an ε for a distance between inputs: give d_in=…, or epsilon=…"
            )
        try:
            loss = thing.map(d_in)
        except Exception as error:  # whatever OpenDP raises for a distance of the wrong type or sign
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise InvalidClaim(f"d_in={d_in!r}: the measurement gives no loss for it ({said})") from error
        measure = str(thing.output_measure)
        if isinstance(loss, int | float) and measure.startswith("MaxDivergence"):
            return ApproxDP(float(loss))
        if isinstance(loss, tuple) and len(loss) == 2:
            return ApproxDP(float(loss[0]), float(loss[1]))
        raise InvalidClaim(
            f"the measurement states its loss as {measure} ({loss!r}), not as (ε, δ): give epsilon=… and delta=…, "
            "or convert it with OpenDP's make_fix_delta"
        )
    epsilon = getattr(thing, "epsilon", None)
    if (callable(thing) and inspect.isroutine(thing)) or not isinstance(epsilon, numbers.Real):
        return None
    delta = getattr(thing, "delta", 0.0)
    return ApproxDP(float(epsilon), float(delta) if isinstance(delta, numbers.Real) else 0.0)


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
    claim: Claim | float | None = None,
    d_in: Any = None,
) -> Stated:
    """What is said of a mechanism: as given, else as the object carries it.

    `epsilon` is the mechanism's own parameter and the claim; `claim` is the claim alone. What is not given of ε and δ
    comes from the object. Raises `InvalidClaim` where there is no claim, and `InvalidParameter` for a distance `d_in`
    that is given to something else than an OpenDP measurement.
    """
    name = getattr(thing, "__name__", type(thing).__name__)
    if d_in is not None and not is_measurement(thing):
        raise InvalidParameter(f"d_in={d_in!r} is for OpenDP measurements, and {name} is none: leave it out")
    whole_claim = claim if is_claim(claim) else None
    for key, value in (("epsilon", epsilon), ("claim", claim)):
        if (
            value is not None
            and value is not whole_claim
            and (isinstance(value, bool) or not isinstance(value, numbers.Real))
        ):
            raise InvalidClaim(f"{key}={value!r} must be a number")
    if epsilon is not None and not 0 < epsilon <= 700:
        raise InvalidClaim(f"epsilon={epsilon!r} must be positive and finite (at most 700)")
    if is_claim(claim):
        if delta is not None:
            raise InvalidClaim(f"claim={claim} says it all: leave delta={delta!r} out")
        return Stated(claim=claim, epsilon=None if epsilon is None else float(epsilon), delta=None)
    given = cast("float | None", epsilon if claim is None else claim)  # a number: it is no claim
    if given is None:
        carried = carried_claim(thing, d_in=d_in)
        if carried is None:
            raise InvalidClaim(f"no claim to test: give epsilon=…, {name} carries none itself")
        tested = ApproxDP(carried.epsilon, carried.delta if delta is None else delta)
    else:
        tested = ApproxDP(given, _carried_delta(thing, d_in) if delta is None else delta)
    return Stated(claim=tested, epsilon=None if epsilon is None else float(epsilon), delta=delta)


def _carried_delta(thing: Any, d_in: Any) -> float:
    """The δ that an object carries, for a claim whose ε was given; 0 where it carries none.

    Raises `InvalidClaim` for a measurement that is not pure and cannot say its δ: tested at δ = 0 it would be accused
    of what it never claimed.
    """
    if not is_measurement(thing):
        carried = carried_claim(thing)
        return 0.0 if carried is None else carried.delta
    measure = str(thing.output_measure)
    if measure.startswith("MaxDivergence"):
        return 0.0
    if d_in is None:
        raise InvalidClaim(f"the measurement's loss is {measure}, which is not ε alone: give delta=…, or d_in=…")
    return carried_claim(thing, d_in=d_in).delta  # type: ignore[union-attr]  # of a measurement there is one


def carried_neighbours(thing: Any) -> Pairs | None:
    """0 and the sensitivity, for an object that has one and randomises a number; else None."""
    sensitivity = getattr(thing, "sensitivity", None)
    if not (hasattr(thing, "randomise") or hasattr(thing, "add_noise")) or not isinstance(sensitivity, int | float):
        return None
    if not 0 < sensitivity < math.inf:
        return None
    return pairs((type(sensitivity)(0), sensitivity))  # int stays int: counts want whole numbers
