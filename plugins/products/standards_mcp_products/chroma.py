"""Open Chroma, translate its errors, and clean up after it.

The import of Chroma takes a second or more, so the first use imports it.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import httpx2
from pydantic import SecretStr

from standards_mcp import ApiError, ServiceError, ToolError

from .settings import ProductsSettings

if TYPE_CHECKING:
    from chromadb.api.client import Client


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """The address of a store.

    Attributes:
        path: The folder of an embedded store.
        url: The address of a server.
        token: The server's token.
        timeout: Seconds for one request to the server.
    """

    path: Path | None = None
    url: str | None = None
    token: SecretStr | None = field(default=None, repr=False)
    timeout: float = 10

    @property
    def key(self) -> str:
        """The key of the store in ``active.json``."""
        return self.url or str(self.path)

    @property
    def display_name(self) -> str:
        """The name of the store in messages."""
        return f"the Chroma server at {urlsplit(self.url).netloc}" if self.url else str(self.path)

    def is_empty(self) -> bool:
        """Return True if a local folder has no store yet; always False for a server."""
        return self.path is not None and not (self.path / "chroma.sqlite3").exists()

    def open(self) -> Client:
        """Return a client, which the caller must close."""
        import chromadb  # noqa: PLC0415  - takes a second or more
        from chromadb.config import Settings  # noqa: PLC0415

        # Chroma requires equal settings for all clients of a folder. Do not read `.env`.
        no_file: Any = {"_env_file": None}
        settings = Settings(anonymized_telemetry=False, **no_file)
        if self.url is None:
            return cast("Client", chromadb.PersistentClient(str(self.path), settings=settings))
        parts = urlsplit(self.url)
        is_encrypted = parts.scheme == "https"
        port = parts.port or (443 if is_encrypted else 80)
        secret = self.token.get_secret_value() if self.token else ""
        # Proxies take the first header, Chroma's own service the second.
        headers = {"Authorization": f"Bearer {secret}", "X-Chroma-Token": secret} if secret else {}
        # Chroma's client has no timeout, so a request with a timeout tests the server first.
        heartbeat = f"{self.url}/api/v2/heartbeat"
        httpx2.get(heartbeat, headers=headers, timeout=self.timeout).raise_for_status()
        client: Any = chromadb.HttpClient(
            self.url, port, ssl=is_encrypted, headers=headers, settings=settings
        )
        for connection in _connections(client):
            connection.timeout = self.timeout
        return cast("Client", client)

    def close(self, client: Client) -> None:
        """Close a client of this store."""
        if self.url is not None:
            for connection in _connections(client):  # Chroma does not close them
                connection.close()
        client.close()


def _connections(client: Any) -> list[Any]:
    """Return the two HTTP clients of a Chroma client, one of them for administration."""
    return [part._server._session for part in (client, client._admin_client)]  # noqa: SLF001


def store_address(settings: ProductsSettings, state_dir: Path) -> StoreAddress:
    """Return the address of the configured store."""
    if settings.url is not None:
        return StoreAddress(url=settings.url, token=settings.auth_token, timeout=settings.timeout)
    path = (settings.path or state_dir / "chroma").absolute()
    # `active.json` has the path as a key, so ../shop must give the same path in every folder.
    return StoreAddress(path=path.resolve() if ".." in path.parts else path)


class NotBuiltError(ApiError):
    """The products with this name are not built yet."""

    def __init__(self, name: str, address: StoreAddress) -> None:
        super().__init__(
            f"The products '{name}' are not built in {address.display_name}. Run "
            "`standards-mcp products build FILE`, or set path, url or collection in "
            "[plugins.products]."
        )


@contextmanager
def translated_errors(address: StoreAddress, name: str) -> Generator[None]:
    """Translate Chroma's exceptions into errors for callers.

    Args:
        name: The configured name of the products.

    Raises:
        NotBuiltError: The collection does not exist.
        ApiError: The store fails in another way.
    """
    try:
        yield
    except (ToolError, ServiceError):
        raise
    except Exception as error:  # noqa: BLE001  - Chroma also raises plain exceptions
        kind = type(error).__name__
        if kind == "NotFoundError":
            raise NotBuiltError(name, address) from None
        if "dimension" in str(error):
            raise ApiError(
                f"The products in {address.display_name} have vectors of another model. Set "
                "[plugins.products] model, or run `standards-mcp products build FILE`."
            ) from None
        remedy = (
            "Check that it runs, and [plugins.products] url and auth_token."
            if address.url
            else "Check the folder and the free space, or run `standards-mcp products build FILE`."
        )
        raise ApiError(
            f"The products in {address.display_name} cannot be reached or read ({kind}). {remedy}"
        ) from None


# Exactly the UUIDs that Chroma writes: other folders beside its database are not ours.
_SEGMENT: Final = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def remove_orphans(folder: Path) -> None:
    """Remove vector folders that belong to no collection.

    Chroma stores the vectors of a collection in a folder, named by an id in the table ``segments``,
    and leaves this folder behind when the collection is deleted.
    """
    # Chroma writes the row before the folder, so the folders must be listed before the rows.
    folders = [path for path in folder.iterdir() if _SEGMENT.fullmatch(path.name) and path.is_dir()]
    database = f"{(folder / 'chroma.sqlite3').absolute().as_uri()}?mode=ro"
    # A later version of Chroma may have another table.
    with suppress(sqlite3.Error), closing(sqlite3.connect(database, uri=True)) as connection:
        segments = {str(name) for (name,) in connection.execute("SELECT id FROM segments")}
        for path in folders:
            if path.name not in segments:
                shutil.rmtree(path, ignore_errors=True)
