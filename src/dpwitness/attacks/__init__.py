"""Attacks: generators of candidates from knowledge of how a mechanism fails, and commands that run them on data.

A family is a folder here, or a file anywhere that an entry point of the group `dpwitness.attacks` names; see
`AttackFamily`. Attacks never see evidence.
"""
