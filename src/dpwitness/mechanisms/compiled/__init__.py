"""Machine code of a plain function, which runs the function on both inputs of a pair.

`driver` writes a module for each mechanism, with numba's cache of machine code beside it; `reach` hashes all that a
mechanism calls, for the module's name; `rows` writes outcomes as rows; `compare` runs the same seeds compiled and in
Python, before a mechanism is used and before a verdict.
"""
