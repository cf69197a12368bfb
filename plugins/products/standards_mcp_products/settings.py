"""The settings ``[plugins.products]``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, model_validator

from standards_mcp import ApiKey, PluginSettings, ServiceUrl, Variable, is_unencrypted

from .encoders import known_model

NAMES: Final = r"^[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]$"
"""Valid names of Chroma collections."""


class ProductsSettings(PluginSettings):
    """Settings.

    Attributes:
        path: The folder of the products, or INDEX_PATH. A relative path starts at the folder of the
            configuration file, or at the working directory for INDEX_PATH. The default is the
            folder chroma in the plugin's state folder.
        url: The address of a Chroma server, in place of a folder.
        auth_token: The token of that server.
        collection: The name of the products for builds and searches.
        model: The text encoder. Given by EMBED_MODEL.
        embedding_api_key: The key for an encoder at an address. Given by OPENAI_API_KEY.
        timeout: Seconds for one question to the store.
    """

    path: Annotated[Path | None, Variable("INDEX_PATH")] = None
    url: ServiceUrl | None = None
    auth_token: ApiKey | None = None
    collection: str = Field("amazon2020", pattern=NAMES)
    model: Annotated[str, AfterValidator(known_model), Variable("EMBED_MODEL")] = Field(
        "minilm", repr=False
    )
    embedding_api_key: Annotated[ApiKey | None, Variable("OPENAI_API_KEY")] = None
    timeout: float = Field(10, gt=0, le=600)

    def path_in(self, state_dir: Path) -> Path:
        """Return the folder of the products."""
        return self.path or state_dir / "chroma"

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        if self.auth_token and self.url and is_unencrypted(self.url):
            raise ValueError("auth_token would be sent unencrypted: let url begin with https://")
        return self
