"""The commands of ``standards-mcp career``."""

from __future__ import annotations

import click

from standards_mcp_career.settings import CareerSettings

from . import audit, ingesting, records


def commands(settings: CareerSettings) -> list[click.Command]:
    """Return the commands."""
    return [
        records.import_command(settings),
        records.list_command(settings),
        records.show_command(settings),
        records.migrate_command(settings),
        ingesting.ingest,
        audit.audit_group(settings),
    ]
