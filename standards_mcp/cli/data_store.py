"""The store behind the catalog, for commands that change what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from standards_mcp.catalog.record_store import RecordStore

    from .invocation import Invocation


def open_record_store(invocation: Invocation) -> RecordStore:
    """Return the store of the configured catalog.

    Raises:
        click.UsageError: This catalog cannot be written record by record.
    """
    from standards_mcp.catalog.record_store import RecordStore

    store = getattr(invocation.host.catalog, "store", None)
    if not isinstance(store, RecordStore):
        raise click.UsageError(
            'only the embedded catalog does this; set [catalog] backend = "local"'
        )
    return store
