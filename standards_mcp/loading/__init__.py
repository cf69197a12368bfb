"""Finds, loads, starts and supervises plugins.

`remote` and every layer above may import this package.
"""
