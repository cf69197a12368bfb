"""The catalog of educational standards: one interface, several stores.

It is usable as a library, without the plugin host::

    catalog = open_local()
    result = await catalog.search("comparing fractions with fraction strips", top_k=5)
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from standards_mcp.errors import FilterError
from standards_mcp.filters import FilterExpression

from .base import Catalog
from .errors import CatalogError, CatalogUnavailableError

if TYPE_CHECKING:
    from .local.catalog import LocalCatalog
    from .records import StandardRecord
    from .results import CatalogStats, Facets, FieldValues, SearchHit, SearchResult, StandardSets
    from .sets import StandardSet


def open_local(
    path: Path | None = None, model: str = "minilm", key: SecretStr | None = None
) -> LocalCatalog:
    """Return the embedded catalog. Nothing is read before its first use.

    Args:
        path: The folder of the catalog; by default `default_path`. A new folder is filled with the
            starter set.
        model: The text encoder, see `standards_mcp_encoders.spec`.
        key: The key of the text encoder, if it needs one.
    """
    from .local.catalog import LocalCatalog  # noqa: PLC0415  - imported when it is chosen
    from .local.seeding import SeedSource  # noqa: PLC0415  - as above
    from .starter import starter_edition, starter_seed  # noqa: PLC0415  - as above

    seed = SeedSource(name="starter set", edition=starter_edition, load=starter_seed)
    return LocalCatalog(path or default_path(), model, key=key, seed=seed)


def default_path() -> Path:
    """Return the folder of the embedded catalog in the user's data folder."""
    from platformdirs import user_data_path  # noqa: PLC0415  - costs start-up time

    return user_data_path("standards-mcp", appauthor=False) / "catalog"


__all__ = [
    "Catalog",
    "CatalogError",
    "CatalogStats",
    "CatalogUnavailableError",
    "Facets",
    "FieldValues",
    "FilterError",
    "FilterExpression",
    "SearchHit",
    "SearchResult",
    "StandardRecord",
    "StandardSet",
    "StandardSets",
    "default_path",
    "open_local",
]

_MODULES: Final = (".records", ".sets", ".results")


if not TYPE_CHECKING:  # it would hide misspelt names from type checkers

    def __getattr__(name: str) -> object:
        # On first use: a server needs `Catalog` at its start, and records with the first call.
        if name in __all__:
            for module in (import_module(item, __name__) for item in _MODULES):
                if name in vars(module):
                    return vars(module)[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
