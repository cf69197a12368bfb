"""The plugin: the service `Catalog`, and the commands ``standards-mcp data``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from standards_mcp import Health, Plugin, Service, ServiceError, hookimpl

from .backends import open_configured
from .base import Catalog
from .settings import CatalogSettings

if TYPE_CHECKING:
    from .results import CatalogStats


class CatalogPlugin(Plugin[CatalogSettings]):
    """Provides the standards of the configured store."""

    title = "Educational standards"
    settings_type = CatalogSettings
    uses = (Catalog,)  # its own, unless the configuration chooses another plugin's

    @hookimpl
    def register_services(self) -> Iterable[Service[Any]]:
        """Return the service `Catalog`."""
        backend, reason = self.settings.choice
        facts = {"backend": backend, "reason": reason}
        if backend == "pinecone":
            facts["index"] = self.settings.pinecone.index_name
        service = Service(
            type=Catalog,
            factory=lambda: open_configured(self.settings),
            health=self._health,
            close=lambda catalog: catalog.aclose(),
            facts=facts,
            is_remote=backend == "pinecone",
            # A search opens the index and the text model, which takes half a second.
            warm_up=None if backend == "pinecone" else _search_once,
        )
        return [service]

    @hookimpl
    def register_commands(self) -> Iterable[click.Command]:
        """Return ``standards-mcp data``."""
        from .commands import data_commands
        from .commands.workplace import Workplace

        workplace = Workplace(
            self.settings, lambda: self.context.service(Catalog), lambda: self.context.state_dir
        )
        return [data_commands(workplace)]

    @hookimpl
    def register_backup(self) -> object:
        """Return the backup of the embedded catalog, even if searches use another backend."""
        from . import default_path
        from .local.backup import CatalogBackup
        from .local.index.engine import Engine

        path, local = self.settings.path or default_path(), self.settings.local
        return CatalogBackup(path, Engine(path / "index", local.model, local.api_key))

    @hookimpl
    def register_admin_page(self) -> object:
        """Return the page that shows what is loaded, and imports."""
        from .commands.admin import CatalogPage

        return CatalogPage(self.settings, lambda: self.context.service(Catalog))

    @hookimpl
    async def check_health(self) -> Health:
        """Try everything that a search needs."""
        catalog = self.context.service(Catalog)
        try:
            notes = await catalog.check()
            stats = await catalog.stats()
        except ServiceError as exc:
            message = f"{str(exc).rstrip('.')}; `standards-mcp data status` says more"
            return Health(status="failed", message=message)
        message = ". ".join((_summary(stats), *notes))
        return Health(status="degraded" if notes else "ok", message=message)

    async def _health(self, catalog: Catalog) -> Health:
        """Return the health from the size of the catalog, without loading a model."""
        try:
            stats = await catalog.stats()
        except ServiceError as exc:
            return Health(status="failed", message=str(exc))
        return Health(status="ok", message=_summary(stats), facts=_facts(stats))


async def _search_once(catalog: Catalog) -> None:
    await catalog.search("standards", top_k=1)


def _facts(stats: CatalogStats) -> dict[str, Any]:
    facts = {
        "backend": stats.backend,
        "records": stats.records,
        "location": stats.location,
        "model": stats.model or "none; searches by words",
        "size_bytes": stats.size_bytes,
    }
    if "pending" in stats.details:
        del facts["records"]  # the seed is not loaded yet
    return {name: value for name, value in facts.items() if value is not None} | dict(stats.details)


def _summary(stats: CatalogStats) -> str:
    pending = stats.details.get("pending")
    return str(pending or f"{stats.records:,} records in the {stats.backend} catalog")
