"""Other testers on the mechanisms of `mechanisms.py`: a file for each, run by the Python of its own environment."""
