"""Keep a snapshot of what the server offers, from which the next start answers its client.

The results are those of the server itself: it serves a short session in memory for each version of
the protocol.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import anyio
import pydantic_core
from anyio import to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from standards_mcp._utils.messages import Received
from standards_mcp.config.loading import Sources
from standards_mcp.host import Host
from standards_mcp.snapshot_writing import store_results, tools_table
from standards_mcp.start.front import DISCOVER, INITIALIZE, LISTS, META_PREFIX, result_key
from standards_mcp.start.launch import Launch

from .server import IS_OWN_SESSION, HostServer

log = logging.getLogger(__name__)

_CLIENT: Final = {"name": "standards-mcp", "version": "0"}
_QUIET_SECONDS: Final = 0.3
"""Pause before a snapshot is made, so that it does not delay the client's next request."""
_CHANGE_SECONDS: Final = 5.0
"""Time after a change, so that a plugin that often changes its tools costs little."""


class _LocalClient:
    """A client of the server in the same process."""

    def __init__(
        self,
        to_server: MemoryObjectSendStream[Received],
        from_server: MemoryObjectReceiveStream[SessionMessage],
    ) -> None:
        self._to_server, self._from_server = to_server, from_server
        self._next_id = 0

    async def notify(self, method: str) -> None:
        message = JSONRPCNotification(jsonrpc="2.0", method=method)
        await self._to_server.send(SessionMessage(message))

    async def result(self, method: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the result of a request, or None after an error."""
        self._next_id += 1
        request = JSONRPCRequest(
            jsonrpc="2.0", id=self._next_id, method=method, params=dict(params)
        )
        await self._to_server.send(SessionMessage(request))
        async for item in self._from_server:
            if getattr(item.message, "id", None) == self._next_id:
                message = item.message
                return message.result if isinstance(message, JSONRPCResponse) else None
        return None


async def offered_results(server: HostServer) -> dict[str, bytes]:
    """Return the results of the introductions and lists in each protocol version.

    These are the handshakes, `server/discover`, and all pages of the lists.
    """
    results: dict[str, bytes] = {}
    token = IS_OWN_SESSION.set(True)
    try:
        for version in (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS):
            to_server, server_input = anyio.create_memory_object_stream[Received](1)
            server_output, from_server = anyio.create_memory_object_stream[SessionMessage](10)
            async with anyio.create_task_group() as group, to_server, from_server:

                async def serve(
                    server_input: MemoryObjectReceiveStream[Received] = server_input,
                    server_output: MemoryObjectSendStream[SessionMessage] = server_output,
                ) -> None:
                    await serve_dual_era_loop(
                        server,
                        server_input,
                        server_output,
                        lifespan_state=None,
                        init_options=server.create_initialization_options(),
                    )

                group.start_soon(serve)
                client = _LocalClient(to_server, from_server)
                results |= await _results_of_version(client, version)
                group.cancel_scope.cancel()
    finally:
        IS_OWN_SESSION.reset(token)
    return results


async def _results_of_version(client: _LocalClient, version: str) -> dict[str, bytes]:
    results: dict[str, bytes] = {}
    is_modern = version in MODERN_PROTOCOL_VERSIONS
    envelope: dict[str, Any] = {}
    if is_modern:
        values = {"protocolVersion": version, "clientInfo": _CLIENT, "clientCapabilities": {}}
        envelope = {"_meta": {f"{META_PREFIX}{name}": value for name, value in values.items()}}
        introduction, params = DISCOVER, envelope
    else:
        introduction = INITIALIZE
        params = {"protocolVersion": version, "clientInfo": _CLIENT, "capabilities": {}}
    for method in (introduction, *LISTS):
        fields, cursor = dict(params if method == introduction else envelope), ""
        while True:
            result = await client.result(method, fields)
            if result is None:
                break
            results[result_key(version, method, cursor)] = pydantic_core.to_json(result)
            if not (cursor := result.get("nextCursor") or ""):
                break
            fields["cursor"] = cursor
        if method == INITIALIZE:
            await client.notify("notifications/initialized")
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
