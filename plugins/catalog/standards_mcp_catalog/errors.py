"""The catalog's errors, which the host translates for clients as errors of a service.

* ServiceError
  x FilterError (in `standards_mcp.errors`)
  x CatalogError
    + UnknownGradeError (in `vocabulary.grades`)
    + JurisdictionNameError (in `vocabulary.names`)
    + SourceError (in `importing.report`)
    + StrictImportError (in `importing.importer`)
    + SnapshotError (in `snapshots.format`)
    + CatalogUnavailableError
"""

from __future__ import annotations

from standards_mcp.errors import ServiceError


class CatalogError(ServiceError):
    """Base class of the catalog's errors; each message names the remedy."""


class CatalogUnavailableError(CatalogError):
    """The store cannot be read: it is damaged, foreign, locked or out of reach."""
