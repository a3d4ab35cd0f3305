"""Calls of libraries, a file a library: what is called, on which neighbours, and what it claims for them."""
