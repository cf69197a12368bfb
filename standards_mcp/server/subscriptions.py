"""Subscriptions of clients to the content of resources.

Before 2026-07-28 a client subscribes to one URI with a request, until it unsubscribes or leaves.
Since then it opens a stream and names the URIs and the kinds of changes that it wants.
"""

from __future__ import annotations

import asyncio
import logging
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

from standards_mcp.calls.context import HostContext, Principal
from standards_mcp.errors import NotServedError, ToolError
from standards_mcp.host import Host

from .context import Context, connection_of
from .handlers import as_protocol_errors

log = logging.getLogger(__name__)

_NOTICE_SECONDS: Final = 1.0
_MAX_URIS: Final = 1000
_MAX_STREAMS: Final = 1000


@dataclass(slots=True, eq=False)
class _Subscriber:
    """A connected client of a protocol version before 2026-07-28.

    Attributes:
        principal_now: Returns the client with its current rights, which a reload may have reduced.
        releases: The functions that end its subscriptions, by URI.
    """

    session: ServerSession
    principal_now: Callable[[], Principal]
    releases: dict[str, Callable[[], None]] = field(default_factory=dict[str, Callable[[], None]])


class Subscriptions:
    """All subscriptions to the resources of a host.

    Attributes:
        bus: Delivers all events to the streams of ``subscriptions/listen``.
        missed_events: Each new stream begins with these.
    """

    def __init__(self, host: Host, principal_of: Callable[[Context], Principal]) -> None:
        self._host, self._principal_of = host, principal_of
        self.bus = InMemorySubscriptionBus()
        self.missed_events: list[ServerEvent] = []
        self._subscribers: dict[Connection, _Subscriber] = {}
        self._streams = 0
        self._pending_uris = dict[str, None]()
        self._notifying: asyncio.Future[None] | None = None

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer ``resources/subscribe``."""
        client, uri = self._subscriber(ctx), params.uri
        if uri in client.releases:
            return types.EmptyResult()
        if len(client.releases) >= _MAX_URIS:
            message = f"a client may subscribe to {_MAX_URIS} resources; unsubscribe from some"
            raise MCPError(types.INVALID_PARAMS, message)
        await self._host.manager.wait_listed()
        with as_protocol_errors(self._host, {"uri": uri}):
            release = await self._host.subscribe(uri, client.principal_now())
        # The client may have left, or subscribed twice, during the `await`.
        if client not in self._subscribers.values() or uri in client.releases:
            release()
        else:
            client.releases[uri] = release
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer ``resources/unsubscribe``, also without a subscription."""
        if release := self._subscriber(ctx).releases.pop(params.uri, None):
            release()
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer ``subscriptions/listen``, first with the URIs that the stream covers."""
        if self._streams >= _MAX_STREAMS:
            raise MCPError(types.INTERNAL_ERROR, "too many streams of changes are open; close some")
        principal_now = partial(self._principal_of, ctx)
        requested = params.notifications
        self._streams += 1
        try:
            async with AsyncExitStack() as stack:
                uris = requested.resource_subscriptions or ()
                covered = await self._subscribe_all(uris, principal_now(), stack)

                def affected(changed: str) -> list[str]:
                    parents = (uri for uri in covered if _is_part(changed, uri))
                    return [uri for uri in parents if self._is_served(principal_now(), uri)]

                stream = ListenHandler(_FilteredBus(self.bus, affected, self.missed_events))
                accepted = requested.model_copy(update={"resource_subscriptions": covered or None})
                return await stream(ctx, params.model_copy(update={"notifications": accepted}))
        finally:
            self._streams -= 1

    async def _subscribe_all(
        self, uris: Iterable[str], principal: Principal, stack: AsyncExitStack
    ) -> list[str]:
        """Subscribe to the URIs until *stack* closes; return those that support it."""
        subscribed: list[str] = []
        if uris:
            await self._host.manager.wait_listed()
        for uri in dict.fromkeys(uris):
            if len(subscribed) >= _MAX_URIS:
                break
            try:
                stack.callback(await self._host.subscribe(uri, principal))
            except (NotServedError, ToolError) as exc:
                log.debug("a resource cannot be subscribed to", extra={"reason": str(exc)})
                continue
            subscribed.append(uri)
        return subscribed

    def notify_updated(self, uri: str) -> None:
        """Schedule a notification to the subscribers of a resource and of its parents."""
        self._pending_uris[uri] = None
        if self._notifying is None or self._notifying.done():
            self._notifying = asyncio.ensure_future(self._notify())

    async def _notify(self) -> None:
        while self._pending_uris:
            changed, _ = self._pending_uris.popitem()
            await self.bus.publish(ResourceUpdated(changed))
            for client in list(self._subscribers.values()):
                for uri in [uri for uri in client.releases if _is_part(changed, uri)]:
                    if self._is_served(client.principal_now(), uri):
                        await deliver(client.session.send_resource_updated(uri))

    def _is_served(self, principal: Principal, uri: str) -> bool:
        """True if a resource is still served to this subscriber."""
        try:
            self._host.content.resource_at(uri, HostContext(principal))
        except NotServedError:
            return False
        return True

    def _subscriber(self, ctx: Context) -> _Subscriber:
        connection = connection_of(ctx)
        if connection not in self._subscribers:
            principal_now = partial(self._principal_of, ctx)
            self._subscribers[connection] = _Subscriber(ctx.session, principal_now)
            # The SDK has no public way to learn that a client has left.
            connection.exit_stack.callback(self._forget, connection)
        return self._subscribers[connection]

    def _forget(self, connection: Connection) -> None:
        for release in self._subscribers.pop(connection).releases.values():
            release()


class _FilteredBus(SubscriptionBus):
    """An event bus that passes on only the events for one client.

    Args:
        affected: Returns the client's subscribed URIs that a change of a resource affects.
        missed_events: Events from before the subscription.
    """

    def __init__(
        self,
        bus: SubscriptionBus,
        affected: Callable[[str], list[str]],
        missed_events: Iterable[ServerEvent],
    ) -> None:
        self._bus, self._affected, self._missed_events = bus, affected, missed_events

    async def publish(self, event: ServerEvent) -> None:
        """Publish an event to all clients."""
        await self._bus.publish(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Call *listener* for each event that concerns the client. See `SubscriptionBus`."""

        def forward(event: ServerEvent) -> None:
            if isinstance(event, ResourceUpdated):
                for uri in self._affected(event.uri):
                    listener(ResourceUpdated(uri))
            else:
                listener(event)

        for event in self._missed_events:
            listener(event)
        return self._bus.subscribe(forward)


async def deliver(notice: Awaitable[None]) -> bool:
    """Send a notice to one client; return True if it was sent.

    The time is limited, because a client that does not read must not delay the others.
    """
    try:
        with anyio.fail_after(_NOTICE_SECONDS):
            await notice
    except Exception as exc:  # noqa: BLE001  - the exceptions depend on the transport
        log.debug("a notice cannot be delivered", extra={"reason": str(exc)})
        return False
    return True


def _is_part(uri: str, subscribed: str) -> bool:
    """True if *uri* is the subscribed resource or a part of it."""
    return uri == subscribed or uri.startswith(subscribed.rstrip("/") + "/")
