"""OpenDP: measurements, which state their privacy loss for a distance between inputs."""

import math
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from dpwitness.checks import brief
from dpwitness.claims import ZCDP, ApproxDP, Claim, PrivacyProfile
from dpwitness.errors import InvalidClaim, InvalidParameter
from dpwitness.frames import LAZY_POLARS, POLARS
from dpwitness.mechanisms.libraries.library import EPSILONS, Library, falling
from dpwitness.neighbours import Relation, alternatives

#: The feature of OpenDP that lets functions of the user be parts of a measurement.
USER_FEATURE: Final = "honest-but-curious"
#: ROUNDING_LOSS is the loss in nats below which a map gives rounding errors alone, as for datasets of one size at the
#: symmetric distance 1, which no two of these datasets have: every correct measurement would violate the claim.
ROUNDING_LOSS: Final = 1e-9
#: The beginnings of the names of metrics that count added and removed records.
ADDING_METRICS: Final = ("SymmetricDistance", "InsertDeleteDistance")
#: The carrier type of measurements on frames of Polars.
LAZY_CARRIER: Final = "LazyFrame"


class OpenDPLibrary(Library):
    """Measurements whose privacy loss is ε, ε at a fixed δ, a profile δ(ε), or the ρ of zCDP."""

    takes_distance = True

    def recognises(self, thing: object) -> bool:
        """Whether an object is a measurement."""
        return str(type(thing).__module__).startswith("opendp.") and hasattr(thing, "input_carrier_type")

    def function(self, thing: Any) -> Callable[..., object]:
        """Return a function that converts its input to the carrier type, and runs the measurement."""
        carrier = str(thing.input_carrier_type)
        if carrier == LAZY_CARRIER:
            return lambda value: thing(in_carrier(value, carrier)).collect()  # OpenDP lets it be collected once
        return lambda value: thing(in_carrier(value, carrier))

    def claim(self, thing: Any, d_in: object = None) -> Claim:
        """Return `map(d_in)` as a claim.

        Raises `InvalidClaim` without a distance, for a distance that no inputs have, and for a loss of another measure.

        A smoothed max-divergence, which is a curve δ(ε), becomes a privacy profile; δ-approximate ρ-zCDP the profile
        that it implies.
        """
        if d_in is None:
            raise InvalidClaim(
                "an OpenDP measurement claims an ε for a distance between inputs: give d_in=…, or epsilon=…"
            )
        counts = str(getattr(thing, "input_distance_type", ""))[:1] in ("i", "u")  # 1.0 records are 1
        try:
            loss = thing.map(int(d_in) if counts and isinstance(d_in, float) and d_in.is_integer() else d_in)
        except Exception as error:  # whatever OpenDP raises for a distance of the wrong type or sign
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise InvalidClaim(f"d_in={d_in!r}: the measurement gives no loss for it ({reason})") from error
        epsilon = loss[0] if isinstance(loss, tuple) else loss  # or ρ; a profile is neither
        if isinstance(epsilon, int | float) and epsilon < ROUNDING_LOSS and d_in:
            raise InvalidClaim(
                f"d_in={d_in!r}: the measurement's map is {epsilon:.3g} there, since no two inputs have this distance: "
                "where one record is replaced, give d_in=2"
            )
        if isinstance(loss, int | float) and is_pure(thing):
            return ApproxDP(float(loss))
        measure = str(thing.output_measure)
        if measure.startswith("Approximate(MaxDivergence"):
            return ApproxDP(float(loss[0]), float(loss[1]))
        if measure.startswith("ZeroConcentratedDivergence"):
            return ZCDP(float(loss))
        if measure.startswith("Approximate(ZeroConcentratedDivergence"):
            rho, delta = map(float, loss)
            return ZCDP(rho) if delta == 0 else _profile(partial(delta_of_approximate_zcdp, rho, delta))
        if measure.startswith("SmoothedMaxDivergence"):
            return _profile(loss.delta)
        raise InvalidClaim(
            f"the measurement states its loss as {measure} ({loss!r}), which is not a claim by itself: give claim=…, "
            "such as RenyiDP(alpha, measurement.map(d_in)(alpha)), or epsilon=… and delta=…"
        )

    def delta(self, thing: Any, d_in: object = None) -> float:
        """The δ of the measurement at the distance `d_in`; 0.0 for a measurement of pure DP, which needs no `d_in`."""
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

    def require_distance(self, thing: Any, d_in: object, relation: Relation) -> None:
        """Raise `InvalidClaim` for a distance below 2 where a record is replaced, that is, removed and added."""
        metric = str(getattr(thing, "input_metric", ""))
        replaced = any(getattr(one, "adjacency", None) == "replace-one" for one in alternatives(relation))
        if replaced and metric.startswith(ADDING_METRICS) and isinstance(d_in, int | float) and d_in < 2:
            raise InvalidClaim(
                f"d_in={d_in!r}: inputs of which one record is replaced have the distance 2 in {metric}: give d_in=2, "
                "or adjacency='add-remove'"
            )

    def may_remember(self, thing: object) -> bool:
        """Whether a function of the user may be part of a measurement; OpenDP's own parts keep no state."""
        features = getattr(sys.modules.get("opendp.mod"), "GLOBAL_FEATURES", (USER_FEATURE,))
        return USER_FEATURE in features


