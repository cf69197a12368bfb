"""The products that count now, open to be asked."""

from __future__ import annotations

import threading
import time
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
_ATTEMPTS: Final = 8
_PAUSE: Final = 0.02


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
        self._is_closed = False
        self._active: Active | None = None
        self._client: Client | None = None
        self._collection: Collection | None = None

    def ask(self, question: Callable[[Collection], T], model: str | None = None) -> T:
        """Return what the active collection answers.

        Args:
            model: What made the vectors that the question has.

        Raises:
            NotBuiltError: There is none.
            ApiError: The store fails or is closed, or its vectors are of another model.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            active = self._file.read()
            try:
                with self._using(model) as collection, translated(self.place, self._name):
                    answer = question(collection)
            except ApiError as error:
                # A build may have removed the collection that was asked, or a server have it anew.
                is_gone = isinstance(error, NotBuiltError) or self._file.read() != active
                if attempt == _ATTEMPTS or not is_gone:
                    raise
            else:
                # Chroma may find nothing, without an error, in what a build removes meanwhile. A
                # build makes its own collection active before it removes another one.
                if self._file.read() == active:
                    return answer
            with self._changed:
                self._collection = None
            time.sleep(_PAUSE)
        raise ApiError(
            f"Builds have replaced the products '{self._name}' again and again. Try again when "
            "they have ended."
        )

    def close(self) -> None:
        """Let go of the store: whoever waits for it gets an error at once."""
        self._is_closed = True
        # Whoever has it and does not end lets go of it later.
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
        # Read here: what a thread has read before it got the lock may be old.
        if self._file.read() != self._active:
            self._changed.wait_for(lambda: self._users == 0, _PATIENCE)
            self._check_open()
            # Another thread may have opened it in the meantime.
            if (active := self._file.read()) != self._active:
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
