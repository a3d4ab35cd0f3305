"""The protocol of DP libraries: the function, the claim and the relation of a library's object."""

import inspect
import math
import numbers
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from dpwitness.claims import ApproxDP, Claim
from dpwitness.neighbours import Relation, pairs

#: The values of ε (nats) at which an object's privacy profile δ(ε) is read.
EPSILONS: Final = (0.0, *np.geomspace(0.05, 25.0, 40).tolist())
#: The largest ε of a claim, in nats: above 709 nats e^ε overflows a double.
LARGEST_EPSILON: Final = 700.0


class Library:
    """The methods by which objects of a library become mechanisms.

    Each library has a derived class. The default of a method is right for a callable object with the attributes
    `epsilon` (nats) and `delta`. No method imports the library: a user who gives an object of it has imported it.
    """

    #: Whether the claims of the library's objects hold for a distance between inputs, given as `d_in`.
    takes_distance = False

    def recognises(self, thing: object) -> bool:
        """Whether an object belongs to this library."""
        raise NotImplementedError

    def function(self, thing: Any) -> Callable[..., object]:
        """Return the function that runs the object once on an input."""
        return thing  # type: ignore[no-any-return]  # the object itself is callable

    def claim(self, thing: object, d_in: object = None) -> Claim | None:
        """Return the object's claim; None for an object without a claim.

        Parameters
        ----------
        thing
            The object.
        d_in
            The distance between neighbours for which the claim holds; None unless `takes_distance`.

        Raises
        ------
        InvalidClaim
            For an invalid claim, or a claim in a measure of privacy loss that dpwitness cannot test.
        """
        epsilon, delta = getattr(thing, "epsilon", None), getattr(thing, "delta", 0.0)
        if inspect.isroutine(thing) or not isinstance(epsilon, numbers.Real):
            return None
        return ApproxDP(float(epsilon), float(delta) if isinstance(delta, numbers.Real) else 0.0)

    def delta(self, thing: object, d_in: object = None) -> float:
        """Return the object's δ, for a test whose ε the user gave; 0.0 without a claim.

        Raises `InvalidClaim` if δ is unknown: a test at δ = 0 could refute a claim that the object does not make.
        """
        claim = self.claim(thing, d_in)
        return 0.0 if claim is None else float(getattr(claim, "delta", 0.0))

    def require_distance(self, thing: object, d_in: object, relation: Relation) -> None:
        """Raise `InvalidClaim` where neighbours under a relation are farther apart than the distance `d_in`."""

    def may_remember(self, thing: object) -> bool:
        """Whether an object may keep noise from one run to the next."""
        return True

    def neighbours(self, thing: object) -> Relation | None:
        """Return the relation of neighbours for which the claim holds; None if the object does not state it."""
        return None


def falling(pairs: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The pairs (ε, δ) that claim more than pairs with a smaller ε, whose δ holds for every larger ε too."""
    profile: list[tuple[float, float]] = []
    least = 1.0
    for epsilon, delta in sorted((max(e, 0.0), max(d, 0.0)) for e, d in pairs if not math.isnan(e + d)):
        if epsilon <= LARGEST_EPSILON and delta < least:
            least = delta
            profile.append((epsilon, delta))
    return profile


def of_sensitivity(thing: object) -> Relation | None:
    """The relation of the one pair (0, sensitivity), for an object that randomises a number; else None."""
    sensitivity = getattr(thing, "sensitivity", None)
    if not isinstance(sensitivity, int | float) or not 0 < sensitivity < math.inf:
        return None
    return pairs((type(sensitivity)(0), sensitivity))  # integers stay integers, for objects that randomise counts


def number(value: object) -> object:
    """The entry of an array with one entry; any other value as it is."""
    return value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
