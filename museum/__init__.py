"""Releases of packages whose claim of differential privacy is refuted, and others whose claim is kept."""
