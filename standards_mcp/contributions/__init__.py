"""Reads and checks what plugins contribute, and selects what clients see.

`calls` and every layer above may import this package.
"""
