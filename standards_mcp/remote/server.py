"""Other MCP servers as plugins: their tools are served as those of plugins are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pydantic import SecretStr

from standards_mcp.calls.context import HostContext
from standards_mcp.config.errors import InvalidSettingsError, Problem
from standards_mcp.config.models.external import (
    Expansion,
    ServerSection,
    ServerSettings,
    VariableError,
)
from standards_mcp.contributions.collection import Contributions
from standards_mcp.loading.records import PluginInfo, PluginKind
from standards_mcp.plugin import Plugin, PluginContext

from .plugin import RemotePlugin
from .tools import read_remote_tool

if TYPE_CHECKING:
    from .connection import Target

_TARGET_KEYS: Final = {"command", "args", "env", "cwd", "url", "headers"}


def server_records(servers: Mapping[str, ServerSection]) -> list[PluginInfo]:
    """Return a record of every server in the configuration; nothing is started."""
    return [
        PluginInfo(
            name=name,
            load=partial(_server_type, required=section.required),
            distribution=f"[servers.{name}]",
            settings=ServerSettings(**section.options),
            kind=PluginKind.SERVER,
            is_installed=False,
        )
        for name, section in servers.items()
    ]


def _server_type(*, required: bool) -> type[Plugin[Any]]:
    return type("ServerPlugin", (ServerPlugin,), {"required": required})


class ServerPlugin(RemotePlugin[ServerSettings]):
    """One other MCP server.

    Raises:
        InvalidSettingsError: Its configuration names a variable that is not set.
    """

    settings_type = ServerSettings
    kind = "server"

    def __init__(self, settings: ServerSettings, context: PluginContext) -> None:
        expansion = Expansion()
        connect = _target_maker(context.name, settings, expansion)
        self.secrets = frozenset(expansion.secrets)
        target = settings.model_dump(mode="json", include=_TARGET_KEYS)
        super().__init__(settings, context, connect, target, settings.start_timeout)

    def read(self, raw: Sequence[dict[str, Any]]) -> None:
        """Take over the tools that the server lists."""
        name, prefix = self.context.name, self.settings.prefix
        prefix = f"{name}." if prefix is None else prefix
        timeout = self.settings.timeout
        tools = (read_remote_tool(name, each, prefix, self._call, timeout) for each in raw)
        self.contributions = Contributions(tuple(tools))

    async def _call(
        self, name: str, arguments: Mapping[str, Any], caller: HostContext
    ) -> Mapping[str, Any]:
        return await self.connection.call_tool(name, arguments, caller)


def _target_maker(
    name: str, settings: ServerSettings, expansion: Expansion
) -> Callable[[], Target]:
    """Return a function that returns what to connect to, with all variables in place."""

    def expanded(value: SecretStr | str, *key: str | int) -> str:
        try:
            return expansion.text(value)
        except VariableError as exc:
            fix = f"set {exc.variable} in the environment"
            raise InvalidSettingsError(Problem(("servers", name, *key), str(exc), fix)) from None

    args = tuple(expanded(arg, "args", at) for at, arg in enumerate(settings.args))
    env = {key: expanded(value, "env", key) for key, value in settings.env.items()}
    headers = {key: expanded(value, "headers", key) for key, value in settings.headers.items()}
    url = expanded(settings.url or "", "url")

    def connect() -> Target:
        from .http import Address  # noqa: PLC0415  - imports the SDK's client

        if settings.command is None:
            return Address(url, headers)
        from mcp.client.stdio import get_default_environment  # noqa: PLC0415  - as above

        from .stdio import ChildProcess, Command  # noqa: PLC0415  - as above

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
