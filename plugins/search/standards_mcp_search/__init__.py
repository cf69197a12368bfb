"""Search: the educational standards that fit a learning activity."""

from .plugin import SearchPlugin

__all__ = ["SearchPlugin"]
