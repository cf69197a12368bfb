"""Finds plugins and takes them from an installed entry point to registered tools.

A plugin passes these steps in order, and fails whole, with a reason, at the first that it does not:
discover, filter, check its requirements, import, configure, register, validate. `lifecycle` does
the rest: start and stop. Whatever a plugin does, the others go on.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import pluggy

from standards_mcp import hookspecs
from standards_mcp._utils.builtins import ChangedBuiltinsError, KeptBuiltins
from standards_mcp._utils.secrets import mask
from standards_mcp._utils.streams import divert_stdout
from standards_mcp._utils.text import describe_exception, did_you_mean
from standards_mcp.calls.steps.wrappers import Wrapper
from standards_mcp.catalog.base import Catalog
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.contributions.collection import Contributions
from standards_mcp.errors import ConfigError, PluginError
from standards_mcp.plugin import PluginContext, ToolHandler

from .commands import read_commands
from .construction import check_hooks, construct
from .deprecations import noted
from .discovery import disabled_reason, load_order, unloadable
from .providers import Provider, collect, provider_of
from .quarantine import Quarantine
from .records import PluginInfo, PluginKind, PluginRecord, Status
from .registration import register, register_filters, with_filters

log = logging.getLogger(__name__)


class PluginManager:
    """Holds the record of every installed plugin.

    Args:
        state_dir: The folder under which each plugin gets one of its own.
        quarantine: The plugins that ended an earlier start.
        plugins: Those to choose from.

    Raises:
        ConfigError: A table names a plugin that is not installed.
        PluginError: A plugin failed that is required, or any under ``strict``.
    """

    def __init__(
        self,
        loaded: LoadedSettings,
        catalog: Catalog,
        state_dir: Path,
        quarantine: Quarantine,
        plugins: Iterable[PluginInfo],
    ) -> None:
        self.settings = loaded.settings
        self.records: dict[str, PluginRecord] = {}
        self._loaded = loaded
        self._catalog = catalog
        self._state_dir = state_dir
        self.quarantine = quarantine
        self._pm = pluggy.PluginManager(hookspecs.PROJECT)
        self._pm.add_hookspecs(hookspecs)
        self.on_contributions_changed: list[Callable[[], None]] = []
        self.on_status_changed: Callable[[], None] = lambda: None
        self._contributions: Contributions | None = None
        self._discover(plugins)

    def load(self, *, again: bool = False) -> None:
        """Import, configure and register the enabled plugins, then validate their tools.

        Args:
            again: Try those too that an earlier start did not survive.

        Raises:
            PluginError: A plugin failed that is required, or any under ``strict``.
        """
        if not again:
            self.leave_out_quarantined()
        for record in self.records.values():
            self._attempt(record, Status.DISCOVERED, self._construct)
        for record in self.records.values():
            self._attempt(record, Status.REGISTERED, self._register)
        collect(self.records.values())
        for record in self.records.values():
            self._attempt(record, Status.REGISTERED, self._register_filters)
        self._apply_filters()
        for record in self.records.values():
            for use in record.deprecated:
                log.warning("plugin %r is out of date: %s", record.name, use)

    def leave_out_quarantined(self) -> None:
        """Fail the plugins that an earlier start did not survive, unless nothing works without."""
        for record in self.records.values():
            why = self.quarantine.reason(record.info)
            is_safe = record.info.kind is not PluginKind.IMPORTED or self._is_required(record)
            if why and record.status is Status.DISCOVERED and not is_safe:
                self.fail(record, why)

    async def wait_listed(self) -> None:
        """Wait until all tools are known that come from elsewhere, each provider for its time."""
        await asyncio.gather(*(provider.wait_listed() for provider in self.providers()))

    async def wait_started(self) -> None:
        """Wait until all providers have started, or failed to, that are started with the host."""
        await asyncio.gather(*(provider.wait_started() for provider in self.providers()))

    def providers(self) -> list[Provider]:
        """Return the plugins whose tools come from elsewhere."""
        return [provider for record in self.records.values() if (provider := provider_of(record))]

    @property
    def contributions(self) -> Contributions:
        """What all loaded plugins contribute, hidden or not, in the order of the plugins."""
        if self._contributions is None:
            records = self.records.values()
            self._contributions = Contributions.merged(each.contributions for each in records)
        return self._contributions

    def set_contributions(self, record: PluginRecord, contributions: Contributions) -> None:
        """Change what a plugin contributes, and tell whoever keeps something made of it."""
        record.contributions, self._contributions = contributions, None
        for listener in self.on_contributions_changed:
            listener()

    def wrap(self, handler: ToolHandler) -> ToolHandler:
        """Return *handler* within what plugins put around every tool call, the first outermost."""
        for record in reversed(self.records.values()):
            wrapper = Wrapper(
                record.name,
                handler,
                required=self._is_required(record),
                is_enabled=partial(self._is_enabled, record),
            )
            self._attempt(record, Status.REGISTERED, partial(self._wrap, wrapper))
            handler = wrapper if wrapper.is_used else handler
        return handler

    def commands(self) -> dict[str, click.Command]:
        """Return what plugins add to the command line, by the plugins' names."""
        commands: dict[str, click.Command] = {}
        for record in self.records.values():
            self._attempt(
                record, Status.REGISTERED, lambda r: commands.update(self._read_commands(r))
            )
        return commands

    def call(self, record: PluginRecord, hook: str, **arguments: Any) -> list[Any]:
        """Call one hook of one plugin, so that its failure is its own."""
        others = [plugin for plugin in self._pm.get_plugins() if plugin is not record.plugin]
        results: list[Any] = self._pm.subset_hook_caller(hook, others)(**arguments)
        return results

    def check_sections(self, loaded: LoadedSettings) -> None:
        """See that every table of a plugin has one that is installed.

        Raises:
            ConfigError: There is none; a misspelt ``enabled = false`` would have no effect.
        """
        for name in loaded.settings.plugins:
            if name in loaded.settings.servers:
                where = loaded.layers.where(("plugins", name))
                raise ConfigError(f"{where}: it is a server; write its keys in [servers.{name}]")
            if name not in self.records:
                where = loaded.layers.origin(("plugins", name)) or "settings"
                known = ", ".join(self.records) or "none"
                hint = did_you_mean(name, self.records) or f"; installed: {known}"
                raise ConfigError(f"{where}: [plugins.{name}]: no such plugin is installed{hint}")

    def fail(self, record: PluginRecord, reason: str, cause: BaseException | None = None) -> None:
        """Record a plugin's failure.

        Raises:
            PluginError: The plugin is required, or ``strict`` is set.
        """
        reason = mask(" ".join(reason.split()), record.secrets)
        self._withdraw_contributions(record, reason)
        error = PluginError(record.name, reason)
        if self._is_required(record):
            raise error from cause
        log.error(str(error), extra={"plugin": record.name, "reason": reason})
        if cause is not None:
            details = mask("".join(traceback.format_exception(cause)), record.secrets)
            log.debug("details of the failure", extra={"plugin": record.name, "details": details})

    def _is_required(self, record: PluginRecord) -> bool:
        return self.settings.strict or self.settings.section(record.name).required

    def _is_enabled(self, record: PluginRecord) -> bool:
        if record.status is Status.FAILED:
            return False
        section = self.settings.plugins.get(record.name)
        return section is None or section.enabled is not False

    def _discover(self, plugins: Iterable[PluginInfo]) -> None:
        """Read metadata and configuration; import nothing."""
        for info in sorted(plugins, key=load_order):
            first = self.records.setdefault(info.name, PluginRecord(info)).info
            if first is info:
                continue
            if info.kind is PluginKind.SERVER:
                where = self._loaded.layers.where(("servers", info.name))
                raise ConfigError(f"{where}: a plugin has this name; give the server another one")
            error = f"{first.distribution} and {info.distribution} share this name"
            self.records[info.name] = PluginRecord(replace(first, error=error))
        self.check_sections(self._loaded)
        for record in self.records.values():
            if why := disabled_reason(record.info, self.settings):
                record.status, record.reason = Status.DISABLED, why
            elif why := unloadable(record.info):
                self.fail(record, why)

    def _attempt(
        self, record: PluginRecord, status: Status, step: Callable[[PluginRecord], None]
    ) -> None:
        """Take a plugin of this status through a step, and let nothing it does escape."""
        if record.status is not status:
            return
        try:
            with self._attended(record), KeptBuiltins():
                step(record)
        except KeyboardInterrupt:
            raise
        except (PluginError, ChangedBuiltinsError) as exc:
            self._withdraw(record, str(getattr(exc, "reason", exc)), exc)
        except SystemExit as exc:
            self._withdraw(record, f"it called sys.exit({exc.code!r})", exc)
        except BaseException as exc:  # noqa: BLE001  - its failure, also a panic in native code
            self._withdraw(record, describe_exception(exc), exc)

    @contextmanager
    def _attended(self, record: PluginRecord) -> Generator[None]:
        """Note that a plugin's code runs, what it prints and what it is warned of."""
        with (
            record.timed(),
            self.quarantine.trying(record),
            divert_stdout(),
            noted(record.deprecated),
        ):
            yield

    def _withdraw(self, record: PluginRecord, reason: str, cause: BaseException) -> None:
        if record.plugin is not None and self._pm.is_registered(record.plugin):
            self._pm.unregister(record.plugin)
        self.fail(record, reason, cause)

    def _construct(self, record: PluginRecord) -> None:
        context = PluginContext(
            name=record.name,
            state_dir=self._state_dir / "plugins" / record.name,
            catalog=self._catalog,
        )
        record.plugin = construct(record, context, self._loaded)
        if provider := provider_of(record):
            record.secrets |= provider.secrets
            provider.on_change = self._take_changes
        self._pm.register(record.plugin, name=record.name)
        check_hooks(self._pm, record)
        record.status = Status.REGISTERED

    def _register(self, record: PluginRecord) -> None:
        if provider_of(record) is None:  # what a provider contributes is collected
            call = partial(self.call, record)
            self.set_contributions(record, register(record.name, call, self.contributions))

    def _register_filters(self, record: PluginRecord) -> None:
        if provider_of(record) is None:
            call = partial(self.call, record)
            filters = register_filters(record.name, call, self.contributions)
            self.set_contributions(record, replace(record.contributions, filters=filters))

    def _withdraw_contributions(self, record: PluginRecord, reason: str) -> None:
        had_any = bool(record.contributions)
        record.status, record.reason = Status.FAILED, reason
        self.set_contributions(record, Contributions())
        if had_any:
            self._apply_filters()

    def _apply_filters(self) -> None:
        """Give every tool that accepts filters those of the plugins that have not failed."""
        self._contributions = None
        filters = self.contributions.filters
        for record in self.records.values():
            self.set_contributions(record, with_filters(record.contributions, filters))

    def _read_commands(self, record: PluginRecord) -> dict[str, click.Command]:
        found = [item for items in self.call(record, "register_commands") for item in items]
        return read_commands(record.name, found)

    def _take_changes(self) -> None:
        before = self._outcomes()
        for record in self.records.values():
            if provider := provider_of(record):
                self._take_status(record, provider)
        collect(self.records.values())
        self._apply_filters()
        if before != self._outcomes():
            self.on_status_changed()

    def _outcomes(self) -> list[tuple[Status, str]]:
        return [(record.status, record.reason) for record in self.records.values()]

    def _take_status(self, record: PluginRecord, provider: Provider) -> None:
        """Fail a plugin that is of no use, and one that cannot be started until it can."""
        record.secrets |= provider.secrets
        record.problems = provider.problems
        if provider.failure:
            if record.status is not Status.FAILED:
                with suppress(PluginError):  # its lifespan raises it, where it matters
                    self.fail(record, provider.failure)
        elif provider.problem:
            self._withdraw_contributions(record, mask(provider.problem, record.secrets))
        elif record.status is Status.FAILED:
            record.status, record.reason = Status.STARTED, ""

    def _wrap(self, wrapper: Wrapper, record: PluginRecord) -> None:
        for handler in self.call(record, "wrap_tool_call", call_next=wrapper.call_next):
            wrapper.use(handler)
