"""Other MCP servers as plugins: their tools are served as those of plugins are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pydantic import SecretStr

from standards_mcp.calls.context import HostContext
from standards_mcp.config.errors import Mistake, MistakesError
from standards_mcp.config.models.external import (
    Expansion,
    ServerSection,
    ServerSettings,
    VariableError,
)
from standards_mcp.loading.records import PluginRecord
from standards_mcp.plugin import PluginContext

from .plugin import RemotePlugin
from .tools import read_remote_tool
from .transport import DEFAULT_TIMING, Timing, Transport

if TYPE_CHECKING:
    from .session import OpenSession

_IDENTITY_KEYS: Final = {"command", "args", "env", "cwd", "url", "headers"}


def server_records(
    servers: Mapping[str, ServerSection],
    timing: Timing = DEFAULT_TIMING,
) -> list[PluginRecord]:
    """Return a record of every server in the configuration; nothing is started."""
    return [
        PluginRecord(
            name=name,
            load=partial(
                type,
                "ServerPlugin",
                (ServerPlugin,),
                {"required": section.required, "timing": timing},
            ),
            distribution=f"[servers.{name}]",
            settings=ServerSettings(**section.options),
            is_server=True,
            from_table=True,
        )
        for name, section in servers.items()
    ]


class ServerPlugin(RemotePlugin[ServerSettings]):
    """One other MCP server.

    Raises:
        MistakesError: Its configuration names a variable that is not set.
    """

    settings_type = ServerSettings
    kind = "server"

    def __init__(self, settings: ServerSettings, context: PluginContext) -> None:
        self._target = _Target.expanded(context.name, settings)
        self.secrets = self._target.secrets
        identity = settings.model_dump(mode="json", include=_IDENTITY_KEYS)
        super().__init__(settings, context, identity, settings.start_timeout)

    def connect(self) -> Transport:
        """Return a process or an address. See `RemotePlugin.connect`."""
        target, settings = self._target, self.settings
        if settings.command is None:
            from .http import HttpTransport  # noqa: PLC0415  - imports the SDK's client

            return HttpTransport(target.url, target.headers)
        from mcp.client.stdio import get_default_environment  # noqa: PLC0415  - as above

        from .stdio import Command, StdioTransport  # noqa: PLC0415  - as above

        env = {**get_default_environment(), **target.env}
        command = Command(program=settings.command, args=target.args, env=env, cwd=settings.cwd)
        return StdioTransport(self.context.name, command)

    async def fetch(self, session: OpenSession) -> dict[str, Any]:
        """List its tools. See `RemotePlugin.fetch`."""
        from .listing import list_tools  # noqa: PLC0415  - as above

        return await list_tools(session, self.context.name)

    def read(self, listing: Mapping[str, Any]) -> None:
        """Take over the tools that the server lists. See `RemotePlugin.read`."""
        name, prefix = self.context.name, self.settings.prefix
        prefix = f"{name}." if prefix is None else prefix
        self.tools = tuple(
            read_remote_tool(name, each, prefix, self._call, self.settings.timeout)
            for each in listing.get("tools", ())
        )

    async def _call(
        self, name: str, arguments: Mapping[str, Any], caller: HostContext
    ) -> Mapping[str, Any]:
        return await self.connection.call_tool(name, arguments, caller)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Target:
    """What is started or connected to, with all variables in place.

    Attributes:
        secrets: The values of variables in it.
    """

    url: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    headers: Mapping[str, str]
    secrets: frozenset[str]

    @classmethod
    def expanded(cls, name: str, settings: ServerSettings) -> _Target:
        expansion = Expansion()

        def text(value: SecretStr | str, *key: str | int) -> str:
            try:
                return expansion.text(value)
            except VariableError as exc:
                fix = f"set {exc.variable} in the environment"
                raise MistakesError(Mistake(("servers", name, *key), str(exc), fix)) from None

        return cls(
            url=text(settings.url or "", "url"),
            args=tuple(text(arg, "args", at) for at, arg in enumerate(settings.args)),
            env={key: text(value, "env", key) for key, value in settings.env.items()},
            headers={key: text(value, "headers", key) for key, value in settings.headers.items()},
            secrets=frozenset(expansion.secrets),
        )
