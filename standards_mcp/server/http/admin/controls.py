"""The plugins, tools and configuration of the admin page: read them, and switch tools.

A switch changes the configuration file as ``tools enable`` and ``tools disable`` do, and reloads.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from anyio import to_thread

from standards_mcp._utils.files import Edit
from standards_mcp._utils.secrets import MASK, mask
from standards_mcp.calls.output import definition_tokens
from standards_mcp.config.edits import (
    change_config,
    disabled_tools,
    file_to_change,
    with_tool_disabled,
    with_tool_enabled,
)
from standards_mcp.config.layers import toml_key, toml_value
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.models.tools import Kind, ToolSettings
from standards_mcp.contributions.selection import gained
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.errors import ConfigError, NotAuditedError, StandardsMcpError
from standards_mcp.host import Host
from standards_mcp.loading.construction import shown_values
from standards_mcp.loading.providers import provider_of
from standards_mcp.loading.records import PluginKind, PluginRecord, Status
from standards_mcp.plugin import Health
from standards_mcp.server.audit import Audit
from standards_mcp.server.http.health import is_well
from standards_mcp.server.reload import Reloading, reload_now

from .history import Called, Tally

log = logging.getLogger(__name__)

_TOKENS = ("server", "auth", "tokens")
_KINDS: Mapping[PluginKind, str] = {
    PluginKind.IMPORTED: "in the service's process",
    PluginKind.ISOLATED: "in a process of its own",
    PluginKind.SERVER: "another MCP server",
}


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """A tool.

    Attributes:
        name: The name that its plugin declares.
        published: The name for clients.
        reason: The reason why it is hidden, or an empty string.
        tokens: Approximate size of its definition in a model's context.
        tally: Its calls of the last hour.
        action: The action of its switch: ``disable``, ``enable``, or empty without a switch.
    """

    name: str
    published: str
    title: str
    description: str
    reason: str
    tokens: int
    is_read_only: bool
    tally: Tally
    action: str


@dataclass(frozen=True, slots=True)
class PluginFacts:
    """A plugin or another MCP server.

    Attributes:
        kind: The place where its code runs, in words.
        reason: The reason for its state, or an empty string.
        health: The result of its own health check, if it has one.
        others: Numbers of its prompts, resources and routes, in words.
        is_well: True if neither the plugin nor its check has failed.
        unapproved: The diff of server definitions that are not approved.
    """

    name: str
    version: str
    kind: str
    state: str
    reason: str
    health: Health | None
    tools: Sequence[ToolFacts]
    others: Sequence[str]
    is_well: bool
    unapproved: str


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the configuration in force.

    Attributes:
        origin: The source that set it, or an empty string for a default.
    """

    key: str
    value: str
    origin: str


class RefusedError(Exception):
    """A change was not made, or is not in force; the text says why."""


class NotAgreedError(Exception):
    """A change would serve more than its button says; the text names the additions."""


def plugin_facts(
    host: Host, health: Mapping[str, Health], tallies: Mapping[Called, Tally]
) -> list[PluginFacts]:
    """Return all plugins with their tools, failed ones first. Secrets are masked."""
    records = host.manager.records.values()
    plugins = [_plugin(host, record, health.get(record.name), tallies) for record in records]
    return sorted(plugins, key=lambda plugin: plugin.is_well)


def _plugin(
    host: Host, record: PluginRecord, health: Health | None, tallies: Mapping[Called, Tally]
) -> PluginFacts:
    selection, name, provider = host.visible(), record.name, provider_of(record)
    counts = {
        "prompt": sum(item.plugin == name for item in selection.prompts),
        "resource": sum(item.plugin == name for item in selection.resources),
        "route": sum(item.plugin == name for item in selection.routes),
    }
    # A plugin that is disabled while it runs stays started, and serves nothing.
    is_off = host.settings.section(name).enabled is False and record.status is Status.STARTED
    return PluginFacts(
        name=name,
        version=record.info.version,
        kind=_KINDS[record.info.kind],
        state=Status.DISABLED if is_off else record.status,
        reason=mask(record.reason, host.secrets()),
        health=health,
        tools=[_tool(host, item, tallies) for item in selection.tools if item.plugin == name],
        others=[f"{n} {kind}{'' if n == 1 else 's'}" for kind, n in counts.items() if n],
        is_well=is_well(record, health),
        unapproved=mask(provider.unapproved, host.secrets()) if provider else "",
    )


def _tool(host: Host, item: RegisteredTool, tallies: Mapping[Called, Tally]) -> ToolFacts:
    action = "" if item.hidden_reason else "disable"
    if _can_be_enabled(item, host.settings.tools):
        action = "enable"
    return ToolFacts(
        name=item.declared,
        published=item.published,
        title=item.title or "",
        description=item.description,
        reason=mask(item.hidden_reason, host.secrets()),
        tokens=definition_tokens(item),
        is_read_only=item.tool.read_only,
        tally=tallies.get(Called("tool", item.declared, item.plugin), Tally()),
        action=action,
    )


def _can_be_enabled(item: RegisteredTool, tools: ToolSettings) -> bool:
    """True if a tool is hidden only by the keys that its switch changes."""
    without = tools.model_copy(
        update={
            "disable": tuple(name for name in tools.disable if name not in item.names),
            "enable": (*tools.enable, item.declared),
        }
    )
    now, then = (
        settings.hidden_reason(item.names, read_only=item.tool.read_only)
        for settings in (tools, without)
    )
    return bool(now) and now == item.hidden_reason and not then


