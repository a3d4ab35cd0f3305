"""Attacks: generators of candidates from knowledge of how a mechanism fails. They never see evidence."""
