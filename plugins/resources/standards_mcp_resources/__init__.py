"""Resources: standards to read by their URI, and tools that walk their tree."""

from .plugin import ResourcesPlugin

__all__ = ["ResourcesPlugin"]
