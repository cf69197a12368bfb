"""Clients that want to know when a resource holds something else than before.

Before 2026-07-28 a client subscribes to one URI by a request, and hears of it until it takes that
back or leaves. Since then it opens a stream, and names the URIs with the changes that it wants to
hear of.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.connection import Connection
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ServerEvent,
    SubscriptionBus,
)

from standards_mcp.calls.context import Principal, Unattended
from standards_mcp.errors import NotServedError, ToolError
from standards_mcp.host import Host

from .client_log import connection_of
from .context import Context
from .handlers import as_protocol_errors

log = logging.getLogger(__name__)

_NOTICE_SECONDS: Final = 1.0
_MOST_URIS: Final = 1000
_MOST_STREAMS: Final = 1000


@dataclass(slots=True, eq=False)
class _Client:
    """A client of an earlier generation, as long as it is connected.

    Attributes:
        principal_now: Returns what it may see now: a reload may take that away.
        releases: What ends a subscription, by its URI.
    """

    session: ServerSession
    principal_now: Callable[[], Principal]
    releases: dict[str, Callable[[], None]] = field(default_factory=dict[str, Callable[[], None]])
    has_left: bool = False


class Subscriptions:
    """The subscriptions of all clients to what *host* serves.

    Attributes:
        bus: Carries all that streams of changes tell.
    """

    def __init__(self, host: Host, principal_of: Callable[[Context], Principal]) -> None:
        self._host, self._principal_of = host, principal_of
        self.bus = InMemorySubscriptionBus()
        self._clients: dict[Connection, _Client] = {}
        self._listened = Counter[str]()
        self._streams = 0
        self._updated = dict[str, None]()
        self._telling: asyncio.Future[None] | None = None

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer ``resources/subscribe``."""
        client, uri = self._client(ctx), params.uri
        if uri in client.releases:
            return types.EmptyResult()
        if len(client.releases) >= _MOST_URIS:
            message = f"a client may subscribe to {_MOST_URIS} resources; unsubscribe from some"
            raise MCPError(types.INVALID_PARAMS, message)
        await self._host.manager.wait_listed()
        with as_protocol_errors(self._host, {"uri": uri}):
            release = await self._host.subscribe(uri, client.principal_now())
        if client.has_left or uri in client.releases:  # meanwhile
            release()
        else:
            client.releases[uri] = release
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer ``resources/unsubscribe``, also of what was not subscribed to."""
        if release := self._client(ctx).releases.pop(params.uri, None):
            release()
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer ``subscriptions/listen``; the client learns which URIs it will hear of."""
        if self._streams >= _MOST_STREAMS:
            raise MCPError(types.INTERNAL_ERROR, "too many streams of changes are open; close some")
        principal_now = partial(self._principal_of, ctx)
        wanted, principal = params.notifications, principal_now()
        stream = ListenHandler(_Heard(self.bus, lambda uri: self._may_hear(principal_now(), uri)))
        self._streams += 1
        try:
            async with AsyncExitStack() as stack:
                uris = await self._subscribed(wanted.resource_subscriptions or (), principal, stack)
                heard = wanted.model_copy(update={"resource_subscriptions": uris or None})
                return await stream(ctx, params.model_copy(update={"notifications": heard}))
        finally:
            self._streams -= 1

    async def _subscribed(
        self, uris: Iterable[str], principal: Principal, stack: AsyncExitStack
    ) -> list[str]:
        """Return the URIs that can be subscribed to, which they are as long as *stack* is open."""
        found: list[str] = []
        if uris:
            await self._host.manager.wait_listed()
        for uri in dict.fromkeys(uris):
            if len(found) >= _MOST_URIS:
                break
            try:
                stack.callback(await self._host.subscribe(uri, principal))
            except (NotServedError, ToolError) as exc:
                log.debug("a resource cannot be subscribed to", extra={"reason": str(exc)})
                continue
            self._listened[uri] += 1
            stack.callback(self._unlisten, uri)
            found.append(uri)
        return found

    def _unlisten(self, uri: str) -> None:
        self._listened[uri] -= 1
        if not self._listened[uri]:
            del self._listened[uri]

    def updated(self, uri: str) -> None:
        """Let those be told soon who have subscribed to a resource, or to what it is a part of."""
        self._updated[uri] = None
        if self._telling is None or self._telling.done():
            self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        while self._updated:
            changed, _ = self._updated.popitem()
            for uri in [each for each in self._listened if _is_part(changed, each)]:
                await self.bus.publish(ResourceUpdated(uri))
            for client in list(self._clients.values()):
                for uri in [each for each in client.releases if _is_part(changed, each)]:
                    if self._may_hear(client.principal_now(), uri):
                        await told(client.session.send_resource_updated(uri))

    def _may_hear(self, principal: Principal, uri: str) -> bool:
        """Tell whether a resource is still served to who subscribed to it."""
        try:
            self._host.content.resource_at(uri, Unattended(principal))
        except NotServedError:
            return False
        return True

    def _client(self, ctx: Context) -> _Client:
        connection = connection_of(ctx)
        if connection not in self._clients:
            self._clients[connection] = _Client(ctx.session, partial(self._principal_of, ctx))
            connection.exit_stack.callback(self._forget, connection)
        return self._clients[connection]

    def _forget(self, connection: Connection) -> None:
        client = self._clients.pop(connection)
        client.has_left = True
        for release in client.releases.values():
            release()


class _Heard(SubscriptionBus):
    """What one client may hear of all that is told.

    Args:
        may_hear: Tells whether the client may know that a resource has changed.
    """

    def __init__(self, bus: SubscriptionBus, may_hear: Callable[[str], bool]) -> None:
        self._bus = bus
        self._may_hear = may_hear

    async def publish(self, event: ServerEvent) -> None:
        """Tell all clients."""
        await self._bus.publish(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Tell *listener* from now on. See `SubscriptionBus`."""

        def hear(event: ServerEvent) -> None:
            if not isinstance(event, ResourceUpdated) or self._may_hear(event.uri):
                listener(event)

        return self._bus.subscribe(hear)


async def told(notice: Awaitable[None]) -> bool:
    """Send a notice to one client; tell whether it got it.

    A client that has left, or does not read, must not keep the others from hearing it.
    """
    try:
        with anyio.fail_after(_NOTICE_SECONDS):
            await notice
    except Exception as exc:  # noqa: BLE001  - whatever the transport raises
        log.debug("a client cannot be told of a change", extra={"reason": str(exc)})
        return False
    return True


def _is_part(uri: str, subscribed: str) -> bool:
    """Tell whether *uri* is that of a resource that was subscribed to, or of a part of it."""
    return uri == subscribed or uri.startswith(subscribed.rstrip("/") + "/")
