"""The products that count now, open to be asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from standards_mcp import ApiError

from .active import Active, ActiveFile
from .client import Place
from .errors import GoneError, NotBuiltError, translated

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api import ClientAPI

T = TypeVar("T")
_PATIENCE: Final = 5.0


class Store:
    """Asks the active collection. It may be used by several threads.

    Each question looks whether a build has made another collection active, and then opens the
    store anew: Chroma would keep the old one in memory for as long as its client is open.

    Args:
        name: What the settings call the products.
    """

    def __init__(self, place: Place, file: ActiveFile, name: str) -> None:
        self.place, self._file, self._name = place, file, name
        self._changed = threading.Condition()
        self._users = 0
        self._active: Active | None = None
        self._client: ClientAPI | None = None
        self._collection: Collection | None = None

    def ask(self, question: Callable[[Collection], T]) -> T:
        """Return what the active collection answers.

        Raises:
            NotBuiltError: There is none.
            ApiError: The store fails.
        """
        try:
            with self._using() as collection, translated(self.place):
                return question(collection)
        except GoneError:
            self._forget()
        try:
            with self._using() as collection, translated(self.place):
                return question(collection)
        except GoneError:
            raise NotBuiltError(self._name, self.place) from None

    def check_model(self, model: str) -> None:
        """Check that a build has made the vectors with this model.

        Raises:
            ApiError: It was another one.
        """
        active = self._file.read()
        if active is not None and active.model != model:
            raise ApiError(
                f"The products '{self._name}' have vectors of {active.model}, and [plugins.products] "
                f"model is {model}. Run `standards-mcp products build FILE`, or set model."
            )

    def close(self) -> None:
        """Let go of the store."""
        with self._changed:
            self._close()

    @contextmanager
    def _using(self) -> Generator[Collection]:
        with self._changed:
            collection = self._current()
            self._users += 1
        try:
            yield collection
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    def _current(self) -> Collection:
        active = self._file.read()
        if active != self._active:
            self._changed.wait_for(lambda: self._users == 0, _PATIENCE)
            # Another thread may have opened it in the meantime.
            if active != self._active:
                self._close()
                self._active = active
        if self._collection is None:
            self._collection = self._open(active.collection if active else self._name)
        return self._collection

    def _open(self, name: str) -> Collection:
        if self.place.is_empty():
            raise NotBuiltError(self._name, self.place)
        try:
            with translated(self.place):
                self._client = self._client or self.place.open()
                return self._client.get_collection(name, embedding_function=None)
        except GoneError:
            raise NotBuiltError(self._name, self.place) from None

    def _forget(self) -> None:
        with self._changed:
            self._collection = None

    def _close(self) -> None:
        client, self._client, self._collection = self._client, None, None
        if client is not None:
            with translated(self.place):
                client.close()  # type: ignore[attr-defined]
