"""Sweeps: each name of a module that claims privacy is a case, run in a process of its own.

modules → describers list cases (nothing is run) → α / number of cases → a process a case → a table and a file
"""
