"""The protocol of libraries: how an object of a DP library is run, its claim, and its neighbours."""

import inspect
import math
import numbers
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from dpwitness.claims import ApproxDP, Claim
from dpwitness.neighbours import Relation, pairs

#: ε in nats at which a privacy profile is read off an object.
EPSILONS: Final = (0.0, *np.geomspace(0.05, 25.0, 40).tolist())
#: The largest ε of a profile, in nats.
LARGEST_EPSILON: Final = 700.0


class Library:
    """How the objects of one library are taken as mechanisms.

    A library is a class derived from this one. Every method has a default, which is right for a callable object that
    says its ε and δ (nats) in the attributes `epsilon` and `delta`, and its sensitivity in `sensitivity`. None of them
    imports the library: a user who gives an object of it has imported it.
    """

    #: Whether a claim of its objects is for a distance between inputs, given as `d_in`.
    takes_distance = False

    def recognises(self, thing: object) -> bool:
        """Whether an object is of this library."""
        raise NotImplementedError

    def function(self, thing: Any) -> Callable[..., object]:
        """Return what runs the object once: a function of the input, a number or an array."""
        return thing  # type: ignore[no-any-return]  # the object itself is callable

    def claim(self, thing: object, d_in: object = None) -> Claim | None:
        """Return the object's claim; None where it makes none.

        Parameters
        ----------
        thing
            The object.
        d_in
            The distance between neighbours that the claim is for, where `takes_distance`.

        Raises
        ------
        InvalidClaim
            For a claim that makes no sense, or that is stated in a measure of privacy loss that cannot be tested.
        """
        epsilon, delta = getattr(thing, "epsilon", None), getattr(thing, "delta", 0.0)
        if inspect.isroutine(thing) or not isinstance(epsilon, numbers.Real):
            return None
        return ApproxDP(float(epsilon), float(delta) if isinstance(delta, numbers.Real) else 0.0)

    def delta(self, thing: object, d_in: object = None) -> float:
        """Return the δ that an object claims, for a test whose ε was given; 0.0 where it claims none.

        Raises `InvalidClaim` where it is not known: a test at δ = 0 would refute what the object never claimed.
        """
        claim = self.claim(thing, d_in)
        return 0.0 if claim is None else float(getattr(claim, "delta", 0.0))

    def may_remember(self, thing: object) -> bool:
        """Whether an object may keep something from run to run, as noise that was drawn once."""
        return True

    def neighbours(self, thing: object) -> Relation | None:
        """Return which inputs the object's claim calls neighbours; None where it does not say."""
        return None


def falling(pairs: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The pairs (ε, δ) that claim something, with δ falling in ε: a pair claims as much of every larger ε."""
    profile: list[tuple[float, float]] = []
    least = 1.0
    for epsilon, delta in sorted((max(e, 0.0), max(d, 0.0)) for e, d in pairs if not math.isnan(e + d)):
        if epsilon <= LARGEST_EPSILON and delta < least:
            least = delta
            profile.append((epsilon, delta))
    return profile


def of_sensitivity(thing: object) -> Relation | None:
    """Return the pair of 0 and an object's sensitivity, for one that randomises a number; None without any."""
    sensitivity = getattr(thing, "sensitivity", None)
    if not isinstance(sensitivity, int | float) or not 0 < sensitivity < math.inf:
        return None
    return pairs((type(sensitivity)(0), sensitivity))  # int stays int: counts want whole numbers


def number(value: object) -> object:
    """Return an array of one entry as that entry, and anything else as it is."""
    return value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
