"""Opens Chroma. Its import takes a second or more, so it is imported by the first use."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import httpx2
from pydantic import SecretStr

from standards_mcp_products.settings import ProductsSettings

if TYPE_CHECKING:
    from chromadb.api.client import Client


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is.

    Attributes:
        path: Its folder, without a server.
        url: The address of its server.
        token: What the server asks for.
        timeout: Seconds for one request to the server.
    """

    path: Path | None = None
    url: str | None = None
    token: SecretStr | None = field(default=None, repr=False)
    timeout: float = 10

    @property
    def key(self) -> str:
        """What ``active.json`` calls it."""
        return self.url or str(self.path)

    @property
    def shown(self) -> str:
        """What people read of it."""
        return f"the Chroma server at {urlsplit(self.url).netloc}" if self.url else str(self.path)

    @property
    def remedy(self) -> str:
        """What to do when it fails."""
        if self.url:
            return "Check that it runs, and [plugins.products] url and auth_token."
        return "Check the folder and the free space, or run `standards-mcp products build FILE`."

    def is_empty(self) -> bool:
        """Tell whether there is nothing, where that can be told without opening it."""
        return self.path is not None and not (self.path / "chroma.sqlite3").exists()

    def open(self) -> Client:
        """Return a client. Whoever opens one must close it."""
        import chromadb  # noqa: PLC0415  - takes a second or more
        from chromadb.config import Settings  # noqa: PLC0415

        # Equal for all clients of a folder, and without the .env of the working directory.
        no_file: Any = {"_env_file": None}
        settings = Settings(anonymized_telemetry=False, **no_file)
        if self.url is None:
            return cast("Client", chromadb.PersistentClient(str(self.path), settings=settings))
        parts = urlsplit(self.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        secret = self.token.get_secret_value() if self.token else ""
        # Servers behind a proxy take the first, Chroma's own service the second.
        headers = {"Authorization": f"Bearer {secret}", "X-Chroma-Token": secret} if secret else {}
        # Chroma's client waits for ever: for its first questions, if nobody asks before, and later.
        heartbeat = f"{self.url}/api/v2/heartbeat"
        httpx2.get(heartbeat, headers=headers, timeout=self.timeout).raise_for_status()
        client: Any = chromadb.HttpClient(
            self.url,
            port,
            ssl=parts.scheme == "https",
            headers=headers,
            settings=settings,
        )
        for each in _connections(client):
            each.timeout = self.timeout
        return cast("Client", client)

    def close(self, client: Client) -> None:
        """Let go of a client that it has opened."""
        if self.url is not None:
            for each in _connections(client):  # which Chroma leaves open
                each.close()
        client.close()


def _connections(client: Any) -> list[Any]:
    """Return the HTTP clients of a client of a server: its own, and that of its admin's part."""
    return [each._server._session for each in (client, client._admin_client)]  # noqa: SLF001


def place_of(settings: ProductsSettings, state_dir: Path) -> Place:
    """Return where the settings have the products."""
    if settings.url is not None:
        return Place(url=settings.url, token=settings.auth_token, timeout=settings.timeout)
    path = settings.path_in(state_dir).absolute()
    # `active.json` knows a folder by its path: ../shop must be the same from wherever it is named.
    return Place(path=path.resolve() if ".." in path.parts else path)
