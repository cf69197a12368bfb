"""The plugin's table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, ByteSize, Field, SecretStr

from standards_mcp import PluginSettings
from standards_mcp_encoders import check_model

from .encoders import Encoders

DEFAULT_MEMORY: Final = ByteSize(2 * 10**9)
LEAST_MEMORY: Final = 256 * 10**6
_SHARE_OF_ADDRESSES: Final = 0.7


def _spec(spec: str) -> str:
    check_model(spec)
    return spec


class KnowledgeSettings(PluginSettings):
    """Settings.

    Attributes:
        root: The folder with the datasets. Without it, that is the folder datasets in the
            plugin's state folder.
        extra_roots: Further folders that indexes and metadata may be in.
        workers: How many processes search.
        timeout: Seconds that a worker has for one call.
        worker_memory: How much address space a worker may have (Linux), such as 2GB.
        reload_seconds: How often the folder is looked at, while calls come.
        encoders: Names of models, as metadata has them, with the text encoder of each, such as
            fastembed:BAAI/bge-small-en-v1.5.
        embedding_api_key: The key for encoders at an address.
    """

    root: Path | None = None
    extra_roots: tuple[Path, ...] = ()
    workers: int = Field(2, ge=1, le=16)
    timeout: float = Field(10, gt=0, le=600)
    worker_memory: Annotated[ByteSize, Field(ge=LEAST_MEMORY)] = DEFAULT_MEMORY
    reload_seconds: float = Field(2, ge=0)
    encoders: dict[str, Annotated[str, AfterValidator(_spec)]] = Field(default_factory=dict)
    embedding_api_key: SecretStr | None = None

    def root_in(self, state_dir: Path) -> Path:
        """Return the folder with the datasets."""
        return self.root or state_dir / "datasets"

    def encoder_settings(self) -> Encoders:
        """Return what workers need to open encoders."""
        # An address that does not answer is told, before its worker is ended as overdue.
        timeout = _SHARE_OF_ADDRESSES * self.timeout
        return Encoders(self.encoders, self.embedding_api_key, timeout)
