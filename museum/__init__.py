"""Releases of packages whose claim of differential privacy is refuted, and releases whose claim is kept."""
