"""Other MCP servers as plugins: the host serves their tools, prompts and resources."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import SecretStr

from standards_mcp.calls.context import HostContext
from standards_mcp.config.models.settings import Expansion, ServerSection, ServerSettings
from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.resources import RegisteredResource
from standards_mcp.contributions.selection import Contributions
from standards_mcp.hookspecs import hookimpl
from standards_mcp.loading.records import PluginInfo, PluginKind
from standards_mcp.plugin import Health, PluginContext

from .approvals import Approvals, Key, digest, key_of
from .definitions import (
    NotApprovedError,
    Origin,
    object_of,
    objects_of,
    read_remote_prompt,
    read_remote_tool,
)
from .plugin import RemotePlugin, expanded
from .resources import Links, read_remote_resources

if TYPE_CHECKING:
    from .connection import Transport
    from .session import OpenSession

# Several configurations share the state folder, and may use one name for different servers. So
# approvals are kept by the name together with these keys.
_PROGRAM_KEYS: Final = {"command", "args", "cwd", "url"}
_IDENTITY_KEYS: Final = _PROGRAM_KEYS | {"env", "headers"}
_LISTS: Final = "tools, prompts, resources"
"""The lists that the last run kept. If they change with a version, the server is asked again."""
_APPROVED_LISTS: Final = {"tools/call": "tools", "prompts/get": "prompts"}
"""The lists whose items need approval, by the method that requests an item."""
_APPROVAL_POLL_SECONDS: Final = 1.0
_C = TypeVar("_C", bound=Contribution)


def server_records(
    servers: Mapping[str, ServerSection], timing: Timing = DEFAULT_TIMING
) -> list[PluginInfo]:
    """Return the `PluginInfo` of every configured server; start none."""
    return [
        PluginInfo(
            name=name,
            load=partial(
                type, "Server", (ServerPlugin,), {"required": section.required, "timing": timing}
            ),
            distribution=f"[servers.{name}]",
            settings=section,
            kind=PluginKind.SERVER,
            is_installed=False,
        )
        for name, section in servers.items()
    ]


class ServerPlugin(RemotePlugin[ServerSettings]):
    """Another MCP server as a plugin.

    Attributes:
        approvals: The server's approved definitions; None with ``approve = "always"``.

    Raises:
        InvalidSettingsError: A setting refers to an environment variable that is not set.
    """

    settings_type = ServerSettings
    kind = "server"

    def __init__(self, settings: ServerSettings, context: PluginContext) -> None:
        expansion = Expansion()

        def text(value: SecretStr | str, *key: str | int) -> str:
            return expanded(expansion, value, "servers", context.name, *key)

        self._args = tuple(text(arg, "args", at) for at, arg in enumerate(settings.args))
        self._env = {name: text(value, "env", name) for name, value in settings.env.items()}
        self._headers = {
            name: text(value, "headers", name) for name, value in settings.headers.items()
        }
        self._url = text(settings.url or "", "url")
        self.secrets = frozenset(expansion.secrets)
        identity = [_LISTS, settings.model_dump(mode="json", include=_IDENTITY_KEYS)]
        self._links = Links()
        self.approvals: Approvals | None = None
        if settings.approve == "first":
            self.approvals = Approvals(context.name, context.state_dir / _approvals_name(settings))
        self._withheld_reasons: Mapping[Key, str] = {}
        super().__init__(settings, context, identity, settings.start_timeout)

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Also serve definitions once they are approved. See `RemotePlugin.lifespan`."""
        async with super().lifespan():
            watcher = asyncio.create_task(self._watch_approvals())
            try:
                yield
            finally:
                watcher.cancel()

    async def health(self) -> Health:
        """Return the server's health, or the message about definitions that are not approved."""
        if self.approvals and self.approvals.message:
            return Health(status="degraded", message=self.approvals.message)
        return await super().health()

    def connect(self) -> Transport:
        """Return the transport to the process or the address. See `RemotePlugin.connect`."""
        if self.settings.command is None:
            from .transports import HttpTransport  # noqa: PLC0415  - imports the SDK's client

            return HttpTransport(self._url, self._headers)
        from mcp.client.stdio import get_default_environment  # noqa: PLC0415  - as above

        from .transports import Command, StdioTransport  # noqa: PLC0415  - as above

        command = Command(
            program=self.settings.command,
            args=self._args,
            env=get_default_environment() | self._env,
            cwd=self.settings.cwd,
        )
        return StdioTransport(self.context.name, command)

    async def fetch(self, session: OpenSession) -> dict[str, Any]:
        """List the server's items. See `RemotePlugin.fetch`."""
        from .updates import list_items  # noqa: PLC0415  - as above

        return await list_items(session, self.context.name, self.listing)

    def read(self, listing: Mapping[str, Any]) -> None:
        """Contribute the listed items. See `RemotePlugin.read`."""
        name, prefix = self.context.name, self.settings.prefix
        if self.approvals:
            self.approvals.review(listing)
            self._withheld_reasons = self.approvals.reasons
            self.unapproved = self.approvals.excerpt
        origin = Origin(
            name=name,
            prefix=f"{name}." if prefix is None else prefix,
            ask=self._ask,
            completes=listing.get("completes") is True,
            timeout=self.settings.timeout,
        )
        tools = (
            self._with_approval(read_remote_tool(origin, raw), key_of("tools", raw))
            for raw in listing.get("tools", ())
        )
        prompts = (
            self._with_approval(read_remote_prompt(origin, raw), key_of("prompts", raw))
            for raw in listing.get("prompts", ())
        )
        resources: tuple[RegisteredResource, ...] = ()
        if "resources" in listing:
            lists = listing["resources"], listing.get("resourceTemplates", ())
            resources = tuple(
                self._with_approval(item, ("resourceTemplates", item.resource.uri))
                if item.template
                else item
                for item in read_remote_resources(origin, *lists, self._links)
            )
        self.contributions = Contributions(tuple(tools), tuple(prompts), resources)

    def _with_approval(self, item: _C, key: Key) -> _C:
        """Return an item, with the reason as its ``error`` if it is not approved."""
        return replace(item, error=item.error or self._withheld_reasons.get(key, ""))

    async def _watch_approvals(self) -> None:
        """Serve withheld definitions once another process has approved them."""
        while True:
            await asyncio.sleep(_APPROVAL_POLL_SECONDS)
            if self.approvals and self.approvals.changes and self.approvals.is_outdated:
                self.read(self.listing)
                self.on_change()

    async def _ask(
        self, method: str, params: Mapping[str, Any], caller: HostContext | None = None, /
    ) -> Mapping[str, Any]:
        if kind := _APPROVED_LISTS.get(method):
            # If this starts the server, changed definitions are noticed before the call.
            await self.connection.open()
            if reason := self._withheld_reasons.get((kind, name := params["name"])):
                message = f"{name} is not served here ({reason}). Ask the administrator."
                raise NotApprovedError(message)
        result = await self.connection.ask(method, params, caller)
        self._links.note(objects_of(result.get("content")))
        messages = objects_of(result.get("messages"))
        self._links.note(object_of(message.get("content")) for message in messages)
        return result


def _approvals_name(settings: ServerSettings) -> str:
    """Return the name of the file of approvals, which depends on the program or the address.

    It does not depend on `env` and `headers`, because users replace the API keys in them.
    """
    program = digest(settings.model_dump(mode="json", include=_PROGRAM_KEYS))
    return f"approved-{program[:12]}.json"
