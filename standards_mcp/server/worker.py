"""One plugin in a process of its own: what the child process runs.

usage: python -m standards_mcp.server.worker NAME < a line of configuration, and then MCP

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
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from standards_mcp._utils.logs import PLUGIN_LOGGERS, configure_logging
from standards_mcp._utils.streams import claim_standard_streams, fill_closed_streams
from standards_mcp.calls.context import LOCAL, Principal
from standards_mcp.config.layers import DOT_ENV, ENVIRONMENT, Layer, Layers
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.contributions.arguments import Arguments, read_arguments
from standards_mcp.contributions.collection import Contributions
from standards_mcp.contributions.schemas import Schema
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.host import Host
from standards_mcp.loading.discovery import installed_plugins
from standards_mcp.loading.records import PluginInfo
from standards_mcp.plugin import Tool
from standards_mcp.remote.isolated import protocol as wire

if TYPE_CHECKING:
    from .context import Context
    from .server import HostServer

log = logging.getLogger(__name__)

_NO_LIMIT: Final = 1_000_000_000


def main() -> None:
    """Serve the plugin that the first line of stdin describes, until stdin is closed."""
    own = os.getpid()
    fill_closed_streams()
    config = wire.WorkerConfig.model_validate_json(_first_line(0))
    limit_memory(config.memory)
    _end_with_parent()
    host: Host | None = None
    configure_logging(logging.WARNING, lambda: host.secrets() if host else ())
    # The host outside logs the calls. What the plugin logs, nobody else can.
    logging.getLogger(PLUGIN_LOGGERS).setLevel(logging.INFO)
    reader, writer = claim_standard_streams()
    unlimited = _Unlimited()
    host = load_host(config, unlimited)

    from .answers import Answers, LogFields  # noqa: PLC0415  - after the plugin's failures
    from .run import run  # noqa: PLC0415  - as above
    from .stdio import serve_stdio  # noqa: PLC0415  - as above
    from .steady_loop import SteadyLoop  # noqa: PLC0415  - as above

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
    serving = partial(run, host, transport, principal_of=principal_of)
    anyio.run(serving, backend_options={"loop_factory": SteadyLoop})
    # A plugin's threads may never end, and nobody waits for them.
    logging.shutdown()
    os._exit(0)


def load_host(
    config: wire.WorkerConfig, finish: Callable[[Contributions], Contributions] | None = None
) -> Host:
    """Return a host that has loaded this one plugin; its calls have no deadline.

    Args:
        finish: See `PluginManager`.
    """
    limits: Any = {"timeout": _NO_LIMIT, "max_output_tokens": _NO_LIMIT, "concurrency": 1000}
    settings = Settings(**config.settings, tools=limits, tool_names="declared")
    plugins = [info for info in installed_plugins() if info.name == config.name]
    if not plugins:
        missing = f"it is not installed in {sys.prefix}"
        plugins = [PluginInfo(name=config.name, load=lambda: None, error=missing)]
    loaded = LoadedSettings(settings, None, _layers(config))
    host = Host(loaded, installed=plugins, remembers=False, timing=config.timing)
    if finish:
        host.manager.contributed.finish = finish
    host.load()
    return host


def _layers(config: wire.WorkerConfig) -> Layers:
    """Return where the plugin's settings come from, as far as its model has to know it."""
    table = config.settings["plugins"][config.name]
    keys = (
        Layer(key, {"plugins": {config.name: {key: table[key]}}}, folder=Path(folder))
        for key, folder in config.folders.items()
    )
    environment = {variable.upper(): text for variable, text in os.environ.items()}
    variables = Layer(ENVIRONMENT, {}, others=environment)
    return Layers((variables, Layer(DOT_ENV, {}, others=config.variables), *keys))


class _Unlimited:
    """Takes limits and kept answers from tools, and gives them an expression instead of filters.

    All that is the business of the host outside, which also knows the filters of other plugins.

    Attributes:
        declared: The tools as their author declared them, by name.
    """

    def __init__(self) -> None:
        self.declared: dict[str, Tool] = {}
        self._changed: dict[str, Tool] = {}

    def __call__(self, contributions: Contributions) -> Contributions:
        """Return contributions of which the tools are changed; those that are already stay so."""
        return replace(contributions, tools=tuple(map(self._unlimited, contributions.tools)))

    def _unlimited(self, item: RegisteredTool) -> RegisteredTool:
        if self._changed.get(item.declared) is not item.tool:
            self.declared[item.declared] = item.tool
            self._changed[item.declared] = replace(
                item.tool, cache_ttl=0, rate_limit=None, max_output_tokens=None
            )
        item = replace(item, tool=self._changed[item.declared])
        if not item.tool.accepts_filters:
            return item
        return replace(item, arguments=_ExpressionArguments(read_arguments(item.tool)))


@dataclass(frozen=True, slots=True)
class _ExpressionArguments:
    """A tool's own arguments, and an expression. See `Arguments`."""

    own: Arguments

    @property
    def schema(self) -> Schema:
        return self.own.schema

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(arguments)
        expression = given.pop(wire.FILTER_ARGUMENT, None)
        return {**await self.own.validate(given), "filter": expression}


def _first_line(descriptor: int) -> bytes:
    """Read one line and nothing beyond: what follows it belongs to the protocol."""
    line = bytearray()
    while (byte := os.read(descriptor, 1)) not in (b"", b"\n"):
        line += byte
    return bytes(line)


def limit_memory(size: int | None) -> None:
    """Let this process have no more address space than *size* bytes, on systems that can."""
    if size is None:
        return
    try:
        import resource  # noqa: PLC0415  - not on Windows
    except ImportError:
        return
    with suppress(ValueError, OSError):  # more than the system allows is no limit
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


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
