"""check, bound, curve, profile, replay and shrink: the only modules where search and confirm runs meet."""
