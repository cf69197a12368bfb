"""Qdrant: embedded in a folder, or a server."""

from __future__ import annotations

from pathlib import Path

from standards_mcp_memory.settings import MemorySettings

from .base import Store
from .collections import MissingCollectionError
from .embedded import EmbeddedStore
from .remote import RemoteStore

__all__ = ["MissingCollectionError", "Store", "make_store"]


def make_store(settings: MemorySettings, state_dir: Path) -> Store:
    """Return the store that the settings name; the first call opens it."""
    if settings.url is not None:
        return RemoteStore(settings.url, settings.api_key, settings.timeout)
    return EmbeddedStore(settings, settings.path or str(state_dir / "qdrant"))
