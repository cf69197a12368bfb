"""What another server contributes, asked for again whenever the server says that it changed."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client.subscriptions import (
    ListenNotSupportedError,
    PromptsListChanged,
    ResourcesListChanged,
    SubscriptionLost,
    ToolsListChanged,
    listen,
)
from pydantic import TypeAdapter, ValidationError

from standards_mcp._utils.text import describe_exception
from standards_mcp.config.models.tools import Kind

from .definitions import objects_of
from .session import OpenSession, is_closed

log = logging.getLogger(__name__)


MAX_ITEMS: Final = 1000
"""The most tools, and the most of each other kind, that are taken of one server."""
_MAX_PAGES: Final = 100

_SETTLE_SECONDS: Final = 0.2

_ALL: Final[frozenset[Kind]] = frozenset(("tools", "prompts", "resources"))
_METHODS: Final = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}
_CHANGES: Final[Mapping[type[object], Kind]] = {
    types.ToolListChangedNotification: "tools",
    types.PromptListChangedNotification: "prompts",
    types.ResourceListChangedNotification: "resources",
    ToolsListChanged: "tools",
    PromptsListChanged: "prompts",
    ResourcesListChanged: "resources",
}

FetchListing: TypeAlias = Callable[[OpenSession, Collection[Kind]], Awaitable[dict[str, Any]]]
"""Asks a server for what it contributes, of these kinds at least; returns all."""


class Listing:
    """Keeps up with what one server contributes.

    Args:
        name: What the log calls the server.
        on_listing: Called with every answer of *fetch*.
        on_updated: Called with the URI of a resource whose contents have changed.
        seconds: How long the server may take to tell what it contributes.
        listen_seconds: After which a stream of changes that ended is opened again.
    """

    def __init__(
        self,
        name: str,
        fetch: FetchListing,
        on_listing: Callable[[dict[str, Any]], None],
        on_updated: Callable[[str], None],
        seconds: float,
        listen_seconds: float,
    ) -> None:
        self._name = name
        self._fetch = fetch
        self._on_listing = on_listing
        self._on_updated = on_updated
        self._seconds = seconds
        self._listen_seconds = listen_seconds
        self._changed = anyio.Event()
        self._kinds = set[Kind]()

    async def refresh(self, session: OpenSession, kinds: Collection[Kind] = _ALL) -> None:
        """Ask the server, and tell of the answer.

        Raises:
            TimeoutError: It does not answer.
        """
        with anyio.fail_after(self._seconds):
            found = await self._fetch(session, kinds)
        self._on_listing(found)

    async def follow(self, session: OpenSession) -> None:
        """Refresh after every change, until the connection ends."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, session)
            group.start_soon(self._refresh_changes, session)
            await session.ended.wait()
            group.cancel_scope.cancel()

    async def on_notification(self, message: object) -> None:
        """Note a change that a server of an earlier generation tells of."""
        if isinstance(message, types.ResourceUpdatedNotification):
            self._on_updated(message.params.uri)
        elif kind := _CHANGES.get(type(message)):
            self._note(kind)

    def _note(self, *kinds: Kind) -> None:
        self._kinds.update(kinds)
        self._changed.set()

    async def _listen(self, session: OpenSession) -> None:
        """Note changes that a server of 2026-07-28 tells of: on a stream that was asked for."""
        for attempt in itertools.count():
            try:
                async with listen(
                    session.client,
                    tools_list_changed=True,
                    prompts_list_changed=True,
                    resources_list_changed=True,
                ) as events:
                    if attempt:
                        self._note(*_ALL)  # nobody told what changed meanwhile
                    async for event in events:
                        self._note(_CHANGES.get(type(event), "tools"))
            except (ListenNotSupportedError, MCPError) as exc:
                log.debug("no changes are told", extra={"plugin": self._name, "reason": str(exc)})
                return
            except (SubscriptionLost, TimeoutError) as exc:
                log.debug("a stream ended", extra={"plugin": self._name, "reason": str(exc)})
            await anyio.sleep(self._listen_seconds)

    async def _refresh_changes(self, session: OpenSession) -> None:
        while True:
            await self._changed.wait()
            self._changed, kinds, self._kinds = anyio.Event(), self._kinds, set[Kind]()
            try:
                await self.refresh(session, kinds)
            except (MCPError, ValidationError, TimeoutError) as exc:
                fields = {"plugin": self._name, "reason": _why(exc, self._seconds)}
                log.warning("what changed cannot be listed", extra=fields)
            await anyio.sleep(_SETTLE_SECONDS)


