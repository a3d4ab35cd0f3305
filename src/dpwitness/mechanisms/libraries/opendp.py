"""OpenDP: measurements, which state their privacy loss for a distance between inputs."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dpwitness.claims import ZCDP, ApproxDP, Claim, PrivacyProfile
from dpwitness.errors import InvalidClaim, InvalidParameter
from dpwitness.mechanisms.libraries.library import Library

#: ε in nats at which a measurement's profile is read off.
EPSILONS: Final = (0.0, *np.geomspace(0.05, 25.0, 40).tolist())


class OpenDP(Library):
    """Measurements whose output measure is ε, ε at a fixed δ, a profile δ(ε), or ρ."""

    takes_distance = True

    def recognises(self, thing: object) -> bool:
        """Whether it is a measurement."""
        return type(thing).__module__.startswith("opendp.") and hasattr(thing, "input_carrier_type")

    def function(self, thing: Any) -> Callable[..., Any]:
        """Return the measurement, of an input of its carrier type."""
        carrier = str(thing.input_carrier_type)

        def measurement(value: Any) -> Any:
            return thing(in_carrier(value, carrier))

        return measurement

    def claim(self, thing: Any, d_in: Any = None) -> Claim:
        """Return `map(d_in)`. Raises `InvalidClaim` without a distance, and for a loss that is not one claim.

        Of a smoothed max-divergence, which is a whole curve δ(ε), pairs are read off.
        """
        if d_in is None:
            raise InvalidClaim(
                "an OpenDP measurement claims an ε for a distance between inputs: give d_in=…, or epsilon=…"
            )
        try:
            loss = thing.map(d_in)
        except Exception as error:  # whatever OpenDP raises for a distance of the wrong type or sign
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise InvalidClaim(f"d_in={d_in!r}: the measurement gives no loss for it ({said})") from error
        if isinstance(loss, int | float) and is_pure(thing):
            return ApproxDP(float(loss))
        measure = str(thing.output_measure)
        if measure.startswith("Approximate(MaxDivergence"):
            return ApproxDP(float(loss[0]), float(loss[1]))
        if measure.startswith("ZeroConcentratedDivergence"):
            return ZCDP(float(loss))
        if measure.startswith("Approximate(ZeroConcentratedDivergence") and loss[1] == 0:
            return ZCDP(float(loss[0]))
        if measure.startswith("SmoothedMaxDivergence"):
            return profile_of(loss.delta)
        raise InvalidClaim(
            f"the measurement states its loss as {measure} ({loss!r}), which is no claim by itself: give claim=…, such "
            "as RenyiDP(alpha, measurement.map(d_in)(alpha)), or epsilon=… and delta=…"
        )

    def delta(self, thing: Any, d_in: Any = None) -> float:
        """Return 0.0 for a measure that has no δ; as in `Library` for all others."""
        if is_pure(thing):
            return 0.0
        if d_in is None:
            raise InvalidClaim(
                f"the measurement's loss is {thing.output_measure}, which is not ε alone: give delta=…, or d_in=…"
            )
        delta = getattr(self.claim(thing, d_in), "delta", None)
        if delta is None:
            raise InvalidClaim(f"the measurement's loss is {thing.output_measure}, which has no one δ: give delta=…")
        return float(delta)


def profile_of(delta: Callable[[float], float]) -> PrivacyProfile:
    """The privacy profile that a function gives at `EPSILONS`, without the pairs that allow everything."""
    pairs, least = [], 1.0
    for epsilon in EPSILONS:
        least = min(float(delta(epsilon)), least)  # δ falls; rounding may leave steps up
        if least < 1:
            pairs.append((epsilon, max(least, 0.0)))
    return PrivacyProfile(pairs)


def is_pure(measurement: Any) -> bool:
    """Whether a measurement's privacy loss is ε alone."""
    return str(measurement.output_measure).startswith("MaxDivergence")


def in_carrier(value: Any, carrier: str) -> Any:
    """Return an input of numbers, flags or texts as OpenDP wants it.

    `carrier`: its carrier type, such as f64, i32, bool or Vec<f64>. Raises `InvalidParameter` for any other.
    """
    entry = carrier.removeprefix("Vec<").removesuffix(">")
    kind: Callable[[Any], Any]
    if entry in ("f32", "f64"):
        kind = float
    elif entry == "bool":
        kind = bool
    elif entry == "String":
        kind = str
    elif entry[:1] in ("i", "u") and (entry[1:].isdigit() or entry[1:] == "size"):
        kind = int
    else:
        raise InvalidParameter(
            f"the measurement takes {carrier}, which is none of numbers or texts: wrap it in a function that makes it"
        )
    if carrier.startswith("Vec<"):
        return [kind(entry) for entry in np.atleast_1d(value).tolist()]
    if np.size(value) != 1:
        raise InvalidParameter(f"the measurement takes one value ({carrier}), not {np.size(value)}: use queries(1)")
    return kind(np.asarray(value).item())


LIBRARY = OpenDP()
