"""Reconstruction from subset sums: Dinur & Nissim (2003)."""

from dpwitness.reconstruction.subset_sum.attack import Oracle

__all__ = ["Oracle"]
