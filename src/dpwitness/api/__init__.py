"""check, bound, curve, profile, replay and shrink: the only modules that use both search runs and confirm runs."""
