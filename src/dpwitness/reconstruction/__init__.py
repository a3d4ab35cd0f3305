"""Attacks recover data from a system that answers questions, a simulated system or the user's own.

A family of attacks is a folder here, or a package that an entry point of the group `dpwitness.attacks` names (see
`dpwitness.proposals.AttackFamily`). Attacks see answers, never evidence. All families share `questions`, which asks a
system within limits, `transcript`, the file of questions and answers, `people`, `command` and `report`.
"""
