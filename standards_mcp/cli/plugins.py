"""``standards-mcp plugins ...``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, cast

import anyio
import click

from standards_mcp._utils.streams import divert_stdout
from standards_mcp.commands import Look, Report, examples, offer, print_text, reports, table
from standards_mcp.config.layers import plugin_variables, variable_name
from standards_mcp.config.schema import Key, config_keys
from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.selection import visible
from standards_mcp.errors import StandardsMcpError
from standards_mcp.host import Host
from standards_mcp.loading.discovery import install_hint
from standards_mcp.loading.health import check_health
from standards_mcp.loading.records import PluginKind, PluginRecord, Status
from standards_mcp.loading.switching import newly_loaded, with_plugin_switched
from standards_mcp.plugin import Health, PluginSettings

from . import OpenGroup
from .config_edits import dry_run_option, edit_config, yes_option
from .invocation import Invocation

_LOOK: Final[Look] = {r"^\S+": "strong", "  failed": "bad", "  (?:registered|started)": "good"}
_INFO_ROWS: Final = (
    *("name", "version", "distribution", "status", "reason"),
    *("tools", "prompts", "resources", "skills", "filters", "routes"),
)


def _names_and_distributions(invocation: Invocation) -> Iterator[tuple[str, str]]:
    for record in invocation.host.manager.records.values():
        yield record.name, record.info.distribution


_name = click.argument("name", shell_complete=offer(_names_and_distributions))


@click.group(cls=OpenGroup)
def plugins() -> None:
    """List the installed plugins, check that they work, and create new ones."""


@plugins.command("list", epilog=examples("plugins list", "plugins list --json"))
@click.pass_obj
@reports
def list_plugins(invocation: Invocation) -> Report:
    """List the installed plugins, without importing them.

    A plugin that failed when the server last started is shown as failed, with the reason.
    """
    host = invocation.host
    host.restore()
    records = list(host.manager.records.values())
    # Exit code 0 even with failed plugins: the list itself succeeded. `plugins check` exits with 1.
    return Report([*map(_as_data, records)], lambda: _table_of(records, {}), look=_LOOK)


@plugins.command(epilog=examples("plugins check"))
@click.pass_obj
@reports
def check(invocation: Invocation) -> Report:
    """Import and start every enabled plugin, and ask it for its health.

    This includes plugins that are skipped because an earlier start ended or hung while it loaded
    them. The health checks run at the same time, for up to 10 seconds. Exit code 1 if any plugin
    fails.
    """
    invocation.mute_failures(warnings=False)
    host = invocation.host
    host.load(again=True)
    with divert_stdout():
        healths = anyio.run(_healths, host)
    records = list(host.manager.records.values())
    as_data = {name: dataclasses.asdict(health) for name, health in healths.items()}
    data = [_as_data(record) | {"health": as_data.get(record.name)} for record in records]
    failed = any(record.status is Status.FAILED for record in records)
    failed = failed or any(health.status == "failed" for health in healths.values())
    return Report(data, lambda: _table_of(records, healths), 1 if failed else 0)


async def _healths(host: Host) -> dict[str, Health]:
    async with host.running():
        await host.manager.wait_started()
        return await check_health(host.manager)


@plugins.command(epilog=examples("plugins info search", "plugins info search --json"))
@_name
@click.pass_obj
@reports
def info(invocation: Invocation, /, name: str) -> Report:
    """Show the plugin NAME with its version, contributions and configuration keys."""
    invocation.mute_failures(warnings=False)
    host = invocation.listed_host
    record = _record(host, name)
    keys = _keys(record)
    selection = host.visible()
    data = _as_data(record) | {
        "requires": list(record.info.requires),
        "tools": _names(selection.tools, name),
        "prompts": _names(selection.prompts, name),
        "resources": _names((item for item in selection.resources if not item.skill), name),
        "skills": [item.declared for item in visible(selection.skills) if item.plugin == name],
        "filters": [item.name for item in record.contributions.filters],
        "routes": [item.declared for item in selection.routes if item.plugin == name],
        "keys": [dataclasses.asdict(key) | {"variable": _variable(key, record)} for key in keys],
    }
    rows = [(key, _cell(data[key])) for key in _INFO_ROWS if data[key]]
    head = f"\n\n[plugins.{name}]\n" if keys else ""
    return Report(data, lambda: table(rows) + head + table(_key_row(key, record) for key in keys))


@plugins.command(epilog=examples("plugins enable acme", "plugins enable acme --dry-run"))
@_name
@dry_run_option
@yes_option
@click.pass_obj
def enable(invocation: Invocation, /, name: str, *, dry_run: bool, yes: bool) -> None:
    """Change the configuration file so that the plugin NAME is enabled.

    The line of `plugins disable` is removed; if that is not enough, the plugin gets enabled = true.
    A plugin that was not loaded so far needs confirmation.
    """
    # Its tools are not listed first: that would run its code before the user agrees.
    _switch(invocation, name, enabled=True, dry_run=dry_run, yes=yes)
    if dry_run:
        return
    with suppress(StandardsMcpError):  # the edit is made; other commands report this
        record = _record(Host(invocation.load_settings()), name)
        if record.reason:
            print_text(f"{name} is still not loaded: {record.reason}", err=True)


@plugins.command(epilog=examples("plugins disable acme", "plugins disable acme --dry-run"))
@_name
@dry_run_option
@click.pass_obj
def disable(invocation: Invocation, /, name: str, *, dry_run: bool) -> None:
    """Change the configuration file so that the plugin NAME is disabled: never imported."""
    _switch(invocation, name, enabled=False, dry_run=dry_run)


def _switch(
    invocation: Invocation, name: str, *, enabled: bool, dry_run: bool, yes: bool = False
) -> None:
    plugin = _record(invocation.host, name).info
    edit_config(
        invocation.sources,
        partial(with_plugin_switched, sources=invocation.sources, plugin=plugin, enabled=enabled),
        dry_run=dry_run,
        list_newly_exposed=partial(newly_loaded, plugin) if enabled else None,
        yes=yes,
    )


def _record(host: Host, name: str) -> PluginRecord:
    records = host.manager.records
    if name not in records:
        raise click.UsageError(f"no plugin {name!r} is installed{install_hint(name, records)}")
    return records[name]


def _keys(record: PluginRecord) -> list[Key]:
    """Return the known keys of a plugin's table and of its inner tables."""
    if record.info.kind is PluginKind.SERVER:
        return []
    table = f"plugins.{record.name}"
    keys = config_keys({record.name: record.settings_type or PluginSettings})
    return [key for key in keys if f"{key.table}.".startswith(f"{table}.")]


