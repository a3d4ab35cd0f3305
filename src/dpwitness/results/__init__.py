"""What a check ends with, and its JSON."""
