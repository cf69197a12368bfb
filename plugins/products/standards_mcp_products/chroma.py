"""Open and close Chroma, and clean up after it.

The import of Chroma takes a second or more, so the first use imports it.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import httpx2
from pydantic import SecretStr

if TYPE_CHECKING:
    from chromadb.api.client import Client


def open_client(
    path: Path | None, url: str | None, token: SecretStr | None, timeout: float
) -> Client:
    """Return a client of a folder or of a server, which the caller must close.

    Args:
        path: The folder, if *url* is None.
        timeout: Seconds for one request to the server.
    """
    import chromadb  # noqa: PLC0415  - takes a second or more
    from chromadb.config import Settings  # noqa: PLC0415

    # Chroma requires equal settings for all clients of a folder. Do not read `.env`.
    no_file: Any = {"_env_file": None}
    settings = Settings(anonymized_telemetry=False, **no_file)
    if url is None:
        return cast("Client", chromadb.PersistentClient(str(path), settings=settings))
    parts = urlsplit(url)
    is_encrypted = parts.scheme == "https"
    port = parts.port or (443 if is_encrypted else 80)
    secret = token.get_secret_value() if token else ""
    # Proxies take the first header, Chroma's own service the second.
    headers = {"Authorization": f"Bearer {secret}", "X-Chroma-Token": secret} if secret else {}
    # Chroma's client has no timeout, so a request with a timeout tests the server first.
    httpx2.get(f"{url}/api/v2/heartbeat", headers=headers, timeout=timeout).raise_for_status()
    client = chromadb.HttpClient(url, port, ssl=is_encrypted, headers=headers, settings=settings)
    for connection in _connections(client):
        connection.timeout = timeout
    return cast("Client", client)


def close_client(client: Client) -> None:
    """Close a client, and the connections of a server's client, which Chroma does not close."""
    for connection in _connections(client):
        connection.close()
    client.close()


def _connections(client: Any) -> list[Any]:
    """Return the two HTTP clients of a server's client, one of them for administration."""
    servers = [part._server for part in (client, client._admin_client)]  # noqa: SLF001
    return [server._session for server in servers if hasattr(server, "_session")]  # noqa: SLF001


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
