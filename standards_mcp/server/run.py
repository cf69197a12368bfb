"""Runs a host over one transport, from the start of its plugins to their end."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

import anyio
import importlib_metadata

from standards_mcp._utils.exceptions import leaves
from standards_mcp.calls.context import Principal
from standards_mcp.errors import StandardsMcpError
from standards_mcp.host import Host
from standards_mcp.loading.health import services_health
from standards_mcp.plugin import Health

from .context import Context, local_principal
from .reload import Reloading, reload_on_change
from .server import HostServer, build_server

log = logging.getLogger("standards_mcp")

Transport: TypeAlias = Callable[[HostServer], Awaitable[None]]
"""Carries messages between the server and its clients until they leave; see `serve_stdio`."""
_ANNOUNCEMENT_SECONDS: Final = 2.0
"""How long the end may be held up by the log line that says what was started."""


async def run(
    host: Host,
    transport: Transport,
    *,
    principal_of: Callable[[Context], Principal] = local_principal,
    reloading: Reloading | None = None,
    began: float | None = None,
    on_signal: Callable[[], None] = lambda: None,
) -> None:
    """Serve *host* until the transport ends, or SIGTERM or SIGINT comes.

    Args:
        host: It has loaded its plugins.
        principal_of: Returns who makes a request.
        reloading: Without it the configuration stays as it is.
        began: When the start began, by `time.perf_counter`, to be told with a line in the log
            that says what was started; by default there is no such line.
        on_signal: Called when the process has been asked to end.

    Raises:
        PluginError: A plugin did not start that is required, or any under ``strict``.
        StandardsMcpError: The transport failed.
    """
    version = importlib_metadata.version("standards-mcp")
    server = build_server(host, version, principal_of, runs_plugins=False)
    with anyio.CancelScope() as scope:
        _end_on_signals(scope, on_signal)
        try:
            async with host.running(), _beside(server, host, reloading, began):
                await transport(server)
        except BaseExceptionGroup as group:
            # The transport's task groups wrap what it raised.
            found = group.subgroup(StandardsMcpError)
            raise leaves(found)[0] if found else group from None


@asynccontextmanager
async def _beside(
    server: HostServer, host: Host, reloading: Reloading | None, began: float | None
) -> AsyncGenerator[None]:
    """Announce the start and reload the configuration while the server runs."""
    announcing = [] if began is None else [asyncio.create_task(_announce(server, host, began))]
    tasks = announcing[:]
    if reloading:
        work = reload_on_change(host, reloading, server.tell_changed)
        tasks.append(asyncio.create_task(work))
    try:
        yield
        if announcing:
            await asyncio.wait(announcing, timeout=_ANNOUNCEMENT_SECONDS)
    finally:
        for task in tasks:
            task.cancel()


async def _announce(server: HostServer, host: Host, began: float) -> None:
    milliseconds = round((time.perf_counter() - began) * 1000)
    await server.first_listing()  # services must not hold up what a client waits for
    log.info("started", extra=await _summary(server, host) | {"milliseconds": milliseconds})


async def _summary(server: HostServer, host: Host) -> dict[str, Any]:
    healths = await services_health(host.manager, asks_remote=False)
    return {
        "version": server.version,
        "plugins": {
            name: f"{record.status}: {record.reason}" if record.reason else record.status
            for name, record in host.manager.records.items()
        },
        "tools": [item.published for item in host.visible().visible_tools],
        "services": {name: _announced(health) for name, health in healths.items()},
    }


def _announced(health: Health) -> dict[str, Any]:
    """Return the facts of a service that fit into a line of the log, or why it fails."""
    facts = {
        name: value for name, value in health.facts.items() if isinstance(value, str | int | float)
    }
    return facts | ({"error": health.message} if health.status == "failed" else {})


def _end_on_signals(scope: anyio.CancelScope, on_signal: Callable[[], None]) -> None:
    def end() -> None:
        on_signal()
        scope.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Windows has no signal handlers on its event loop; there, the default ends the process.
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, end)
