"""Attacks on private threshold testing: Chen & Machanavajjhala (2015)."""
