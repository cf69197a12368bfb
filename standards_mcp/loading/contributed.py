"""Collect the contributions of the loaded plugins, and their changes while the host runs."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from standards_mcp._utils.exceptions import is_from_outside
from standards_mcp._utils.secrets import mask
from standards_mcp._utils.streams import divert_stdout
from standards_mcp.contributions.resources import find_resource
from standards_mcp.contributions.selection import Contributions

from .providers import collect, provider_of
from .records import PluginRecord, Status, failure_reason
from .registration import register, register_filters, with_filters

log = logging.getLogger(__name__)
_GATHER_SECONDS: Final = 0.05


class ContributionStore:
    """Reads the contributions of plugins into their records, and merges them.

    Args:
        records: The plugins by name, in the order in which they are loaded.
        call: Calls one hook of a plugin and returns the results of its implementations.

    Attributes:
        on_changed: Functions to call after each change, such as to clear a cache.
        finish: Transforms the contributions of a plugin after filters were added to them.
    """

    def __init__(
        self,
        records: Mapping[str, PluginRecord],
        call: Callable[[PluginRecord, str], list[Any]],
    ) -> None:
        self._records = records
        self._call = call
        self._all: Contributions | None = None
        self.on_changed: list[Callable[[], None]] = []
        self.finish: Callable[[Contributions], Contributions] = lambda contributions: contributions

    @property
    def all(self) -> Contributions:
        """All contributions, hidden ones included, in the order of the plugins."""
        if self._all is None:
            self._all = _merged(self._records.values())
        return self._all

    def read(self, record: PluginRecord) -> None:
        """Read the tools, prompts and resources of a plugin.

        Raises:
            PluginError: A contribution cannot be served, or its name is taken.
        """
        if provider_of(record) is None:  # `collect` reads the contributions of providers
            call = partial(self._call, record)
            self._set(record, register(record.name, record.plugin, call, self.all))

    def read_filters(self, record: PluginRecord) -> None:
        """Read the filters of a plugin, after all tools, because each filter must fit them.

        Raises:
            PluginError: A filter cannot be used, or does not fit a tool.
        """
        if provider_of(record) is None:
            filters = register_filters(record.name, partial(self._call, record), self.all)
            self._set(record, record.contributions._replace(filters=filters))

    def reread(self, plugin: str) -> None:
        """Read the contributions of a plugin again; keep the earlier ones if any is invalid.

        Names of imported plugins have priority over names of providers, as at the start.
        """
        record, records = self._records[plugin], self._records.values()
        if record.plugin is None or record.status is Status.FAILED or provider_of(record):
            return
        others = _merged(item for item in records if item is not record and not provider_of(item))
        call = partial(self._call, record)
        try:
            with divert_stdout():
                own = register(plugin, record.plugin, call, others)
                filters = register_filters(plugin, call, Contributions.merged((others, own)))
        except BaseException as exc:
            if is_from_outside(exc):
                raise
            why = mask(" ".join(failure_reason(exc).split()), record.secrets)
            message = "changed contributions are invalid; the earlier ones stay in use"
            log.error(message, extra={"plugin": plugin, "reason": why})  # noqa: TRY400
            return
        self._set(record, own._replace(filters=filters))
        self.collect()
        self.apply_filters()

    def withdraw(self, record: PluginRecord) -> None:
        """Remove the contributions of a plugin, also its filters from other plugins' tools."""
        had_any = bool(record.contributions)
        self._set(record, Contributions())
        if had_any:
            self.apply_filters()

    def collect(self) -> None:
        """Read the contributions of providers; a change may free a name for another provider."""
        for record, contributions, reason in collect(self._records.values()):
            record.reason = reason
            self._set(record, contributions)

    def apply_filters(self) -> None:
        """Add the filters of all plugins that have not failed to the tools that accept filters."""
        filters = self.all.filters
        for record in self._records.values():
            self._set(record, self.finish(with_filters(record.contributions, filters)))

    def _set(self, record: PluginRecord, contributions: Contributions) -> None:
        record.contributions, self._all = contributions, None
        for listener in self.on_changed:
            listener()


def _merged(records: Iterable[PluginRecord]) -> Contributions:
    return Contributions.merged(record.contributions for record in records)


class Changes:
    """Applies changes that plugins report from any thread; combines those in quick succession.

    Attributes:
        on_updated: Functions to call with the URI of a resource whose contents have changed.
    """

    def __init__(self, contributed: ContributionStore, records: Mapping[str, PluginRecord]) -> None:
        self._contributed = contributed
        self._records = records
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._read_now = (0, "")
        self._changed_plugins = dict[str, None]()
        self._changed_resources = dict[tuple[str, str], None]()
        self.on_updated: list[Callable[[str], None]] = []

    @contextmanager
    def applying(self) -> Generator[None]:
        """Apply reported changes in the running event loop; include those reported earlier."""
        self._loop = asyncio.get_running_loop()
        self._schedule()
        try:
            yield
        finally:
            self._loop = None
            if self._timer:
                self._timer.cancel()
                self._timer = None

    def note_contributions(self, plugin: str) -> None:
        """Note that the contributions of a plugin have changed."""
        if self._read_now == (threading.get_ident(), plugin):
            return  # a hook that reports a change while it is read would be read without end
        self._changed_plugins[plugin] = None
        self._schedule()

    def note_resource(self, plugin: str, uri: str) -> None:
        """Note that the contents of a plugin's resource have changed.

        Raises:
            TypeError: The URI is not text.
        """
        if not isinstance(uri, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"resource_updated takes a URI as text, not a {type(uri).__name__}")
        if self._loop:  # without the loop, no client can have read the resource
            self._changed_resources[plugin, uri] = None
            self._schedule()

    def tell_updated(self, uri: str) -> None:
        """Notify the listeners that the contents of a resource have changed."""
        for listener in self.on_updated:
            listener(uri)

    def _schedule(self) -> None:
        if loop := self._loop:
            with suppress(RuntimeError):  # the loop has just been closed
                loop.call_soon_threadsafe(self._start_timer)

    def _start_timer(self) -> None:
        if self._loop and self._timer is None:
            self._timer = self._loop.call_later(_GATHER_SECONDS, self._apply)

    def _apply(self) -> None:
        self._timer = None
        while self._changed_plugins:
            plugin, _ = self._changed_plugins.popitem()
            self._read_now = (threading.get_ident(), plugin)
            try:
                self._contributed.reread(plugin)
            finally:
                self._read_now = (0, "")
        while self._changed_resources:
            plugin, uri = self._changed_resources.popitem()[0]
            if find_resource(self._records[plugin].contributions.resources, uri):
                self.tell_updated(uri)
            else:
                log.warning(
                    "a plugin reports a change of a resource that it does not have",
                    extra={"plugin": plugin, "uri": uri[:200]},
                )
