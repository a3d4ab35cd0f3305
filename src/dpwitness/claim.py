"""What a mechanism is said to satisfy."""

import math
import numbers
from dataclasses import dataclass

from dpwitness.errors import InvalidClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """(ε, δ)-differential privacy: P(M(D)∈S) ≤ e^ε·P(M(D′)∈S) + δ for all neighbours and all events S.

    Raises `InvalidClaim` unless both are numbers, 0 ≤ ε ≤ 700 and 0 ≤ δ < 1.
    """

    epsilon: float  # nats
    delta: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise InvalidClaim(f"{name}={value!r} must be a number")
            try:
                object.__setattr__(self, name, float(value))  # a NumPy scalar is no JSON value
            except OverflowError as error:
                raise InvalidClaim(f"{name}={value!r:.80} is too large") from error
        # Beyond e^700 a double overflows; no claim of that size says anything.
        if not 0 <= self.epsilon <= 700:
            raise InvalidClaim(f"epsilon={self.epsilon!r} must be a number from 0 to 700")
        if not 0 <= self.delta < 1:
            raise InvalidClaim(f"delta={self.delta!r} must be at least 0 and below 1")

    @property
    def ratio(self) -> float:
        """e^ε."""
        return math.exp(self.epsilon)

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}" if self.delta == 0 else f"(ε = {self.epsilon:g}, δ = {self.delta:g})"
