"""The catalog of educational standards: one interface, several stores.

It is usable as a library, without the plugin host::

    catalog = open_catalog()
    result = await catalog.search("comparing fractions with fraction strips", top_k=5)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from standards_mcp.errors import FilterError
from standards_mcp.filters import FilterExpression

from .base import (
    Catalog,
    CatalogStats,
    Facets,
    FieldValues,
    PineconeAccess,
    SearchHit,
    SearchResult,
    StandardSets,
)
from .errors import CatalogError, CatalogUnavailableError
from .records import StandardRecord
from .sets import StandardSet

if TYPE_CHECKING:
    from .base import Seed
    from .local.catalog import LocalCatalog
    from .pinecone.client import PineconeClient


def open_catalog(
    path: Path | None = None,
    model: str = "minilm",
    access: PineconeAccess | None = None,
    *,
    key: SecretStr | None = None,
) -> Catalog:
    """Return the embedded catalog, or the one in Pinecone. Nothing is read before its first use.

    Args:
        path: The embedded catalog's folder; by default one in the user's data folder. A new one
            is filled with the starter set.
        model: Its text encoder, see `standards_mcp_encoders.spec`.
        access: The index to use in place of the embedded catalog.
        key: The key of the text encoder, where it needs one.

    Raises:
        ValueError: The host of the index is wrong.
    """
    if access is None:
        return open_local(path, model, key)
    client = open_pinecone(access)
    if not access.fallback:
        return client
    from .pinecone.client import FallbackCatalog  # noqa: PLC0415  - imported when it is chosen

    return FallbackCatalog(client, open_local(path, model, key))


def open_local(
    path: Path | None = None, model: str = "minilm", key: SecretStr | None = None
) -> LocalCatalog:
    """Return the embedded catalog; the arguments are those of `open_catalog`."""
    from .local.catalog import LocalCatalog  # noqa: PLC0415  - imported when it is chosen
    from .local.seeding import SeedSource  # noqa: PLC0415  - as above

    seed = SeedSource(name="starter set", edition=_starter_edition, load=_starter)
    return LocalCatalog(path or default_path(), model, key=key, seed=seed)


def open_pinecone(access: PineconeAccess) -> PineconeClient:
    """Return the client of an index, without a fallback. Nothing is sent before its first use.

    Raises:
        ValueError: The host of the index is wrong.
    """
    from .pinecone.client import PineconeClient  # noqa: PLC0415  - a store is imported when it is chosen

    return PineconeClient(
        access.api_key,
        index_name=access.index_name,
        namespace=access.namespace,
        host=access.host,
        deadline=access.deadline,
    )


def _starter_edition() -> str:
    from .starter import starter_edition  # noqa: PLC0415  - asked for with the first call

    return starter_edition()


def _starter() -> Seed:
    from .starter import starter_seed  # noqa: PLC0415  - read once in the life of a catalog

    return starter_seed()


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
    "PineconeAccess",
    "SearchHit",
    "SearchResult",
    "StandardRecord",
    "StandardSet",
    "StandardSets",
    "default_path",
    "open_catalog",
    "open_local",
    "open_pinecone",
]
