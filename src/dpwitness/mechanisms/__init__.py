"""Mechanisms: functions, objects, programs and queries, whose outcomes become rows of numbers."""
