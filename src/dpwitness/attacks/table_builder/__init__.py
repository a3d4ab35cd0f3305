"""Averaging attacks on systems like TableBuilder: Asghar & Kaafar (2020)."""

from dpwitness.attacks.table_builder.questions import Oracle

__all__ = ["Oracle"]
