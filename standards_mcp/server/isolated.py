"""The program that runs in the process of an isolated plugin.

usage: python -m standards_mcp.server.isolated NAME < a line of configuration, and then MCP

The first line of stdin is a `WorkerConfig`: as arguments, its secrets would be visible in lists of
processes. Then the process serves the plugin over MCP. It applies no limits, because the host does.
`remote.worker` defines the private request and the private keys of ``_meta``.
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
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args

import anyio
import pydantic_core

from standards_mcp._utils.logs import PLUGIN_LOGGERS, configure_logging
from standards_mcp._utils.secrets import declares_secret, long_texts, masked_data
from standards_mcp._utils.streams import claim_standard_streams, fill_closed_streams
from standards_mcp.calls.call import CallRecord
from standards_mcp.calls.context import LOCAL, Principal
from standards_mcp.config.layers import DOT_ENV, ENVIRONMENT, Layer, Layers, plugin_variables
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.contributions.arguments import Arguments, read_arguments
from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.prompts import TOOLS_ARGUMENT, RegisteredPrompt
from standards_mcp.contributions.schemas import Schema
from standards_mcp.contributions.selection import Contributions
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.errors import CannotAskError, ToolError
from standards_mcp.host import Host
from standards_mcp.loading.discovery import installed_plugins
from standards_mcp.loading.health import check_health
from standards_mcp.loading.records import PluginInfo, PluginRecord, Status
from standards_mcp.plugin import Health, Prompt, Resource, Tool
from standards_mcp.remote import worker as wire
from standards_mcp.remote.definitions import ERROR_TYPE
from standards_mcp.start.front import PlainStreams

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult

    from standards_mcp.server.context import Context
    from standards_mcp.server.server import HostServer

log = logging.getLogger(__name__)

_NO_LIMIT: Final = 1_000_000_000
_D = TypeVar("_D", Tool, Prompt)
_SEPARATE_FIELDS: Final = frozenset(
    ("name", "title", "description", "function", "complete", "input_schema", "output_schema")
)
_META: ContextVar[Mapping[str, Any]] = ContextVar("meta")
"""The ``_meta`` of the current request."""


def main() -> None:
    """Serve the plugin that the first line of stdin names, until stdin is closed."""
    own_pid = os.getpid()
    fill_closed_streams()
    config = wire.WorkerConfig.model_validate_json(_first_line(0))
    _limit_memory(config.memory)
    _end_with_parent()
    if config.trial:  # on some systems, the process would outlive a killed host
        watchdog = threading.Timer(config.timing.trial + 5, os._exit, (1,))
        watchdog.daemon = True
        watchdog.start()
    host: Host | None = None
    configure_logging(logging.WARNING, lambda: host.secrets() if host else ())
    # The host logs the calls, but gets the plugin's own log lines only from this process.
    logging.getLogger(PLUGIN_LOGGERS).setLevel(logging.INFO)
    streams = PlainStreams(*claim_standard_streams())
    adapter = _Adapter()
    host = _load_host(config, adapter)
    if config.trial:
        anyio.run(_end_trial, host, config.trial)

    # These modules import the SDK: a plugin that cannot be loaded fails before that wait.
    from standards_mcp.server.run import run  # noqa: PLC0415
    from standards_mcp.server.stdio import serve_stdio  # noqa: PLC0415

    async def transport(server: HostServer) -> None:
        _end_forks(own_pid)
        answers = _PrivateAnswers(host, config.name, adapter.declared)
        host.observe(answers)
        server.add_request_handler(wire.STATUS, wire.StatusRequest, answers.status)
        server.middleware.append(answers.add_private_data)
        await serve_stdio(server, streams, drain_seconds=1.0)

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
    """Run the steps up to *phase*, and exit with success unless the plugin crashes the process."""
    host.manager.commands()
    if phase == "starting":
        async with host.running():
            os._exit(wire.TRIAL_PASSED)
    os._exit(wire.TRIAL_PASSED)


def _first_line(descriptor: int) -> bytes:
    """Read one line and no byte after it, because MCP messages follow."""
    line = bytearray()
    while (byte := os.read(descriptor, 1)) not in (b"", b"\n"):
        line += byte
    return bytes(line)


def _limit_memory(size: int | None) -> None:
    """Limit the address space of this process to *size* bytes, on systems that support it."""
    if size is None:
        return
    with suppress(ImportError, ValueError, OSError):  # on Windows, or the system allows less
        import resource  # noqa: PLC0415  - not on Windows

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _end_with_parent() -> None:
    """Let the kernel end this process when the host is killed, on Linux."""
    if sys.platform != "linux":
        return  # the end of stdin ends the server
    import ctypes  # noqa: PLC0415  - only here

    set_parent_death_signal = 1
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    stdin = select.poll()
    stdin.register(0, 0)
    if any(event & select.POLLHUP for _, event in stdin.poll(0)):
        os._exit(0)  # the host was already dead, so the kernel sends no signal


def _end_forks(own_pid: int) -> None:
    """End a fork of this process, made by the plugin, when it returns to the event loop.

    The fork shares all pipes with the process *own_pid*, and would take requests from it.
    """
    if os.getpid() != own_pid:
        os._exit(0)
    if sys.platform != "win32":
        loop = asyncio.get_running_loop()
        os.register_at_fork(after_in_child=lambda: loop.call_soon(os._exit, 0))


def _load_host(config: wire.WorkerConfig, finish: Callable[[Contributions], Contributions]) -> Host:
    """Return a host of this one plugin and the services that it needs, without limits."""
    unlimited = ("timeout", "max_output_tokens", "max_argument_values")
    limits: Any = {"concurrency": 1000, **dict.fromkeys(unlimited, _NO_LIMIT)}
    settings = Settings(**config.settings, tools=limits, tool_names="declared")
    plugins = [info for info in installed_plugins() if info.name in settings.plugins]
    if config.name not in (info.name for info in plugins):
        missing = f"it is not installed in {sys.prefix}"
        plugins.append(PluginInfo(name=config.name, load=lambda: None, error=missing))
    # The plugin's environment may lack other plugins that have tables in the settings.
    names = {info.name for info in plugins}
    tables = {name: table for name, table in settings.plugins.items() if name in names}
    settings = settings.model_copy(update={"plugins": tables})
    loaded = LoadedSettings(settings, None, _layers(config))
    host = Host(loaded, installed=plugins, remembers=False, timing=config.timing)
    host.manager.contributed.finish = finish
    host.manager.refuses_mistakes = False  # the main host reports them
    host.load(only=(config.name,))
    return host


def _layers(config: wire.WorkerConfig) -> Layers:
    """Return the layers of the settings that the models of the plugins read."""
    tables = config.settings["plugins"]
    keys = (
        Layer(key, {"plugins": {name: {key: tables[name][key]}}}, folder=Path(folder))
        for name, folders in config.folders.items()
        for key, folder in folders.items()
    )
    environment = {variable.upper(): text for variable, text in os.environ.items()}
    variables = Layer(ENVIRONMENT, {}, others=environment)
    return Layers((variables, Layer(DOT_ENV, {}, others=config.variables), *keys))


class _Adapter:
    """Adapts tools and prompts to the host, which has limits, filters and other plugins.

    Tools lose their limits, and get the filter expression from the host. Prompts get the host's
    names of tools, and are served even if other plugins have the tools that they need.

    Attributes:
        declared: The original declarations, by kind and name.
    """

    def __init__(self) -> None:
        self.declared: dict[tuple[str, str], Tool | Prompt] = {}
        self._changed: dict[tuple[str, str], Tool | Prompt] = {}

    def __call__(self, contributions: Contributions) -> Contributions:
        """Return the adapted contributions; do not adapt any of them twice."""
        return contributions._replace(
            tools=tuple(map(self._tool, contributions.tools)),
            prompts=tuple(map(self._prompt, contributions.prompts)),
        )

    def _tool(self, item: RegisteredTool) -> RegisteredTool:
        limits = {"cache_ttl": 0, "rate_limit": None, "max_output_tokens": None}
        item = replace(item, tool=self._adapted(item, item.tool, **limits))
        if not item.tool.accepts_filters:
            return item
        own = read_arguments(item.tool)
        return replace(item, arguments=_HostArgument(own, "filter", wire.FILTER))

    def _prompt(self, item: RegisteredPrompt) -> RegisteredPrompt:
        arguments = item.arguments
        if item.prompt.needs or item.prompt.uses:
            arguments = _HostArgument(arguments, TOOLS_ARGUMENT, wire.TOOLS)
        prompt = self._adapted(item, item.prompt, needs=(), uses=())
        return replace(item, prompt=prompt, arguments=arguments)

    def _adapted(self, item: Contribution, declared: _D, **changes: Any) -> _D:
        key = item.kind, item.declared
        if self._changed.get(key) is not declared:
            self.declared[key] = declared
            self._changed[key] = replace(declared, **changes)
        return cast("_D", self._changed[key])


@dataclass(frozen=True, slots=True)
class _HostArgument:
    """The plugin's own arguments, and one from the host in ``_meta``. See `Arguments`."""

    own: Arguments
    name: str
    key: str

    @property
    def schema(self) -> Schema:
        return self.own.schema

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {**await self.own.validate(arguments), self.name: _META.get().get(self.key)}


