"""Texts, records and ids: what every other module shares."""
