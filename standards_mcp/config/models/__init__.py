"""The tables of the configuration as pydantic models.

Imports nothing else of `config`.
"""
