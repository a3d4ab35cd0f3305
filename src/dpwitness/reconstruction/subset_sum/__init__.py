"""Reconstruction from subset sums: Dinur & Nissim (2003)."""
