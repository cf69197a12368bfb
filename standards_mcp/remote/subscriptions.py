"""Subscriptions to the resources of one other server, held while somebody here wants them.

Each is held by a task: it connects anew where the connection has ended, and then tells of a change,
since nobody knows what changed meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio
from mcp import MCPError
from mcp.client.subscriptions import (
    ListenNotSupportedError,
    ResourceUpdated,
    SubscriptionLost,
    listen,
)

from standards_mcp.errors import ApiError, ToolError

from .errors import RefusedError
from .session import OpenSession

if TYPE_CHECKING:
    from .connection import Connection

log = logging.getLogger(__name__)

_END_SECONDS: Final = 2.0


@dataclass(slots=True, eq=False)
class _Held:
    """A subscription.

    Attributes:
        confirmed: Done once the server has agreed or refused.
        task: Holds it.
        count: How many want it.
    """

    confirmed: asyncio.Future[None]
    task: asyncio.Task[None] | None = None
    count: int = 0


class Subscriptions:
    """Subscribes at one server, once for all who want a resource.

    Args:
        name: What the log calls the server.
        title: What errors call it.
        connection: Returns the connection to it, or raises `ApiError`.
        on_updated: Called with the URI of a resource whose contents have changed.
        seconds: How long the server may take to answer.
        retry_seconds: After which a subscription that ended is asked for again.
    """

    def __init__(
        self,
        name: str,
        title: str,
        connection: Callable[[], Connection],
        on_updated: Callable[[str], None],
        seconds: float,
        retry_seconds: float,
    ) -> None:
        self._name = name
        self._title = title
        self._connection = connection
        self._on_updated = on_updated
        self._seconds = seconds
        self._retry_seconds = retry_seconds
        self._held: dict[str, _Held] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}

    async def subscribe(self, uri: str) -> None:
        """Subscribe to a resource, as often as it is unsubscribed from.

        Raises:
            RefusedError: The server refuses.
            ApiError: It cannot be asked.
        """
        held = self._held.get(uri)
        if held is None:
            held = self._held[uri] = _Held(asyncio.get_running_loop().create_future())
            held.task = asyncio.create_task(self._hold(uri, held.confirmed))
        held.count += 1
        try:
            await asyncio.shield(held.confirmed)
        except BaseException:
            self._release(uri, held)
            raise

    def unsubscribe(self, uri: str) -> None:
        """Undo one `subscribe`; the last one ends the subscription at the server."""
        if held := self._held.get(uri):
            self._release(uri, held)

    async def aclose(self) -> None:
        """End all subscriptions."""
        for uri, held in list(self._held.items()):
            held.count = 1
            self._release(uri, held)
        if self._ending:
            await asyncio.wait(self._ending.values(), timeout=_END_SECONDS)

    def _release(self, uri: str, held: _Held) -> None:
        held.count -= 1
        if held.count or not held.task:
            return
        if self._held.get(uri) is held:
            del self._held[uri]
        if held.confirmed.done():
            held.confirmed.exception()  # perhaps nobody waited for it
        self._ending[uri] = task = held.task
        task.add_done_callback(lambda _: self._forget(uri, task))
        task.cancel()

    def _forget(self, uri: str, task: asyncio.Task[None]) -> None:
        if self._ending.get(uri) is task:
            del self._ending[uri]

    async def _hold(self, uri: str, confirmed: asyncio.Future[None]) -> None:
        # Otherwise the end of one that was given up just now could end this one.
        if ending := self._ending.get(uri):
            await asyncio.wait({ending})
        while True:
            try:
                session = await self._connection().open()
                await self._follow(session, uri, confirmed)
            except (ToolError, MCPError, SubscriptionLost, ListenNotSupportedError) as exc:
                if not confirmed.done():
                    confirmed.set_exception(self._error(exc))
                    return
                fields = {"plugin": self._name, "uri": uri, "reason": str(exc)}
                log.debug("a subscription ended", extra=fields)
            await anyio.sleep(self._retry_seconds)

    def _error(self, cause: Exception) -> ToolError:
        if isinstance(cause, MCPError):
            return RefusedError(self._title, cause.message, cause.code, cause.error.data)
        return cause if isinstance(cause, ToolError) else ApiError(f"{self._title}: {cause}")

    async def _follow(
        self, session: OpenSession, uri: str, confirmed: asyncio.Future[None]
    ) -> None:
        """Hold a subscription until the connection, or the stream of changes, ends."""
        able = session.client.server_capabilities
        if not (able and able.resources and able.resources.subscribe):
            self._confirm(uri, confirmed)  # it will never tell; to say so would help nobody
            await session.ended.wait()
        elif session.is_handshake:
            await self._subscribe(session, uri)
            self._confirm(uri, confirmed)
            try:
                await session.ended.wait()
            finally:
                await self._unsubscribe(session, uri)
        else:
            async with listen(session.client, resource_subscriptions=[uri]) as events:
                self._confirm(uri, confirmed)
                async for event in events:
                    if isinstance(event, ResourceUpdated):
                        self._on_updated(event.uri)

    def _confirm(self, uri: str, confirmed: asyncio.Future[None]) -> None:
        if confirmed.done():
            self._on_updated(uri)
        else:
            confirmed.set_result(None)

    async def _subscribe(self, session: OpenSession, uri: str) -> None:
        try:
            with anyio.fail_after(self._seconds):
                await session.request("resources/subscribe", {"uri": uri})
        except TimeoutError:
            message = f"{self._title} did not answer within {self._seconds:g} s. Try again later."
            raise ApiError(message) from None

    async def _unsubscribe(self, session: OpenSession, uri: str) -> None:
        if session.ended.is_set():
            return
        with anyio.move_on_after(_END_SECONDS, shield=True):
            try:
                await session.request("resources/unsubscribe", {"uri": uri})
            except MCPError as exc:
                fields = {"plugin": self._name, "uri": uri, "reason": exc.message}
                log.debug("a server does not end a subscription", extra=fields)
