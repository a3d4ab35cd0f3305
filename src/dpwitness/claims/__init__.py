"""Claims: a file for each, all of them regions of pairs of event probabilities.

A new claim is one new file with a class that answers what `Claim` asks, and a call of `register_claim`, so that
witnesses can hold it.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

from dpwitness.checks import brief
from dpwitness.claims.claim import Claim, HalfPlane
from dpwitness.claims.epsilon_delta import ApproxDP, PrivacyProfile, PureDP
from dpwitness.claims.renyi import ZCDP, RenyiDP
from dpwitness.claims.trade_off import GaussianDP, TradeOff
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
]


_KINDS: dict[str, Any] = {kind.kind: kind for kind in (ApproxDP, GaussianDP, RenyiDP, ZCDP, PrivacyProfile, TradeOff)}


def register_claim(kind: type[Any]) -> type[Any]:
    """Let `claim_from_json` read claims of a class that has `kind` and `from_json`; a decorator for that class."""
    _KINDS[kind.kind] = kind
    return kind


def claim_from_json(value: Any) -> Claim:
    """Build a claim from parsed JSON that nobody has checked; without a kind it is (ε, δ). Raises `InvalidClaim`."""
    if not isinstance(value, Mapping):
        raise InvalidClaim(f"claim={brief(value)} must be an object")
    kind = value.get("kind", ApproxDP.kind)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidClaim(f"claim kind {brief(kind)} is unknown; known are {', '.join(_KINDS)}")
    claim: Claim = _KINDS[kind].from_json({name: item for name, item in value.items() if name != "kind"})
    return claim


def is_claim(value: Any) -> TypeGuard[Claim]:
    """Whether a value answers what `Claim` asks, and is not a number that stands for one."""
    return not isinstance(value, type) and callable(getattr(value, "half_plane", None))
