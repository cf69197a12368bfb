"""The commands of ``standards-mcp career``."""

from __future__ import annotations

import click

from standards_mcp_career.settings import CareerSettings

from . import audit, matching, records, trying
from . import matching as ingesting


def commands(settings: CareerSettings) -> list[click.Command]:
    """Return the commands."""
    return [
        trying.try_command(settings),
        trying.draft_command(settings),
        records.import_command(settings),
        records.list_command(settings),
        records.show_command(settings),
        records.migrate_command(settings),
        ingesting.ingest_command(settings),
        matching.index,
        matching.match_command(settings),
        matching.validate_command(settings),
        audit.audit_group(settings),
    ]
