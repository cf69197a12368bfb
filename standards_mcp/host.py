"""Puts settings, catalog and plugins together; everything that serves or calls tools uses it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from .catalog import Catalog, CatalogStats, open_catalog
from .catalog_settings import CatalogSettings
from .declarations import RegisteredTool
from .discovery import PluginRecord
from .errors import ConfigError, StandardsMcpError, did_you_mean
from .lifecycle import running
from .manager import PluginManager
from .masking import mask, masked_data, secrets_of
from .offering import Offering, offer
from .outcomes import Step, recall, remember
from .plugin import ToolResult
from .policy import Policy
from .settings import LoadedSettings, Settings
from .signatures import error_result
from .threads import UnjoinedExecutor

log = logging.getLogger(__name__)


class UnknownToolError(StandardsMcpError):
    """No plugin declares a tool of this name."""


class Host:
    """The plugins of one process and the catalog that they share.

    Args:
        installed: The plugins to choose from; by default those of this environment.
        catalog: The catalog to use in place of the configured one.

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
    ) -> None:
        self.loaded = loaded
        self.settings = loaded.settings
        self._secrets = secrets_of(self.settings)
        self.catalog = catalog or _configured_catalog(self.settings.catalog)
        self.state_dir = self.settings.state_dir or _user_state_dir()
        self.manager = PluginManager(loaded, self.catalog, self.state_dir, installed)
        storage = self.settings.tools.storage
        self._policy = Policy(storage.get_secret_value() if storage else None)
        self._offered: tuple[list[RegisteredTool], Offering] | None = None

    def load(self) -> None:
        """Import and register the enabled plugins. See `PluginManager.load`.

        Raises:
            ConfigError: Under ``strict``, a pattern or an override names no tool.
        """
        try:
            self.manager.load()
        finally:
            self._remember("load")
        self._tell(self.warnings())

    def warnings(self) -> list[str]:
        """Return what in the configuration names no tool: a misspelt ``disable`` has no effect."""
        return _warnings(self.loaded, self.offering)

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
        registered = self.manager.tools()
        offering = offer(registered, in_force)
        self._tell(_warnings(loaded, offering))
        self.loaded, self.settings = loaded, in_force
        self._secrets |= secrets_of(loaded.settings)
        self._offered = registered, offering

    def recall(self) -> None:
        """Give plugins that are not loaded the status of their last start."""
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

    @property
    def offering(self) -> Offering:
        """The tools of the loaded plugins as the configuration makes them."""
        registered = self.manager.tools()
        if self._offered is None or not _same(self._offered[0], registered):
            self._offered = registered, offer(registered, self.settings)
        return self._offered[1]

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool by its published or its declared name.

        Raises:
            UnknownToolError: No plugin declares it.
        """
        item = self.offering.find(name)
        if item is None:
            await self.manager.ready()  # it may be a tool of a server that is being started
            item = self.offering.find(name)
        if item is None:
            hint = did_you_mean(name, (each.published for each in self.offering.served))
            raise UnknownToolError(f"Unknown tool: {name}{hint}")
        if item.refusal:
            message = (
                f"{item.published} is not served here ({item.refusal}). Ask the administrator."
            )
            return error_result("disabled", message)
        result = await self._policy.call(item, arguments)
        return _without_secrets(result, self.secrets()) if result.is_error else result

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
                yield
        finally:
            with anyio.CancelScope(shield=True):
                await self._policy.aclose()
                await self.catalog.aclose()

    def _tell(self, warnings: list[str]) -> None:
        if warnings and self.settings.strict:
            raise ConfigError("\n".join(warnings))
        for warning in warnings:
            log.warning(warning)

    def _remember(self, step: Step) -> None:
        remember(self.manager.records.values(), self.state_dir, step)


def _without_secrets(result: ToolResult, secrets: frozenset[str]) -> ToolResult:
    structured = result.structured and masked_data(result.structured, secrets)
    content = tuple(masked_data(block, secrets) for block in result.content)
    return replace(result, text=mask(result.text, secrets), structured=structured, content=content)


def _warnings(loaded: LoadedSettings, offering: Offering) -> list[str]:
    return [f"{loaded.where(each.path)}: {each.message}" for each in offering.mismatches]


def _same(one: list[RegisteredTool], other: list[RegisteredTool]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _configured_catalog(table: CatalogSettings) -> Catalog:
    backend, _ = table.choice
    access = table.pinecone.access if backend == "pinecone" else None
    return open_catalog(table.path, table.local.model, access, key=table.local.api_key)


def _user_state_dir() -> Path:
    from platformdirs import user_state_path  # noqa: PLC0415  - only where none is configured

    return user_state_path("standards-mcp", appauthor=False)
