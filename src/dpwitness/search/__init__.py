"""The search of a pair and an event on it: `pairs` where runs are nearly free, `epochs` where they are expensive."""
