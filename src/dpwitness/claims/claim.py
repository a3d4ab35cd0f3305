"""The protocol of claims: the pairs of event probabilities that a claim allows, and its half-planes.

Let p = P[M(D) ∈ S] and q = P[M(D′) ∈ S]. A claim confines (p, q) to a convex region p ≤ G(q), the intersection of
half-planes p ≤ slope·q + intercept. A test of one half-plane is a test of the claim.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, TypeAlias

from dpwitness.arrays import Floats
from dpwitness.checks import brief, number
from dpwitness.errors import InvalidClaim

#: Numbers is a number or an array of numbers.
Numbers: TypeAlias = float | Floats

#: LARGEST_PARAMETER is the largest parameter of a claim, in nats or standard deviations: e^700 is nearly the largest
#: double, and one run tells two Gaussians 700 standard deviations apart from each other.
LARGEST_PARAMETER: Final = 700.0


@dataclass(frozen=True, slots=True)
class HalfPlane:
    """The pairs (p, q) with p ≤ slope·q + intercept, or a half-plane for each entry of two arrays."""

    slope: Any  # a number, or an array; slope + intercept is at least 1, as every claim allows p = q = 1
    intercept: Any = 0.0


class Claim(Protocol):
    """A privacy claim, a region of pairs of probabilities, as a member of a family with one parameter.

    A larger parameter allows more: the region of `at(x)` lies in the region of `at(y)` for x ≤ y.
    """

    __slots__ = ()

    kind: ClassVar[str]  # the claim's name in JSON
    symbol: ClassVar[str]  # the field's sign for the parameter, such as ε
    curved: ClassVar[bool]  # whether the best half-plane depends on the estimate: the region is not one half-plane

    @property
    def parameter(self) -> float:
        """The claim's value of its family's parameter, such as ε in nats for (ε, δ)-differential privacy at its δ."""

    def at(self, parameter: float) -> "Claim":
        """The claim of the same family with another parameter."""

    def largest(self, q: float) -> float:
        """G(q): the largest probability under D that the claim allows if the probability under D′ is q."""

    def smallest(self, p: float, parameter: float) -> float:
        """The smallest probability under D′ that `at(parameter)` allows for probability p under D: the inverse of G."""

    def reached(self, p: Numbers, q: Numbers) -> Numbers:
        """The smallest parameter of the family that allows (p, q), or infinity. Arguments broadcast."""

    def half_plane(self, p: Numbers | None = None, q: Numbers | None = None) -> HalfPlane:
        """A half-plane that contains the region, for every estimate (p, q).

        For an estimate outside the region it is the half-plane against which evidence grows fastest; for an estimate
        inside, or without an estimate, it is any supporting half-plane. Arguments broadcast.
        """

    def half_planes(self, parameters: Floats, p: float | None = None, q: float | None = None) -> HalfPlane:
        """The half-planes of `at(x)` for an array of x, as arrays of its shape; each contains the region of `at(x)`."""

    def __str__(self) -> str:
        """The claim as text."""

    def __hash__(self) -> int:
        """The hash of the claim's value."""
        return object.__hash__(self)

    @property
    def short(self) -> str:
        """The claim as a property of a mechanism: "0.7-DP"."""

    @property
    def variant(self) -> str:
        """The variant of differential privacy, as reports name it."""
        return f"of the kind {self.kind}"

    @property
    def condition(self) -> str:
        """The values that the family holds fixed, for a sentence about its parameter: " at δ = 1e-05"; may be empty."""
        return ""

    @property
    def shown_by_one_event(self) -> bool:
        """Whether noise that exactly meets the claim shows the whole parameter in events of any probability.

        Laplace noise and randomized response show ε, Gaussian noise shows μ. For other claims a single event shows a
        share of the parameter, most of which may lie in rarer events.
        """
        return False

    def largest_order(self, probability: float) -> float | None:
        """The order from which on events rarer than `probability` on D make up most of a divergence, or None."""
        return None

    def tail(self, probability: float) -> str:
        """A sentence on the events rarer than `probability` on D, which the runs cannot show; may be empty."""
        return f"no single event rarer than {probability:.3g} on D could have refuted it"


def in_range(claim: object, name: str, least: float, most: float, *, above: bool = False) -> None:
    """Convert the field `name` of a claim to a float. Raises `InvalidClaim` for a value outside [least, most].

    `above`: whether `least` itself is outside too.
    """
    value = number(name, getattr(claim, name), InvalidClaim)
    if not (least < value if above else least <= value) or not value <= most:
        limits = f"above {least:g} and at most {most:g}" if above else f"from {least:g} to {most:g}"
        raise InvalidClaim(f"{name}={value!r} must be a number {limits}")
    object.__setattr__(claim, name, value + 0.0)  # a NumPy scalar is no JSON value; −0.0 + 0.0 is 0.0


def shown(value: float) -> str:
    """The number in six digits, or in all digits if six would show 1 for another number."""
    digits = f"{value:g}"
    return repr(value) if digits == "1" and value != 1 else digits


def points_of(value: Iterable[Iterable[float]]) -> list[tuple[float, float]]:
    """The value as a list of pairs of numbers, at least one, with distinct first entries. Raises `InvalidClaim`."""
    try:
        pairs = [tuple(point) for point in value]
    except TypeError as error:
        raise InvalidClaim(f"points={brief(value)} must be a list of pairs of numbers") from error
    if not pairs:
        raise InvalidClaim("points=[] must hold at least one pair of numbers")
    for pair in pairs:
        if len(pair) != 2:
            raise InvalidClaim(f"points: {brief(pair)} must be a pair of numbers")
    values: dict[float, float] = {}
    for pair in pairs:
        x, y = (number("points", one, InvalidClaim) for one in pair)
        if values.setdefault(x, y) != y:
            raise InvalidClaim(f"points: two values at {x!r}, {values[x]!r} and {y!r}: give one")
    return list(values.items())
