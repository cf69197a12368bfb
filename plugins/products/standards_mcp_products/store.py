"""The active collection of products, and the file ``active.json`` that names it."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from standards_mcp import ApiError
from standards_mcp.files import replacing

from .chroma import NotBuiltError, StoreAddress, store_address, translated_errors
from .settings import ProductsSettings

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api.client import Client


@dataclass(frozen=True, slots=True)
class Active:
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


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The products with one name in one store; ``active.json`` names their active build.

    The file has one build for each store and name. A write replaces the file in one step, so a
    reader sees the old content or the new content.

    Attributes:
        address: The address of the store.
        folder: The plugin's state folder.
        name: The setting ``collection``.
    """

    address: StoreAddress
    folder: Path
    name: str

    def active(self) -> Active | None:
        """Return the active build, None before the first one.

        Raises:
            ApiError: The file cannot be read.
        """
        try:
            entry: Any = self._read().get("stores", {}).get(self.address.key, {}).get(self.name)
            return None if entry is None else Active(**entry)
        except (AttributeError, TypeError):
            raise self._damaged_error() from None

    def activate(self, active: Active) -> None:
        """Make a build active."""
        content = self._read()
        stores = content.setdefault("stores", {})
        stores.setdefault(self.address.key, {})[self.name] = asdict(active)
        self._write(content)

    def owner(self) -> str:
        """Return the id of this state folder, created at the first call.

        A server may have collections of several state folders. A build removes collections with the
        id of its own folder only.
        """
        self.active()  # raises for a damaged file, which must not be overwritten
        content = self._read()
        if not content.get("owner"):
            content["owner"] = secrets.token_hex(8)
            self._write(content)
        return str(content["owner"])

    @property
    def _file(self) -> Path:
        return self.folder / "active.json"

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self._file.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            raise self._damaged_error() from None
        return cast("dict[str, Any]", content)

    def _write(self, content: Mapping[str, Any]) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # One step. Chroma would need two, a new name and a deletion.
            with replacing(self._file) as file:
                json.dump(content, file, indent=2)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ApiError(f"cannot write {self._file}: {error.strerror or error}") from error

    def _damaged_error(self) -> ApiError:
        return ApiError(
            f"{self._file} cannot be read. Remove it, and run `standards-mcp products build FILE`."
        )


def catalogue_of(settings: ProductsSettings, state_dir: Path) -> Catalogue:
    """Return the configured products."""
    return Catalogue(store_address(settings, state_dir), state_dir, settings.collection)


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
        self._catalogue, self.address, self._name = catalogue, catalogue.address, catalogue.name
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
                with (
                    self._borrow(model) as collection,
                    translated_errors(self.address, self._name),
                ):
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
            f"Builds have replaced the products '{self._name}' again and again. Try again when "
            "they have ended."
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
                f"The products '{self._name}' have vectors of {self._active.model}, and "
                f"[plugins.products] model is {model}. Run `standards-mcp products build FILE`, or "
                "set model."
            )
        if self._collection is None:
            self._collection = self._open(self._active.collection if self._active else self._name)
        return self._collection

    def _open(self, name: str) -> Collection:
        if self.address.is_empty():
            raise NotBuiltError(self._name, self.address)
        with translated_errors(self.address, self._name):
            self._client = self._client or self.address.open()
            if self._is_closed:  # while the client was opened
                self._close()
            self._check_open()
            return self._client.get_collection(name, embedding_function=None)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ApiError(
                f"The connection to {self.address.display_name} is closed. Restart the server."
            )

    def _close(self) -> None:
        client, self._client, self._collection = self._client, None, None
        if client is not None:
            with translated_errors(self.address, self._name):
                self.address.close(client)
