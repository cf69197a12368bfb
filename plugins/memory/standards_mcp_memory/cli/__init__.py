"""The commands of ``standards-mcp memory``."""

from __future__ import annotations

from pathlib import Path

import click

from standards_mcp_memory.settings import MemorySettings

from . import changing, importing, reading, trying
from .work import Place


def commands(settings: MemorySettings, state_dir: Path) -> list[click.Command]:
    """Return the commands."""
    place = Place(settings, state_dir)
    return [
        trying.try_command(place),
        importing.import_command(place),
        importing.export_command(place),
        reading.list_command(place),
        reading.show_command(place),
        reading.search_command(place),
        changing.delete_command(place),
        changing.reembed_command(place),
    ]
