"""Reconstruction from subset sums: Dinur & Nissim (2003)."""

from dpwitness.reconstruction.subset_sum.oracle import Oracle

__all__ = ["Oracle"]
