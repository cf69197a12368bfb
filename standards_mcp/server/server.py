"""Builds the MCP server on the SDK.

It stands on the SDK's low-level server, because the high-level one answers unknown tools, wrong
arguments and crashes in ways of its own (docs/decisions.md). The low-level one serves the
handshake protocol of 2024 and 2025 and the 2026-07-28 generation from the same object.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any, Final, cast

import anyio
from mcp.server import InitializationOptions, NotificationOptions, Server
from mcp.server.context import CallNext, HandlerResult
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)

from standards_mcp.calls.context import Principal
from standards_mcp.config.models.tools import Kind
from standards_mcp.host import Host

from .context import Context, local_principal
from .handlers import handlers

log = logging.getLogger(__name__)


_NOTICE_SECONDS: Final = 1.0
_FIRST_LISTING_SECONDS: Final = 0.2
_GATHER_SECONDS: Final = 0.1
_MOST_SESSIONS: Final = 1000
_EVENTS: Final[Mapping[Kind, Callable[[], ServerEvent]]] = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}


class HostServer(Server[None]):
    """A server that can tell its clients, of both protocol generations, that its lists changed."""

    def __init__(
        self, host: Host, principal_of: Callable[[Context], Principal], **kwargs: Any
    ) -> None:
        self._host, self._principal_of = host, principal_of
        self._bus = InMemorySubscriptionBus()
        self._sessions = deque[ServerSession](maxlen=_MOST_SESSIONS)
        self._announcement: asyncio.Future[None] | None = None
        self._listed = asyncio.Event()
        super().__init__(on_subscriptions_listen=ListenHandler(self._bus), **kwargs)
        self.middleware.append(self._follow)
        # What a client carries between the rounds of a question is not to be trusted unsealed.
        security = RequestStateSecurity.ephemeral()
        self.middleware.append(RequestStateBoundary(security, default_audience=self.name))

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Promise to tell of changes."""
        promised = notification_options or NotificationOptions(
            tools_changed=True, prompts_changed=True, resources_changed=True
        )
        return super().create_initialization_options(
            promised, experimental_capabilities, extensions
        )

    async def first_listing(self) -> None:
        """Wait until a client has been given the tools, but for a moment only."""
        with anyio.move_on_after(_FIRST_LISTING_SECONDS):
            await self._listed.wait()

    def announce_changes(self) -> None:
        """Let clients be told soon; what changes meanwhile is told with it."""
        if self._announcement is None or self._announcement.done():
            self._announcement = asyncio.ensure_future(self._announce())

    async def _announce(self) -> None:
        await asyncio.sleep(_GATHER_SECONDS)
        kinds: tuple[Kind, ...] = ("tools", "prompts", "resources")
        await self.tell_changed(kinds)

    async def tell_changed(self, kinds: Collection[Kind]) -> None:
        """Tell every client that listens, by its generation's means, which lists changed."""
        for kind in kinds:
            await self._bus.publish(_EVENTS[kind]())
            for session in list(self._sessions):
                await self._tell(session, kind)

    async def _tell(self, session: ServerSession, kind: Kind) -> None:
        # A client that has left, or does not read, must not keep the others from hearing it.
        send = {
            "tools": session.send_tool_list_changed,
            "prompts": session.send_prompt_list_changed,
            "resources": session.send_resource_list_changed,
        }[kind]
        try:
            with anyio.fail_after(_NOTICE_SECONDS):
                await send()
        except Exception as exc:  # noqa: BLE001  - whatever the transport raises
            log.debug("a client cannot be told of a change", extra={"reason": str(exc)})
            with suppress(ValueError):
                self._sessions.remove(session)

    async def _follow(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.method == "notifications/initialized":
            self._sessions.append(ctx.session)
        result = await call_next(ctx)
        if ctx.method == "tools/list":
            self._listed.set()
        # What a model is told depends on what is visible, which may have changed by now.
        if ctx.method in ("initialize", "server/discover") and isinstance(result, Mapping):
            text = self._host.instructions(self._principal_of(ctx))
            return {**cast("Mapping[str, Any]", result), **({"instructions": text} if text else {})}
        return result


def build_server(
    host: Host,
    version: str,
    principal_of: Callable[[Context], Principal] = local_principal,
    *,
    runs_plugins: bool = True,
) -> HostServer:
    """Return a server of what *host* serves.

    Args:
        principal_of: Returns who makes a request.
        runs_plugins: Whether the plugins run while the server does; otherwise somebody else keeps
            `Host.running` open, as `standards_mcp.server.run` does.
    """

    @asynccontextmanager
    async def lifespan(server: Server[None]) -> AsyncGenerator[None]:
        announce = cast("HostServer", server).announce_changes
        async with host.running() if runs_plugins else nullcontext():
            host.manager.on_contributions_changed.append(announce)
            try:
                yield
            finally:
                host.manager.on_contributions_changed.remove(announce)

    return HostServer(
        host,
        principal_of,
        name="standards-mcp",
        version=version,
        title="Educational standards",
        lifespan=lifespan,
        **handlers(host, principal_of),
    )
