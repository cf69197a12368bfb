"""The configured products, and searches of their active collection."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel

from standards_mcp import ApiError, ServiceError, ToolError
from standards_mcp.files import replacing

from .chroma import close_client, open_client
from .settings import ProductsSettings

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api.client import Client


class Active(BaseModel, frozen=True):
    """The active build.

    Attributes:
        collection: The name of the collection in the store.
        products: Number of products.
        model: The encoder of the vectors.
        source: The name of the source file.
        built: Time of the build, in seconds since the epoch.
    """

    collection: str
    products: int
    model: str
    source: str
    built: float


class _State(BaseModel):
    """The content of ``active.json``: the active builds by stores and names."""

    owner: str = ""
    stores: dict[str, dict[str, Active]] = {}


class NotBuiltError(ApiError):
    """The products with this name are not built yet."""


@dataclass(frozen=True)
class Catalogue:
    """The configured products in their store; ``active.json`` names their active build.

    A write replaces ``active.json`` in one step, so a reader sees the old content or the new one.

    Attributes:
        folder: The plugin's state folder.
    """

    settings: ProductsSettings
    folder: Path

    @property
    def name(self) -> str:
        """The setting ``collection``."""
        return self.settings.collection

    @cached_property
    def path(self) -> Path | None:
        """The folder of an embedded store, None for a server."""
        if self.settings.url is not None:
            return None
        path = (self.settings.path or self.folder / "chroma").absolute()
        # `active.json` has the path as a key, so ../shop must give the same path in every folder.
        return path.resolve() if ".." in path.parts else path

    @property
    def store_key(self) -> str:
        """The key of the store in ``active.json``."""
        return self.settings.url or str(self.path)

    @property
    def store_name(self) -> str:
        """The name of the store in messages."""
        url = self.settings.url
        return f"the Chroma server at {urlsplit(url).netloc}" if url else str(self.path)

    def is_empty(self) -> bool:
        """Return True if a local folder has no store yet; always False for a server."""
        return self.path is not None and not (self.path / "chroma.sqlite3").exists()

    def open(self, min_timeout: float = 0) -> Client:
        """Return a client of the store; close it with `close_client`."""
        timeout = max(self.settings.timeout, min_timeout)
        return open_client(self.path, self.settings.url, self.settings.auth_token, timeout)

    def active(self) -> Active | None:
        """Return the active build, None before the first one.

        Raises:
            ApiError: The file cannot be read.
        """
        return self._read().stores.get(self.store_key, {}).get(self.name)

    def activate(self, active: Active) -> None:
        """Make a build active."""
        state = self._read()
        state.stores.setdefault(self.store_key, {})[self.name] = active
        self._write(state)

    def owner(self) -> str:
        """Return the id of this state folder, created at the first call.

        A server may have collections of several state folders. A build removes collections with the
        id of its own folder only.
        """
        state = self._read()
        if not state.owner:
            state.owner = secrets.token_hex(8)
            self._write(state)
        return state.owner

    def not_built(self) -> NotBuiltError:
        """Return the error for products that are not built."""
        return NotBuiltError(
            f"The products '{self.name}' are not built in {self.store_name}. Run `standards-mcp "
            "products build FILE`, or set path, url or collection in [plugins.products]."
        )

    @contextmanager
    def translated_errors(self) -> Generator[None]:
        """Translate Chroma's exceptions into errors for callers.

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
                raise self.not_built() from None
            if "dimension" in str(error):
                raise ApiError(
                    f"The products in {self.store_name} have vectors of another model. Set "
                    "[plugins.products] model, or run `standards-mcp products build FILE`."
                ) from None
            remedy = (
                "Check the folder and the free space, or run `standards-mcp products build FILE`."
            )
            if self.settings.url:
                remedy = "Check that it runs, and [plugins.products] url and auth_token."
            raise ApiError(
                f"The products in {self.store_name} cannot be reached or read ({kind}). {remedy}"
            ) from None

    @property
    def _file(self) -> Path:
        return self.folder / "active.json"

    def _read(self) -> _State:
        try:
            return _State.model_validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return _State()
        except (OSError, ValueError):
            raise ApiError(
                f"{self._file} cannot be read. Remove it, and run `standards-mcp products build "
                "FILE`."
            ) from None

    def _write(self, state: _State) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # One step. Chroma would need two, a new name and a deletion.
            with replacing(self._file) as file:
                file.write(state.model_dump_json(indent=2))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ApiError(f"cannot write {self._file}: {error.strerror or error}") from error


