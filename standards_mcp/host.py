"""Puts settings, catalog and plugins together; everything that serves or calls tools uses it."""

from __future__ import annotations

import asyncio
import logging
import operator
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from ._utils.secrets import mask, masked_data, secrets_of
from ._utils.text import did_you_mean
from .calls.content import ContentCalls
from .calls.context import HostContext
from .calls.policy import Policy
from .calls.threads import UnjoinedExecutor
from .catalog import open_catalog
from .catalog.base import Catalog, CatalogStats
from .config.checks import Names, check_secrets, check_settings
from .config.loading import LoadedSettings
from .config.models.catalog import CatalogSettings
from .config.models.settings import Settings
from .contributions.results import error_result
from .contributions.selection import Registered, Selection, select
from .errors import ConfigError, UnknownToolError
from .loading.discovery import installed_plugins
from .loading.last_start import Step, recall, remember
from .loading.lifecycle import running
from .loading.manager import PluginManager
from .loading.quarantine import Casualties
from .loading.records import PluginRecord, Status
from .plugin import ToolResult

log = logging.getLogger(__name__)


class Host:
    """The plugins of one process and the catalog that they share.

    Args:
        installed: The plugins to choose from; by default those of this environment.
        catalog: The catalog to use in place of the configured one.
        remembers: Whether to write down how its plugins fared.

    Raises:
        ConfigError: A table names a plugin that is not installed, or ``storage`` cannot be used.
        PluginError: A plugin failed that is required, or any under ``strict``.
    """

    def __init__(
        self,
        loaded: LoadedSettings,
        *,
        installed: Iterable[PluginRecord] | None = None,
        catalog: Catalog | None = None,
        remembers: bool = True,
    ) -> None:
        self.loaded = loaded
        self.settings = loaded.settings
        self._secrets = secrets_of(self.settings)
        self.catalog = catalog or _configured_catalog(self.settings.catalog)
        self.state_dir = self.settings.state_dir or _user_state_dir()
        casualties = Casualties(self.state_dir if remembers else None)
        self.manager = PluginManager(
            loaded,
            self.catalog,
            self.state_dir,
            casualties,
            _elsewhere(
                installed_plugins() if installed is None else installed, loaded, self.state_dir
            ),
        )
        storage = self.settings.tools.storage
        self._policy = Policy(storage.get_secret_value() if storage else None)
        self.content = ContentCalls(self, self._policy)
        self._remembers = remembers
        self._offered: tuple[list[object], Selection] | None = None

    def load(self, *, again: bool = False) -> None:
        """Import and register the enabled plugins. See `PluginManager.load`.

        Raises:
            ConfigError: Under ``strict``, a pattern or an override names no tool.
        """
        with self.manager.casualties.watch("loading", self.manager.records.values()):
            try:
                self.manager.load(again=again)
            finally:
                self._remember("load")
            self._policy.wrap(self.manager.wrap)
        self._tell(self._warnings(self.loaded, self.selection))
        for line in self.exposed_secrets():
            log.warning(line)

    def exposed_secrets(self) -> list[str]:
        """Return where secrets of plugins stand that others can read there; none is refused."""
        models = {r.name: r.settings_type for r in self.manager.records.values() if r.settings_type}
        layers = self.loaded.layers
        return [each.line(layers) for each in check_secrets(models, layers)]

    def warnings(self) -> list[str]:
        """Return what in the configuration matches nothing or cannot be applied, in any profile."""
        return self._warnings(self.loaded, self.selection, self.settings.profiles)

    def take_over(self, loaded: LoadedSettings, in_force: Settings) -> None:
        """Offer the tools of the loaded plugins as other settings make them.

        Args:
            loaded: As the file says, for naming its mistakes.
            in_force: As far as it can be changed while plugins run.

        Raises:
            ConfigError: A table names a plugin that is not installed or, under ``strict``, a
                pattern or an override no tool; nothing has changed then.
        """
        self.manager.check_sections(loaded)
        selection = select(self.registered(), in_force)
        self._tell(self._warnings(loaded, selection))
        self.loaded, self.settings, self.manager.settings = loaded, in_force, in_force
        self._secrets |= secrets_of(loaded.settings)
        self._offered = self._contributed(), selection

    def recall(self) -> None:
        """Give plugins that are not loaded the status of their last start."""
        self.manager.casualties.learn()
        self.manager.leave_out_casualties()
        recall(self.manager.records.values(), self.state_dir)

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

    def registered(self) -> Registered:
        """Return what the loaded plugins contribute, served or not."""
        manager = self.manager
        return Registered(
            tuple(manager.registry.tools()),
            tuple(manager.registry.prompts()),
            tuple(manager.registry.resources()),
            manager.registry.filter_owners(),
        )

    @property
    def selection(self) -> Selection:
        """What the loaded plugins contribute, as the configuration makes it."""
        contributed = self._contributed()
        if self._offered is None or not all(map(operator.is_, contributed, self._offered[0])):
            self._offered = contributed, select(self.registered(), self.settings)
        return self._offered[1]

    def _contributed(self) -> list[object]:
        """Return what makes up `registered`, of which each part changes as a whole."""
        records = self.manager.records.values()
        return [part for each in records for part in (each.tools, each.prompts, each.resources)]

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
        item = self.selection.find(name)
        if item is None:
            await self.manager.wait_listed()  # it may be a tool of a server that is being started
            item = self.selection.find(name)
        if item is None:
            hint = did_you_mean(name, (each.published for each in self.selection.visible_tools))
            raise UnknownToolError(f"Unknown tool: {name}{hint}")
        if item.hidden_reason:
            message = f"{item.published} is not served here ({item.hidden_reason})."
            message += " Ask the administrator."
            return error_result("disabled", message)
        result = await self._policy.call(item, arguments, context)
        return _without_secrets(result, self.secrets()) if result.is_error else result

    def stuck_seconds(self, plugin: str) -> float:
        """For how long a function of a plugin has gone on after its call was given up."""
        return self._policy.stuck_seconds(plugin)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Keep the plugins started; release the catalog at the end.

        The event loop gets a default executor that does not wait for plugins' threads at its end.

        Raises:
            PluginError: A plugin did not start that is required, or any under ``strict``.
        """
        asyncio.get_running_loop().set_default_executor(UnjoinedExecutor())
        try:
            async with running(self.manager):
                self._remember("start")
                # One that is isolated may fail later, and the process be killed at any time.
                self.manager.on_status_changed = partial(self._remember, "start")
                yield
        finally:
            with anyio.CancelScope(shield=True):
                await self._policy.aclose()
                await self.catalog.aclose()

    def _warnings(
        self, loaded: LoadedSettings, selection: Selection, profiles: Iterable[str] | None = None
    ) -> list[str]:
        """Return what is without effect, in the rules in force or in all of these profiles."""
        settings, records = loaded.settings, self.manager.records
        names = Names(
            contributions=selection.names if self._knows_all else {},
            plugins=records.keys(),
            distributions={record.distribution for record in records.values()},
            failed=[name for name, each in records.items() if each.status is Status.FAILED],
        )
        if profiles is None:
            profiles = settings.profiles_in_force
        found = (*check_settings(settings, names, profiles), *selection.faults)
        lines = (each.line(loaded.layers) for each in found)
        return list(dict.fromkeys(lines))

    @property
    def _knows_all(self) -> bool:
        """Whether a pattern that matches nothing is a mistake: no server has unknown tools."""
        return all(source.is_known and not source.problem for source in self.manager.sources())

    def _tell(self, warnings: list[str]) -> None:
        if warnings and self.settings.strict:
            raise ConfigError("\n".join(warnings))
        for warning in warnings:
            log.warning(warning)

    def _remember(self, step: Step) -> None:
        if not self._remembers:
            return
        remember(self.manager.records.values(), self.state_dir, step)


def _without_secrets(result: ToolResult, secrets: frozenset[str]) -> ToolResult:
    structured = result.structured and masked_data(result.structured, secrets)
    content = tuple(masked_data(block, secrets) for block in result.content)
    return replace(result, text=mask(result.text, secrets), structured=structured, content=content)


def _configured_catalog(table: CatalogSettings) -> Catalog:
    backend, _ = table.choice
    access = table.pinecone.access if backend == "pinecone" else None
    return open_catalog(table.path, table.local.model, access, key=table.local.api_key)


def _user_state_dir() -> Path:
    from platformdirs import user_state_path  # noqa: PLC0415  - only where none is configured

    return user_state_path("standards-mcp", appauthor=False)


def _elsewhere(
    plugins: Iterable[PluginRecord], loaded: LoadedSettings, state_dir: Path
) -> list[PluginRecord]:
    """Return the records with those of plugins and servers that run in other processes."""
    found, settings = list(plugins), loaded.settings
    if any(section.is_isolated for section in settings.plugins.values()):
        from .remote.isolated.plugin import isolate  # noqa: PLC0415  - costs start-up time

        found = isolate(found, loaded, state_dir)
    if settings.servers:
        from .remote.server import server_records  # noqa: PLC0415  - costs start-up time

        found += server_records(settings.servers)
    return found
