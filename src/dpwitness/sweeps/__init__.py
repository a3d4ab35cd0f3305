"""Sweeps: every name of a module that claims privacy, each run as a case in a process of its own.

modules → describers list cases (nothing is run) → α / number of cases → a process a case → a table and a file
"""
