"""What another server contributes, asked for again whenever the server says that it changed."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, NotRequired, TypeAlias, cast

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from standards_mcp._utils.text import describe_exception

from .session import OpenSession

log = logging.getLogger(__name__)


MAX_TOOLS: Final = 1000
_MAX_PAGES: Final = 100

_SETTLE_SECONDS: Final = 0.2

FetchListing: TypeAlias = Callable[[OpenSession], Awaitable[dict[str, Any]]]
"""Asks a server for what it contributes."""


class _Page(TypedDict):
    tools: list[Any]
    nextCursor: NotRequired[str | None]


_PAGE: Final = TypeAdapter(_Page)


class Listing:
    """Keeps up with what one server contributes.

    Args:
        name: What the log calls the server.
        on_listing: Called with every answer of *fetch*.
        listen_seconds: After which a stream of changes that ended is opened again.
    """

    def __init__(
        self,
        name: str,
        fetch: FetchListing,
        on_listing: Callable[[dict[str, Any]], None],
        listen_seconds: float,
    ) -> None:
        self._name = name
        self._fetch = fetch
        self._on_listing = on_listing
        self._listen_seconds = listen_seconds
        self._changed = anyio.Event()

    async def refresh(self, session: OpenSession) -> None:
        """Ask the server, and tell of the answer."""
        self._on_listing(await self._fetch(session))

    async def follow(self, session: OpenSession) -> None:
        """Refresh after every change, until the connection ends."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, session)
            group.start_soon(self._refresh_changes, session)
            await session.ended.wait()
            group.cancel_scope.cancel()

    async def on_notification(self, message: object) -> None:
        """Note a change that a server of an earlier generation tells of."""
        if isinstance(message, types.ToolListChangedNotification):
            self._changed.set()

    async def _listen(self, session: OpenSession) -> None:
        """Note changes that a server of 2026-07-28 tells of: on a stream that was asked for."""
        for attempt in itertools.count():
            try:
                async with listen(session.client, tools_list_changed=True) as events:
                    if attempt:
                        self._changed.set()  # nobody told what changed meanwhile
                    async for _ in events:
                        self._changed.set()
            except (ListenNotSupportedError, MCPError) as exc:
                log.debug("no changes are told", extra={"plugin": self._name, "reason": str(exc)})
                return
            except (SubscriptionLost, TimeoutError) as exc:
                log.debug("a stream ended", extra={"plugin": self._name, "reason": str(exc)})
            await anyio.sleep(self._listen_seconds)

    async def _refresh_changes(self, session: OpenSession) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            try:
                await self.refresh(session)
            except (MCPError, ValidationError) as exc:
                fields = {"plugin": self._name, "reason": describe_exception(exc)}
                log.warning("changed tools cannot be listed", extra=fields)
            await anyio.sleep(_SETTLE_SECONDS)


async def list_tools(session: OpenSession, name: str) -> dict[str, Any]:
    """Return the tools of a server as it spells them, under ``tools``.

    Args:
        name: What the log calls the server.

    Raises:
        MCPError: There is no answer.
        ValidationError: It is not of the protocol.
    """
    tools: list[dict[str, Any]] = []
    cursors: list[str | None] = [None]
    following: str | None = None
    while len(cursors) <= _MAX_PAGES and len(tools) <= MAX_TOOLS:
        cursor = cursors[-1]
        raw = await session.request("tools/list", {"cursor": cursor} if cursor else {})
        page = _PAGE.validate_python(raw)
        tools += [cast("dict[str, Any]", tool) for tool in page["tools"] if isinstance(tool, dict)]
        if (following := page.get("nextCursor")) in cursors:
            break  # there is no further page, or the server goes round in circles
        cursors.append(following)
    if following is not None or len(tools) > MAX_TOOLS:
        fields = {"plugin": name, "kept": min(len(tools), MAX_TOOLS)}
        log.warning("a server has more tools than are taken", extra=fields)
    session.note_tools(tools)
    return {"tools": tools[:MAX_TOOLS]}
