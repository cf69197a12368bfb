"""The configuration: its models, sources, problems and edits.

`contributions` and every layer above may import it.
"""
