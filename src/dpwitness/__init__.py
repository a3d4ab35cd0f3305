"""dpwitness: finds and proves violations of differential privacy. Public names, loaded when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "ApproxDP": "claims",
    "Bound": "results.verdict",
    "Box": "events",
    "Claim": "claims",
    "Curve": "results.verdict",
    "DPWitnessError": "errors",
    "Interval": "events",
    "NotRefuted": "results.verdict",
    "OutcomeSet": "events",
    "ScoreThreshold": "events",
    "Violation": "results.verdict",
    "PureDP": "claims",
    "Witness": "results.witness",
    "bits": "neighbours",
    "bound": "api",
    "check": "api",
    "curve": "api",
    "histogram": "neighbours",
    "pairs": "neighbours",
    "queries": "neighbours",
    "replay": "api",
    "shrink": "api",
    "target": "targets",
}

__all__ = [  # sorted as people sort, without regard to case
    "ApproxDP",
    "Bound",
    "Box",
    "Claim",
    "Curve",
    "DPWitnessError",
    "Interval",
    "NotRefuted",
    "OutcomeSet",
    "PureDP",
    "ScoreThreshold",
    "Violation",
    "Witness",
    "bits",
    "bound",
    "check",
    "curve",
    "histogram",
    "pairs",
    "queries",
    "replay",
    "shrink",
    "target",
]

if TYPE_CHECKING:
    from dpwitness.api import bound, check, curve, replay, shrink
    from dpwitness.claims import ApproxDP, Claim, PureDP
    from dpwitness.errors import DPWitnessError
    from dpwitness.events import Box, Interval, OutcomeSet, ScoreThreshold
    from dpwitness.neighbours import bits, histogram, pairs, queries
    from dpwitness.results.verdict import Bound, Curve, NotRefuted, Violation
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
