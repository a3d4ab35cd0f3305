"""Results: verdicts, bounds, curves, profiles and witnesses, with their texts and their JSON."""
