"""Write snapshots of a host; `standards_mcp.start` reads them before the host is imported."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from .config.layers import DOT_ENV, plugin_variables
from .config.loading import Sources
from .host import Host
from .loading.records import PluginKind, Status
from .loading.services import used_services
from .plugin import MissingServiceError
from .start.launch import COMMANDS_KEY, TOOLS_KEY, Launch
from .start.snapshot import Snapshot, SnapshotError


def store_results(
    host: Host, launch: Launch, sources: Sources, results: Mapping[str, bytes], note: str | None
) -> None:
    """Store results for the next start.

    Nothing is stored if a configuration file has changed since this start, or if the packages are
    unknown. The commands of a snapshot with an equal fingerprint are kept.

    Args:
        note: Why this start was not answered from a snapshot, or "" if it was; None keeps the
            earlier note and, with an equal fingerprint, the other results.

    Raises:
        OSError: The folder of the snapshots cannot be written.
    """
    salt = launch.store.make_salt()
    configuration = _configuration_files(host, sources)
    if launch.packages is None or not launch.files_unchanged(configuration):
        return
    variables = {
        name
        for record in host.manager.records.values()
        if record.settings_type
        for name in plugin_variables(record.settings_type).values()
    }
    files = [*configuration, *_state_files(host)]
    name = launch.snapshot_name(salt)
    current = launch.fingerprint(salt, variables, files)
    earlier = Snapshot(fingerprint={}, variables=(), files=(), results={})
    with suppress(SnapshotError):
        earlier = launch.store.read(name)
    kept: Mapping[str, bytes] = earlier.results if earlier.fingerprint == current else {}
    if note is not None:  # from a server, which knows all but the commands
        kept = {key: result for key, result in kept.items() if key == COMMANDS_KEY}
    snapshot = Snapshot(
        fingerprint=current,
        variables=variables,
        files=files,
        results={**kept, **results},
        note=earlier.note if note is None else note,
    )
    launch.store.write(name, snapshot)


def _configuration_files(host: Host, sources: Sources) -> list[str]:
    """Return the files from which settings were read, or would be read if they existed."""
    paths = [*sources.paths, Path(DOT_ENV)]
    if shared := host.loaded.layers.merged().get("servers_file"):
        paths.append(Path(shared))
    return [str(path.absolute()) for path in paths]


def _state_files(host: Host) -> list[str]:
    """Return the files with offers of isolated plugins and servers, and with approvals."""
    return [
        str(file)
        for name, record in host.manager.records.items()
        if record.info.kind is not PluginKind.IMPORTED
        for file in sorted((host.state_dir / "plugins" / name).glob("*.json"))
    ]


def store_commands(
    host: Host, launch: Launch, sources: Sources, commands: Mapping[str, tuple[str, str]]
) -> None:
    """Store the plugins and helps of all commands; ignore a folder that cannot be written.

    Nothing is stored if a plugin has failed, whose commands are unknown, or with
    ``server.snapshot = false``.
    """
    if not _has_failures(host):
        _try_to_store(host, launch, sources, {COMMANDS_KEY: json.dumps(commands).encode()})


def store_tools(host: Host, launch: Launch, sources: Sources) -> None:
    """Store the plugins behind each tool; ignore a folder that cannot be written.

    No tools are stored if a plugin has failed, and nothing with ``server.snapshot = false``.
    """
    _try_to_store(host, launch, sources, tools_table(host))


def tools_table(host: Host) -> dict[str, bytes]:
    """Return the plugins behind each tool as a result to store.

    The result is empty under ``strict``, and if a plugin has failed: it may serve more tools, or
    refuse calls, at the next start. Tools are left out whose services would be chosen differently
    with fewer plugins.
    """
    if _has_failures(host):
        return {}
    settings, services = host.settings, host.manager.services
    if settings.strict:  # any plugin may refuse to start
        return {}
    required = {name for name in host.manager.records if settings.section(name).required}
    table: dict[str, list[str]] = {}
    for name in (item.published for item in host.visible().visible_tools):
        plugins = {*host.plugins_behind(name), *required}
        used = [kind for plugin in plugins for kind in used_services(host.manager.records[plugin])]
        with suppress(MissingServiceError):  # with fewer plugins, another provider may be chosen
            services.check(used)
            table[name] = sorted(plugins)
    return {TOOLS_KEY: json.dumps(table).encode()}


def _has_failures(host: Host) -> bool:
    return any(record.status is Status.FAILED for record in host.manager.records.values())


def _try_to_store(
    host: Host, launch: Launch, sources: Sources, results: Mapping[str, bytes]
) -> None:
    if host.settings.server.snapshot:
        with suppress(OSError):
            store_results(host, launch, sources, results, note=None)
