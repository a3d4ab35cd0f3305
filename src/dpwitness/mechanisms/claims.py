"""The claim to test: the user's, a claim, a number, a text or an accountant, or else the claim of the object."""

import inspect
import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeGuard, cast

from dpwitness.checks import brief, class_and_text, finite, json_value, near
from dpwitness.claims import (
    ZCDP,
    ApproxDP,
    Claim,
    GaussianDP,
    PrivacyProfile,
    RenyiDP,
    TradeOff,
    claim_from_json,
    is_claim,
    require_claim,
)
from dpwitness.errors import InvalidClaim, InvalidParameter
from dpwitness.files import read_text, shown
from dpwitness.mechanisms.libraries import library_of
from dpwitness.mechanisms.libraries.library import EPSILONS, LARGEST_EPSILON, Library, falling
from dpwitness.mechanisms.signature import name_of
from dpwitness.targets import target_of

#: The forms of a claim as text, for messages.
CLAIM_TEXTS: Final = "1, 1,1e-5, zcdp:0.5, gdp:1.0, rdp:8,0.4, profile:FILE or tradeoff:FILE"
#: The classes of claims whose texts hold numbers, by the text's prefix.
NUMBER_CLAIMS: Final[dict[str, Callable[..., Claim]]] = {
    "": ApproxDP, "dp": ApproxDP, "zcdp": ZCDP, "gdp": GaussianDP, "rdp": RenyiDP,
}  # fmt: skip
#: The classes of claims whose texts name a file of pairs, by the text's prefix.
FILE_CLAIMS: Final[dict[str, Callable[[Any], Claim]]] = {"profile": PrivacyProfile, "tradeoff": TradeOff}


def claim_of_text(text: str) -> float | Claim:
    """The claim that a text states (see `CLAIM_TEXTS`), or ε in nats for a text with one number.

    A file holds JSON: a list of pairs, or a claim as in a witness file. Raises `InvalidClaim`, and `BadInput` for a
    file that cannot be read.
    """
    kind, colon, rest = text.partition(":") if ":" in text else ("", "", text)
    if colon and kind in FILE_CLAIMS:
        return _of_file(kind, rest)
    if kind not in NUMBER_CLAIMS or (colon and not kind):
        raise InvalidClaim(
            f"claim={brief(text)} must be {CLAIM_TEXTS}{near(kind, filter(None, (*NUMBER_CLAIMS, *FILE_CLAIMS)))}"
        )
    values = []
    for part in rest.split(","):
        try:
            values.append(finite("", float(part)))
        except ValueError as error:
            raise InvalidClaim(
                f"claim={brief(text)}: {brief(part)} must be a finite number; a claim is {CLAIM_TEXTS}"
            ) from error
    if not kind and len(values) == 1:
        return values[0]
    if len(values) not in {"zcdp": (1,), "gdp": (1,), "dp": (1, 2)}.get(kind, (2,)):
        raise InvalidClaim(f"claim={brief(text)} must be {CLAIM_TEXTS}")
    return NUMBER_CLAIMS[kind](*values)


def _of_file(kind: str, path: str) -> Claim:
    content = read_text(path)
    try:
        value = json_value(content)
    except ValueError as error:
        raise InvalidClaim(f"{shown(path)} is not JSON: {error}") from error
    if not (isinstance(value, list) or (isinstance(value, dict) and "verdict" not in value)):
        raise InvalidClaim(
            f"{shown(path)} must hold a list of pairs of numbers in JSON, such as [[0.5, 0.01], [1, 1e-5]], "
            "or a claim as a witness holds it, not a result of dpwitness"
        )
    try:
        return claim_from_json(value) if isinstance(value, dict) else FILE_CLAIMS[kind](value)
    except InvalidClaim as error:
        raise InvalidClaim(f"{shown(path)}: {error}") from error


#: The values of δ at which an accountant without `get_delta` gives ε; few, as some accountants take 1 s for each value.
ASKED_DELTAS: Final = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)


class Accountant(Protocol):
    """An object that gives ε (nats) for δ, as `RDPAccountant`, `GaussianAccountant` and `PRVAccountant` of Opacus do.

    `RdpAccountant` and `PLDAccountant` of dp-accounting also give δ for ε. The user states which inputs are neighbours;
    Opacus' accountants take add/remove of one record. No library is imported.
    """

    def get_epsilon(self, delta: float, /) -> float:
        """The ε (nats) at which the mechanism is (ε, δ)-differentially private."""


def is_accountant(thing: object) -> TypeGuard[Accountant]:
    """Whether an object has the methods of an accountant and is not a claim, a class or a function."""
    if is_claim(thing) or inspect.isclass(thing) or inspect.isroutine(thing):
        return False
    return callable(getattr(thing, "get_epsilon", None)) or callable(getattr(thing, "get_delta", None))