async def list_kinds(
    session: OpenSession, name: str, kinds: Collection[Kind], known: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a server contributes as it spells it, by the names of the protocol's lists.

    The key ``completes`` says whether it completes arguments. A kind that the server does not
    announce is not asked for. Prompts or resources that cannot be listed keep no tool from being
    served: each of their lists may take half of the time that is left.

    Args:
        name: What the log calls the server.
        kinds: What to ask for; the rest is taken from *known*.
        known: What it contributed before.

    Raises:
        MCPError: There is no answer about its tools.
        ValidationError: That answer is not of the protocol.
    """
    able = session.client.server_capabilities or types.ServerCapabilities()
    found: dict[str, Any] = {"completes": able.completions is not None}
    # Some of the oldest servers announce nothing.
    has_tools = able.tools is not None or (able.prompts is None and able.resources is None)
    if has_tools:
        found["tools"] = known.get("tools", [])
        if "tools" in kinds:
            found["tools"] = await _list(session, name, "tools")
            session.note_tools(found["tools"])
    announced: dict[str, Kind] = {"prompts": "prompts"} if able.prompts is not None else {}
    if able.resources is not None:
        announced |= {"resources": "resources", "resourceTemplates": "resources"}
    for key, kind in announced.items():
        found[key] = known.get(key, [])
        if kind in kinds:
            found[key] = await _list_if_possible(session, name, key, found[key])
    return found


async def _list_if_possible(
    session: OpenSession, name: str, key: str, known: list[Any]
) -> list[Mapping[str, Any]]:
    seconds = (anyio.current_effective_deadline() - anyio.current_time()) / 2
    try:
        with anyio.fail_after(seconds):
            return await _list(session, name, key)
    except (MCPError, ValidationError, TimeoutError) as exc:
        if isinstance(exc, MCPError) and is_closed(exc):
            raise
        if isinstance(exc, MCPError) and exc.code == types.METHOD_NOT_FOUND:
            return []  # many servers of resources have no templates
        fields = {"plugin": name, "reason": _why(exc, seconds)}
        log.warning("the %s of a server cannot be listed", key, extra=fields)
        return known


def _why(exc: Exception, seconds: float) -> str:
    is_silent = isinstance(exc, TimeoutError)
    return f"it did not answer within {seconds:.1f} s" if is_silent else describe_exception(exc)


async def _list(session: OpenSession, name: str, key: str) -> list[Mapping[str, Any]]:
    """Return one list of a server, page by page."""
    items: list[Mapping[str, Any]] = []
    cursors: list[str | None] = [None]
    following: str | None = None
    while len(cursors) <= _MAX_PAGES and len(items) <= MAX_ITEMS:
        cursor = cursors[-1]
        page = await session.request(_METHODS[key], {"cursor": cursor} if cursor else {})
        items += objects_of(_PAGE.validate_python(page.get(key)))
        if (following := _CURSOR.validate_python(page.get("nextCursor"))) in cursors:
            break  # there is no further page, or the server goes round in circles
        cursors.append(following)
    if following is not None or len(items) > MAX_ITEMS:
        fields = {"plugin": name, "kept": min(len(items), MAX_ITEMS)}
        log.warning("a server has more %s than are taken", key, extra=fields)
    return items[:MAX_ITEMS]


_PAGE: Final = TypeAdapter(list[Any])
_CURSOR: Final[TypeAdapter[str | None]] = TypeAdapter(str | None)
