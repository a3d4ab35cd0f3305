"""Which pair and which event: two searches, `pairs` for fast mechanisms and `epochs` for slow ones. Never evidence."""
