"""Takes over a changed configuration while the server runs."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from anyio import to_thread

from standards_mcp._utils.text import describe_exception
from standards_mcp.config.loading import LoadedSettings, Sources
from standards_mcp.config.models import AtStart, Table
from standards_mcp.config.models.settings import PluginSection, ServerSection, Settings
from standards_mcp.config.models.tools import Kind
from standards_mcp.errors import ConfigError, StandardsMcpError
from standards_mcp.host import Host

log = logging.getLogger(__name__)


POLL_SECONDS: Final = 1.0

_QUIET_SECONDS: Final = 0.25

_Stamp: TypeAlias = tuple[int, int, int] | None

_Table = TypeVar("_Table", bound=Table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloading:
    """Where a changed configuration comes from.

    Attributes:
        sources: They are read anew.
        watch: Look for changes every second, and for a file where there was none.
        tell_others: Tells the other processes that serve the same port of a change.
        turn: There is one reload at a time, so that the last to begin is the one that counts.
    """

    sources: Sources
    watch: bool = False
    tell_others: Callable[[], None] = lambda: None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class Reload:
    """What a reload changed.

    Attributes:
        changed: The kinds of contributions of which clients see others than before.
        needs_restart: The keys whose new values count from the next start on.
    """

    changed: tuple[Kind, ...]
    needs_restart: tuple[str, ...]


def reload(host: Host, loaded: LoadedSettings) -> Reload:
    """Use *loaded* for selection, overrides and limits; calls that run go on as they began.

    Raises:
        ConfigError: It is refused, and nothing has changed.
    """
    if (gone := host.loaded.file) and not loaded.file:
        raise ConfigError(f"{gone}: is gone; to go without a file, restart the server")
    before = {access: each.definitions for access, each in host.selections().items()}
    old = host.settings
    in_force, waiting = _in_force(old, loaded.settings)
    host.take_over(loaded, in_force)
    now = {access: host.select(access).definitions for access in before}
    return Reload(
        changed=tuple(
            kind
            for kind in host.visible().definitions
            if any(now[access][kind] != seen[kind] for access, seen in before.items())
        ),
        needs_restart=(*waiting, *_unloaded(host)),
    )


async def reload_on_change(
    host: Host,
    reloading: Reloading,
    on_changed: Callable[[Collection[Kind]], Awaitable[None]],
) -> None:
    """Reload whenever SIGHUP comes or the configuration file changes, until cancelled."""
    changed, paths = asyncio.Event(), reloading.sources.paths
    if not _is_current(host.loaded, paths):
        changed.set()  # while the plugins started; a SIGHUP then had no effect
    # Windows has no SIGHUP, and no signal handlers on its event loop.
    with suppress(NotImplementedError, AttributeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, changed.set)
    watching = asyncio.ensure_future(_watch(paths, changed)) if reloading.watch else None
    try:
        while True:
            await changed.wait()
            changed.clear()
            await _try_to_reload(host, reloading, on_changed)
    finally:
        if watching:
            watching.cancel()


async def reload_now(
    host: Host,
    reloading: Reloading,
    on_changed: Callable[[Collection[Kind]], Awaitable[None]],
) -> Reload:
    """Read the configuration anew, use it, and tell clients.

    Raises:
        ConfigError: It is refused, and nothing has changed.
    """
    async with reloading.turn:
        done = reload(host, await to_thread.run_sync(reloading.sources.load))
    tools = [item.published for item in host.visible().visible_tools]
    extra = {"tools": tools, "needs_restart": list(done.needs_restart)}
    log.info("the configuration is reloaded", extra=extra)
    if done.changed:
        await on_changed(done.changed)
    return done


async def _try_to_reload(
    host: Host,
    reloading: Reloading,
    on_changed: Callable[[Collection[Kind]], Awaitable[None]],
) -> None:
    try:
        await reload_now(host, reloading, on_changed)
    except Exception as exc:  # noqa: BLE001  - the next change must still be taken over
        reason = str(exc) if isinstance(exc, StandardsMcpError) else describe_exception(exc)
        message = "the configuration is refused; the one before stays in force"
        log.error(message, extra={"reason": reason})  # noqa: TRY400  - the reason says it all


def waiting_for_restart(host: Host) -> list[str]:
    """Return the keys whose values in the file count from the next start on."""
    return [*_in_force(host.settings, host.loaded.settings)[1], *_unloaded(host)]


def _is_current(loaded: LoadedSettings, paths: Sequence[Path]) -> bool:
    found = next((path for path in paths if path.is_file()), None)
    return found == loaded.file and loaded.is_current()


async def _watch(paths: Sequence[Path], changed: asyncio.Event) -> None:
    seen = _stamps(paths)
    while True:
        await asyncio.sleep(POLL_SECONDS)
        if _stamps(paths) != seen:
            seen = await _wait_for_writers(paths)
            changed.set()


async def _wait_for_writers(paths: Sequence[Path]) -> list[_Stamp]:
    """Wait until nobody writes any more, and return what the files are then.

    An editor empties the file before it writes. An empty file is valid and hides no tool, so taking
    it over would serve for a moment what the configuration forbids.
    """
    before, now = None, _stamps(paths)
    while before != now:
        await asyncio.sleep(_QUIET_SECONDS)
        before, now = now, _stamps(paths)
    return now


def _stamps(paths: Sequence[Path]) -> list[_Stamp]:
    return [_stamp(path) for path in paths]


def _stamp(file: Path) -> _Stamp:
    try:
        status = file.stat()
    except OSError:
        return None  # an editor may replace it in two steps
    return status.st_mtime_ns, status.st_size, status.st_ino


def _in_force(old: Settings, new: Settings) -> tuple[Settings, list[str]]:
    """Return *new* as far as it counts at once, and the keys that count from the next start on."""
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
    """Return *new* with the marked values of *old*, see `AtStart`, and the keys that differ."""
    kept: dict[str, object] = {}
    differing: list[str] = []
    for name, known in type(old).model_fields.items():
        before, after = getattr(old, name), getattr(new, name)
        if AtStart() in known.metadata:
            kept[name] = before
            differing += [prefix + name] if before != after else []
        elif isinstance(before, Table):
            kept[name], inner = _keep_marked(before, after, f"{prefix}{name}.")
            differing += inner
    return new.model_copy(update=kept), differing


def _unloaded(host: Host) -> list[str]:
    """Return the plugins that are enabled now and were not when the server started."""
    return [
        f"{host.settings.table(record.name)}.enabled"
        for record in host.manager.records.values()
        if record.plugin is None and host.settings.section(record.name).enabled
    ]
