"""The commands of ``standards-mcp career``."""

from __future__ import annotations

import click

from standards_mcp_career.settings import CareerSettings

from . import jobs, records, trying


def commands(settings: CareerSettings) -> list[click.Command]:
    """Return the commands."""
    return [
        trying.try_command(settings),
        trying.draft_command(settings),
        *records.commands(settings),
        *jobs.commands(settings),
    ]
