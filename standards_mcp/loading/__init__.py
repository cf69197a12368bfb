"""Find, load, start and supervise plugins.

`remote` and every layer above may import this package.
"""
