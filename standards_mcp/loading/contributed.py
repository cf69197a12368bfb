"""What the loaded plugins contribute, and how that changes while the host runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from standards_mcp._utils.exceptions import is_from_outside
from standards_mcp._utils.secrets import mask
from standards_mcp._utils.stdio.streams import divert_stdout
from standards_mcp.contributions.collection import Contributions

from .providers import collect, provider_of
from .records import PluginRecord, Status, failure_reason
from .steps.deprecations import noted
from .steps.registration import register, register_filters, with_filters

log = logging.getLogger(__name__)


class Contributed:
    """Keeps what each plugin contributes in its record, and all of it together.

    Args:
        records: The plugins by name, in the order in which they are loaded.
        call: Calls one hook of a plugin and returns what its implementations return.

    Attributes:
        on_changed: They are called after each change, and drop what they have cached.
        finish: Changes what a plugin contributes once it is complete.
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
        self.finish: Callable[[Contributions], Contributions] = lambda found: found

    @property
    def all(self) -> Contributions:
        """All contributions, hidden or not, in the order of the plugins."""
        if self._all is None:
            self._all = _merged(self._records.values())
        return self._all

    def by(self, plugin: str) -> Contributions:
        """Return what the plugin of this name contributes."""
        return self._records[plugin].contributions

    def read(self, record: PluginRecord) -> None:
        """Read the tools, prompts and resources of a plugin.

        Raises:
            PluginError: One cannot be served, or its name is taken.
        """
        if provider_of(record) is None:  # `collect` reads what a provider contributes
            call = partial(self._call, record)
            self._set(record, register(record.name, record.plugin, call, self.all))

    def read_filters(self, record: PluginRecord) -> None:
        """Read the filters of a plugin. All tools are known by now, since each filter must fit.

        Raises:
            PluginError: One cannot be used, or does not fit a tool.
        """
        if provider_of(record) is None:
            filters = register_filters(record.name, partial(self._call, record), self.all)
            self._set(record, replace(record.contributions, filters=filters))

    def reread(self, plugin: str) -> None:
        """Read what a plugin contributes once more; a mistake leaves all as it was.

        The names of providers' items come after those of plugins, as at the start.
        """
        record = self._records[plugin]
        if record.plugin is None or record.status is Status.FAILED or provider_of(record):
            return
        imported = (each for each in self._records.values() if not provider_of(each))
        others = _merged(each for each in imported if each is not record)
        call = partial(self._call, record)
        try:
            with divert_stdout(), noted(record.deprecated):
                found = register(plugin, record.plugin, call, others)
                filters = register_filters(plugin, call, Contributions.merged((others, found)))
        except BaseException as exc:
            if is_from_outside(exc):
                raise
            why = mask(" ".join(failure_reason(exc).split()), record.secrets)
            message = "what a plugin says has changed is refused; what it had before stays"
            log.error(message, extra={"plugin": plugin, "reason": why})  # noqa: TRY400
            return
        self._set(record, replace(found, filters=filters))
        self.collect()
        self.apply_filters()

    def withdraw(self, record: PluginRecord) -> None:
        """Take away all that a plugin contributes, also its filters of other plugins' tools."""
        had_any = bool(record.contributions)
        self._set(record, Contributions())
        if had_any:
            self.apply_filters()

    def collect(self) -> None:
        """Take what providers contribute now; a change may free a name that another one wants."""
        for record, contributions, reason in collect(self._records.values()):
            record.reason = reason
            self._set(record, contributions)

    def apply_filters(self) -> None:
        """Give every tool that accepts filters those of the plugins that have not failed."""
        filters = self.all.filters
        for record in self._records.values():
            self._set(record, self.finish(with_filters(record.contributions, filters)))

    def _set(self, record: PluginRecord, contributions: Contributions) -> None:
        record.contributions, self._all = contributions, None
        for listener in self.on_changed:
            listener()


def _merged(records: Iterable[PluginRecord]) -> Contributions:
    return Contributions.merged(record.contributions for record in records)
