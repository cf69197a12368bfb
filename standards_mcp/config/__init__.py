"""The configuration: its models, sources, problems and edits.

`contributions` and every layer above it may import this package.
"""
