"""Settings of the plugin, the table `[plugins.knowledge]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ByteSize, Field, SecretStr

from standards_mcp import PluginSettings
from standards_mcp_encoders import check_model


def _checked_spec(spec: str) -> str:
    check_model(spec)
    return spec


class KnowledgeSettings(PluginSettings):
    """Settings.

    Attributes:
        root: The folder of the datasets; by default `datasets` in the plugin's state folder.
        extra_roots: Further folders that may contain indexes and metadata.
        workers: Number of processes that search.
        timeout: Seconds that a worker has for one call.
        worker_memory: Limit of a worker's address space (Linux), such as 2GB.
        reload_seconds: Minimum seconds between two checks for changes; only calls trigger checks.
        encoders: Specs of text encoders, such as fastembed:BAAI/bge-small-en-v1.5, by the model
            names of the metadata.
        embedding_api_key: The API key for encoders at an address.
    """

    root: Path | None = None
    extra_roots: tuple[Path, ...] = ()
    workers: int = Field(default=2, ge=1, le=16)
    timeout: float = Field(default=10, gt=0, le=600)
    worker_memory: Annotated[ByteSize, Field(ge=256 * 10**6)] = ByteSize(2 * 10**9)
    reload_seconds: float = Field(default=2, ge=0)
    encoders: dict[str, Annotated[str, AfterValidator(_checked_spec)]] = Field(default_factory=dict)
    embedding_api_key: SecretStr | None = None
