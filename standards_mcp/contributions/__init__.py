"""What plugins contribute: read, checked, and selected by the configuration.

`calls` and every layer above may import it.
"""
