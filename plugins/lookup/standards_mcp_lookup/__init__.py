"""Lookup: everything about one educational standard."""

from .plugin import LookupPlugin

__all__ = ["LookupPlugin"]
