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
from standards_mcp.errors import ConfigError, StandardsMcpError
from standards_mcp.host import Host

log = logging.getLogger(__name__)

# One `stat` a second also finds changes on network file systems and in containers, where events of
# the file system do not arrive.
POLL_SECONDS: Final = 1.0
_QUIET_SECONDS: Final = 0.25

Notify: TypeAlias = Callable[[Collection[Kind]], Awaitable[None]]
"""Tells clients which lists have changed."""
_Table = TypeVar("_Table", bound=Table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloading:
    """The sources of a changed configuration.

    Attributes:
        sources: Read again at each reload.
        watch: Check the files for changes every second, also a file that did not exist.
        tell_others: Asks the other processes of the same port to reload.
        turn: Serialises reloads, so that the last one to begin is the one in force.
    """

    sources: Sources
    watch: bool = False
    tell_others: Callable[[], None] = lambda: None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Reload(NamedTuple):
    """The effects of a reload.

    Attributes:
        changed: The kinds of contributions whose lists have changed for clients.
        needs_restart: The keys whose new values take effect at the next start.
    """

    changed: tuple[Kind, ...]
    needs_restart: tuple[str, ...]


def reload(host: Host, loaded: LoadedSettings) -> Reload:
    """Apply *loaded* to selection, overrides and limits; running calls keep the old settings.

    Raises:
        ConfigError: The configuration is refused, and nothing has changed.
    """
    if (gone := host.loaded.file) and not loaded.file:
        raise ConfigError(f"{gone}: is gone; to go without a file, restart the server")
    before = {access: shown.definitions for access, shown in host.selections().items()}
    in_force, waiting = _in_force(host.settings, loaded.settings)
    host.take_over(loaded, in_force)
    now = {access: host.select(access).definitions for access in before}
    changed: list[Kind] = [
        kind
        for kind in host.visible().definitions
        if any(now[access][kind] != old[kind] for access, old in before.items())
    ]
    return Reload(tuple(changed), (*waiting, *_unloaded(host)))


async def reload_on_change(host: Host, reloading: Reloading, on_changed: Notify) -> None:
    """Reload at each SIGHUP and each change of the configuration file, until cancelled."""
    changed, paths = asyncio.Event(), reloading.sources.paths
    file = next((path for path in paths if path.is_file()), None)
    if file != host.loaded.file or not host.loaded.is_current():
        changed.set()  # a SIGHUP has no effect while the plugins start
    # Windows has no SIGHUP, and no signal handlers on its event loop.
    with suppress(NotImplementedError, AttributeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, changed.set)
    watching = asyncio.ensure_future(_watch(paths, changed)) if reloading.watch else None
    try:
        while True:
            await changed.wait()
            changed.clear()
            try:
                await reload_now(host, reloading, on_changed)
            except Exception as exc:  # noqa: BLE001  - the next change must still be applied
                is_ours = isinstance(exc, StandardsMcpError)
                reason = {"reason": str(exc) if is_ours else describe_exception(exc)}
                log.error("the configuration is refused; the old one stays in force", extra=reason)  # noqa: TRY400  - the reason says it all
    finally:
        if watching:
            watching.cancel()


async def reload_now(host: Host, reloading: Reloading, on_changed: Notify) -> Reload:
    """Read the configuration again, apply it, and notify clients.

    Raises:
        ConfigError: The configuration is refused, and nothing has changed.
    """
    async with reloading.turn:
        done = reload(host, await to_thread.run_sync(reloading.sources.load))
    tools = [item.published for item in host.visible().visible_tools]
    extra = {"tools": tools, "needs_restart": list(done.needs_restart)}
    log.info("the configuration is reloaded", extra=extra)
    if done.changed:
        await on_changed(done.changed)
    return done


async def _watch(paths: Sequence[Path], changed: asyncio.Event) -> None:
    applied = _stamps(paths)
    while True:
        await asyncio.sleep(POLL_SECONDS)
        if (now := _stamps(paths)) == applied:
            continue
        # Wait until the writer has finished. An editor empties the file first, and an empty file is
        # valid: it would serve the tools that the configuration hides.
        while now != applied:
            applied = now
            await asyncio.sleep(_QUIET_SECONDS)
            now = _stamps(paths)
        changed.set()


def _stamps(paths: Sequence[Path]) -> list[tuple[int, int, int] | None]:
    stamps: list[tuple[int, int, int] | None] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:  # an editor may replace it in two steps
            stamps.append(None)
        else:
            stamps.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return stamps


def _in_force(old: Settings, new: Settings) -> tuple[Settings, list[str]]:
    """Return the part of *new* that takes effect now, and the keys that need a restart."""
    settings, waiting = _keep_marked(old, new)
    plugins, servers = dict[str, PluginSection](), dict[str, ServerSection]()
    for name in sorted({*old.plugins, *new.plugins}):
        section = new.section(name)
        plugins[name] = old.section(name).model_copy(update={"enabled": section.enabled})
        if plugins[name] != section:
            waiting.append(f"plugins.{name}")
    for name, server in old.servers.items():
        enabled = name in new.servers and new.servers[name].enabled
        servers[name] = server.model_copy(update={"enabled": enabled})
    waiting += [f"servers.{name}" for name in new.servers if new.servers[name] != servers.get(name)]
    return settings.model_copy(update={"plugins": plugins, "servers": servers}), waiting


def _keep_marked(old: _Table, new: _Table, prefix: str = "") -> tuple[_Table, list[str]]:
    """Return *new* with the `AtStart` values of *old*, and the keys whose values differ."""
    kept: dict[str, object] = {}
    differing: list[str] = []
    for name, field_info in type(old).model_fields.items():
        before, after = getattr(old, name), getattr(new, name)
        if AtStart() in field_info.metadata:
            kept[name] = before
            differing += [prefix + name] if before != after else []
        elif isinstance(before, Table):
            kept[name], inner = _keep_marked(before, after, f"{prefix}{name}.")
            differing += inner
    return new.model_copy(update=kept), differing


def _unloaded(host: Host) -> list[str]:
    """Return the keys of plugins that were enabled after the server started."""
    return [
        f"{host.settings.table(record.name)}.enabled"
        for record in host.manager.records.values()
        if record.plugin is None and host.settings.section(record.name).enabled
    ]
