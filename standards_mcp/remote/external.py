"""Other MCP servers as plugins: the host serves their tools, prompts, resources and skills."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from anyio import to_thread
from pydantic import SecretStr

from standards_mcp.calls.context import CALLER, HostContext
from standards_mcp.config.models.settings import Expansion, ServerSection, ServerSettings
from standards_mcp.config.models.sign_in import ServerAuth
from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.resources import RegisteredResource
from standards_mcp.contributions.routes import read_route
from standards_mcp.contributions.selection import Contributions
from standards_mcp.contributions.skills import files_of
from standards_mcp.errors import ApiError
from standards_mcp.hookspecs import hookimpl
from standards_mcp.loading.records import PluginInfo, PluginKind, PluginRecord
from standards_mcp.plugin import Health, PluginContext

from .approvals import Approvals, Change, Key, digest, key_of
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
from .skills import read_remote_skill

if TYPE_CHECKING:
    from .connection import Connection, Transport
    from .session import OpenSession
    from .sign_in import Account, SignIn

# Several configurations share the state folder, and may use one name for different servers. So
# approvals are kept by the name together with these keys.
_PROGRAM_KEYS: Final = {"command", "args", "cwd", "url"}
_IDENTITY_KEYS: Final = _PROGRAM_KEYS | {"auth", "env", "headers"}
_LISTS: Final = "tools, prompts, resources, skills"
"""The lists that the last run kept. If they change with a version, the server is asked again."""
_APPROVED_LISTS: Final = {"tools/call": "tools", "prompts/get": "prompts"}
"""The lists whose items need approval, by the method that requests an item."""
_APPROVAL_POLL_SECONDS: Final = 1.0
_C = TypeVar("_C", bound=Contribution)


def server_records(
    servers: Mapping[str, ServerSection],
    timing: Timing = DEFAULT_TIMING,
    sign_in_key: SecretStr | None = None,
) -> list[PluginInfo]:
    """Return the `PluginInfo` of every configured server; start none."""
    common = {"timing": timing, "sign_in_key": sign_in_key}
    return [
        PluginInfo(
            name=name,
            load=partial(type, "Server", (ServerPlugin,), common | {"required": section.required}),
            distribution=f"[servers.{name}]",
            settings=section,
            kind=PluginKind.SERVER,
            is_installed=False,
        )
        for name, section in servers.items()
    ]


def server_of(record: PluginRecord) -> ServerPlugin | None:
    """Return the plugin of a record if it is another MCP server, else None."""
    plugin = record.plugin
    # `isinstance` would also read the `__class__` of the plugin, which may raise or lie.
    return cast("ServerPlugin", plugin) if issubclass(type(plugin), ServerPlugin) else None


class ServerPlugin(RemotePlugin[ServerSettings]):
    """Another MCP server as a plugin.

    Attributes:
        approvals: The server's approved definitions; None with ``approve = "always"``.
        sign_in: The sign-in at the server; None without ``auth``.
        sign_in_key: The key of stored tokens; None for a key in the state folder.

    Raises:
        InvalidSettingsError: A setting refers to an environment variable that is not set.
    """

    settings_type = ServerSettings
    kind = "server"
    sign_in_key: SecretStr | None = None

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
        self.sign_in: SignIn | None = None
        if settings.auth:
            secret = text(settings.auth.client_secret or "", "auth", "client_secret")
            auth = settings.auth.model_copy(update={"client_secret": secret})
            self.sign_in = self._open_sign_in(context, auth)
        self.secrets = self._settings_secrets = frozenset(expansion.secrets)
        identity = [_LISTS, settings.model_dump(mode="json", include=_IDENTITY_KEYS)]
        self._links = Links()
        self.approvals: Approvals | None = None
        if settings.approve == "first":
            # Not by `env` and `headers`, because users replace the API keys in them.
            program = digest(settings.model_dump(mode="json", include=_PROGRAM_KEYS))
            file = context.state_dir / f"approved-{program[:12]}.json"
            self.approvals = Approvals(context.name, file)
        self._withheld_reasons: Mapping[Key, str] = {}
        super().__init__(settings, context, identity, settings.start_timeout)

    def _open_sign_in(self, context: PluginContext, auth: ServerAuth) -> SignIn:
        from .sign_in import open_sign_in  # noqa: PLC0415  - few servers need it

        def note_tokens(tokens: frozenset[str]) -> None:
            self.secrets = self._settings_secrets | tokens

        folder, key = context.state_dir, self.sign_in_key
        return open_sign_in(context.name, self._url, auth, folder, key, note_tokens)

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
                if self.sign_in:
                    await self.sign_in.aclose()

    async def health(self) -> Health:
        """Return the server's health, or the message about definitions that are not approved."""
        if self.approvals and self.approvals.message:
            return Health(status="degraded", message=self.approvals.message)
        health = await super().health()
        if self.sign_in:
            try:
                await self.sign_in.operator.prepare()
            except ApiError as exc:
                return Health(status="failed", message=str(exc))
            health = replace(health, message=f"{health.message}; {self.sign_in.status()}")
        return health

    def connect(self) -> Transport:
        """Return the transport to the process or the address. See `RemotePlugin.connect`."""
        if self.settings.command is None:
            from .transports import HttpTransport  # noqa: PLC0415  - imports the SDK's client

            account = self.sign_in.operator if self.sign_in else None
            return HttpTransport(self._url, self._headers, account)
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
        tools = self._each(listing, "tools", partial(read_remote_tool, origin))
        prompts = self._each(listing, "prompts", partial(read_remote_prompt, origin))
        skills = self._each(listing, "skills", partial(read_remote_skill, origin, self._list_again))
        folders = tuple(item.folder for item in skills if item.folder.endswith("/"))
        origin = origin._replace(skills=folders)
        resources: tuple[RegisteredResource, ...] = ()
        if "resources" in listing:
            lists = listing["resources"], listing.get("resourceTemplates", ())
            resources = tuple(
                self._with_approval(item, ("resourceTemplates", item.resource.uri))
                for item in read_remote_resources(origin, *lists, self._links)
            )
        routes = self.sign_in.routes() if self.sign_in else ()
        self.contributions = Contributions(
            tools,
            prompts,
            (*resources, *files_of(skills)),
            routes=tuple(read_route(name, route) for route in routes),
            skills=skills,
        )

    async def approve(self, changes: Sequence[Change]) -> None:
        """Approve definitions, and serve them at once; other processes follow in a second.

        Raises:
            OSError: The approval cannot be saved.
        """
        if self.approvals:
            await to_thread.run_sync(self.approvals.approve, changes)
            self.read(self.listing)
            self.on_change()

    def _each(
        self, listing: Mapping[str, Any], kind: str, read: Callable[[Mapping[str, Any]], _C]
    ) -> tuple[_C, ...]:
        return tuple(
            self._with_approval(read(raw), key_of(kind, raw)) for raw in listing.get(kind, ())
        )

    def _with_approval(self, item: _C, key: Key) -> _C:
        """Return an item, with the reason as its ``error`` if it is not approved."""
        return replace(item, error=item.error or self._withheld_reasons.get(key, ""))

    def _list_again(self) -> None:
        self.connection.listing.changed.set()

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
        result = await self._result(method, params, caller)
        self._links.note(objects_of(result.get("content")))
        messages = objects_of(result.get("messages"))
        self._links.note(object_of(message.get("content")) for message in messages)
        return result

    async def _result(
        self, method: str, params: Mapping[str, Any], caller: HostContext | None
    ) -> dict[str, Any]:
        """Return the raw result of a request, made with the caller's account if they have one."""
        if self.sign_in is None:
            return await self.connection.ask(method, params, caller)
        if self.sign_in.is_for_operator(CALLER.get()):
            await self.sign_in.operator.prepare()
            return await self.connection.ask(method, params, caller)
        async with self.sign_in.connection(CALLER.get(), self._connection_of) as connection:
            return await connection.ask(method, params, caller)

    def _connection_of(self, account: Account) -> Connection:
        """Return a new connection of a caller, whose lists do not change what is served."""
        from .connection import Connection  # noqa: PLC0415  - as above
        from .transports import HttpTransport  # noqa: PLC0415  - as above
        from .updates import Listing  # noqa: PLC0415  - as above

        async def fetch(session: OpenSession) -> dict[str, Any]:
            session.note_tools(self.listing.get("tools", ()))
            return {}

        def ignore(_: object) -> None:
            """Keep what the operator's connection has listed."""

        name, limits = self.context.name, (self.settings.start_timeout, self.timing.listen)
        listing = Listing(name, fetch, ignore, ignore, *limits)
        listing.follows = False
        connect = partial(HttpTransport, self._url, self._headers, account)
        return Connection(name, f"server {name!r}", connect, listing, limits[0])

    async def subscribe(self, uri: str) -> None:
        """Subscribe to a resource, but not with the operator's account for another caller."""
        if self.sign_in is None or self.sign_in.is_for_operator(CALLER.get()):
            await super().subscribe(uri)
