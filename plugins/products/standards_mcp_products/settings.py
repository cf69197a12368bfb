"""The plugin's table."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from standards_mcp import PluginSettings, Variable

from .encoders import known_model

NAMES: Final = r"^[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]$"
"""What Chroma takes as the name of a collection."""
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an address begins with https:// or http:// and has a host")
    if parts.query or parts.fragment or parts.username or parts.password:
        raise ValueError("an address of a server has no query, name and password")
    try:
        _ = parts.port
    except ValueError:
        raise ValueError("the port of an address is a number up to 65535") from None
    return url.rstrip("/")


def _folder(path: str) -> str:
    folder = Path(path)
    with suppress(RuntimeError):  # there is no such home
        folder = folder.expanduser()
    if not folder.is_absolute():
        raise ValueError("give the whole path, such as /srv/products or ~/products")
    return str(folder)


class ProductsSettings(PluginSettings):
    """Settings.

    Attributes:
        path: The folder of the products: a whole path, or one below ~. Without it, that is the
            folder chroma in the plugin's state folder. Given by INDEX_PATH.
        url: The address of a Chroma server that has the products in place of a folder.
        auth_token: What that server asks for.
        collection: The name of the products, as builds and searches use it.
        model: The text encoder. Given by EMBED_MODEL.
        embedding_api_key: The key for an encoder at an address. Given by OPENAI_API_KEY.
        timeout: Seconds for one question to the store.
    """

    path: Annotated[Annotated[str, AfterValidator(_folder)] | None, Variable("INDEX_PATH")] = None
    url: Annotated[str, AfterValidator(_address)] | None = None
    auth_token: SecretStr | None = None
    collection: str = Field("amazon2020", pattern=NAMES)
    model: Annotated[str, AfterValidator(known_model), Variable("EMBED_MODEL")] = Field(
        "minilm", repr=False
    )
    embedding_api_key: Annotated[SecretStr | None, Variable("OPENAI_API_KEY")] = None
    timeout: float = Field(10, gt=0, le=600)

    def path_in(self, state_dir: Path) -> Path:
        """Return the folder of the products."""
        return Path(self.path) if self.path else state_dir / "chroma"

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        if self.auth_token is not None and self.url is not None:
            parts = urlsplit(self.url)
            if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
                raise ValueError(
                    "auth_token would be sent unencrypted: let url begin with https://"
                )
        return self
