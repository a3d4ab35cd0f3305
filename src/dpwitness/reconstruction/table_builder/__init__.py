"""Averaging attacks on systems like TableBuilder: Asghar & Kaafar (2020)."""

from dpwitness.reconstruction.table_builder.oracle import Oracle

__all__ = ["Oracle"]