T = TypeVar("T")
_WAIT_SECONDS: Final = 5.0
_ATTEMPTS: Final = 8
_PAUSE_SECONDS: Final = 0.02


class Store:
    """Run queries on the active collection. Thread-safe.

    After a build, the next question reopens the store: an open Chroma client would keep the old
    collection in memory.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._condition = threading.Condition()
        self._users = 0
        self._is_closed = False
        self._active: Active | None = None
        self._client: Client | None = None
        self._collection: Collection | None = None

    def ask(self, question: Callable[[Collection], T], model: str | None = None) -> T:
        """Run a query on the active collection.

        Args:
            question: The query. If a build replaces the collection meanwhile, it runs again.
            model: The encoder of the query's vector, None without a vector.

        Raises:
            NotBuiltError: No products are built.
            ApiError: The store fails or is closed, or has vectors of another encoder.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            # Reading the file takes 0.1 ms.
            active = self._catalogue.active()
            try:
                with self._borrow(model) as collection, self._catalogue.translated_errors():
                    answer = question(collection)
            except ApiError as error:
                # A build may have removed or replaced the collection meanwhile.
                is_replaced = isinstance(error, NotBuiltError) or self._catalogue.active() != active
                if attempt == _ATTEMPTS or not is_replaced:
                    raise
            else:
                # Chroma may silently find nothing in a collection that a build removes meanwhile.
                # A build makes its own collection active before it removes another one.
                if self._catalogue.active() == active:
                    return answer
            with self._condition:
                self._collection = None
            time.sleep(_PAUSE_SECONDS)
        raise ApiError(
            f"Builds have replaced the products '{self._catalogue.name}' again and again. Try "
            "again when they have ended."
        )

    def close(self) -> None:
        """Close the store. Later queries, and queries that wait to be run, get an error."""
        self._is_closed = True
        # If a thread still holds the lock after the timeout, the store stays open.
        if self._condition.acquire(timeout=_WAIT_SECONDS):
            try:
                self._close()
            finally:
                self._condition.release()

    @contextmanager
    def _borrow(self, model: str | None) -> Generator[Collection]:
        with self._condition:
            collection = self._current_collection(model)
            self._users += 1
        try:
            yield collection
        finally:
            with self._condition:
                self._users -= 1
                self._condition.notify_all()

    def _current_collection(self, model: str | None) -> Collection:
        self._check_open()
        # Read while the lock is held: an earlier value may be outdated.
        if self._catalogue.active() != self._active:
            self._condition.wait_for(lambda: self._users == 0, _WAIT_SECONDS)
            self._check_open()
            # Another thread may have reopened the store in the meantime.
            if (active := self._catalogue.active()) != self._active:
                self._close()
                self._active = active
        if self._active is not None and model not in (None, self._active.model):
            raise ApiError(
                f"The products '{self._catalogue.name}' have vectors of {self._active.model}, and "
                f"[plugins.products] model is {model}. Run `standards-mcp products build FILE`, or "
                "set model."
            )
        if self._collection is None:
            self._collection = self._open(
                self._active.collection if self._active else self._catalogue.name
            )
        return self._collection

    def _open(self, name: str) -> Collection:
        if self._catalogue.is_empty():
            raise self._catalogue.not_built()
        with self._catalogue.translated_errors():
            self._client = self._client or self._catalogue.open()
            if self._is_closed:  # while the client was opened
                self._close()
            self._check_open()
            return self._client.get_collection(name, embedding_function=None)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ApiError(
                f"The connection to {self._catalogue.store_name} is closed. Restart the server."
            )

    def _close(self) -> None:
        client, self._client, self._collection = self._client, None, None
        if client is not None:
            with self._catalogue.translated_errors():
                close_client(client)
