"""Readers of the formats in which standards are published."""