def claim_of(accountant: Accountant) -> PrivacyProfile:
    """The privacy profile that an accountant states.

    `get_delta(epsilon)` gives δ at 41 values of ε from 0 to 25 nats; an accountant without it gives ε by
    `get_epsilon(delta)` at 10 values of δ from 0.3 to 10⁻¹⁰. A value for which the accountant raises an error is left
    out. Raises `InvalidClaim` if no pair is left, and for perfect privacy, stated by an accountant without a mechanism.
    """
    ask: Callable[[float], Any] | None = getattr(accountant, "get_delta", None)
    at: tuple[float, ...] = EPSILONS
    if not callable(ask):
        ask, at = accountant.get_epsilon, ASKED_DELTAS
    answers, refused = [], ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # e.g. that the best Rényi order is the largest order tried
        for value in at:
            try:
                answers.append((value, float(ask(value))))
            except Exception as error:  # some accountants raise for a δ above their δ at ε = 0
                refused = class_and_text(error)
    pairs = answers if at is EPSILONS else [(epsilon, delta) for delta, epsilon in answers]
    profile = falling(pairs)
    if not profile:
        raise InvalidClaim(
            f"claim={type(accountant).__name__}: it states no (ε, δ) with ε up to {LARGEST_EPSILON:g} that claims "
            f"anything{refused and f' ({refused})'}"
        )
    epsilon, delta = profile[0]
    if epsilon == 0 and delta <= ASKED_DELTAS[-1]:
        raise InvalidClaim(
            f"claim={type(accountant).__name__}: it states ε = 0 at δ = {delta:g}, as an accountant does without a "
            "composed mechanism: let it account for the mechanism first, or give claim=0 if that is your claim"
        )
    return PrivacyProfile(profile)


def as_claim(claim: Claim | Accountant | float | str | None) -> Claim | float | None:
    """The claim that a text or an accountant states; any other value is returned unchanged. Raises `InvalidClaim`."""
    if isinstance(claim, str):
        claim = claim_of_text(claim)
    if is_claim(claim):
        require_claim(claim)
        return claim
    return claim_of(claim) if is_accountant(claim) else claim  # type: ignore[return-value]  # the rest of the union


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedClaim:
    """The claim to test, and the values for the mechanism's parameters named after ε (nats) and δ.

    With None the mechanism keeps the default of its parameter.
    """

    claim: Claim
    epsilon: float | None
    delta: float | None


def stated_claim(
    thing: object,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    claim: Claim | Accountant | float | str | None = None,
    d_in: object = None,
    needed: bool = True,
) -> StatedClaim:
    """The claim to test: the user's claim, else the claim that the mechanism's object carries.

    `epsilon` (nats) and `delta` are values of the mechanism's parameters, and the claim unless `claim` is given.
    `d_in`: the distance between neighbours for which the object's claim holds, if its library states claims for
    distances. Unless `needed`, a missing claim is replaced by ε = 0. Raises `InvalidClaim` for a missing or invalid
    claim, and `InvalidParameter` for a `d_in` that the library does not take.
    """
    claim, library = as_claim(claim), library_of(thing)
    name = name_of(thing)
    if d_in is not None and not library.takes_distance:
        raise InvalidParameter(f"d_in={brief(d_in)} is for OpenDP measurements, which {name} is not: leave it out")
    for key, value in (("epsilon", epsilon), ("claim", None if is_claim(claim) else claim)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
            raise InvalidClaim(f"{key}={brief(value)} must be a number")
    if epsilon is not None and not 0 < epsilon <= LARGEST_EPSILON:
        raise InvalidClaim(f"epsilon={brief(epsilon)} must be positive and finite (at most {LARGEST_EPSILON:g})")
    parameter = None if epsilon is None else float(epsilon)
    if is_claim(claim):
        if delta is not None:
            raise InvalidClaim(f"claim={claim} is the whole claim: leave delta={brief(delta)} out")
        return StatedClaim(claim=claim, epsilon=parameter, delta=None)
    given = cast("float | None", epsilon if claim is None else claim)  # a number, not a claim
    if given is not None:
        tested = _of_epsilon(thing, library, given, delta, d_in, own=claim is None)
        return StatedClaim(claim=tested, epsilon=parameter, delta=delta)
    carried = library.claim(thing, d_in)
    if carried is None and not needed:
        carried = ApproxDP(0.0, 0.0)
    if carried is None:
        raise InvalidClaim(f"no claim to test: give epsilon=…, {name} carries no claim itself")
    require_claim(carried)
    if delta is not None and getattr(carried, "delta", None) is None:
        raise InvalidClaim(
            f"{name} claims {carried}, which has no δ: leave delta={brief(delta)} out, or give epsilon=… too"
        )
    tested = carried if delta is None else ApproxDP(carried.parameter, delta)
    return StatedClaim(claim=tested, epsilon=parameter, delta=delta)


def _of_epsilon(
    thing: object, library: Library, epsilon: float, delta: float | None, d_in: object, *, own: bool
) -> Claim:
    """The claim for a given ε; `own`: ε is the mechanism's parameter too, for which a target may state the claim."""
    target = target_of(thing)
    if target is not None and target.states is not None and own and delta is None:
        return target.states(float(epsilon))
    if delta is None:
        delta = library.delta(thing, d_in) if target is None else target.delta
    return ApproxDP(epsilon, delta)
