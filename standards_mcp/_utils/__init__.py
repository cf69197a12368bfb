"""Helpers for every layer: streams, files, text, logs, secrets.

They do not know plugins. Every package may import them.
"""
