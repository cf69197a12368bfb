"""Collects the uses of deprecated parts of the plugin API."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager

from standards_mcp.errors import PluginDeprecationWarning


@contextmanager
def noted(uses: list[str]) -> Generator[None]:
    """Add each deprecation warning of the body to *uses* once; other warnings pass."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PluginDeprecationWarning)
        try:
            yield
        finally:
            found = list(caught)
    for item in found:
        if issubclass(item.category, PluginDeprecationWarning):
            uses += [text for text in (str(item.message),) if text not in uses]
        else:
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)
