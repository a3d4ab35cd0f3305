"""Claims read off privacy accountants: what dp-accounting's and Opacus' say of a mechanism, as a privacy profile.

An accountant is any object that has `get_delta(epsilon)` or `get_epsilon(delta)`: `RdpAccountant` and `PLDAccountant`
of dp-accounting have both, `RDPAccountant`, `GaussianAccountant` and `PRVAccountant` of Opacus the latter. What it
answers is claimed for every ε, or δ, that is asked for here: the pairs make a `PrivacyProfile`. Which inputs are
neighbours is for the user to say; Opacus' accountants speak of adding or removing one record. No library is imported.
"""

import inspect
import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, TypeGuard

import numpy as np

from dpwitness.claims import Claim, PrivacyProfile, is_claim
from dpwitness.errors import InvalidClaim
from dpwitness.mechanisms.claim_text import claim_of_text

__all__ = ["Accountant", "as_claim", "claim_of"]

#: ε in nats at which δ is asked for, and δ at which ε is, where δ cannot be: some take a second for each.
EPSILONS: Final = (0.0, *np.geomspace(0.05, 25.0, 40).tolist())
DELTAS: Final = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
#: The largest ε of a profile.
LARGEST: Final = 700.0


class Accountant(Protocol):
    """What gives an ε (nats) for a δ; some give a δ for an ε, too."""

    def get_epsilon(self, delta: float, /) -> float:
        """The ε at which the mechanism is (ε, δ)-differentially private."""


def is_accountant(thing: object) -> TypeGuard[Accountant]:
    """Whether an object answers as an accountant does, and is no claim, number or function itself."""
    if is_claim(thing) or inspect.isclass(thing) or inspect.isroutine(thing):
        return False
    return callable(getattr(thing, "get_epsilon", None)) or callable(getattr(thing, "get_delta", None))


def as_claim(claim: Claim | Accountant | float | str | None) -> Claim | float | None:
    """What was given as a claim, a text read, an accountant by its profile. Raises `InvalidClaim`."""
    if isinstance(claim, str):
        return claim_of_text(claim)
    return claim_of(claim) if is_accountant(claim) else claim  # type: ignore[return-value]  # the rest of the union


def claim_of(accountant: Accountant) -> PrivacyProfile:
    """The privacy profile that an accountant states.

    Parameters
    ----------
    accountant
        An object with `get_delta(epsilon)`, which is asked for δ at 41 ε from 0 to 25 nats; else with
        `get_epsilon(delta)`, asked for ε at 10 δ from 0.3 to 10⁻¹⁰. Where it raises an error it claims nothing.

    Raises
    ------
    InvalidClaim
        Where it claims nothing at each of them, or perfect privacy, as those do that nothing was composed with.
    """
    ask: Callable[[float], Any] | None = getattr(accountant, "get_delta", None)
    at: tuple[float, ...] = EPSILONS
    if not callable(ask):
        ask, at = accountant.get_epsilon, DELTAS
    answers, said = [], ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as that the best order is the largest of those that were tried
        for value in at:
            try:
                answers.append((value, float(ask(value))))
            except Exception as error:  # some raise where the δ asked for is more than they need at ε = 0
                said = f"{type(error).__name__}: {error}".splitlines()[0]
    pairs = answers if at is EPSILONS else [(epsilon, delta) for delta, epsilon in answers]
    kept = _falling(pairs)
    if not kept:
        because = f" ({said})" if said else ""
        raise InvalidClaim(
            f"claim={type(accountant).__name__}: it states no (ε, δ) with ε up to {LARGEST:g} that claims anything"
            + because
        )
    epsilon, delta = kept[0]
    if epsilon == 0 and delta <= DELTAS[-1]:
        raise InvalidClaim(
            f"claim={type(accountant).__name__}: it states ε = 0 at δ = {delta:g}, as an accountant does that knows of "
            "no runs: let it account for the mechanism first, or give claim=0 if that is what you claim"
        )
    return PrivacyProfile(kept)


def _falling(pairs: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The pairs that claim something, with δ falling in ε: a pair claims as much of every larger ε."""
    kept: list[tuple[float, float]] = []
    least = 1.0
    for epsilon, delta in sorted((max(e, 0.0), max(d, 0.0)) for e, d in pairs if not math.isnan(e + d)):
        if epsilon <= LARGEST and delta < least:
            least = delta
            kept.append((epsilon, delta))
    return kept
