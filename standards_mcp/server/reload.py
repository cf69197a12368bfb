"""Apply a changed configuration while the server runs."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, TypeVar

from anyio import to_thread

from standards_mcp._utils.text import describe_exception
from standards_mcp.config.loading import LoadedSettings, Sources
from standards_mcp.config.models import AtStart, Table
from standards_mcp.config.models.settings import PluginSection, ServerSection, Settings
from standards_mcp.config.models.tools import Kind
from standards_mcp.contributions.selection import EVERYTHING
from standards_mcp.errors import ConfigError, StandardsMcpError
from standards_mcp.files import file_stamp
from standards_mcp.host import Host

from .handlers import definitions_by_kind

log = logging.getLogger(__name__)

# One `stat` a second also finds changes on network file systems and in containers, where events of
# the file system do not arrive.
POLL_SECONDS: Final = 1.0
_QUIET_SECONDS: Final = 0.25

Notify: TypeAlias = Callable[[Collection[Kind]], Awaitable[None]]
"""Notifies clients of the lists that have changed."""
_Table = TypeVar("_Table", bound=Table)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReloadOptions:
    """Options and shared state for reloading the configuration.

    Attributes:
        sources: Read again at each reload.
        watch: Poll all configuration paths every second, including paths where no file exists yet.
        tell_others: Asks the other worker processes at the same port to reload.
        lock: Allows one reload at a time, so that an older configuration cannot overwrite a newer
            one.
    """

    sources: Sources
    watch: bool = False
    tell_others: Callable[[], None] = lambda: None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class ReloadResult(NamedTuple):
    """The effects of a reload.

    Attributes:
        changed: The kinds of contributions whose lists have changed for clients.
        needs_restart: The keys whose new values take effect at the next start.
    """

    changed: tuple[Kind, ...]
    needs_restart: tuple[str, ...]


def apply_settings(host: Host, loaded: LoadedSettings) -> ReloadResult:
    """Apply the new settings to the choice of served tools, their overrides and limits.

    Calls in progress keep the old settings.

    Raises:
        ConfigError: The configuration is refused, and nothing has changed.
    """
    if (file := host.loaded.file) and not loaded.file:
        raise ConfigError(
            f"{file} no longer exists. Restore it, or restart the server to run without a"
            " configuration file."
        )
    before = {access: definitions_by_kind(each) for access, each in host.selections().items()}
    settings, needs_restart = _split_by_restart(host.settings, loaded.settings)
    host.take_over(loaded, settings)
    now = {access: definitions_by_kind(host.select(access)) for access in before}
    changed: list[Kind] = [
        kind
        for kind in now[EVERYTHING]
        if any(now[access][kind] != old[kind] for access, old in before.items())
    ]
    return ReloadResult(tuple(changed), (*needs_restart, *_enabled_but_not_loaded(host)))


async def reload_on_change(host: Host, reloading: ReloadOptions, on_changed: Notify) -> None:
    """Reload at each SIGHUP and each change of the configuration file, until cancelled."""
    changed, paths = asyncio.Event(), reloading.sources.paths
    file = next((path for path in paths if path.is_file()), None)
    if file != host.loaded.file or not host.loaded.is_current():
        # The file changed while the plugins were starting, when SIGHUP is ignored: reload now.
        changed.set()
    # Windows has no SIGHUP, and no signal handlers on its event loop.
    with suppress(NotImplementedError, AttributeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, changed.set)
    watching = asyncio.ensure_future(_watch(paths, changed)) if reloading.watch else None
    try:
        while True:
            await changed.wait()
            changed.clear()
            try:
                await reload_from_sources(host, reloading, on_changed)
            except Exception as exc:  # noqa: BLE001  - the next change must still be seen
                is_ours = isinstance(exc, StandardsMcpError)
                reason = {"reason": str(exc) if is_ours else describe_exception(exc)}
                log.error("the configuration is refused; the old one stays in force", extra=reason)  # noqa: TRY400  - the reason says it all
    finally:
        if watching:
            watching.cancel()


async def reload_from_sources(
    host: Host, reloading: ReloadOptions, on_changed: Notify
) -> ReloadResult:
    """Read the configuration again, apply it, and notify clients.

    Raises:
        ConfigError: The configuration is refused, and nothing has changed.
    """
    async with reloading.lock:
        result = apply_settings(host, await to_thread.run_sync(reloading.sources.load))
    tools = [item.published for item in host.visible().visible_tools]
    extra = {"tools": tools, "needs_restart": list(result.needs_restart)}
    log.info("the configuration is reloaded", extra=extra)
    if result.changed:
        await on_changed(result.changed)
    return result


async def _watch(paths: Sequence[Path], changed: asyncio.Event) -> None:
    last_seen = [*map(file_stamp, paths)]
    while True:
        await asyncio.sleep(POLL_SECONDS)
        if (now := [*map(file_stamp, paths)]) == last_seen:
            continue
        # Wait until the writer has finished. An editor empties the file first, and an empty file is
        # valid: it would serve the tools that the configuration hides.
        while now != last_seen:
            last_seen = now
            await asyncio.sleep(_QUIET_SECONDS)
            now = [*map(file_stamp, paths)]
        changed.set()


def _split_by_restart(old: Settings, new: Settings) -> tuple[Settings, list[str]]:
    """Return the part of *new* that takes effect now, and the keys that need a restart."""
    settings, needs_restart = _keep_at_start_values(old, new)
    plugins, servers = dict[str, PluginSection](), dict[str, ServerSection]()
    for name in sorted({*old.plugins, *new.plugins}):
        section = new.section(name)
        plugins[name] = old.section(name).model_copy(update={"enabled": section.enabled})
        if plugins[name] != section:
            needs_restart.append(f"plugins.{name}")
    for name, server in old.servers.items():
        enabled = name in new.servers and new.servers[name].enabled
        servers[name] = server.model_copy(update={"enabled": enabled})
    needs_restart += [
        f"servers.{name}" for name in new.servers if new.servers[name] != servers.get(name)
    ]
    return settings.model_copy(update={"plugins": plugins, "servers": servers}), needs_restart


def _keep_at_start_values(old: _Table, new: _Table, prefix: str = "") -> tuple[_Table, list[str]]:
    """Return *new* with the `AtStart` values of *old*, and the keys whose values differ."""
    kept: dict[str, object] = {}
    differing: list[str] = []
    for name, field_info in type(old).model_fields.items():
        before, after = getattr(old, name), getattr(new, name)
        if AtStart() in field_info.metadata:
            kept[name] = before
            differing += [prefix + name] if before != after else []
        elif isinstance(before, Table):
            kept[name], inner = _keep_at_start_values(before, after, f"{prefix}{name}.")
            differing += inner
    return new.model_copy(update=kept), differing


def _enabled_but_not_loaded(host: Host) -> list[str]:
    """Return the ``enabled`` keys of enabled plugins that were not loaded, or failed to load."""
    return [
        f"{host.settings.table(record.name)}.enabled"
        for record in host.manager.records.values()
        if record.plugin is None and host.settings.section(record.name).enabled
    ]
