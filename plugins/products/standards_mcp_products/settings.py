"""The settings ``[plugins.products]``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Self

from pydantic import AfterValidator, Field, model_validator

from standards_mcp import ApiKey, PluginSettings, ServiceUrl, Variable, is_unencrypted
from standards_mcp_encoders import check_model, is_address, is_minilm

if TYPE_CHECKING:
    from standards_mcp_encoders import TextEncoder

COLLECTION_NAME: Final = r"^[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]$"
"""The pattern of valid names of Chroma collections."""
_REMEDY: Final = "check [plugins.products] model and OPENAI_API_KEY"


def _encoder_spec(model: str) -> str:
    """Return the spec of an encoder: "minilm" for any spelling of all-MiniLM-L6-v2.

    Raises:
        ValueError: No encoder has this name, or the name is "none".
    """
    if not is_address(model) and is_minilm(model):
        return "minilm"
    if model == "none":
        raise ValueError("products are found by their vectors: model cannot be none")
    check_model(model)
    return model


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
    collection: str = Field("amazon2020", pattern=COLLECTION_NAME)
    model: Annotated[str, AfterValidator(_encoder_spec), Variable("EMBED_MODEL")] = Field(
        "minilm", repr=False
    )
    embedding_api_key: Annotated[ApiKey | None, Variable("OPENAI_API_KEY")] = None
    timeout: float = Field(10, gt=0, le=600)

    def open_encoder(self) -> TextEncoder:
        """Return the configured text encoder.

        Raises:
            ServiceError: The encoder cannot be opened.
        """
        from standards_mcp_encoders import open_encoder  # noqa: PLC0415  - NumPy

        key = self.embedding_api_key if is_address(self.model) else None
        return open_encoder(self.model, key, remedy=_REMEDY)

    @model_validator(mode="after")
    def _check_encryption(self) -> Self:
        if self.auth_token and self.url and is_unencrypted(self.url):
            raise ValueError("auth_token would be sent unencrypted: let url begin with https://")
        return self
