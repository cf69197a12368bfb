"""Search engines: each is a module with a class that implements `Provider`."""

from __future__ import annotations

from standards_mcp_web.settings import WebSettings

from .base import Provider
from .brave import Brave
from .searxng import Searxng

__all__ = ["Provider", "open_provider"]


def open_provider(settings: WebSettings) -> Provider | None:
    """Return the configured provider, or None if its key is missing."""
    if settings.searxng_url is not None and settings.provider == "searxng":
        return Searxng(settings.searxng_url)
    if settings.api_key is None or not (key := settings.api_key.get_secret_value()):
        return None
    return Brave(settings.base_url, key)
