"""Readers of published formats of standards."""
