"""Reconstruction from subset sums: Dinur & Nissim (2003)."""

from dpwitness.attacks.subset_sum.questions import Oracle

__all__ = ["Oracle"]
