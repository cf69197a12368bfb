"""Guides: skills for the people who run and extend the host."""

from .plugin import GuidesPlugin

__all__ = ["GuidesPlugin"]
