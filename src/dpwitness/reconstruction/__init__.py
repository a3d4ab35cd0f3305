"""Attacks as tools: they recover data from a system that answers questions, a simulated one or the user's own.

A family is a folder here, or a package that an entry point of the group `dpwitness.attacks` names (see
`dpwitness.proposals.AttackFamily`). Attacks never see evidence. What families share: `questions` asks a system within a
budget and a rate, `transcript` keeps questions and answers in a file, `command` runs an attack from options, `report`
writes its result.
"""
