"""Results for people: plots."""
