"""Alignment: check lessons, units and editions against educational standards."""

from .plugin import AlignmentPlugin

__all__ = ["AlignmentPlugin"]
