"""What plugins say has changed while they run: what they contribute, and what resources hold.

They may say so in any thread, at any time, and as often as they like.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final

from standards_mcp.contributions.collection import Contributions
from standards_mcp.contributions.resources import find_resource

log = logging.getLogger(__name__)

_GATHER_SECONDS: Final = 0.05


class Changes:
    """Takes up changes in the event loop, several of one kind at a time.

    Args:
        reread: Reads what the plugin of a name contributes.
        contributed_by: Returns what the plugin of a name contributes now.

    Attributes:
        on_updated: They are called with the URI of a resource whose contents have changed.
    """

    def __init__(
        self, reread: Callable[[str], None], contributed_by: Callable[[str], Contributions]
    ) -> None:
        self._reread = reread
        self._contributed_by = contributed_by
        self._loop: asyncio.AbstractEventLoop | None = None
        self._planned: asyncio.TimerHandle | None = None
        self._reading = (0, "")
        self._plugins = dict[str, None]()
        self._resources = dict[tuple[str, str], None]()
        self.on_updated: list[Callable[[str], None]] = []

    @contextmanager
    def taken_up(self) -> Generator[None]:
        """Take up changes in this event loop, also those that were told before."""
        self._loop = asyncio.get_running_loop()
        self._schedule()
        try:
            yield
        finally:
            self._loop = None
            if self._planned:
                self._planned.cancel()
                self._planned = None

    def note_contributions(self, plugin: str) -> None:
        """Note that a plugin contributes something else than before."""
        if self._reading == (threading.get_ident(), plugin):
            return  # its own hook says so while it is read, and would for ever
        self._plugins[plugin] = None
        self._schedule()

    def note_resource(self, plugin: str, uri: str) -> None:
        """Note that a resource of a plugin holds something else than before.

        Raises:
            TypeError: The URI is no text.
        """
        if not isinstance(uri, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"resource_updated takes a URI as text, not a {type(uri).__name__}")
        if self._loop:  # otherwise nobody can have read it
            self._resources[plugin, uri] = None
            self._schedule()

    def tell_updated(self, uri: str) -> None:
        """Tell of a resource that holds something else than before."""
        for listener in self.on_updated:
            listener(uri)

    def _schedule(self) -> None:
        if loop := self._loop:
            with suppress(RuntimeError):  # it has just been closed
                loop.call_soon_threadsafe(self._plan)

    def _plan(self) -> None:
        if self._loop and self._planned is None:
            self._planned = self._loop.call_later(_GATHER_SECONDS, self._take_up)

    def _take_up(self) -> None:
        self._planned = None
        while self._plugins:
            plugin, _ = self._plugins.popitem()
            self._reading = (threading.get_ident(), plugin)
            try:
                self._reread(plugin)
            finally:
                self._reading = (0, "")
        while self._resources:
            plugin, uri = self._resources.popitem()[0]
            if find_resource(self._contributed_by(plugin).resources, uri):
                self.tell_updated(uri)
            else:
                fields = {"plugin": plugin, "uri": uri[:200]}
                log.warning(
                    "a plugin tells of a change of what is none of its resources", extra=fields
                )
