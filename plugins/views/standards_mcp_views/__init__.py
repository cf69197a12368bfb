"""Views: the answers of the tools as pages inside the chat."""

from .plugin import ViewsPlugin

__all__ = ["ViewsPlugin"]