class _PrivateAnswers:
    """Answers `STATUS` requests, and adds private data for the host to the answers of MCP.

    Args:
        plugin: The name of the plugin.
        declared: See `_Adapter`.
    """

    def __init__(
        self, host: Host, plugin: str, declared: Mapping[tuple[str, str], Tool | Prompt]
    ) -> None:
        self._host = host
        self._plugin = plugin
        self._declared = declared
        self._log_fields = ContextVar[dict[str, object]]("log_fields")

    def call_started(self, record: CallRecord) -> None:
        """Do nothing. See `Observer`."""

    def call_ended(self, record: CallRecord) -> None:
        """Keep the log fields for `add_private_data`, which runs in the same context."""
        self._log_fields.get({}).update(record.fields)

    async def add_private_data(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Add the log fields of a tool call, or the data of an error, to the answer."""
        from mcp import MCPError  # noqa: PLC0415  - after the plugin's failures

        log_fields: dict[str, object] = {}
        self._log_fields.set(log_fields)
        _META.set(ctx.meta or {})
        try:
            result: Any = await call_next(ctx)
        except MCPError as exc:
            cause = exc.__context__
            if not isinstance(cause, ToolError) or isinstance(cause, CannotAskError):
                raise
            data = {ERROR_TYPE: cause.error_type, **cause.data}
            raise MCPError(exc.code, exc.message, data) from None
        if log_fields and ctx.method == "tools/call":
            sent = pydantic_core.to_jsonable_python(log_fields, fallback=str)
            return {**result, "_meta": {**result.get("_meta", {}), wire.LOG_FIELDS: sent}}
        return cast("HandlerResult", result)

    async def status(self, _: Context, request: wire.StatusRequest) -> dict[str, Any]:
        """Answer `STATUS`."""
        status = wire.Status(
            stuck_seconds=self._host.pipeline.invocation.stuck_seconds(self._plugin)
        )
        if request.describe:
            record = self._host.manager.records[self._plugin]
            status.description = self._description(record)
        if request.health:
            healths = await check_health(self._host.manager)
            status.health = healths.get(self._plugin) or Health(status="ok")
        return status.model_dump(mode="json")

    def _description(self, record: PluginRecord) -> wire.Description:
        records = self._host.manager.records.values()
        models = [record.settings_type for record in records if record.settings_type]
        # Also of the plugins whose services the plugin uses: this process runs them, too.
        keys = [
            (model, key, name) for model in models for key, name in plugin_variables(model).items()
        ]
        names = tuple(name for _, _, name in keys)
        secret_names = tuple(name for model, key, name in keys if declares_secret(model, key))
        if record.status in (Status.FAILED, Status.DISABLED):
            problems = masked_data([asdict(problem) for problem in record.problems], record.secrets)
            return wire.Description(
                failure=record.reason,
                problems=problems,
                variables=names,
                secret_variables=secret_names,
            )
        options = self._host.settings.section(record.name).options
        items = record.contributions
        return wire.Description(
            variables=names,
            secret=tuple(key for key in options if long_texts(options[key]) & record.secrets),
            secret_variables=secret_names,
            title=record.title,
            instructions=record.instructions,
            ineffective=tuple(
                hook for hook in get_args(wire.HostHook) if hasattr(type(record.plugin), hook)
            ),
            tools=tuple(
                self._described(item, item.tool, output_schema=item.result.schema)
                for item in items.tools
            ),
            prompts=tuple(
                self._described(item, item.prompt, completers=tuple(item.prompt.complete))
                for item in items.prompts
            ),
            resources=tuple(
                self._described(item, item.resource, completers=tuple(item.resource.complete))
                for item in items.resources
                if not item.skill
            ),
            skills=tuple(
                wire.DescribedSkill(needs=item.needs, contents=dict(item.contents))
                for item in items.skills
            ),
        )

    def _described(
        self, item: Contribution, adapted: Tool | Prompt | Resource, **more: Any
    ) -> wire.Described:
        """Return a declaration as data, with its final title, description and schema."""
        declared = self._declared.get((item.kind, item.declared), adapted)
        data = {field.name: getattr(declared, field.name) for field in fields(declared)}
        return wire.Described(
            name=item.declared,
            title=item.title,
            description=item.description,
            declared={name: value for name, value in data.items() if name not in _SEPARATE_FIELDS},
            input_schema=item.arguments.schema,
            **more,
        )


if __name__ == "__main__":
    main()
