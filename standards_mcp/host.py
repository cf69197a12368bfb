"""Puts settings, catalog and plugins together; everything that serves or calls tools uses it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from ._utils.secrets import secrets_of
from ._utils.text import did_you_mean
from .calls.content import ContentCalls
from .calls.context import LOCAL, HostContext, Principal, Unattended
from .calls.pipeline import Pipeline
from .calls.records import CallLog, Observer
from .calls.steps.threads import UnjoinedExecutor
from .catalog import open_catalog
from .catalog.base import Catalog, CatalogStats
from .config.checks import Names, check_secrets, check_settings
from .config.loading import LoadedSettings
from .config.models.catalog import CatalogSettings
from .config.models.settings import Settings
from .contributions.instructions import joined_instructions
from .contributions.results import error_result
from .contributions.selection import EVERYTHING, Access, Selection, select
from .contributions.tools import Limits
from .errors import ConfigError, UnknownToolError
from .loading.discovery import installed_plugins
from .loading.last_start import Step, restore, save
from .loading.lifecycle import running
from .loading.manager import PluginManager
from .loading.quarantine import Quarantine
from .loading.records import PluginInfo, Status
from .plugin import ToolResult

log = logging.getLogger(__name__)


class Host:
    """The plugins of one process and the catalog that they share.

    Args:
        installed: The plugins to choose from; by default those of this environment.
        catalog: The catalog to use in place of the configured one.
        observers: Get the record of each call; more can be added by `observe`.
        remembers: Whether to write down how its plugins did.

    Raises:
        ConfigError: A table names a plugin that is not installed, or ``storage`` cannot be used.
        PluginError: A plugin failed that is required, or any under ``strict``.
    """

    def __init__(
        self,
        loaded: LoadedSettings,
        *,
        installed: Iterable[PluginInfo] | None = None,
        catalog: Catalog | None = None,
        observers: Iterable[Observer] = (),
        remembers: bool = True,
    ) -> None:
        self.loaded = loaded
        self.settings = loaded.settings
        self._secrets = secrets_of(self.settings)
        self.catalog = catalog or _configured_catalog(self.settings.catalog)
        self.state_dir = self.settings.state_dir or _user_state_dir()
        quarantine = Quarantine(self.state_dir if remembers else None)
        plugins = installed_plugins() if installed is None else installed
        plugins = _with_remote(plugins, loaded, self.state_dir)
        self.manager = PluginManager(loaded, self.catalog, self.state_dir, quarantine, plugins)
        self._selections: dict[Access, Selection] = {}
        self.manager.on_contributions_changed.append(self._selections.clear)
        storage = self.settings.tools.storage
        self._observers: list[Observer] = [CallLog(), *observers]
        self._pipeline = Pipeline(
            self.secrets, self._observers, storage.get_secret_value() if storage else None
        )
        self.content = ContentCalls(self.visible, self._content_limits, self._pipeline)
        self._remembers = remembers
        self._is_running = False

    def load(self, *, again: bool = False) -> None:
        """Import and register the enabled plugins. See `PluginManager.load`.

        Raises:
            ConfigError: Under ``strict``, a pattern or an override names no tool.
        """
        with self.manager.quarantine.watch("loading", self.manager.records.values()):
            try:
                self.manager.load(again=again)
            finally:
                self._save_outcomes("load")
            self._pipeline.wrap(self.manager.wrap)
        self._tell(self._warnings(self.loaded, self.visible()))
        for line in self.exposed_secrets():
            log.warning(line)

    def observe(self, observer: Observer) -> None:
        """Give *observer* the record of each call from now on."""
        self._observers.append(observer)

    def exposed_secrets(self) -> list[str]:
        """Return where secrets of plugins stand that others can read there; none is refused."""
        models = {r.name: r.settings_type for r in self.manager.records.values() if r.settings_type}
        layers = self.loaded.layers
        return [each.line(layers) for each in check_secrets(models, layers)]

    def warnings(self) -> list[str]:
        """Return what in the configuration matches nothing or cannot be applied, in any profile."""
        return self._warnings(self.loaded, self.visible(), self.settings.profiles)

    def take_over(self, loaded: LoadedSettings, in_force: Settings) -> None:
        """Serve what the loaded plugins contribute as other settings make it.

        Args:
            loaded: As the file says, for naming its mistakes.
            in_force: As far as it can be changed while plugins run.

        Raises:
            ConfigError: A table names a plugin that is not installed or, under ``strict``, a
                pattern or an override no tool; nothing has changed then.
        """
        self.manager.check_sections(loaded)
        selection = select(self.manager.contributions, in_force)
        self._tell(self._warnings(loaded, selection))
        self.loaded, self.settings, self.manager.settings = loaded, in_force, in_force
        self._secrets |= secrets_of(loaded.settings)
        self._selections.clear()

    def restore(self) -> None:
        """Give plugins that are not loaded the status of their last start."""
        self.manager.quarantine.load()
        self.manager.leave_out_quarantined()
        restore(self.manager.records.values(), self.state_dir)

    async def catalog_stats(self) -> CatalogStats:
        """Return what the catalog holds, with ``reason`` in its details: why it is this one.

        Raises:
            CatalogError: The catalog cannot be read.
        """
        stats = await self.catalog.stats()
        _, reason = self.settings.catalog.choice
        return replace(stats, details={"reason": reason, **stats.details})

    def secrets(self) -> frozenset[str]:
        """Return every secret of the configuration and of the loaded plugins' settings."""
        plugins = (record.secrets for record in self.manager.records.values())
        return self._secrets.union(*plugins)

    def visible(self, principal: Principal = LOCAL) -> Selection:
        """Return what plugins contribute, as the configuration and who asks make it."""
        return self.select(principal.access)

    def select(self, access: Access) -> Selection:
        """Return what is visible with *access*, kept until plugins or settings change."""
        selection = self._selections.get(access)
        if selection is None:
            selection = select(self.manager.contributions, self.settings, access)
            self._selections[access] = selection
        return selection

    def selections(self) -> dict[Access, Selection]:
        """Return what each access has shown, and that of the local user."""
        return {EVERYTHING: self.select(EVERYTHING), **self._selections}

    def instructions(self, principal: Principal = LOCAL) -> str:
        """Return what the plugins of which something is visible tell the model."""
        plugins = {
            name: record.plugin.instructions
            for name, record in self.manager.records.items()
            if record.plugin and record.status is not Status.FAILED
        }
        return joined_instructions(plugins, self.visible(principal))

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], context: HostContext | None = None
    ) -> ToolResult:
        """Call a tool by its published or its declared name.

        Args:
            context: Who calls, and how to ask them; by default nobody who can be asked.

        Raises:
            InputRequiredError: The client must ask its user, and call again.
            UnknownToolError: No plugin declares it.
        """
        context = context or Unattended()
        item = self.visible(context.principal).find(name)
        if item is None:
            await self.manager.wait_listed()  # it may be a tool of a server that is being started
            item = self.visible(context.principal).find(name)
        if item is None or (item.hidden_reason and context.principal.is_restricted):
            known = (each.published for each in self.visible(context.principal).visible_tools)
            raise UnknownToolError(f"Unknown tool: {name}{did_you_mean(name, known)}")
        if item.hidden_reason:
            message = f"{item.published} is not served here ({item.hidden_reason})."
            return error_result("disabled", f"{message} Ask the administrator.")
        return await self._pipeline.call_tool(item, arguments, context)

    def stuck_seconds(self, plugin: str) -> float:
        """For how long a function of a plugin has gone on after its call was given up."""
        return self._pipeline.stuck_seconds(plugin)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Keep the plugins started; release the catalog at the end.

        The event loop gets a default executor that does not wait for plugins' threads at its end.

        Raises:
            PluginError: A plugin did not start that is required, or any under ``strict``.
        """
        if self._is_running:
            raise RuntimeError("the host runs already")
        asyncio.get_running_loop().set_default_executor(UnjoinedExecutor())
        try:
            self._is_running = True
            async with running(self.manager):
                self._save_outcomes("start")
                # One that is isolated may fail later, and the process be killed at any time.
                self.manager.on_status_changed = partial(self._save_outcomes, "start")
                yield
        finally:
            self._is_running = False
            with anyio.CancelScope(shield=True):
                await self._pipeline.aclose()
                await self.catalog.aclose()

    def _content_limits(self) -> Limits:
        tools = self.settings.tools
        return Limits(timeout=tools.timeout, plugin_concurrency=tools.concurrency)

    def _warnings(
        self, loaded: LoadedSettings, selection: Selection, profiles: Iterable[str] | None = None
    ) -> list[str]:
        """Return what is without effect, in the rules in force or in all of these profiles."""
        settings, records = loaded.settings, self.manager.records
        names = Names(
            contributions=selection.names if self._knows_all else {},
            plugins=records.keys(),
            distributions={record.info.distribution for record in records.values()},
            failed=[name for name, each in records.items() if each.status is Status.FAILED],
        )
        if profiles is None:
            profiles = settings.profiles_in_force
        found = (*check_settings(settings, names, profiles), *selection.problems)
        lines = (each.line(loaded.layers) for each in found)
        return list(dict.fromkeys(lines))

    @property
    def _knows_all(self) -> bool:
        """Whether a pattern that matches nothing is a mistake: no server has unknown tools."""
        return all(each.is_known and not each.problem for each in self.manager.providers())

    def _tell(self, warnings: list[str]) -> None:
        if warnings and self.settings.strict:
            raise ConfigError("\n".join(warnings))
        for warning in warnings:
            log.warning(warning)

    def _save_outcomes(self, step: Step) -> None:
        if self._remembers:
            save(self.manager.records.values(), self.state_dir, step)


def _configured_catalog(table: CatalogSettings) -> Catalog:
    backend, _ = table.choice
    access = table.pinecone.access if backend == "pinecone" else None
    return open_catalog(table.path, table.local.model, access, key=table.local.api_key)


def _user_state_dir() -> Path:
    from platformdirs import user_state_path  # noqa: PLC0415  - only where none is configured

    return user_state_path("standards-mcp", appauthor=False)


def _with_remote(
    plugins: Iterable[PluginInfo], loaded: LoadedSettings, state_dir: Path
) -> list[PluginInfo]:
    """Return the plugins with those, and the servers, whose code runs elsewhere."""
    found, settings = list(plugins), loaded.settings
    if any(section.is_isolated for section in settings.plugins.values()):
        from .remote.isolated.plugin import isolate  # noqa: PLC0415  - costs start-up time

        found = isolate(found, loaded, state_dir)
    if settings.servers:
        from .remote.server import server_records  # noqa: PLC0415  - costs start-up time

        found += server_records(settings.servers)
    return found
