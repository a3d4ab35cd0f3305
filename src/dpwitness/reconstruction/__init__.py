"""Attacks: generators of candidates from knowledge of how a mechanism fails, and commands that run them on data.

A family is a folder here, or a file anywhere that an entry point of the group `dpwitness.attacks` names; see
`AttackFamily`. Attacks never see evidence.

Systems under attack that are the user's own: asked by a call, many at a time, or through files of questions.

`form` says what a family asks and takes for an answer, `systems` finds the user's system, `asking` asks it within a
budget and a rate, `transcript` is the file of questions and answers, `command` joins them for `dpwitness attack`.
"""
