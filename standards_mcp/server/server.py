"""Builds and runs the MCP server on the SDK.

It stands on the SDK's low-level server, because the high-level one answers unknown tools, wrong
arguments and crashes in ways of its own (docs/decisions.md). The low-level one serves the
handshake protocol of 2024 and 2025 and the 2026-07-28 generation from the same object.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
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

from standards_mcp._utils.exceptions import leaves
from standards_mcp._utils.lines import LineReader, LineWriter
from standards_mcp.config.models.tools import Kind
from standards_mcp.errors import StandardsMcpError
from standards_mcp.host import Host

from .context import Context
from .handlers import handlers
from .stdio import connected

log = logging.getLogger(__name__)


INSTRUCTIONS: Final = (
    "Educational standards for teachers. Call find_relevant_standards with a plain description of "
    "a learning activity to get the standards it meets, best first; add grade or subject when the "
    "user names them. Call get_standard_details with a code such as 3.NF.A.1 or an _id for the "
    "full record, its ancestors and its parts. Quote statement_notation when you cite a standard. "
    "Where text_status is 'paraphrase', say that the wording is not official."
)

DRAIN_SECONDS: Final = 10.0
"""How long requests in flight may finish after the client has closed its side."""

_BESIDE_SECONDS: Final = 2.0
"""How long a client's leaving may be held up by what runs beside the server."""

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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._bus = InMemorySubscriptionBus()
        self._sessions = deque[ServerSession](maxlen=_MOST_SESSIONS)
        self._announcement: asyncio.Future[None] | None = None
        self._listed = asyncio.Event()
        super().__init__(*args, on_subscriptions_listen=ListenHandler(self._bus), **kwargs)
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
        return result


def build_server(
    host: Host,
    version: str,
    on_started: Callable[[HostServer], Awaitable[None]] | None = None,
    while_serving: Callable[[HostServer], Awaitable[None]] | None = None,
) -> HostServer:
    """Return a server of what *host* serves; its lifespan is the plugins' lifespan.

    Args:
        on_started: Run beside the server, once the plugins have started.
        while_serving: Run beside the server until it ends, and cancelled then.
    """

    @asynccontextmanager
    async def lifespan(server: Server[None]) -> AsyncGenerator[None]:
        made = cast("HostServer", server)
        host.manager.on_tools_changed = made.announce_changes
        async with host.running():
            beside = [asyncio.ensure_future(on_started(made))] if on_started else []
            lasting = [asyncio.ensure_future(while_serving(made))] if while_serving else []
            try:
                yield
                if beside:
                    await asyncio.wait(beside, timeout=_BESIDE_SECONDS)
            finally:
                for task in (*beside, *lasting):
                    task.cancel()

    return HostServer(
        "standards-mcp",
        version=version,
        title="Educational standards",
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        **handlers(host),
    )


async def serve_stdio(
    server: Server[None], reader: int, writer: int, drain_seconds: float = DRAIN_SECONDS
) -> None:
    """Serve one client over two file descriptors until it leaves, or SIGTERM or SIGINT comes.

    Requests that were read before the client closed its side are still answered.

    Args:
        drain_seconds: How long that may take; then they are given up, and the log says how many.

    Raises:
        PluginError: A plugin did not start that is required, or any under ``strict``.
        StandardsMcpError: Answers cannot be written, though the client has not left.
    """
    failures: list[OSError] = []
    with anyio.CancelScope() as scope:
        _cancel_on_signals(scope)

        def end(failure: OSError) -> None:
            failures.append(failure)
            scope.cancel()

        lines, wire = LineReader(reader), LineWriter(writer, on_broken=end)
        try:
            async with connected(lines, wire, drain_seconds) as streams:
                await server.run(*streams, server.create_initialization_options())
        except BaseExceptionGroup as group:
            # Task groups wrap what a plugin that matters raised at its start.
            found = group.subgroup(StandardsMcpError)
            raise leaves(found)[0] if found else group from None
    for failure in failures:
        # Windows reports a pipe that nobody reads as an invalid argument.
        if not isinstance(failure, ConnectionError) and failure.errno != errno.EINVAL:
            raise StandardsMcpError(f"answers cannot be written to stdout: {failure.strerror}")


def _cancel_on_signals(scope: anyio.CancelScope) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Windows has no signal handlers on its event loop; there, the default ends the process.
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, scope.cancel)
