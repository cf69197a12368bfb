"""Takes over a changed configuration while the server runs."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from anyio import to_thread

from standards_mcp._utils.text import describe_exception
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.models.tools import Kind
from standards_mcp.errors import ConfigError, StandardsMcpError
from standards_mcp.host import Host

log = logging.getLogger(__name__)


POLL_SECONDS: Final = 1.0

_SETTLED_SECONDS: Final = 0.25

_AT_START: Final = ("autoload", "catalog", "state_dir", "strict", "trusted")

_Stamp: TypeAlias = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class Reload:
    """What a changed configuration came to.

    Attributes:
        changed: Of what clients see others than before.
        needs_restart: The keys whose new values count from the next start on.
    """

    changed: tuple[Kind, ...]
    needs_restart: tuple[str, ...]


def reload(host: Host, loaded: LoadedSettings) -> Reload:
    """Let selection, overrides and limits go by *loaded*; calls that run go on as they began.

    Raises:
        ConfigError: It is refused, and nothing has changed.
    """
    if (gone := host.loaded.file) and not loaded.file:
        raise ConfigError(f"{gone}: is gone; to go without a file, restart the server")
    before, old = host.visible(), host.settings
    host.take_over(loaded, _in_force(old, loaded.settings))
    restart = [*_changed(old, loaded.settings), *_unloaded(host)]
    seen, now_seen = before.definitions, host.visible().definitions
    return Reload(tuple(kind for kind in seen if seen[kind] != now_seen[kind]), tuple(restart))


async def reload_when_told(
    host: Host,
    load: Callable[[], LoadedSettings],
    places: Sequence[Path],
    on_changed: Callable[[Collection[Kind]], Awaitable[None]],
    *,
    watch: bool,
) -> None:
    """Reload whenever SIGHUP comes or the configuration file changes, until cancelled.

    Args:
        places: Where the file may be, the first that there is.
        watch: Look out for changes, and for a file where there was none.
    """
    told = asyncio.Event()
    if not _is_current(host.loaded, places):
        told.set()  # it was changed while the plugins started; a SIGHUP then had no effect
    # Windows has no SIGHUP, and no signal handlers on its event loop.
    with suppress(NotImplementedError, AttributeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, told.set)
    watching = asyncio.ensure_future(_watch(places, told)) if watch else None
    try:
        while True:
            await told.wait()
            told.clear()
            await _try_to_reload(host, load, on_changed)
    finally:
        if watching:
            watching.cancel()


async def _try_to_reload(
    host: Host,
    load: Callable[[], LoadedSettings],
    on_changed: Callable[[Collection[Kind]], Awaitable[None]],
) -> None:
    try:
        done = reload(host, await to_thread.run_sync(load))
    except Exception as exc:  # noqa: BLE001  - the next change must still be heard of
        reason = str(exc) if isinstance(exc, StandardsMcpError) else describe_exception(exc)
        message = "the configuration is refused; the one before stays in force"
        log.error(message, extra={"reason": reason})  # noqa: TRY400  - the reason says it all
        return
    tools = [item.published for item in host.visible().visible_tools]
    extra = {"tools": tools, "needs_restart": list(done.needs_restart)}
    log.info("the configuration is reloaded", extra=extra)
    if done.changed:
        await on_changed(done.changed)


def _is_current(loaded: LoadedSettings, places: Sequence[Path]) -> bool:
    found = next((path for path in places if path.is_file()), None)
    return found == loaded.file and loaded.is_current()


async def _watch(places: Sequence[Path], told: asyncio.Event) -> None:
    seen = _stamps(places)
    while True:
        await asyncio.sleep(POLL_SECONDS)
        if _stamps(places) != seen:
            seen = await _settled(places)
            told.set()


async def _settled(places: Sequence[Path]) -> list[_Stamp]:
    """Wait until nobody writes: a file that is still empty is valid, and denies nothing."""
    before, now = None, _stamps(places)
    while before != now:
        await asyncio.sleep(_SETTLED_SECONDS)
        before, now = now, _stamps(places)
    return now


def _stamps(places: Sequence[Path]) -> list[_Stamp]:
    return [_stamp(path) for path in places]


def _stamp(file: Path) -> _Stamp:
    try:
        status = file.stat()
    except OSError:
        return None  # an editor may replace it in two steps
    return status.st_mtime_ns, status.st_size, status.st_ino


def _in_force(old: Settings, new: Settings) -> Settings:
    """Return *new* with the values of *old* where only a start can change them."""
    tools = new.tools.model_copy(update={"storage": old.tools.storage})
    plugins = {
        name: old.section(name).model_copy(update={"enabled": new.section(name).enabled})
        for name in {*old.plugins, *new.plugins}
    }
    servers = {
        name: server.model_copy(
            update={"enabled": name in new.servers and new.servers[name].enabled}
        )
        for name, server in old.servers.items()
    }
    kept = {name: getattr(old, name) for name in _AT_START}
    changed = {"tools": tools, "plugins": plugins, "servers": servers}
    return new.model_copy(update=kept | changed)


def _changed(old: Settings, new: Settings) -> list[str]:
    keys = [name for name in _AT_START if getattr(old, name) != getattr(new, name)]
    if old.tools.storage != new.tools.storage:
        keys.append("tools.storage")
    for name in sorted({*old.plugins, *new.plugins}):
        before, after = old.section(name), new.section(name)
        if (before.options, before.required) != (after.options, after.required):
            keys.append(f"plugins.{name}")
    for name, server in new.servers.items():
        known = old.servers.get(name)
        if known is None or server.model_copy(update={"enabled": known.enabled}) != known:
            keys.append(f"servers.{name}")
    return keys


def _unloaded(host: Host) -> list[str]:
    """Return the plugins that are enabled now and were not when the server started."""
    return [
        f"{host.settings.table(record.name)}.enabled"
        for record in host.manager.records.values()
        if record.plugin is None and host.settings.section(record.name).enabled
    ]
