"""Other MCP servers as plugins: their tools are served as those of plugins are.

A server whose tools are known from its last run is started by the first call. One that is new is
started with the host, beside the others, and so is one that is required.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import anyio
from pydantic import TypeAdapter

from .declarations import RegisteredTool
from .discovery import PluginRecord
from .errors import ApiError, PluginError
from .files import keep_text
from .hookspecs import hookimpl
from .masking import mask
from .plugin import Health, Plugin, PluginContext
from .remote_tools import read_remote_tool
from .server_settings import Expansion, ServerSection, ServerSettings, VariableError
from .tool_sources import ToolSource

if TYPE_CHECKING:
    from .connections import Connection, Target

_TARGET_KEYS: Final = {"command", "args", "env", "cwd", "url", "headers"}
_RETRY_SECONDS: Final = 60.0
_RAW_TOOLS: Final = TypeAdapter(list[dict[str, Any]])


def server_records(servers: Mapping[str, ServerSection]) -> list[PluginRecord]:
    """Return a record of every server in the configuration; nothing is started."""
    return [
        PluginRecord(
            name=name,
            load=partial(_server_type, required=section.required),
            distribution=f"[servers.{name}]",
            is_server=True,
        )
        for name, section in servers.items()
    ]


def _server_type(*, required: bool) -> type[Plugin[Any]]:
    return type("ServerPlugin", (ServerPlugin,), {"required": required})


class ServerPlugin(Plugin[ServerSettings], ToolSource):
    """One other MCP server.

    Raises:
        PluginError: Its configuration names a variable that is not set.
    """

    settings_type = ServerSettings
    required: ClassVar[bool] = False

    def __init__(self, settings: ServerSettings, context: PluginContext) -> None:
        super().__init__(settings, context)
        expansion = Expansion()
        try:
            self._connect = _target_maker(context.name, settings, expansion)
        except VariableError as exc:
            raise PluginError(context.name, str(exc)) from None
        self.secrets = frozenset(expansion.secrets)
        self._connection: Connection | None = None
        self._snapshot = _Snapshot(settings, context)
        self._raw = self._snapshot.tools
        if self._snapshot.failed:
            self.problem = "its tools are not known: it could not be started when last tried"
        self._answered = asyncio.Event()
        self.tools = self._read(self._raw or ())

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Keep the server running from when it is needed on."""
        from .connections import Connection  # noqa: PLC0415  - imports the SDK's client

        timeout = self.settings.start_timeout
        self._connection = Connection(self.context.name, self._connect, timeout, self._take)
        learning = None
        try:
            if self.required:
                await self._connection.open()
            elif self._raw is None:
                learning = asyncio.create_task(self._learn(self._connection))
            yield
        finally:
            if learning:
                learning.cancel()
            await self._connection.aclose()

    @hookimpl
    async def check_health(self) -> Health:
        """Start the server if it does not run, and say whether it does."""
        if self._connection is None:
            return Health(status="failed", message="it is not started")
        try:
            await self._connection.open()
        except ApiError as exc:
            return Health(status="failed", message=str(exc))
        withheld = sum(bool(tool.fault) for tool in self.tools)
        if withheld:
            message = f"{withheld} of {len(self.tools)} tools cannot be served"
            return Health(status="degraded", message=f"{message}; see `standards-mcp tools`")
        return Health(status="ok", message=f"{len(self.tools)} tools")

    @property
    def is_known(self) -> bool:
        """Whether its tools are known, from this run or an earlier one."""
        return self._raw is not None or self._snapshot.failed

    async def ready(self) -> None:
        """Wait until a server that is new has listed its tools, or failed to."""
        if not self.is_known and self._connection:
            with anyio.move_on_after(self.settings.start_timeout):
                await self._answered.wait()

    async def _learn(self, connection: Connection) -> None:
        while self._raw is None:
            try:
                await connection.open()
            except ApiError as exc:
                self._snapshot.note_failure()
                self._answered.set()
                self.problem = mask(f"its tools are not known: {exc}", self.secrets)
                self.on_change()
                await anyio.sleep(_RETRY_SECONDS)

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._connection is None:
            raise ApiError(f"server {self.context.name!r} is not started")
        return await self._connection.call_tool(name, arguments)

    def _take(self, raw: list[dict[str, Any]]) -> None:
        """Take over the tools that the server lists now."""
        changed = raw != self._raw
        if changed:
            self._raw, self.problem = raw, ""
            self._snapshot.keep(raw)
            self.tools = self._read(raw)
        self._answered.set()
        if changed:
            self.on_change()

    def _read(self, raw: Iterable[Mapping[str, Any]]) -> tuple[RegisteredTool, ...]:
        name, prefix = self.context.name, self.settings.prefix
        prefix = f"{name}." if prefix is None else prefix
        return tuple(
            read_remote_tool(name, each, prefix, self._call, self.settings.timeout) for each in raw
        )


class _Snapshot:
    """The tools that a server had when it last ran with the same configuration.

    Attributes:
        tools: As the server listed them; None when they are not known.
        failed: It could not be started when that was last tried, and none are known.
    """

    def __init__(self, settings: ServerSettings, context: PluginContext) -> None:
        target = settings.model_dump(mode="json", include=_TARGET_KEYS)
        self._key = hashlib.sha256(json.dumps(target, sort_keys=True).encode()).hexdigest()
        self._file = context.state_dir / "tools.json"
        self.tools: list[dict[str, Any]] | None = None
        self.failed = False
        try:
            kept = json.loads(self._file.read_bytes())
            if kept["target"] == self._key:
                self.failed = kept["tools"] is None
                self.tools = None if self.failed else _RAW_TOOLS.validate_python(kept["tools"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return  # none was kept, or not by this version

    def keep(self, tools: list[dict[str, Any]] | None) -> None:
        """Remember the tools for the next start."""
        keep_text(self._file, json.dumps({"target": self._key, "tools": tools}))

    def note_failure(self) -> None:
        """Remember that they are not known, so that the next start does not wait for them."""
        self.failed = True
        self.keep(None)


def _target_maker(
    name: str, settings: ServerSettings, expansion: Expansion
) -> Callable[[], Target]:
    """Return a function that returns what to connect to, with all variables in place."""
    args = tuple(expansion.text(arg) for arg in settings.args)
    env, headers = expansion.texts(settings.env), expansion.texts(settings.headers)
    url = expansion.text(settings.url or "")

    def connect() -> Target:
        from .connections import Address  # noqa: PLC0415  - imports the SDK's client

        if settings.command is None:
            return Address(url, headers)
        from mcp.client.stdio import get_default_environment  # noqa: PLC0415  - as above

        from .child_process import ChildProcess, Command  # noqa: PLC0415  - as above

        return ChildProcess(
            name,
            Command(
                program=settings.command,
                args=args,
                env=get_default_environment() | env,
                cwd=settings.cwd,
            ),
        )

    return connect
