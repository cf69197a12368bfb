"""Read and check the contributions of plugins, and select the visible ones.

`calls` and every layer above may import this package.
"""
