"""What an embedded catalog holds, in numbers."""

from __future__ import annotations

from typing import Any

from standards_mcp.catalog.base import CatalogStats, Facets
from standards_mcp.catalog.errors import CatalogUnavailableError
from standards_mcp.catalog.vocabulary.grades import grade_order

from .database import Database
from .folder import CatalogFolder
from .index.manifest import current_folder, read_manifest


def stats_of(folder: CatalogFolder, database: Database, facets: Facets) -> CatalogStats:
    """Return what there is; an index that cannot be read is told in the details."""
    model, details = None, dict[str, Any]()
    try:
        manifest = read_manifest(current_folder(folder.index))
        model = manifest.model
        details["index"] = "current" if manifest.revision == database.revision else "outdated"
        details["indexed_records"] = manifest.records
    except CatalogUnavailableError as error:
        details["index"] = str(error)
    levels = facets.education_levels
    if changed := database.changed:
        details["changed"] = f"{changed:%Y-%m-%d %H:%M} UTC"
    details["jurisdictions"] = facets.jurisdictions
    details["subjects"] = facets.subjects
    details["education_levels"] = {
        level: levels[level] for level in sorted(levels, key=grade_order)
    }
    details["licenses"] = database.counts("license")
    return CatalogStats(
        backend="local", location=str(folder.path), records=database.count(), model=model,
        size_bytes=folder.size(), details=details,
    )  # fmt: skip
