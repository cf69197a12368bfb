"""Follow another server: list its items, list them again after changes, and subscribe.

Each subscription has a task. It connects again after the end of a connection, and then reports an
update, because updates may have been missed meanwhile.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client.subscriptions import (
    ListenNotSupportedError,
    ResourceUpdated,
    SubscriptionLost,
    listen,
)
from pydantic import TypeAdapter, ValidationError

from standards_mcp._utils.text import describe_exception
from standards_mcp.contributions.skills import EXTENSION
from standards_mcp.errors import ApiError, ToolError

from .definitions import RefusedError, objects_of
from .session import OpenSession, is_closed

if TYPE_CHECKING:
    from .connection import Connection

log = logging.getLogger(__name__)

MAX_ITEMS: Final = 1000
"""The most items of each kind of one server."""
_MAX_PAGES: Final = 100
_PAUSE_SECONDS: Final = 0.2
_END_SECONDS: Final = 2.0

_ENDINGS: Final = (ToolError, MCPError, SubscriptionLost, ListenNotSupportedError, TimeoutError)
"""The exceptions that end a subscription."""

_PAGE: Final = TypeAdapter(list[Any])
_CURSOR: Final[TypeAdapter[str | None]] = TypeAdapter(str | None)
_METHODS: Final = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "skills": "skills/list",
    "resourceTemplates": "resources/templates/list",
}
_LIST_CHANGES: Final = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)

FetchListing: TypeAlias = Callable[[OpenSession], Awaitable[dict[str, Any]]]
"""Lists the items of a server again."""


class Listing:
    """The items of one server, listed again after each change.

    Args:
        name: The server's name in the log.
        on_listing: Called with every answer of *fetch*.
        on_updated: Called with the URI of a resource whose contents have changed.
        seconds: Time limit for the lists of the server.
        listen_seconds: Pause before a new stream of changes, after the end of one.

    Attributes:
        follows: True to list the items again after each change.
        changed: Set it to list the items again.
    """

    follows = True

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
        self.changed = anyio.Event()

    async def refresh(self, session: OpenSession) -> None:
        """List the items, and pass them to *on_listing*.

        Raises:
            TimeoutError: The server does not answer in time.
        """
        with anyio.fail_after(self._seconds):
            listing = await self._fetch(session)
        self._on_listing(listing)

    async def follow(self, session: OpenSession) -> None:
        """Refresh after every change, until the connection ends."""
        if not self.follows:
            await session.ended.wait()
            return
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, session)
            group.start_soon(self._refresh_changes, session)
            await session.ended.wait()
            group.cancel_scope.cancel()

    # Log notifications are dropped: they do not name their call, and one process answers many
    # callers.
    async def on_notification(self, message: object) -> None:
        """Handle a notification of a server with a protocol before 2026-07-28."""
        if isinstance(message, types.ResourceUpdatedNotification):
            self._on_updated(message.params.uri)
        elif isinstance(message, _LIST_CHANGES):
            self.changed.set()

    async def _listen(self, session: OpenSession) -> None:
        """Note changes from the stream of a server with protocol 2026-07-28."""
        for attempt in itertools.count():
            try:
                async with listen(
                    session.client,
                    tools_list_changed=True,
                    prompts_list_changed=True,
                    resources_list_changed=True,
                ) as events:
                    if attempt:
                        self.changed.set()  # changes were missed meanwhile
                    async for _ in events:
                        self.changed.set()
            except (ListenNotSupportedError, MCPError, SubscriptionLost, TimeoutError) as exc:
                fields = {"plugin": self._name, "reason": str(exc)}
                log.debug("the stream of changes ended", extra=fields)
                if isinstance(exc, (ListenNotSupportedError, MCPError)):
                    return  # the server reports no changes
            await anyio.sleep(self._listen_seconds)

    async def _refresh_changes(self, session: OpenSession) -> None:
        while True:
            await self.changed.wait()
            self.changed = anyio.Event()
            try:
                await self.refresh(session)
            except (MCPError, ValidationError, TimeoutError) as exc:
                fields = {"plugin": self._name, "reason": _failure_of(exc, self._seconds)}
                log.warning("the changed items of a server cannot be listed", extra=fields)
            await anyio.sleep(_PAUSE_SECONDS)


async def list_items(session: OpenSession, name: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the raw items of a server, by the names of the protocol's lists.

    The key ``completes`` is true if the server completes arguments. Only lists that the server
    announces are requested. Tools are served even if prompts or resources cannot be listed: each of
    the other lists may take half of the remaining time.

    Args:
        name: The server's name in the log.
        known: The earlier result. Its prompts and resources are used if their list fails.

    Raises:
        MCPError: The server does not list its tools.
        ValidationError: The list of tools does not follow the protocol.
    """
    announced = session.client.server_capabilities or types.ServerCapabilities()
    listing: dict[str, Any] = {"completes": announced.completions is not None}
    # Some of the oldest servers announce nothing.
    if announced.tools is not None or (announced.prompts is None and announced.resources is None):
        listing["tools"] = await _list(session, name, "tools")
        session.note_tools(listing["tools"])
    others = ["prompts"] if announced.prompts is not None else []
    others += ["resources", "resourceTemplates"] if announced.resources is not None else []
    others += ["skills"] if EXTENSION in (announced.extensions or {}) else []
    for key in others:
        listing[key] = await _list_if_possible(session, name, key, known.get(key, []))
    return listing


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
            return []  # many servers with resources have no templates
        fields = {"plugin": name, "reason": _failure_of(exc, seconds)}
        log.warning("the %s of a server cannot be listed", key, extra=fields)
        return known


