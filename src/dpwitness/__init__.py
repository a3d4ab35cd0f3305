"""dpwitness: finds and proves violations of differential privacy. Public names, loaded when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "ApproxDP": "claims",
    "AttackStopped": "errors",
    "BadInput": "errors",
    "Bound": "results.bound",
    "Box": "events",
    "BudgetTooSmall": "errors",
    "Claim": "claims",
    "ClusterLost": "errors",
    "CompiledDiffers": "errors",
    "Curve": "results.curve",
    "DPWitnessError": "errors",
    "DependentRuns": "errors",
    "GaussianDP": "claims",
    "Interval": "events",
    "InvalidClaim": "errors",
    "InvalidData": "errors",
    "InvalidNeighbours": "errors",
    "InvalidOutcome": "errors",
    "InvalidParameter": "errors",
    "InvalidWitness": "errors",
    "MechanismCrashed": "errors",
    "MechanismError": "errors",
    "MechanismRaised": "errors",
    "MechanismTimeout": "errors",
    "NotRefuted": "results.verdict",
    "OracleFailed": "errors",
    "OutcomeSet": "events",
    "PrivacyProfile": "claims",
    "Profile": "results.profile",
    "RenyiDP": "claims",
    "ScoreThreshold": "events",
    "SlowMechanism": "errors",
    "TradeOff": "claims",
    "UnknownAttack": "errors",
    "UnknownTarget": "errors",
    "Violation": "results.verdict",
    "PureDP": "claims",
    "Witness": "results.witness",
    "ZCDP": "claims",
    "bits": "neighbours",
    "bound": "api.bounding",
    "categories": "neighbours",
    "check": "api.checking",
    "curve": "api.curves",
    "flags": "neighbours",
    "histogram": "neighbours",
    "integers": "neighbours",
    "like": "neighbours",
    "numbers": "neighbours",
    "pairs": "neighbours",
    "profile": "api.profiling",
    "queries": "neighbours",
    "records": "neighbours",
    "remote": "mechanisms.remote",
    "replay": "api.replaying",
    "shrink": "api.shrinking",
    "target": "targets",
    "text": "neighbours",
}

__all__ = [  # noqa: RUF022  # by the alphabet, ZCDP too
    "ApproxDP",
    "AttackStopped",
    "BadInput",
    "Bound",
    "Box",
    "BudgetTooSmall",
    "Claim",
    "ClusterLost",
    "CompiledDiffers",
    "Curve",
    "DPWitnessError",
    "DependentRuns",
    "GaussianDP",
    "Interval",
    "InvalidClaim",
    "InvalidData",
    "InvalidNeighbours",
    "InvalidOutcome",
    "InvalidParameter",
    "InvalidWitness",
    "MechanismCrashed",
    "MechanismError",
    "MechanismRaised",
    "MechanismTimeout",
    "NotRefuted",
    "OracleFailed",
    "OutcomeSet",
    "PrivacyProfile",
    "Profile",
    "PureDP",
    "RenyiDP",
    "ScoreThreshold",
    "SlowMechanism",
    "TradeOff",
    "UnknownAttack",
    "UnknownTarget",
    "Violation",
    "Witness",
    "ZCDP",
    "bits",
    "bound",
    "categories",
    "check",
    "curve",
    "flags",
    "histogram",
    "integers",
    "like",
    "numbers",
    "pairs",
    "profile",
    "queries",
    "records",
    "remote",
    "replay",
    "shrink",
    "target",
    "text",
]

if TYPE_CHECKING:
    from dpwitness.api.bounding import bound
    from dpwitness.api.checking import check
    from dpwitness.api.curves import curve
    from dpwitness.api.profiling import profile
    from dpwitness.api.replaying import replay
    from dpwitness.api.shrinking import shrink
    from dpwitness.claims import ZCDP, ApproxDP, Claim, GaussianDP, PrivacyProfile, PureDP, RenyiDP, TradeOff
    from dpwitness.errors import (
        AttackStopped,
        BadInput,
        BudgetTooSmall,
        ClusterLost,
        CompiledDiffers,
        DependentRuns,
        DPWitnessError,
        InvalidClaim,
        InvalidData,
        InvalidNeighbours,
        InvalidOutcome,
        InvalidParameter,
        InvalidWitness,
        MechanismCrashed,
        MechanismError,
        MechanismRaised,
        MechanismTimeout,
        OracleFailed,
        SlowMechanism,
        UnknownAttack,
        UnknownTarget,
    )
    from dpwitness.events import Box, Interval, OutcomeSet, ScoreThreshold
    from dpwitness.mechanisms.remote import remote
    from dpwitness.neighbours import (
        bits,
        categories,
        flags,
        histogram,
        integers,
        like,
        numbers,
        pairs,
        queries,
        records,
        text,
    )
    from dpwitness.results.bound import Bound
    from dpwitness.results.curve import Curve
    from dpwitness.results.profile import Profile
    from dpwitness.results.verdict import NotRefuted, Violation
    from dpwitness.results.witness import Witness
    from dpwitness.targets import target


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpwitness' has no attribute {name!r}")
    value = getattr(import_module(f"dpwitness.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
