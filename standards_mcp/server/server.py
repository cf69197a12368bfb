"""The MCP server of a host, built on the SDK's low-level server.

The SDK's high-level server has its own answers to unknown tools, wrong arguments and crashes, which
clients of this host should not see (docs/decisions.md). One low-level server serves the handshake
protocol of 2024 and 2025 and the generation of 2026-07-28.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Final, cast

import anyio
import mcp_types as types
from mcp.server import InitializationOptions, NotificationOptions, Server
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import x_mcp_header_map
from mcp_types import SERVER_INFO_META_KEY
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError

from standards_mcp._utils.exceptions import internal_error, new_incident
from standards_mcp.calls.context import Principal
from standards_mcp.config.models.tools import Kind
from standards_mcp.host import Host

from .context import SET_LEVEL, Context, connection_of, local_principal, set_level
from .handlers import cache_hints, definitions_by_kind, handlers
from .skills import serve_skills
from .subscriptions import Subscriptions, deliver

log = logging.getLogger(__name__)

IS_OWN_SESSION: Final = ContextVar("IS_OWN_SESSION", default=False)
"""True in a session with which the host asks its own server."""
VIEWS_EXTENSION: Final = "io.modelcontextprotocol/ui"
"""MCP Apps, advertised while a tool has a view."""
_FIRST_LISTING_SECONDS: Final = 0.2
_GATHER_SECONDS: Final = 0.1
_EVENTS: Final[Mapping[Kind, Callable[[], ServerEvent]]] = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}
_KINDS_OF_LISTS: Final[Mapping[str, Kind]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
}


class HostServer(Server[None]):
    """A server that notifies clients of both protocol generations when its lists change.

    Clients of both see the settings in `extensions`, by the names of the extensions.

    Attributes:
        listed: Set when a client has received the list of tools.
        first_list: `time.perf_counter` at the first list of tools, or None.
        idle: Cleared by `serve_stdio` while a client waits for an answer.
    """

    def __init__(
        self, host: Host, principal_of: Callable[[Context], Principal], **kwargs: Any
    ) -> None:
        self._host, self._principal_of = host, principal_of
        self._subscriptions = subscriptions = Subscriptions(host, principal_of)
        self._sessions = dict[Connection, ServerSession]()
        self._pending_announcement: asyncio.Future[None] | None = None
        self.listed = asyncio.Event()
        self.first_list: float | None = None
        self.idle = asyncio.Event()
        self.idle.set()
        self._stale = set[Kind]()
        self._announcements = set[asyncio.Task[None]]()
        self._announced_definitions: dict[Kind, list[Any]] = {}
        self._without_headers: dict[str, Mapping[str, Any]] = {}
        super().__init__(
            get_tool_input_schema=self._input_schema,
            on_subscriptions_listen=subscriptions.listen,
            on_subscribe_resource=subscriptions.subscribe,
            on_unsubscribe_resource=subscriptions.unsubscribe,
            **kwargs,
        )
        # As a constructor argument, the SDK would warn: the newest protocol has no such request.
        self.add_request_handler(SET_LEVEL, types.SetLevelRequestParams, set_level)
        self.middleware += [_contain, self._track]
        # Clients send this state back with the reply to a question, and could change it unsealed.
        key = host.settings.server.state_key
        security = RequestStateSecurity(
            keys=[key.get_secret_value() if key else secrets.token_bytes()],
            bind_principal=lambda ctx: principal_of(ctx).name,
        )
        self.middleware.append(RequestStateBoundary(security, default_audience=self.name))

    def _input_schema(self, tool: str) -> Mapping[str, Any] | None:
        """Return the schema with which the SDK checks headers that repeat arguments.

        Without this function, the SDK would list all tools for each call over HTTP. It would also
        search the schema for such headers at each call, so a schema without them is returned once.
        """
        item = self._host.visible().find(tool)
        if item is None or self._without_headers.get(tool) is item.arguments.schema:
            return None
        schema = item.arguments.schema
        if not x_mcp_header_map(schema):
            self._without_headers[tool] = schema
        return schema

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *args: Any, **kwargs: Any
    ) -> InitializationOptions:
        """Declare that the server notifies clients of changed lists."""
        changes = NotificationOptions(
            tools_changed=True, prompts_changed=True, resources_changed=True
        )
        return super().create_initialization_options(
            notification_options or changes, *args, **kwargs
        )

    async def wait_first_listing(self) -> None:
        """Wait until a client has received the list of tools, but only a fraction of a second."""
        with anyio.move_on_after(_FIRST_LISTING_SECONDS):
            await self.listed.wait()

    def announce_changes(self) -> None:
        """Schedule a ``list_changed`` notification, which also covers changes until it is sent."""
        if self._pending_announcement is None or self._pending_announcement.done():
            self._pending_announcement = asyncio.ensure_future(self._announce())

    async def _announce(self) -> None:
        await asyncio.sleep(_GATHER_SECONDS)
        # The local user sees everything, so a change for any caller is in this list, too.
        before, now = self._announced_definitions, definitions_by_kind(self._host.visible())
        old, new = (_files_of_skills(lists.get("resources", ())) for lists in (before, now))
        for uri in [uri for uri, file in new.items() if file != old.get(uri)]:
            self._subscriptions.notify_updated(uri)
        await self.notify_changed([kind for kind in _EVENTS if now[kind] != before.get(kind)])

    def report_stale(self, method: str) -> None:
        """Tell the client that an answer from the snapshot of the last start was not current."""
        log.info("a stored answer was out of date", extra={"method": method})
        if kind := _KINDS_OF_LISTS.get(method):
            if kind not in self._stale:
                self._stale.add(kind)
                self._subscriptions.missed_events.append(_EVENTS[kind]())
            self._announce_soon(self.notify_changed([kind]))

    def _announce_soon(self, announcement: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(announcement)
        self._announcements.add(task)
        task.add_done_callback(self._announcements.discard)

    @contextmanager
    def announcing_changes(self) -> Generator[None]:
        """Notify clients of changes in the host while the context is open."""
        manager = self._host.manager
        self._announced_definitions = definitions_by_kind(self._host.visible())
        manager.contributed.on_changed.append(self.announce_changes)
        manager.changes.on_updated.append(self._subscriptions.notify_updated)
        try:
            yield
        finally:
            manager.contributed.on_changed.remove(self.announce_changes)
            manager.changes.on_updated.remove(self._subscriptions.notify_updated)

    async def notify_changed(self, kinds: Collection[Kind]) -> None:
        """Notify every listening client, in the way of its generation, that lists changed."""
        current = definitions_by_kind(self._host.visible())
        kinds = [kind for kind in kinds if kind in _EVENTS]  # skills: their files are resources
        self._announced_definitions |= {kind: current[kind] for kind in kinds}
        self._without_headers.clear()
        for kind in kinds:
            await self._subscriptions.bus.publish(_EVENTS[kind]())
        # In parallel, so that a client that does not read delays no other.
        await asyncio.gather(*(_notify(session, kinds) for session in self._sessions.values()))

    async def _track(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Note new sessions and the first listing; introduce the server in its answers."""
        is_client = not IS_OWN_SESSION.get()
        if ctx.method == "notifications/initialized" and is_client:
            connection = connection_of(ctx)
            if connection not in self._sessions:  # a client may repeat this notification
                self._sessions[connection] = ctx.session
                if self._stale:
                    self._announce_soon(_notify(ctx.session, self._stale))
                connection.exit_stack.callback(self._sessions.pop, connection)
        result = await call_next(ctx)
        if ctx.method == "tools/list" and is_client and self.first_list is None:
            self.first_list = perf_counter()
            self.listed.set()
        if isinstance(result, Mapping):
            return self._with_introduction(ctx, cast("Mapping[str, Any]", result))
        return result

    def _with_introduction(self, ctx: Context, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result with the current title and instructions of the server."""
        answer = dict(result)
        meta: dict[str, Any] = answer.get("_meta") or {}
        info: Mapping[str, Any] = meta.get(SERVER_INFO_META_KEY) or {}
        if ctx.method != "initialize" and not info:
            return answer
        principal = self._principal_of(ctx)
        title = {"title": self._host.title(principal) or self.name}
        if ctx.method == "initialize":
            answer["serverInfo"] = {**answer.get("serverInfo", {}), **title}
        else:
            answer["_meta"] = {**meta, SERVER_INFO_META_KEY: {**info, **title}}
        if ctx.method in ("initialize", "server/discover"):
            # The SDK drops the extensions from the handshake, whose schema does not have them.
            has_views = any(item.view for item in self._host.visible(principal).visible_tools)
            extensions = self.extensions | ({VIEWS_EXTENSION: {}} if has_views else {})
            answer["capabilities"] = {**answer.get("capabilities", {}), "extensions": extensions}
            if text := self._host.instructions(principal):
                answer["instructions"] = text
        if ctx.method == "server/discover":
            # Deprecated: the SDK advertises it because earlier clients may set a level.
            del answer["capabilities"]["logging"]
            answer |= cache_hints(self._host)
        return answer


def _files_of_skills(definitions: Collection[Any]) -> dict[str, Any]:
    """Return the files in the entries of skills, with their digests, by their URIs."""
    entries: list[Any] = [item for item in definitions if isinstance(item, dict)]
    return {file["uri"]: file for entry in entries for file in entry["resources"]}


async def _notify(session: ServerSession, kinds: Collection[Kind]) -> None:
    send = {
        "tools": session.send_tool_list_changed,
        "prompts": session.send_prompt_list_changed,
        "resources": session.send_resource_list_changed,
    }
    for kind in kinds:
        if not await deliver(send[kind]()):
            return


async def _contain(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Answer an unexpected failure with an incident id, and log its details under the id."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError) as exc:  # a refusal, or invalid parameters
        if why := _handshake_mistake(ctx, exc):
            raise MCPError(types.INVALID_PARAMS, why) from None
        raise
    except Exception as exc:
        incident = new_incident()
        log.exception("a request failed", extra={"method": ctx.method, "incident": incident})
        raise MCPError(types.INTERNAL_ERROR, internal_error(ctx.method, incident)) from exc


def _handshake_mistake(ctx: Context, error: Exception) -> str:
    """Explain a mistake in the handshake of a client of 2024 or 2025, or return ""."""
    if ctx.method == "initialize" and isinstance(error, ValidationError):
        return (
            f"initialize needs protocolVersion (such as {LATEST_HANDSHAKE_VERSION!r}), "
            "capabilities and clientInfo"
        )
    is_about_params = not isinstance(error, MCPError) or error.error.code == types.INVALID_PARAMS
    if connection_of(ctx).initialize_accepted or not is_about_params:
        return ""
    return (
        f"{ctx.method} before initialize: this connection has no handshake yet; send initialize "
        "first, or the _meta of 2026-07-28 with each request"
    )


def build_server(
    host: Host,
    version: str,
    principal_of: Callable[[Context], Principal] = local_principal,
    *,
    runs_plugins: bool = True,
) -> HostServer:
    """Return a server for the contributions of *host*.

    Args:
        principal_of: Returns the caller of a request.
        runs_plugins: True if the server starts and stops the plugins; otherwise the caller keeps
            `Host.running` open, as `standards_mcp.server.run` does.
    """

    @asynccontextmanager
    async def lifespan(server: Server[None]) -> AsyncGenerator[None]:
        async with host.running() if runs_plugins else nullcontext():
            with cast("HostServer", server).announcing_changes():
                yield

    server = HostServer(
        host,
        principal_of,
        name="standards-mcp",
        version=version,
        lifespan=lifespan,
        **handlers(host, principal_of),
    )
    serve_skills(server, host, principal_of)
    return server
