"""Load plugins, from the installed entry points to the registered tools.

The steps for each plugin are: discover, filter, check its requirements, import, configure,
register, validate. If a step fails, the whole plugin fails, with a reason, and the other plugins go
on. `lifecycle` starts and stops plugins.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import click
import pluggy

from standards_mcp import hookspecs
from standards_mcp._utils.exceptions import is_from_outside
from standards_mcp._utils.secrets import mask
from standards_mcp._utils.streams import divert_stdout
from standards_mcp.calls.wrappers import Wrapper
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.contributions.selection import Contributions
from standards_mcp.errors import ConfigError, PluginError
from standards_mcp.plugin import MissingServiceError, PluginContext, ToolHandler

from .construction import check_hooks, construct
from .contributed import Changes, ContributionStore
from .discovery import check_sections, disabled_reason, host_version, load_order, why_not_loadable
from .providers import Provider, provider_of
from .quarantine import Quarantine
from .records import PluginInfo, PluginKind, PluginRecord, Status, failure_reason
from .registration import read_commands
from .services import Services, ServiceType, used_services

log = logging.getLogger(__name__)


class _Hooks(pluggy.PluginManager):
    """The hooks of one plugin; a shared manager would call the `__eq__` of plugins."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        """Return the options of a hook, or None; special methods, the most of all, are no hooks."""
        return None if name.startswith("__") else super().parse_hookimpl_opts(plugin, name)

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> Any:
        """Return the options of a hook of the host, whose module is safe to read."""
        return getattr(getattr(module_or_class, name), f"{self.project_name}_spec", None)


class PluginManager:
    """Loads plugins, and keeps a record of every installed one.

    Args:
        state_dir: The folder for the state folders of the plugins.
        quarantine: Knows the plugins at which an earlier start of the host ended.
        plugins: The installed plugins and the configured servers.
        services: Objects to use in place of the services of plugins, by their types.

    Attributes:
        services: The services that plugins provide to each other.
        refuses_mistakes: True if invalid settings of a plugin that provides services stop the host.
            If it went on, the plugins that need these services would be missing, and only the log
            would have the reason.
        wrapping: The names of the plugins that wrap calls of tools.
        changes: The changes that plugins report while they run.
        contributed: The contributions of all plugins.

    Raises:
        ConfigError: A table is for a plugin that is not installed, or a server has a plugin's name.
        PluginError: A plugin failed, and it is required or ``strict`` is set.
    """

    def __init__(
        self,
        loaded: LoadedSettings,
        state_dir: Path,
        quarantine: Quarantine,
        plugins: Iterable[PluginInfo],
        services: Mapping[ServiceType, object],
        timing: Timing = DEFAULT_TIMING,
    ) -> None:
        self.timing = timing
        self.settings = loaded.settings
        self.records: dict[str, PluginRecord] = {}
        self._loaded = loaded
        self.services = Services(self.records, loaded.settings.services, services)
        self._state_dir = state_dir
        self.quarantine = quarantine
        self._hooks: dict[str, _Hooks] = {}
        self.on_status_changed: Callable[[], None] = lambda: None
        self.contributed = ContributionStore(self.records, self.call)
        self.changes = Changes(self.contributed, self.records)
        self.wrapping = set[str]()
        self.refuses_mistakes = True
        self._discover(plugins)

    def load(self, *, again: bool = False, only: Collection[str] | None = None) -> None:
        """Import, configure and register the enabled plugins, then validate their tools.

        Args:
            again: Also try plugins that the quarantine leaves out.
            only: Load these plugins and the providers of the services that they use. Other plugins
                can be loaded later.

        Raises:
            ConfigError: The settings of a plugin that provides services are invalid.
            PluginError: A plugin failed, and it is required or ``strict`` is set.
        """
        for record in self.records.values():
            if record.status is Status.DISCOVERED and record.info.kind is PluginKind.IMPORTED:
                must_try = again or self._is_required(record)
                if why := self.quarantine.judge(record.info, again=must_try):
                    self.fail(record, why)
        loaded = self._construct_all() if only is None else self._construct_with_providers(only)
        self._disable_without_services(loaded)
        for record in loaded:
            self._attempt(record, Status.REGISTERED, self.contributed.read)
        self.contributed.collect()
        for record in loaded:
            self._attempt(record, Status.REGISTERED, self.contributed.read_filters)
        self.contributed.apply_filters()

    def _construct_all(self, names: Collection[str] | None = None) -> list[PluginRecord]:
        """Import and build plugins, and register their services; return their records."""
        chosen = [
            record
            for record in self.records.values()
            if record.status is Status.DISCOVERED and (names is None or record.name in names)
        ]
        for record in chosen:
            self._attempt(record, Status.DISCOVERED, self._construct)
        for record in chosen:
            self._attempt(record, Status.REGISTERED, self._read_services)
        return chosen

    def _construct_with_providers(self, names: Collection[str]) -> list[PluginRecord]:
        """Build these plugins and the likely providers of their services, or else all plugins."""
        first = self._construct_all(names)
        used = [service_type for record in first for service_type in used_services(record)]
        loaded = first + (self._construct_all(self.services.likely_providers(used)) if used else [])
        try:
            self.services.check(used)
        except MissingServiceError:
            loaded += self._construct_all()
        return loaded

    def _read_services(self, record: PluginRecord) -> None:
        for services in self.call(record, "register_services"):
            self.services.add(record, services or ())

    def _disable_without_services(self, loaded: Collection[PluginRecord]) -> None:
        """Disable the plugins that need a service without a provider.

        Raises:
            PluginError: Such a plugin is required, or ``strict`` is set.
        """
        disabled: dict[str, list[str]] = {}
        for record in loaded:
            if record.status is not Status.REGISTERED or record.plugin is None:
                continue
            try:
                self.services.check(type(record.plugin).needs)
            except MissingServiceError as exc:
                reason = mask(str(exc), record.secrets)
                record.status, record.reason, record.plugin = Status.DISABLED, reason, None
                self._hooks.pop(record.name, None)
                self.services.withdraw(record.name)
                if self._is_required(record):
                    raise PluginError(record.name, reason) from None
                disabled.setdefault(reason, []).append(record.name)
        for reason, names in disabled.items():  # many plugins often have the same reason
            log.warning("plugins are disabled", extra={"plugins": names, "reason": reason})
        if disabled:
            self._disable_without_services(loaded)  # others may need services of these

    async def wait_listed(self) -> None:
        """Wait until the tools of all providers are known, or until the providers' time limits."""
        await asyncio.gather(*(provider.wait_listed() for provider in self.providers()))

    async def wait_started(self) -> None:
        """Wait until all providers that start with the host have started or failed."""
        await asyncio.gather(*(provider.wait_started() for provider in self.providers()))

    def providers(self) -> list[Provider]:
        """Return the plugins whose contributions come from other processes."""
        return [provider for record in self.records.values() if (provider := provider_of(record))]

    @property
    def contributions(self) -> Contributions:
        """All contributions of loaded plugins, hidden or not, in the order of the plugins."""
        return self.contributed.all

    def wrap(self, handler: ToolHandler) -> ToolHandler:
        """Return *handler* within the wrappers of all plugins; the first plugin's is outermost."""
        for record in reversed(self.records.values()):
            wrapper = Wrapper(
                record.name,
                handler,
                seconds=self.timing.wrappers * (len(self.wrapping) + 1),
                required=self._is_required(record),
                is_enabled=partial(self._is_enabled, record),
            )
            self._attempt(record, Status.REGISTERED, partial(self._wrap, wrapper))
            if wrapper.handler:
                handler = wrapper
                self.wrapping.add(record.name)
        return handler

    def commands(
        self, taken: Collection[str] = (), only: Collection[str] | None = None
    ) -> dict[str, click.Command]:
        """Return the commands that plugins add to the command line, by name.

        Args:
            taken: The names of the host's own commands. A plugin with such a name fails if it adds
                commands.
            only: The names of the plugins to read; by default all that are loaded.
        """
        commands: dict[str, click.Command] = {}

        def read(record: PluginRecord) -> None:
            items = [item for items in self.call(record, "register_commands") for item in items]
            own_commands = read_commands(record.name, items, taken, is_own=record.info.is_own)
            record.command = next(iter(own_commands), "")
            commands.update(own_commands)

        for record in self.records.values():
            if only is None or record.name in only:
                self._attempt(record, Status.REGISTERED, read)
        return commands

    def call(self, record: PluginRecord, hook: str, **arguments: Any) -> list[Any]:
        """Call one hook of one plugin, and return the results of its implementations."""
        hooks = self._hooks.get(record.name)
        results: list[Any] = getattr(hooks.hook, hook)(**arguments) if hooks else []
        return results

    def fail(self, record: PluginRecord, reason: str, cause: BaseException | None = None) -> None:
        """Record a plugin's failure.

        Raises:
            PluginError: The plugin is required, or ``strict`` is set.
        """
        reason = mask(" ".join(reason.split()), record.secrets)
        record.status, record.reason = Status.FAILED, reason
        self.contributed.withdraw(record)
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
        section = self.settings.plugins.get(record.info.name)
        return section is None or section.enabled is not False

    def _discover(self, plugins: Iterable[PluginInfo]) -> None:
        """Create the records from metadata and configuration; import nothing."""
        for info in sorted(plugins, key=load_order):
            first = self.records.setdefault(info.name, PluginRecord(info)).info
            if first is info:
                continue
            if info.kind is PluginKind.SERVER:
                where = self._loaded.layers.where(("servers", info.name))
                raise ConfigError(f"{where}: a plugin has this name; give the server another one")
            self._refuse_duplicate(first, info)
        check_sections(self._loaded, self.records)
        host = host_version()
        for record in self.records.values():
            if why := disabled_reason(record.info, self.settings):
                record.status, record.reason = Status.DISABLED, why
            elif why := why_not_loadable(record.info, host):
                self.fail(record, why)

    def _refuse_duplicate(self, first: PluginInfo, second: PluginInfo) -> None:
        """Refuse a duplicate name: only a plugin of the host keeps it."""
        error = f"{first.distribution} and {second.distribution} share the name {first.name!r}"
        if first.is_own and not second.is_own:
            name = f"{second.name} of {second.distribution}"
            self.records[name] = PluginRecord(replace(second, name=name, error=error))
        else:
            self.records[first.name] = PluginRecord(replace(first, error=error))

    def _attempt(
        self, record: PluginRecord, status: Status, step: Callable[[PluginRecord], None]
    ) -> None:
        """Run a step if the plugin has this status; an exception fails only this plugin.

        Raises:
            ConfigError: The settings of a plugin that provides services are invalid.
            PluginError: The plugin failed, and it is required or ``strict`` is set.
        """
        if record.status is not status:
            return
        try:
            with record.timed(), self.quarantine.attempt(record), divert_stdout():
                step(record)
        except BaseException as exc:  # also a panic in native code
            if is_from_outside(exc):
                raise
            self._hooks.pop(record.name, None)
            self.services.withdraw(record.name)
            if record.provides_services and record.problems and self.refuses_mistakes:
                layers = record.layers(self._loaded.layers)
                lines = (mask(item.line(layers), record.secrets) for item in record.problems)
                raise ConfigError("\n".join(lines)) from None
            self.fail(record, failure_reason(exc), exc)

    def _construct(self, record: PluginRecord) -> None:
        context = PluginContext(
            name=record.name,
            state_dir=self._state_dir / "plugins" / record.name,
            open_service=partial(self.services.get, record),
            contributions_changed=partial(self.changes.note_contributions, record.name),
            resource_updated=partial(self.changes.note_resource, record.name),
        )
        record.plugin = construct(record, context, self._loaded)
        if provider := provider_of(record):
            record.secrets |= provider.secrets
            provider.on_change = self._on_provider_change
            provider.on_updated = self.changes.tell_updated
        hooks = _Hooks(hookspecs.PROJECT)
        hooks.add_hookspecs(hookspecs)
        hooks.register(record.plugin, name=record.name)
        check_hooks(hooks, record)
        self._hooks[record.name] = hooks
        record.status = Status.REGISTERED

    def _on_provider_change(self) -> None:
        def outcomes() -> list[tuple[Status, str]]:
            return [(record.status, record.reason) for record in self.records.values()]

        before = outcomes()
        for record in self.records.values():
            if provider := provider_of(record):
                self._apply_provider_status(record, provider)
        self.contributed.collect()
        self.contributed.apply_filters()
        if before != outcomes():
            self.on_status_changed()

    def _apply_provider_status(self, record: PluginRecord, provider: Provider) -> None:
        """Set the status of a plugin from its provider.

        A plugin fails for good, or until its process can be started again.
        """
        record.secrets |= provider.secrets
        record.problems = provider.problems
        if provider.failure:
            if record.status is not Status.FAILED:
                with suppress(PluginError):  # if the plugin is required, its lifespan raises this
                    self.fail(record, provider.failure)
        elif provider.problem:
            record.status, record.reason = Status.FAILED, mask(provider.problem, record.secrets)
            self.contributed.withdraw(record)
        elif record.status is Status.FAILED:
            record.status, record.reason = Status.STARTED, ""

    def _wrap(self, wrapper: Wrapper, record: PluginRecord) -> None:
        for handler in self.call(record, "wrap_tool_call", call_next=wrapper.call_next):
            if not callable(handler):
                raise TypeError(f"wrap_tool_call returned a {type(handler).__name__}")
            wrapper.handler = cast("ToolHandler", handler)
