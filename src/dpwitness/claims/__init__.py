"""Claims of differential privacy, each a region of pairs of event probabilities.

A new claim is one new file: a class that implements `Claim`, with `register_claim` so that witnesses can hold it.
"""

from collections.abc import Mapping
from typing import Final, TypeGuard, TypeVar

from dpwitness.checks import brief
from dpwitness.claims.claim import Claim, HalfPlane
from dpwitness.claims.epsilon_delta import ApproxDP, PrivacyProfile, PureDP
from dpwitness.claims.renyi import ZCDP, RenyiDP
from dpwitness.claims.trade_off import GaussianDP, TradeOff
from dpwitness.codec import Codec, Family, UnknownKind, register, write_object
from dpwitness.errors import InvalidClaim

__all__ = [
    "ZCDP",
    "ApproxDP",
    "Claim",
    "GaussianDP",
    "HalfPlane",
    "PrivacyProfile",
    "PureDP",
    "RenyiDP",
    "TradeOff",
    "claim_from_json",
    "is_claim",
    "register_claim",
    "require_claim",
]


ClaimClass = TypeVar("ClaimClass", bound=type)
#: _REGISTRY has the kinds of claims that files may name.
_REGISTRY: Final = Family(ApproxDP, GaussianDP, RenyiDP, ZCDP, PrivacyProfile, TradeOff)


def register_claim(kind: ClaimClass) -> ClaimClass:
    """Class decorator: let `claim_from_json` read claims of the class.

    A dataclass needs only a `kind`; other classes also need `to_json`, and `from_json` of the object without its kind.
    Raises `ValueError` for a class whose `kind` is not a text, or is the `kind` of another class.
    """
    _REGISTRY.register(kind)
    return kind


def claim_from_json(value: object) -> Claim:
    """The claim that unchecked JSON describes; without a kind, an (ε, δ) claim. Raises `InvalidClaim`."""
    if not isinstance(value, Mapping):
        raise InvalidClaim(f"claim={brief(value)} must be an object")
    kind = value.get("kind", ApproxDP.kind)
    if not isinstance(kind, str):
        raise InvalidClaim(f"claim={brief(value)} must be an object whose kind is one of {', '.join(_REGISTRY.kinds)}")
    if kind not in _REGISTRY.kinds:
        raise UnknownKind.of("claim", kind, _REGISTRY.kinds)
    try:
        claim: Claim = _REGISTRY.read(kind, "claim", {name: item for name, item in value.items() if name != "kind"})
    except KeyError as error:
        raise InvalidClaim(f"the claim lacks {error}") from error
    except ValueError as error:
        raise error if isinstance(error, InvalidClaim) else InvalidClaim(str(error)) from error
    return claim


register(Claim, Codec(write_object, lambda _, value: claim_from_json(value), _REGISTRY.schema))


def is_claim(value: object) -> TypeGuard[Claim]:
    """Whether a value is an object that implements `Claim`, not a number that stands for a claim."""
    return not isinstance(value, type) and callable(getattr(value, "half_plane", None))


def require_claim(claim: Claim) -> None:
    """Raise `InvalidClaim` if a claim lacks members of `Claim`, or a hash by its value, by which bets cache results.

    `dpwitness.testing.check_claim` tests the values that the members return.
    """
    names = [name for name in (*vars(Claim), *Claim.__annotations__) if not name.startswith("_")]
    lacking = [name for name in names if not hasattr(type(claim), name) and not hasattr(claim, name)]
    lacking += ["__hash__"] if type(claim).__hash__ is None else []
    if lacking:
        raise InvalidClaim(
            f"the claim {type(claim).__name__} lacks {', '.join(lacking)}: let its class inherit "
            "dpwitness.claims.Claim, and be a frozen dataclass"
        )
