"""Where the values of the configuration come from, and what they may be.

`contributions` and every layer above may import it.
"""
