"""Open the configured store: the embedded one, or one of another package in this wheel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import distribution
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from . import open_local
from .base import Catalog
from .settings import CatalogSettings

if TYPE_CHECKING:
    from .local.catalog import LocalCatalog

GROUP: Final = "standards_mcp_catalog.backends"
"""The entry points of backends, named as in ``[plugins.catalog] backend``."""


class Backend(NamedTuple):
    """A store that an entry point offers.

    Attributes:
        open: Returns the catalog of the backend. The first argument is the settings table with the
            backend's name; the second opens the embedded catalog, for use as a fallback.
        commands: Further commands of ``standards-mcp data``.
    """

    open: Callable[[Any, Callable[[], Catalog]], Catalog]
    commands: Sequence[click.Command] = ()


def backends() -> dict[str, Backend]:
    """Return the backends by name; this imports their packages."""
    points = distribution("standards-mcp").entry_points.select(group=GROUP)
    return {point.name: point.load() for point in points}


def open_configured(settings: CatalogSettings) -> Catalog:
    """Return the catalog that searches use. Nothing is read before its first use."""
    name, _ = settings.choice
    if name == "local":
        return open_embedded(settings)
    return backends()[name].open(getattr(settings, name), lambda: open_embedded(settings))


def open_embedded(settings: CatalogSettings) -> LocalCatalog:
    """Return the embedded catalog, even if searches use another backend."""
    return open_local(settings.path, settings.local.model, settings.local.api_key)
