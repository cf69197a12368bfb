"""Puts settings, catalog and plugins together; everything that serves or calls tools uses it."""

from __future__ import annotations

import asyncio
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
from .errors import StandardsMcpError, did_you_mean
from .lifecycle import running
from .manager import PluginManager
from .masking import mask, masked_data, secrets_of
from .outcomes import Step, recall, remember
from .plugin import ToolResult
from .policy import run_tool
from .settings import LoadedSettings
from .signatures import error_result
from .threads import PluginThreads, UnjoinedExecutor


class UnknownToolError(StandardsMcpError):
    """No plugin declares a tool of this name."""


class Host:
    """The plugins of one process and the catalog that they share.

    Args:
        installed: The plugins to choose from; by default those of this environment.
        catalog: The catalog to use in place of the configured one.

    Raises:
        ConfigError: A table names a plugin that is not installed.
        PluginError: A plugin failed that is required, or any under ``strict``.
    """

    def __init__(
        self,
        loaded: LoadedSettings,
        *,
        installed: Iterable[PluginRecord] | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        self.settings = loaded.settings
        self._secrets = secrets_of(self.settings)
        self.catalog = catalog or _configured_catalog(self.settings.catalog)
        self.state_dir = self.settings.state_dir or _user_state_dir()
        self.manager = PluginManager(loaded, self.catalog, self.state_dir, installed)
        self._threads: dict[str, PluginThreads] = {}

    def load(self) -> None:
        """Import and register the enabled plugins. See `PluginManager.load`."""
        try:
            self.manager.load()
        finally:
            self._remember("load")

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

    def served_tools(self) -> list[RegisteredTool]:
        """Return the tools that clients see, in a stable order."""
        return [item for item in self.manager.tools() if not item.refusal]

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool by its published or its declared name.

        Raises:
            UnknownToolError: No plugin declares it.
        """
        item = self._find_tool(name)
        if item.refusal:
            message = f"{item.published} is not served here: {item.refusal}. Ask the administrator."
            return error_result("disabled", message)
        threads = self._threads.setdefault(item.plugin, PluginThreads(item.plugin))
        result = await run_tool(item, arguments, self.settings.tools.timeout, threads)
        return _without_secrets(result, self.secrets()) if result.is_error else result

    def _find_tool(self, name: str) -> RegisteredTool:
        tools = self.manager.tools()
        exact = (tool for tool in tools if name in tool.names)
        # Some clients write dots as underscores even where dots are published.
        alike = (tool for tool in tools if name == tool.tool.name.replace(".", "_"))
        item = next(exact, None) or next(alike, None)
        if item is None:
            hint = did_you_mean(name, (tool.published for tool in tools if not tool.refusal))
            raise UnknownToolError(f"Unknown tool: {name}{hint}")
        return item

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
                await self.catalog.aclose()

    def _remember(self, step: Step) -> None:
        remember(self.manager.records.values(), self.state_dir, step)


def _without_secrets(result: ToolResult, secrets: frozenset[str]) -> ToolResult:
    structured = result.structured and masked_data(result.structured, secrets)
    return replace(result, text=mask(result.text, secrets), structured=structured)


def _configured_catalog(table: CatalogSettings) -> Catalog:
    backend, _ = table.choice
    access = table.pinecone.access if backend == "pinecone" else None
    return open_catalog(table.path, table.local.model, access, key=table.local.api_key)


def _user_state_dir() -> Path:
    from platformdirs import user_state_path  # noqa: PLC0415  - only where none is configured

    return user_state_path("standards-mcp", appauthor=False)
