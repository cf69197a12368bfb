"""Finds, loads, starts and supervises plugins."""
