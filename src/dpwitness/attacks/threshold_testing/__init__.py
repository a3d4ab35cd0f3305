"""Attacks on private threshold testing: Chen & Machanavajjhala (2015)."""

from dpwitness.attacks.threshold_testing.questions import Oracle

__all__ = ["Oracle"]
