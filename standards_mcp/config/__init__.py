"""The configuration: its sources, and the models that validate it.

`contributions` and every layer above may import it.
"""
