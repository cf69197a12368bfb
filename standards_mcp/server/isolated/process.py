"""One plugin in a process of its own: what the child process runs.

usage: python -m standards_mcp.server.isolated.process NAME < a line of configuration, and then MCP

The first line of stdin says which plugin it is, with its settings; secrets never stand in the list
of processes. Its tools are called as those of any MCP server. Everything else is asked by requests
of this host's own (`standards_mcp.remote.isolated.protocol`).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import select
import signal
import sys
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio

from standards_mcp._utils.logs import PLUGIN_LOGGERS, configure_logging
from standards_mcp._utils.stdio.streams import claim_standard_streams, fill_closed_streams
from standards_mcp.calls.context import LOCAL, Principal
from standards_mcp.host import Host
from standards_mcp.remote.isolated import protocol as wire

from .hosting import Unlimited, limit_memory, load_host

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from standards_mcp.server.context import Context
    from standards_mcp.server.server import HostServer


def main() -> None:
    """Serve the plugin that the first line of stdin describes, until stdin is closed."""
    own = os.getpid()
    fill_closed_streams()
    config = wire.WorkerConfig.model_validate_json(_first_line(0))
    limit_memory(config.memory)
    _end_with_parent()
    if config.trial:  # also where the kernel does not end it with the host
        late = threading.Timer(config.timing.trial + 5, os._exit, (1,))
        late.daemon = True
        late.start()
    host: Host | None = None
    configure_logging(logging.WARNING, lambda: host.secrets() if host else ())
    # The host outside logs the calls. What the plugin logs, nobody else can.
    logging.getLogger(PLUGIN_LOGGERS).setLevel(logging.INFO)
    reader, writer = claim_standard_streams()
    unlimited = Unlimited()
    host = load_host(config, unlimited)
    if config.trial:
        anyio.run(_end_trial, host, config.trial)

    # After the failures of the plugin, which are told faster so.
    from standards_mcp.server.run import run  # noqa: PLC0415
    from standards_mcp.server.stdio import serve_stdio  # noqa: PLC0415

    from .answers import Answers, LogFields  # noqa: PLC0415

    async def transport(server: HostServer) -> None:
        _end_copies(own)
        Answers(host, config.name, unlimited.declared).register(server)
        log_fields = LogFields()
        host.observe(log_fields)
        server.middleware.append(log_fields.add)
        await serve_stdio(server, reader=reader, writer=writer, drain_seconds=1.0)

    def principal_of(ctx: Context) -> Principal:
        return Principal(str((ctx.meta or {}).get(wire.CALLER, LOCAL.name)))

    gc.freeze()
    code = 0
    try:
        anyio.run(partial(run, host, transport, principal_of=principal_of))
    except BaseException:
        log.exception("the process of a plugin ends")
        code = 1
    # Do not wait for threads of the plugin: they may never end.
    logging.shutdown()
    os._exit(code)


async def _end_trial(host: Host, phase: str) -> None:
    """End the process once the plugin has survived the steps up to a phase."""
    host.manager.commands()
    if phase == "starting":
        async with host.running():
            os._exit(wire.TRIAL_PASSED)
    os._exit(wire.TRIAL_PASSED)


def _first_line(descriptor: int) -> bytes:
    """Read one line and nothing beyond: what follows it belongs to the protocol."""
    line = bytearray()
    while (byte := os.read(descriptor, 1)) not in (b"", b"\n"):
        line += byte
    return bytes(line)


def _end_with_parent() -> None:
    """Let the kernel end this process when the host is killed, where it can."""
    if sys.platform != "linux":
        return  # stdin is closed then, by which the server ends
    import ctypes  # noqa: PLC0415  - only here

    set_parent_death_signal = 1
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    stdin = select.poll()
    stdin.register(0, 0)
    if any(event & select.POLLHUP for _, event in stdin.poll(0)):
        os._exit(0)  # it was killed before that, of which nothing is told any more


def _end_copies(own: int) -> None:
    """Let a copy that a plugin makes with `os.fork` end where it would serve, too.

    It shares the pipes and the event loop's own with the process *own*: both would lose requests.
    """
    if os.getpid() != own:
        os._exit(0)
    if sys.platform != "win32":
        loop = asyncio.get_running_loop()
        os.register_at_fork(after_in_child=lambda: loop.call_soon(os._exit, 0))


if __name__ == "__main__":
    main()
