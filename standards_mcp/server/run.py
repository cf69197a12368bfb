"""Run a host over one transport, from the start of its plugins to the end of the process.

The end takes a bounded time, even if a plugin would keep the process running.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from _thread import start_new_thread
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from os import _exit
from time import monotonic, perf_counter, sleep
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
"""Time that the end waits for the log line of the start."""
_LAST_SECONDS: Final = 2.0
"""Time for the event loop and the interpreter after the plugins had their time to stop."""
_LOG_SECONDS: Final = 1.0


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
        host: A host whose plugins are loaded.
        principal_of: Returns the caller of a request.
        reloading: The sources of the configuration; without them it is never reloaded.
        began: The start of the process, by `time.perf_counter`. If set, the start is logged.
        on_signal: Called when a signal asks the process to end.

    Raises:
        PluginError: A required plugin did not start, or any plugin in ``strict`` mode.
        StandardsMcpError: The transport failed.
    """
    version = importlib_metadata.version("standards-mcp")
    server = build_server(host, version, principal_of, runs_plugins=False)
    with anyio.CancelScope() as scope:
        _end_on_signals(scope, on_signal)
        try:
            async with host.running(), _reporting(server, host, reloading, began):
                await transport(server)
        except BaseExceptionGroup as group:
            # The task groups of the transport wrap its exceptions.
            ours = group.subgroup(StandardsMcpError)
            raise leaves(ours)[0] if ours else group from None


@asynccontextmanager
async def _reporting(
    server: HostServer, host: Host, reloading: Reloading | None, began: float | None
) -> AsyncGenerator[None]:
    """Log the start, and reload the configuration while the server runs."""
    announcing = None if began is None else asyncio.create_task(_announce(server, host, began))
    work = reload_on_change(host, reloading, server.tell_changed) if reloading else None
    tasks = [announcing, asyncio.create_task(work) if work else None]
    try:
        yield
        if announcing:
            await asyncio.wait([announcing], timeout=_ANNOUNCEMENT_SECONDS)
    finally:
        for task in filter(None, tasks):
            task.cancel()


async def _announce(server: HostServer, host: Host, began: float) -> None:
    milliseconds = round((perf_counter() - began) * 1000)
    await server.first_listing()  # services must not delay the first answer
    healths = await services_health(host.manager, asks_remote=False)
    fields: dict[str, Any] = {
        "version": server.version,
        "plugins": {
            name: f"{record.status}: {record.reason}" if record.reason else record.status
            for name, record in host.manager.records.items()
        },
        "tools": [item.published for item in host.visible().visible_tools],
        "services": {name: _facts(health) for name, health in healths.items()},
        "milliseconds": milliseconds,
    }
    log.info("started", extra=fields)


def _facts(health: Health) -> dict[str, Any]:
    """Return the facts of a service that fit into a line of the log, and why it fails."""
    facts = {
        name: fact for name, fact in health.facts.items() if isinstance(fact, str | int | float)
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


class Ending:
    """A deadline that ends the process, counted from the moment at which it should stop.

    It runs in its own thread, because a plugin may block the event loop, ignore its cancellation,
    or patch the functions that a deadline in the event loop uses. For the same reason this module
    imports the functions of `time` by name.

    Args:
        seconds: Time for all plugins together to stop.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline = float("inf")
        self._changed = threading.Lock()
        self._changed.acquire()
        # Not a `Thread` and not started later: plugins may patch or trace that class.
        start_new_thread(self._watch, ())

    def begin(self, drain_seconds: float = 0) -> None:
        """Set the deadline: requests get *drain_seconds*, then plugins get their time to stop."""
        self._end_within(drain_seconds + self._seconds + _LAST_SECONDS)

    def finish(self) -> None:
        """Bring the deadline forward, because all plugins have stopped or had their time."""
        self._end_within(_LAST_SECONDS)

    def _end_within(self, seconds: float) -> None:
        self._deadline = min(self._deadline, monotonic() + seconds)
        with suppress(RuntimeError):  # the thread has not yet noticed the previous change
            self._changed.release()

    def _watch(self) -> None:
        while (left := self._deadline - monotonic()) > 0:
            self._changed.acquire(timeout=min(left, threading.TIMEOUT_MAX))
        start_new_thread(_exit_soon, ())
        log.error("the process is ended while a plugin still runs")
        logging.shutdown()
        _exit(1)


def _exit_soon() -> None:
    """End the process even if a plugin's log handler blocks."""
    sleep(_LOG_SECONDS)
    _exit(1)
