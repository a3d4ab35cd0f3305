"""Mechanisms: whatever can be run becomes rows of outcomes."""
