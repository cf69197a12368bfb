"""Keep a snapshot of what the server offers, from which the next start answers its client.

The results are those of the server itself: it serves a short session in memory for each version of
the protocol.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

import anyio
import pydantic_core
from anyio import to_thread
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from standards_mcp._utils.messages import Received
from standards_mcp.config.loading import Sources
from standards_mcp.host import Host
from standards_mcp.snapshot_writing import store_results, tools_table
from standards_mcp.start.front import DISCOVER, INITIALIZE, LISTS, META_PREFIX, result_key
from standards_mcp.start.launch import Launch

from .server import IS_OWN_SESSION, HostServer

_Ask: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any] | None]]
_CLIENT: Final = {"name": "standards-mcp", "version": "0"}
_QUIET_SECONDS: Final = 0.3
"""Pause before a snapshot is made, so that it does not delay the client's next request."""
_CHANGE_SECONDS: Final = 5.0
"""Time after a change, so that a plugin that often changes its tools costs little."""


async def offered_results(server: HostServer) -> dict[str, bytes]:
    """Return the results of the introductions and lists in each protocol version.

    These are the handshakes, `server/discover`, and all pages of the lists.
    """
    results: dict[str, bytes] = {}
    token = IS_OWN_SESSION.set(True)
    try:
        for version in (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS):
            async with _session(server) as ask:
                results |= await _results_of_version(ask, version)
    finally:
        IS_OWN_SESSION.reset(token)
    return results


@asynccontextmanager
async def _session(server: HostServer) -> AsyncGenerator[_Ask]:
    """Serve a session in memory; provide a function that returns results, or None for errors."""
    to_server, server_input = anyio.create_memory_object_stream[Received](1)
    server_output, from_server = anyio.create_memory_object_stream[SessionMessage](10)
    ids = itertools.count()

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        request = JSONRPCRequest(jsonrpc="2.0", id=next(ids), method=method, params=params)
        await to_server.send(SessionMessage(request))
        async for item in from_server:
            if getattr(item.message, "id", None) == request.id:
                return item.message.result if isinstance(item.message, JSONRPCResponse) else None
        return None

    async def serve() -> None:
        options = server.create_initialization_options()
        await serve_dual_era_loop(
            server, server_input, server_output, lifespan_state=None, init_options=options
        )

    async with anyio.create_task_group() as group, to_server, from_server:
        group.start_soon(serve)
        yield ask
        group.cancel_scope.cancel()


async def _results_of_version(ask: _Ask, version: str) -> dict[str, bytes]:
    results: dict[str, bytes] = {}
    is_modern = version in MODERN_PROTOCOL_VERSIONS
    about = {"protocolVersion": version, "clientInfo": _CLIENT}
    values = {**about, "clientCapabilities": {}}
    envelope = {"_meta": {f"{META_PREFIX}{name}": value for name, value in values.items()}}
    for method in (DISCOVER if is_modern else INITIALIZE, *LISTS):
        params: dict[str, Any] = envelope if is_modern else {}
        if method == INITIALIZE:
            params = {**about, "capabilities": {}}
        cursor: str | None = ""
        while cursor is not None and (result := await ask(method, params)):
            results[result_key(version, method, cursor)] = pydantic_core.to_json(result)
            cursor = result.get("nextCursor") or None
            params = {**params, "cursor": cursor}
    return results


async def keep_snapshot(server: HostServer, host: Host, launch: Launch, sources: Sources) -> None:
    """Store a snapshot of what the server offers; remove it if snapshots are off.

    It is stored once a client has listed the offers, and after each change.
    """
    settings = host.settings.server
    if not settings.snapshot:
        launch.remove_snapshot()
    # With traces, each request has a span of its own, but these requests come from no client.
    if not settings.snapshot or settings.telemetry.traces:
        return
    changed = asyncio.Event()
    host.manager.contributed.on_changed.append(changed.set)
    pause = _QUIET_SECONDS
    try:
        await server.wait_first_listing()
        while True:
            await host.manager.wait_listed()
            await asyncio.sleep(pause)
            pause = _CHANGE_SECONDS
            await server.idle.wait()
            changed.clear()
            results = await offered_results(server) | tools_table(host)
            # If the folder cannot be written, every start is as slow as without snapshots.
            with suppress(OSError):
                await to_thread.run_sync(store_results, host, launch, sources, results, launch.note)
            await changed.wait()
    finally:
        host.manager.contributed.on_changed.remove(changed.set)
