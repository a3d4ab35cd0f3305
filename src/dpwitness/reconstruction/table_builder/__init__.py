"""Averaging attacks on systems like TableBuilder: Asghar & Kaafar (2020)."""
