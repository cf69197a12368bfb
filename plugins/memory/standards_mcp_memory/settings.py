"""Settings of the plugin, the table `[plugins.memory]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from standards_mcp import ApiKey, PluginSettings, ServiceUrl, Variable, is_unencrypted
from standards_mcp_encoders import check_model, is_address

IN_MEMORY: Final = ":memory:"
VOYAGE: Final = "voyage:"
VOYAGE_URL: Final = "https://api.voyageai.com/v1/embeddings"


def _checked_folder(path: str) -> str:
    if path == IN_MEMORY:
        return path
    folder = Path(path).expanduser()
    if not folder.is_absolute():
        raise ValueError("give the whole path, such as /srv/memories or ~/memories")
    return str(folder)


def _checked_spec(spec: str) -> str:
    """Return the spec of an embedding model.

    Raises:
        ValueError: The spec is not valid.
    """
    if spec.startswith(VOYAGE):
        if spec == VOYAGE:
            raise ValueError(f"{VOYAGE} lacks the name of a model; write {VOYAGE}voyage-4-lite")
    elif spec == "none":
        raise ValueError("memory search needs vectors; choose a model, such as minilm")
    else:
        check_model(spec)
    return spec


class MemorySettings(PluginSettings):
    """Settings.

    Attributes:
        path: The folder of the embedded store; by default `qdrant` in the state folder. `:memory:`
            keeps memories until the server ends.
        url: The address of a Qdrant server, in place of the embedded store.
        api_key: The key of that server.
        model: The embedding model: a text encoder of the catalog such as minilm, voyage:MODEL, or
            the address of an OpenAI-compatible endpoint with the model's name after #.
        embedding_api_key: The key for voyage: or the address.
        voyage_api_key: The key for voyage: if embedding_api_key is not set. Also set by the
            variable VOYAGE_API_KEY.
        voyage_url: The address of Voyage's embeddings.
        timeout: Seconds for one request to the store or to the encoder.
        idle_close: Seconds without a call after which an embedded store is closed, so that another
            program can open it.
        lock_wait: Seconds that a call waits for an embedded store that another program has open.
        writable: Serve tools that store, change and delete memories.
        backend: The store's library.
    """

    path: Annotated[str, AfterValidator(_checked_folder)] | None = None
    url: ServiceUrl | None = None
    api_key: ApiKey | None = None
    model: Annotated[str, AfterValidator(_checked_spec)] = Field("minilm", repr=False)
    embedding_api_key: ApiKey | None = None
    voyage_api_key: Annotated[ApiKey | None, Variable("VOYAGE_API_KEY")] = None
    voyage_url: ServiceUrl = VOYAGE_URL
    timeout: float = Field(10, gt=0, le=600)
    idle_close: float = Field(30, ge=0, le=86_400)
    lock_wait: float = Field(5, ge=0, le=600)
    writable: bool = False
    backend: Literal["qdrant"] = "qdrant"

    @model_validator(mode="after")
    def _check_keys_are_encrypted(self) -> Self:
        if self.api_key and self.url and is_unencrypted(self.url):
            raise ValueError("url: the key would be sent unencrypted: use https://")
        url, key = self.embedding_service()
        if key and url and is_unencrypted(url):
            raise ValueError("model: the key would be sent unencrypted: use https://")
        return self

    def embedding_service(self) -> tuple[str | None, SecretStr | None]:
        """Return address and key of the embedding service; None, None for a built-in encoder."""
        if self.model.startswith(VOYAGE):
            return self.voyage_url, self.embedding_api_key or self.voyage_api_key
        if is_address(self.model):
            return self.model.partition("#")[0], self.embedding_api_key
        return None, None
