"""Results for people: text, plots."""
