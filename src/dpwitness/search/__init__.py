"""Which pair and which event: everything here is heuristic, and never evidence."""
