"""Machine code for mechanisms."""
