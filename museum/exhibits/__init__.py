"""One file for each mechanism: a function of a dataset as a user would write it, and `exhibit()` with the facts."""