def _key_row(key: Key, record: PluginRecord) -> tuple[str, str]:
    path = f"{key.table}.{key.name}".removeprefix(f"plugins.{record.name}.")
    marks = [word for word in ("required", "secret") if getattr(key, word)]
    help_text = f"{', '.join(marks).capitalize()}. {key.description}" if marks else key.description
    variable, own = _variable(key, record), plugin_variables(record.settings_type or PluginSettings)
    how = f" Set it by {variable}." if key.secret or variable in own.values() else ""
    return f"{path} = {key.default or '...'}", f"{help_text}{how}".strip()


def _variable(key: Key, record: PluginRecord) -> str:
    """Return the variable that sets a key: its own one, or the one with the host's prefix."""
    own = plugin_variables(record.settings_type or PluginSettings)
    path = (*key.table.split("."), key.name)
    return own.get(path[2:]) or variable_name(path)


def _names(items: Iterable[Contribution], plugin: str) -> list[str]:
    return [item.published for item in items if item.plugin == plugin]


def _cell(value: object) -> str:
    return ", ".join(cast("list[str]", value)) if isinstance(value, list) else str(value)


def _as_data(record: PluginRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "version": record.info.version,
        "distribution": record.info.distribution,
        "status": record.status,
        "reason": record.reason,
    }


def _table_of(records: Iterable[PluginRecord], healths: Mapping[str, Health]) -> str:
    rows = [
        (each.name, each.info.version, each.status, _remark(each, healths.get(each.name)))
        for each in records
    ]
    return table(rows) or "No plugin is installed."


def _remark(record: PluginRecord, health: Health | None) -> str:
    if record.reason and (health is None or health.status == "ok"):
        return record.reason
    if health:
        return f"{health.status}: {health.message}" if health.message else health.status
    if record.status is Status.DISCOVERED:
        return "not loaded yet; `standards-mcp plugins check` tries it"
    return ""
