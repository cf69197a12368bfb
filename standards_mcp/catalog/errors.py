"""The catalog's exception hierarchy.

* CatalogError
  x FilterError
  x UnknownGradeError (in `grades`)
  x UnknownModelError (in `embedding`)
  x CatalogUnavailableError
"""

from __future__ import annotations


class CatalogError(Exception):
    """Base class of what the catalog refuses; the message says what to do next."""


class FilterError(CatalogError):
    """A filter expression has an unknown operator or an operand of a wrong type."""


class CatalogUnavailableError(CatalogError):
    """The store cannot be read: damaged, foreign, locked or out of reach."""