def config_tables(host: Host, *, is_whole: bool) -> dict[str, list[Value]]:
    """Return the configuration in force by table, without secrets.

    Args:
        is_whole: True to include default values.
    """
    values = shown_values(host.settings, host.manager.records.values(), host.secrets())
    tables: dict[str, list[Value]] = {}
    for path, value in sorted(values.items(), key=lambda item: len(item[0]) > 1):
        if not (origin := host.layers.origin(path)) and not is_whole:
            continue
        # The hash of a token is useless to a reader.
        text = toml_value(MASK if path[:3] == _TOKENS and path[-1] == "sha256" else value)
        table = ".".join(map(toml_key, path[:-1]))
        tables.setdefault(table, []).append(Value(toml_key(path[-1]), text, origin))
    return tables


def served_tokens(plugins: Iterable[PluginFacts]) -> int:
    """Return the approximate number of tokens of all served definitions."""
    return sum(tool.tokens for plugin in plugins for tool in plugin.tools if not tool.reason)


# Plugins have no switch: enabling one runs its code, and may need a restart.
class Controls:
    """Change the configuration of a running service.

    Args:
        reloading: The sources of the configuration; without them, nothing can be changed.
        tell: Notifies clients of changed lists.
        audit: The audit log, if there is one.
    """

    def __init__(
        self,
        host: Host,
        reloading: Reloading | None,
        tell: Callable[[Collection[Kind]], Awaitable[None]],
        audit: Audit | None,
    ) -> None:
        self._host, self._reloading, self._tell, self._audit = host, reloading, tell, audit

    @property
    def are_possible(self) -> bool:
        """True if the sources of the configuration are known."""
        return self._reloading is not None

    def is_waiting(self) -> bool:
        """True if the file has changed since it was read."""
        return not self._host.loaded.is_current()

    async def switch(self, tool: str, caller: str, *, enabled: bool, agreed: str = "") -> None:
        """Serve a tool, or stop serving it.

        Args:
            tool: Its declared name.
            agreed: The additions that `NotAgreedError` has named, if the caller agrees to them.

        Raises:
            RefusedError: The change is not possible.
            NotAgreedError: The change would serve more than the tool.
        """
        item = next((item for item in self._host.visible().tools if item.declared == tool), None)
        if item is None:
            raise RefusedError(f"There is no tool {tool!r} any more.")

        def edit(text: str) -> str:
            if not enabled:
                return with_tool_disabled(text, tool)
            disabled = disabled_tools(text)
            for name in [name for name in item.names if name in disabled] or [tool]:
                text = with_tool_enabled(text, name)
            return text

        def agree(additions: str) -> None:
            if additions not in (item.published, agreed):
                raise NotAgreedError(additions)

        action = f"tools {'enable' if enabled else 'disable'}"
        self._announce(caller, action, tool=tool)
        # The button itself is the agreement to the tool.
        gains = self._gains if enabled else None
        done = await self._change(edit, partial(change_config, gains=gains, agree=agree))
        if done.changes:
            self._note(caller, action, tool=tool)
        await self._reload(is_edited=done.changes)

    async def take_over(self, caller: str) -> None:
        """Reload the file in all processes of the service.

        Raises:
            RefusedError: The file cannot be used; the old configuration stays in force.
        """
        self._announce(caller, "reload")
        await self._reload()
        self._note(caller, "reload")

    async def _reload(self, *, is_edited: bool = False) -> None:
        reloading = self._sources()
        try:
            await reload_now(self._host, reloading, self._tell)
        except (StandardsMcpError, OSError) as exc:
            change = "The file was changed, but its" if is_edited else "The file's"
            raise RefusedError(
                f"{change} configuration is refused, and the old one stays in force. {exc}"
            ) from None
        reloading.tell_others()

    async def _change(self, edit: Callable[[str], str], change: Callable[..., Edit]) -> Edit:
        sources = self._sources().sources
        try:
            file = await to_thread.run_sync(file_to_change, sources)
        except (ConfigError, OSError) as exc:
            why = "The file has mistakes, and nothing is changed; correct them first."
            raise RefusedError(f"{why} {exc}") from None
        try:
            return await to_thread.run_sync(change, file, sources, edit)
        except ConfigError as exc:
            raise RefusedError(f"Nothing is changed. {exc}") from None
        except (OSError, UnicodeDecodeError) as exc:
            why = f"{file} cannot be changed: {exc}."
            raise RefusedError(f"{why} See who may write the file and its folder.") from None

    def _gains(self, before: Settings, after: Settings) -> list[str]:
        return gained(self._host.manager.contributions, before, after)

    def _sources(self) -> Reloading:
        if self._reloading is None:
            raise RefusedError("This service was started without a configuration to change.")
        return self._reloading

    def _announce(self, caller: str, action: str, **more: str) -> None:
        fields = {"caller": caller, "action": action, **more}
        try:
            if self._audit:
                self._audit.announce("configuration is about to change", fields)
        except NotAuditedError as exc:
            raise RefusedError(f"Nothing is changed. {exc}") from None

    def _note(self, caller: str, action: str, **more: str) -> None:
        fields = {"caller": caller, "action": action, **more}
        log.info("the configuration is changed", extra=fields)
        if self._audit:
            self._audit.note("configuration changed", fields)
