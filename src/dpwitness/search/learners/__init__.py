"""Which event, given outcomes of both sides."""