def delta_of_approximate_zcdp(rho: float, delta: float, epsilon: float) -> float:
    """The δ at ε that δ-approximate ρ-zCDP implies (Bun & Steinke 2016, Proposition 1.3 and Lemma 8.8).

    ρ and ε in nats: δ + (1 − δ)·exp(−(ε − ρ)²/(4ρ)) for ε above ρ, else 1.
    """
    if epsilon <= rho:
        return 1.0
    return delta + (1 - delta) * math.exp(-((epsilon - rho) ** 2) / (4 * rho)) if rho else delta


def _profile(delta: Callable[[float], float]) -> PrivacyProfile:
    """The privacy profile of a function δ(ε) at `EPSILONS`; `falling` drops steps up, which come from rounding."""
    return PrivacyProfile(falling((epsilon, float(delta(epsilon))) for epsilon in EPSILONS))


def is_pure(measurement: Any) -> bool:
    """Whether a measurement's privacy loss is ε alone."""
    return str(measurement.output_measure).startswith("MaxDivergence")


def in_carrier(value: Any, carrier: str) -> object:
    """An input converted to a carrier type of OpenDP; unchanged for an unknown carrier type.

    `carrier`: such as f64, bool, String, Vec<i32>, HashMap<String, i32>, LazyFrame, or BitVector, which is bits packed
    into bytes, the lowest bit first. None becomes NaN as a float, a DataFrame of Polars a LazyFrame. Raises
    `InvalidParameter` for several values in the place of one, for one value in the place of a list, and for any object
    but a frame of Polars in the place of a LazyFrame.
    """
    if carrier == LAZY_CARRIER:
        if not (POLARS.holds(value) or LAZY_POLARS.holds(value)):
            raise InvalidParameter(
                f"the measurement takes a LazyFrame of Polars, not a {type(value).__name__}: "
                "use records(…, form='polars-lazy')"
            )
        return value.lazy()
    if carrier.startswith("Vec<"):
        entry = carrier.removeprefix("Vec<").removesuffix(">")
        if value is None or np.isscalar(value):
            raise InvalidParameter(f"the measurement takes a list ({carrier}), not {brief(value)}: give lists")
        numbers = isinstance(value, np.ndarray)
        return [in_carrier(one, entry) for one in (np.atleast_1d(value).tolist() if numbers else value)]
    if carrier.startswith("HashMap<") and isinstance(value, Mapping):
        key, _, entry = carrier.removeprefix("HashMap<").removesuffix(">").partition(", ")
        return {in_carrier(name, key): in_carrier(one, entry) for name, one in value.items()}
    if carrier == "BitVector":
        bits = isinstance(value, bytes | bytearray)
        return value if bits else np.packbits(np.atleast_1d(value).astype(bool), bitorder="little").tobytes()
    kind = scalar_kind(carrier)
    if kind is None:
        return value
    if np.size(value) != 1:
        raise InvalidParameter(f"the measurement takes one value ({carrier}), not {np.size(value)}: use queries(1)")
    return math.nan if value is None and kind is float else kind(np.asarray(value).item())


def scalar_kind(carrier: str) -> Callable[[Any], Any] | None:
    """The function that converts a value to a carrier type of single values; None for any other carrier type."""
    known: dict[str, Callable[[Any], Any]] = {"f32": float, "f64": float, "bool": bool, "String": str}
    return known.get(carrier, int if re.fullmatch(r"[iu](\d+|size)", carrier) else None)


#: The library of OpenDP's measurements.
LIBRARY = OpenDPLibrary()
