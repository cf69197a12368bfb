"""What makes vectors of texts: an encoder in this process, or a service."""

from __future__ import annotations

from standards_mcp_memory.settings import VOYAGE, MemorySettings

from .base import Encoder, Kind
from .builtin import BuiltInEncoder
from .rest import RestEncoder

__all__ = ["Encoder", "Kind", "make_encoder"]


def make_encoder(settings: MemorySettings, threads: int | None = None) -> Encoder:
    """Return the encoder that the settings name; the first call opens it.

    Args:
        threads: See `BuiltInEncoder`.
    """
    url, key = settings.encoder()
    if url is None:
        return BuiltInEncoder(settings.model, threads)
    if settings.model.startswith(VOYAGE):
        name, wants_kind = settings.model.removeprefix(VOYAGE), True
    else:
        name, wants_kind = settings.model.partition("#")[2], False
    return RestEncoder(
        settings.model, url, name, key, wants_kind=wants_kind, timeout=settings.timeout
    )
