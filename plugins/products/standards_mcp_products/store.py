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

from .chroma import NotBuiltError, Place, place_of, translated
from .settings import ProductsSettings

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api.client import Client


@dataclass(frozen=True, slots=True)
class Active:
    """The active build.

    Attributes:
        collection: Its name in the store.
        products: Number of products.
        model: The model of the vectors.
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
    """The configured products, and the file ``active.json`` that names their active build.

    The file has the builds of each store and name. A write replaces it in one step, so readers see
    the old content or the new.

    Attributes:
        place: Their store.
        folder: The plugin's state folder.
        name: Their configured name.
    """

    place: Place
    folder: Path
    name: str

    def active(self) -> Active | None:
        """Return the active build, None before the first one.

        Raises:
            ApiError: The file cannot be read.
        """
        try:
            entry: Any = self._content().get("stores", {}).get(self.place.key, {}).get(self.name)
            return None if entry is None else Active(**entry)
        except (AttributeError, TypeError):
            raise self._damaged() from None

    def activate(self, active: Active) -> None:
        """Make a build active."""
        content = self._content()
        stores = content.setdefault("stores", {})
        stores.setdefault(self.place.key, {})[self.name] = asdict(active)
        self._write(content)

    def owner(self) -> str:
        """Return the id of this state folder, created at the first call.

        A server may have collections of several state folders, and each removes its own only.
        """
        self.active()  # a damaged file is not written again
        content = self._content()
        if not content.get("owner"):
            content["owner"] = secrets.token_hex(8)
            self._write(content)
        return str(content["owner"])

    @property
    def _file(self) -> Path:
        return self.folder / "active.json"

    def _content(self) -> dict[str, Any]:
        try:
            content = json.loads(self._file.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            raise self._damaged() from None
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

    def _damaged(self) -> ApiError:
        return ApiError(
            f"{self._file} cannot be read. Remove it, and run `standards-mcp products build FILE`."
        )


def catalogue_of(settings: ProductsSettings, state_dir: Path) -> Catalogue:
    """Return the configured products."""
    return Catalogue(place_of(settings, state_dir), state_dir, settings.collection)


T = TypeVar("T")
_PATIENCE: Final = 5.0
_ATTEMPTS: Final = 8
_PAUSE: Final = 0.02


class Store:
    """Ask the active collection. Thread-safe.

    After a build, the next question reopens the store: an open Chroma client would keep the old
    collection in memory.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue, self.place, self._name = catalogue, catalogue.place, catalogue.name
        self._changed = threading.Condition()
        self._users = 0
        self._is_closed = False
        self._active: Active | None = None
        self._client: Client | None = None
        self._collection: Collection | None = None

    def ask(self, question: Callable[[Collection], T], model: str | None = None) -> T:
        """Ask the active collection.

        Args:
            model: The model of the question's vector.

        Raises:
            NotBuiltError: No products are built.
            ApiError: The store fails or is closed, or its vectors are of another model.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            # A read takes 0.1 ms.
            active = self._catalogue.active()
            try:
                with self._using(model) as collection, translated(self.place, self._name):
                    answer = question(collection)
            except ApiError as error:
                # A build may have removed or replaced the collection meanwhile.
                is_gone = isinstance(error, NotBuiltError) or self._catalogue.active() != active
                if attempt == _ATTEMPTS or not is_gone:
                    raise
            else:
                # Chroma may silently find nothing in a collection that a build removes meanwhile.
                # A build makes its own collection active before it removes another one.
                if self._catalogue.active() == active:
                    return answer
            with self._changed:
                self._collection = None
            time.sleep(_PAUSE)
        raise ApiError(
            f"Builds have replaced the products '{self._name}' again and again. Try again when "
            "they have ended."
        )

    def close(self) -> None:
        """Close the store. Waiting threads get an error at once."""
        self._is_closed = True
        # After the timeout, a thread that still uses the store keeps it open.
        if self._changed.acquire(timeout=_PATIENCE):
            try:
                self._close()
            finally:
                self._changed.release()

    @contextmanager
    def _using(self, model: str | None) -> Generator[Collection]:
        with self._changed:
            collection = self._current(model)
            self._users += 1
        try:
            yield collection
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    def _current(self, model: str | None) -> Collection:
        self._check_open()
        # Read inside of the lock: an earlier value may be outdated.
        if self._catalogue.active() != self._active:
            self._changed.wait_for(lambda: self._users == 0, _PATIENCE)
            self._check_open()
            # Another thread may have opened it in the meantime.
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
        if self.place.is_empty():
            raise NotBuiltError(self._name, self.place)
        with translated(self.place, self._name):
            self._client = self._client or self.place.open()
            if self._is_closed:  # while it was opened
                self._close()
            self._check_open()
            return self._client.get_collection(name, embedding_function=None)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ApiError(f"The search in {self.place.shown} has ended. Start it again.")

    def _close(self) -> None:
        client, self._client, self._collection = self._client, None, None
        if client is not None:
            with translated(self.place, self._name):
                self.place.close(client)
