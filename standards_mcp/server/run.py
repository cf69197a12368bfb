"""Run a host over one transport, from the start of its plugins to the exit of the process.

Shutdown takes a bounded time, even if a plugin would keep the process running.
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

from standards_mcp._utils.exceptions import leaves
from standards_mcp.calls.context import Principal
from standards_mcp.errors import StandardsMcpError
from standards_mcp.host import Host
from standards_mcp.loading.discovery import host_version
from standards_mcp.loading.health import services_health
from standards_mcp.plugin import Health
from standards_mcp.start.launch import Launch

from .context import Context, local_principal
from .reload import ReloadOptions, reload_on_change
from .server import HostServer, build_server
from .snapshotting import keep_snapshot

log = logging.getLogger("standards_mcp")

Transport: TypeAlias = Callable[[HostServer], Awaitable[None]]
"""Carries messages between the server and its clients until they disconnect; see `serve_stdio`."""
_START_LOG_SECONDS: Final = 2.0
"""Longest time that shutdown waits for the log line of the start."""
_NEXT_SECONDS: Final = 0.02
"""Time in which a first call follows the list of tools, if the client does not wait."""
_FIRST_CALL_SECONDS: Final = 2.0
_STAY_SECONDS: Final = 0.5
"""Time after which a client counts as one that stays; some only list the tools."""
_EXIT_SECONDS: Final = 2.0
"""Time for the event loop and the interpreter to end, after the plugins' time to stop."""
_LOG_FLUSH_SECONDS: Final = 1.0


async def run(
    host: Host,
    transport: Transport,
    *,
    principal_of: Callable[[Context], Principal] = local_principal,
    reloading: ReloadOptions | None = None,
    launch: Launch | None = None,
    on_signal: Callable[[], None] = lambda: None,
) -> None:
    """Serve *host* until the transport ends or the process receives SIGTERM or SIGINT.

    Args:
        host: A host whose plugins are loaded.
        principal_of: Returns the caller of a request.
        reloading: Options for reloads; None: the configuration is never reloaded.
        launch: The start of the process. If set, the start is logged, and a snapshot for the next
            start over stdio is kept.
        on_signal: Called when a signal asks the process to end.

    Raises:
        PluginError: A required plugin did not start, or any plugin in ``strict`` mode.
        StandardsMcpError: The transport failed.
    """
    server = build_server(host, host_version(), principal_of, runs_plugins=False)
    with anyio.CancelScope() as scope:
        _end_on_signals(scope, on_signal)
        try:
            async with host.running(), _background(server, host, reloading, launch):
                await transport(server)
        except BaseExceptionGroup as group:
            # The task groups of the transport wrap its exceptions.
            ours = group.subgroup(StandardsMcpError)
            raise leaves(ours)[0] if ours else group from None


@asynccontextmanager
async def _background(
    server: HostServer, host: Host, reloading: ReloadOptions | None, launch: Launch | None
) -> AsyncGenerator[None]:
    """Do what is not urgent while the server runs, such as reloads of the configuration."""
    start_log = asyncio.create_task(_log_start(server, host, launch)) if launch else None
    tasks = [start_log]
    if reloading:
        reloads = reload_on_change(host, reloading, server.notify_changed)
        tasks.append(asyncio.create_task(reloads))
        if launch and launch.keeps_snapshots:
            snapshots = keep_snapshot(server, host, launch, reloading.sources)
            tasks += [asyncio.create_task(task) for task in (snapshots, _warm_up(server, host))]
    try:
        yield
        if start_log:
            await asyncio.wait([start_log], timeout=_START_LOG_SECONDS)
    finally:
        for task in filter(None, tasks):
            task.cancel()


async def _warm_up(server: HostServer, host: Host) -> None:
    """Prepare the first call, once the client has the list of tools, stays, and calls nothing."""
    await server.listed.wait()
    await asyncio.sleep(_STAY_SECONDS)
    await server.idle.wait()
    await host.warm_up()


async def _log_start(server: HostServer, host: Host, launch: Launch) -> None:
    """Log the state after the start, and the times of the first list and of the end of loading."""
    milliseconds = round((perf_counter() - launch.began) * 1000)
    await server.wait_first_listing()
    with anyio.move_on_after(_FIRST_CALL_SECONDS):  # services must not delay the first answer
        await asyncio.sleep(_NEXT_SECONDS)
        await server.idle.wait()
    healths = await services_health(host.manager, asks_remote=False)
    fields: dict[str, Any] = {
        "version": server.version,
        "plugins": {
            name: f"{record.status}: {record.reason}" if record.reason else record.status
            for name, record in host.manager.records.items()
        },
        "tools": [item.published for item in host.visible().visible_tools],
        "services": {name: _loggable_facts(health) for name, health in healths.items()},
        "milliseconds": milliseconds,
    }
    from_snapshot = launch.front.first_list if launch.front else None
    if listed := from_snapshot or server.first_list:
        fields["first_list_milliseconds"] = round((listed - launch.began) * 1000)
    log.info("started", extra=fields)


def _loggable_facts(health: Health) -> dict[str, Any]:
    """Return the scalar facts of a service for the log, and its error if it failed."""
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
        # Windows has no signal handlers on its event loop; the default action ends the process.
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, end)


class Ending:
    """A deadline for shutdown: a process that misses it is forced to exit.

    It has its own thread, because a plugin may block the event loop, ignore its cancellation,
    or patch the functions that a deadline in the event loop uses. For the same reason this module
    imports the functions of `time` by name.

    Args:
        seconds: Time for all plugins together to stop.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline = float("inf")
        self._wake_up = threading.Lock()
        self._wake_up.acquire()
        # No `Event`, no `Thread`, and no later start: plugins may patch or trace these classes.
        start_new_thread(self._wait_for_deadline, ())

    def begin(self, drain_seconds: float = 0) -> None:
        """Set the deadline: requests get *drain_seconds*, then plugins get their time to stop."""
        self._end_within(drain_seconds + self._seconds + _EXIT_SECONDS)

    def finish(self) -> None:
        """Bring the deadline forward, because all plugins have stopped or used up their time."""
        self._end_within(_EXIT_SECONDS)

    def _end_within(self, seconds: float) -> None:
        self._deadline = min(self._deadline, monotonic() + seconds)
        with suppress(RuntimeError):  # the thread has not yet noticed the previous change
            self._wake_up.release()

    def _wait_for_deadline(self) -> None:
        while (left := self._deadline - monotonic()) > 0:
            self._wake_up.acquire(timeout=min(left, threading.TIMEOUT_MAX))
        start_new_thread(_exit_soon, ())
        log.error("the process is ended while a plugin still runs")
        logging.shutdown()
        _exit(1)


def _exit_soon() -> None:
    """End the process even if a plugin's log handler blocks."""
    sleep(_LOG_FLUSH_SECONDS)
    _exit(1)
