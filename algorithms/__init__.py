"""The targets: mechanisms right and wrong, written exactly as a user writes one, a family a file."""
