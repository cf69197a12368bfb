"""``[plugins.catalog]``: which store the standards are in, and how to reach it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import override

from standards_mcp import PluginSettings, Variable, is_loopback, is_unencrypted
from standards_mcp_encoders.spec import KEY_IN_THE_OPEN, check_model, is_address, shown_spec

EMBEDDING_KEY_VARIABLE: Final = "STANDARDS_MCP_EMBEDDING_API_KEY"


def _error_at(key: str, message: str) -> ValidationError:
    """Return an error about one key, for the validator of a whole table to raise."""
    error = PydanticCustomError("value_error", "{message}", {"message": message})
    return ValidationError.from_exception_data("", [{"type": error, "loc": (key,), "input": None}])


_Strip: Final = BeforeValidator(lambda value: value.strip() if isinstance(value, str) else value)
"""Removes spaces around a text, since values of environment variables may have some."""


class LocalCatalogSettings(PluginSettings):
    """``[plugins.catalog.local]``: the embedded index.

    Attributes:
        model: This is the text encoder, see docs/data.md. With ``none``, searches go by words only.
        api_key: This key is for an encoder that asks for one. It is given by
            ``STANDARDS_MCP_EMBEDDING_API_KEY`` of the environment or of ``.env``, and refused in a
            file and on the command line.
    """

    model: str = "minilm"
    api_key: Annotated[SecretStr | None, _Strip, Variable(EMBEDDING_KEY_VARIABLE, only=True)] = None

    @field_validator("model", mode="after")
    @classmethod
    def _check_model(cls, model: str) -> str:
        # The model's name is written to the index, to messages and to `data status`.
        if "://" in model and "@" in urlsplit(model).netloc:
            raise ValueError(
                "an address here has no user name and no password in it; set "
                f"{EMBEDDING_KEY_VARIABLE} in the environment or in .env"
            )
        check_model(model)
        return model

    @model_validator(mode="after")
    def _keep_the_key_secret(self) -> Self:
        if self.api_key and is_address(self.model) and is_unencrypted(self.model):
            raise _error_at(
                "model",
                f"{shown_spec(self.model)!r}: {KEY_IN_THE_OPEN}, or unset {EMBEDDING_KEY_VARIABLE}",
            )
        return self


class PineconeCatalogSettings(PluginSettings):
    """``[plugins.catalog.pinecone]``: the index in Pinecone.

    ``PINECONE_API_KEY``, ``PINECONE_INDEX_NAME``, ``PINECONE_NAMESPACE`` and ``PINECONE_HOST``
    of the environment or of ``.env`` come before the table.

    Attributes:
        api_key: This key is given by ``PINECONE_API_KEY``, and refused in a file and on the command
            line, where others can read it.
        index_name: This index holds the standards.
        namespace: This part of the index holds the standards.
        host: This is the host of the index. If it is set, Pinecone is not asked for it. It may be
            http only on loopback.
        deadline: One call may take this many seconds.
        fallback: With ``local``, the embedded index answers while Pinecone cannot be reached.
    """

    api_key: Annotated[SecretStr | None, _Strip, Variable("PINECONE_API_KEY", only=True)] = None
    index_name: Annotated[
        str, _Strip, Field(pattern="^[a-z0-9-]{1,45}$"), Variable("PINECONE_INDEX_NAME")
    ] = "common-core-standards"
    namespace: Annotated[str, _Strip, Field(min_length=1), Variable("PINECONE_NAMESPACE")] = (
        "standards"
    )
    host: Annotated[str | None, _Strip, Variable("PINECONE_HOST")] = None
    deadline: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 20.0
    fallback: Literal["none", "local"] = "none"

    @field_validator("host", mode="after")
    @classmethod
    def _check_host(cls, host: str | None) -> str | None:
        return checked_host(host) if host else None


def checked_host(host: str) -> str:
    """Return *host* with its scheme: https by default; http is allowed only on loopback.

    Raises:
        ValueError: The key would be sent unencrypted, or *host* is not the address of a host.
    """
    url = host.strip().removesuffix("/")
    url = url if "://" in url else f"https://{url}"
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("a host has no user name and no password in it; leave them out")
    is_host = "." in (parts.hostname or "") or is_loopback(parts.hostname or "")
    if parts.scheme not in ("http", "https") or not is_host or parts.path or parts.query:
        raise ValueError(
            f"{host!r} is not a host; give the one that Pinecone's console shows for the index, "
            "such as my-index-abc123.svc.aped-1234.pinecone.io"
        )
    if is_unencrypted(url):
        raise ValueError(f"{host!r}: the key would be sent unencrypted; use https")
    return url


class CspSettings(PluginSettings):
    """``[plugins.catalog.csp]``: the API of the Common Standards Project.

    Attributes:
        api_key: This key is given by ``CSP_API_KEY`` of the environment or of ``.env``, and refused
            in a file.
    """

    api_key: Annotated[SecretStr | None, _Strip, Variable("CSP_API_KEY", only=True)] = None


class SnapshotSettings(PluginSettings):
    """``[plugins.catalog.snapshots]``: the snapshots that `data pull` accepts.

    Attributes:
        publisher: This public key must have signed a snapshot. `data publish` prints it.
    """

    publisher: Annotated[str | None, _Strip, Field(pattern="^[0-9a-f]{64}$")] = None


class CatalogSettings(PluginSettings):
    """``[plugins.catalog]``: where the standards are.

    Attributes:
        backend: The standards are in this store. With ``auto``, it is Pinecone if there is a key
            for it, else the embedded index.
        path: The embedded index is in this folder. By default it is the user's data folder.
    """

    backend: Literal["auto", "local", "pinecone"] = "auto"
    path: Path | None = None
    local: LocalCatalogSettings = Field(default_factory=LocalCatalogSettings)
    pinecone: PineconeCatalogSettings = Field(default_factory=PineconeCatalogSettings)
    csp: CspSettings = Field(default_factory=CspSettings)
    snapshots: SnapshotSettings = Field(default_factory=SnapshotSettings)

    @override
    def folders_to_make(self) -> Mapping[str, Path]:
        return {"path": self.path} if self.path else {}

    @field_validator("path", mode="after")
    @classmethod
    def _can_be_made(cls, path: Path | None) -> Path | None:
        # A missing folder is made at the first use, with its parents.
        if path is not None and path.exists() and not path.is_dir():
            raise ValueError(f"{path} is no folder; correct the path")
        return path

    @model_validator(mode="after")
    def _needs_a_key(self) -> Self:
        if self.backend == "pinecone" and self.pinecone.api_key is None:
            raise _error_at(
                "backend",
                '"pinecone" needs a key; set PINECONE_API_KEY in the environment or in .env, or '
                'set backend = "local"',
            )
        return self

    @property
    def choice(self) -> tuple[Literal["local", "pinecone"], str]:
        """The backend in use, and the settings that choose it."""
        if self.backend != "auto":
            return self.backend, f'[plugins.catalog] backend = "{self.backend}"'
        if self.pinecone.api_key is None:
            return "local", '[plugins.catalog] backend = "auto", and PINECONE_API_KEY is not set'
        return "pinecone", '[plugins.catalog] backend = "auto", and PINECONE_API_KEY is set'
