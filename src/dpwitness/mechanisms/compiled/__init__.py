"""A plain function as machine code that runs both inputs of a pair.

`driver` writes one module a mechanism to a folder where numba keeps its machine code; `reach` names it by a digest of
the mechanism and of all that it calls; `rows` writes outcomes as rows; `compare` guards it all: the same seeds run
compiled and in Python, before a mechanism is used and before a verdict.
"""
