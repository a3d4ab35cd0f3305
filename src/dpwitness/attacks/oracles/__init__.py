"""Systems under attack that are the user's own: asked by a call, many at a time, or through files of questions.

`form` says what a family asks and takes for an answer, `systems` finds the user's system, `asking` asks it within a
budget and a rate, `transcript` is the file of questions and answers, `command` joins them for `dpwitness attack`.
"""
