"""Attacks on private threshold testing: Chen & Machanavajjhala (2015)."""

from dpwitness.reconstruction.threshold_testing.oracle import Oracle

__all__ = ["Oracle"]
