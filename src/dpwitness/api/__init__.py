"""check, bound, curve, replay and shrink: the only rooms where search and confirm runs meet."""
