"""Filters: more ways to narrow a search of standards."""

from .plugin import FiltersPlugin

__all__ = ["FiltersPlugin"]
