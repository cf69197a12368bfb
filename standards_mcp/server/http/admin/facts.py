"""What the pages show of a host, as plain data; secrets are masked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from standards_mcp._utils.secrets import MASK, mask
from standards_mcp.calls.steps.output import definition_tokens
from standards_mcp.config.layers import toml_key, toml_value
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.host import Host
from standards_mcp.loading.providers import provider_of
from standards_mcp.loading.records import PluginKind, PluginRecord, Status
from standards_mcp.loading.shown_values import shown_values
from standards_mcp.plugin import Health
from standards_mcp.server.http.health import is_well

from .changes import can_be_enabled
from .history import Called, Tally

_TOKENS = ("server", "auth", "tokens")


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """A tool.

    Attributes:
        name: As its plugin declares it.
        published: As clients see it.
        reason: Why it is not served, or an empty string.
        tokens: About how many tokens its definition takes in a model's context.
        tally: Its calls of the last hour.
        action: What its switch does: ``disable``, ``enable``, or nothing where it has no effect.
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
        kind: Where its code runs, in words.
        reason: Why it has its state, or an empty string.
        health: What its own check says, where it has one.
        others: How many prompts and the like it contributes, in words.
        is_well: Neither the plugin nor its check has failed.
        unapproved: A diff of the definitions of a server that are not approved.
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
        origin: Where it was set, or an empty string for a default.
    """

    key: str
    value: str
    origin: str


_KINDS: Mapping[PluginKind, str] = {
    PluginKind.IMPORTED: "in the service's process",
    PluginKind.ISOLATED: "in a process of its own",
    PluginKind.SERVER: "another MCP server",
}


def plugin_facts(
    host: Host, health: Mapping[str, Health], tallies: Mapping[Called, Tally]
) -> list[PluginFacts]:
    """Return all plugins with their tools; what is wrong with one comes first."""
    found = [_plugin(host, each, health, tallies) for each in host.manager.records.values()]
    return sorted(found, key=lambda each: each.is_well)


def _plugin(
    host: Host,
    record: PluginRecord,
    health: Mapping[str, Health],
    tallies: Mapping[Called, Tally],
) -> PluginFacts:
    selection, name, checked = host.visible(), record.name, health.get(record.name)
    provider = provider_of(record)
    counts = {
        "prompt": sum(each.plugin == name for each in selection.prompts),
        "resource": sum(each.plugin == name for each in selection.resources),
        "route": sum(each.plugin == name for each in selection.routes),
    }
    return PluginFacts(
        name=name,
        version=record.info.version,
        kind=_KINDS[record.info.kind],
        state=_state(host, record),
        reason=mask(record.reason, host.secrets()),
        health=checked,
        tools=[_tool(host, each, tallies) for each in selection.tools if each.plugin == name],
        others=[f"{n} {kind}{'' if n == 1 else 's'}" for kind, n in counts.items() if n],
        is_well=is_well(record, checked),
        unapproved=mask(provider.unapproved, host.secrets()) if provider else "",
    )


def _state(host: Host, record: PluginRecord) -> str:
    """Return the state; a plugin that was disabled while it ran goes on, and serves nothing."""
    is_off = host.settings.section(record.name).enabled is False
    return Status.DISABLED if is_off and record.status is Status.STARTED else record.status


def _tool(host: Host, item: RegisteredTool, tallies: Mapping[Called, Tally]) -> ToolFacts:
    action = "" if item.hidden_reason else "disable"
    if can_be_enabled(item, host.settings.tools):
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


def config_tables(host: Host, *, is_whole: bool) -> dict[str, list[Value]]:
    """Return the configuration in force, by its tables.

    Args:
        is_whole: With the keys that have their defaults.
    """
    layers = host.layers
    values = shown_values(host.settings, host.manager.records.values(), host.secrets())
    tables: dict[str, list[Value]] = {}
    for path, value in sorted(values.items(), key=lambda item: len(item[0]) > 1):
        if not (origin := layers.origin(path)) and not is_whole:
            continue
        # Hashes of tokens are of no use to people.
        text = toml_value(MASK if path[:3] == _TOKENS and path[-1] == "sha256" else value)
        table = ".".join(map(toml_key, path[:-1]))
        tables.setdefault(table, []).append(Value(toml_key(path[-1]), text, origin))
    return tables


def served_tokens(plugins: Iterable[PluginFacts]) -> int:
    """Return about how many tokens all served definitions take."""
    return sum(tool.tokens for each in plugins for tool in each.tools if not tool.reason)