def _failure_of(exc: Exception, seconds: float) -> str:
    is_silent = isinstance(exc, TimeoutError)
    return f"it did not answer within {seconds:.1f} s" if is_silent else describe_exception(exc)


async def _list(session: OpenSession, name: str, key: str) -> list[Mapping[str, Any]]:
    """Return one list of a server with all of its pages."""
    items: list[Mapping[str, Any]] = []
    cursors: list[str | None] = [None]
    following: str | None = None
    while len(cursors) <= _MAX_PAGES and len(items) <= MAX_ITEMS:
        cursor = cursors[-1]
        page = await session.request(_METHODS[key], {"cursor": cursor} if cursor else {})
        items += objects_of(_PAGE.validate_python(page.get(key)))
        if (following := _CURSOR.validate_python(page.get("nextCursor"))) in cursors:
            break  # this is the last page, or the server repeats its cursors
        cursors.append(following)
    if following is not None or len(items) > MAX_ITEMS:
        fields = {"plugin": name, "kept": min(len(items), MAX_ITEMS)}
        log.warning("a server has too many %s; the rest is left out", key, extra=fields)
    return items[:MAX_ITEMS]


@dataclass(slots=True, eq=False)
class _SharedSubscription:
    """A subscription at the server, for all subscribers of one resource.

    Attributes:
        confirmed: Done once the server has agreed or refused.
        task: Keeps the subscription.
        count: Number of subscribers.
    """

    confirmed: asyncio.Future[None]
    task: asyncio.Task[None] | None = None
    count: int = 0


class Subscriptions:
    """The subscriptions at one server, one for each resource.

    Args:
        name: The server's name in the log.
        title: The server's name in errors.
        connection: Returns the connection to the server, or raises `ApiError`.
        on_updated: Called with the URI of a resource whose contents have changed.
        seconds: Time limit for an answer of the server.
        retry_seconds: Pause before a new request, after the end of a subscription.
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
        self._by_uri: dict[str, _SharedSubscription] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}

    async def subscribe(self, uri: str) -> None:
        """Subscribe to a resource; undo each call with one `unsubscribe`.

        Raises:
            RefusedError: The server refuses.
            ApiError: The server cannot be reached.
        """
        subscription = self._by_uri.get(uri)
        if subscription is None:
            confirmed = asyncio.get_running_loop().create_future()
            subscription = self._by_uri[uri] = _SharedSubscription(confirmed)
            subscription.task = asyncio.create_task(self._keep(uri, confirmed))
        subscription.count += 1
        try:
            await asyncio.shield(subscription.confirmed)
        except BaseException:
            self._release(uri, subscription)
            raise

    def unsubscribe(self, uri: str) -> None:
        """Undo one `subscribe`; the last one ends the subscription at the server."""
        if subscription := self._by_uri.get(uri):
            self._release(uri, subscription)

    async def aclose(self) -> None:
        """End all subscriptions."""
        for uri, subscription in list(self._by_uri.items()):
            subscription.count = 1
            self._release(uri, subscription)
        if self._ending:
            await asyncio.wait(self._ending.values(), timeout=_END_SECONDS)

    def _release(self, uri: str, subscription: _SharedSubscription) -> None:
        subscription.count -= 1
        if subscription.count or not subscription.task:
            return
        if self._by_uri.get(uri) is subscription:
            del self._by_uri[uri]
        if subscription.confirmed.done():
            subscription.confirmed.exception()  # no subscriber may have waited for it
        self._ending[uri] = task = subscription.task
        task.add_done_callback(lambda _: self._forget(uri, task))
        task.cancel()

    def _forget(self, uri: str, task: asyncio.Task[None]) -> None:
        if self._ending.get(uri) is task:
            del self._ending[uri]

    async def _keep(self, uri: str, confirmed: asyncio.Future[None]) -> None:
        """Keep a subscription; set the result of *confirmed* once the server agrees or refuses."""
        # The end of an earlier subscription to the same URI could end this one.
        if ending := self._ending.get(uri):
            await asyncio.wait({ending})
        while True:
            try:
                session = await self._connection().open()
                await self._follow(session, uri, confirmed)
            except _ENDINGS as exc:
                if not confirmed.done():
                    confirmed.set_exception(self._error(exc))
                    return
                fields = {"plugin": self._name, "uri": uri, "reason": str(exc)}
                log.debug("a subscription ended", extra=fields)
            await anyio.sleep(self._retry_seconds)

    def _error(self, cause: Exception) -> ToolError:
        if isinstance(cause, MCPError):
            return RefusedError(self._title, cause.message, cause.code, cause.error.data)
        if isinstance(cause, TimeoutError):
            seconds = f"{self._seconds:g} s"
            return ApiError(f"{self._title} did not answer within {seconds}. Try again later.")
        return cause if isinstance(cause, ToolError) else ApiError(f"{self._title}: {cause}")

    async def _follow(
        self, session: OpenSession, uri: str, confirmed: asyncio.Future[None]
    ) -> None:
        """Subscribe, and wait until the connection or the stream of changes ends."""
        capabilities = session.client.server_capabilities
        if not (capabilities and capabilities.resources and capabilities.resources.subscribe):
            self._confirm(uri, confirmed)  # the server reports no updates; an error would not help
            await session.ended.wait()
        elif session.is_handshake:
            with anyio.fail_after(self._seconds):
                await session.request("resources/subscribe", {"uri": uri})
            self._confirm(uri, confirmed)
            try:
                await session.ended.wait()
            finally:
                if not session.ended.is_set():
                    with anyio.move_on_after(_END_SECONDS, shield=True), suppress(MCPError):
                        await session.request("resources/unsubscribe", {"uri": uri})
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
