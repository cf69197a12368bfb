"""The products that count now, open to be asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from standards_mcp import ApiError

from .active import Active, ActiveFile
from .client import Place
from .errors import NotBuiltError, translated

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api.client import Client

T = TypeVar("T")
_PATIENCE: Final = 5.0
_ATTEMPTS: Final = 4


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
        self._client: Client | None = None
        self._collection: Collection | None = None

    def ask(self, question: Callable[[Collection], T], model: str | None = None) -> T:
        """Return what the active collection answers.

        Args:
            model: What made the vectors that the question has.

        Raises:
            NotBuiltError: There is none.
            ApiError: The store fails, or its vectors are of another model.
        """
        attempts = 0
        while True:
            active, attempts = self._file.read(), attempts + 1
            try:
                return self._asked(question, active, model)
            except ApiError as error:
                # A build may have removed the collection that was asked, or a server have it anew.
                is_gone = isinstance(error, NotBuiltError) or self._file.read() != active
                if attempts == _ATTEMPTS or not is_gone:
                    raise
            with self._changed:
                self._collection = None

    def close(self) -> None:
        """Let go of the store."""
        with self._changed:
            self._close()

    def _asked(
        self, question: Callable[[Collection], T], active: Active | None, model: str | None
    ) -> T:
        if active is not None and model not in (None, active.model):
            raise ApiError(
                f"The products '{self._name}' have vectors of {active.model}, and "
                f"[plugins.products] model is {model}. Run `standards-mcp products build FILE`, or "
                "set model."
            )
        with self._using(active) as collection, translated(self.place, self._name):
            return question(collection)

    @contextmanager
    def _using(self, active: Active | None) -> Generator[Collection]:
        with self._changed:
            collection = self._current(active)
            self._users += 1
        try:
            yield collection
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    def _current(self, active: Active | None) -> Collection:
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
        with translated(self.place, self._name):
            self._client = self._client or self.place.open()
            return self._client.get_collection(name, embedding_function=None)

    def _close(self) -> None:
        client, self._client, self._collection = self._client, None, None
        if client is not None:
            with translated(self.place, self._name):
                self.place.close(client)
