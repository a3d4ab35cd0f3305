"""Reports of results: pages, plots, comparisons, and output for other tools."""
