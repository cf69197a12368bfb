"""The commands of ``standards-mcp products``."""

from __future__ import annotations

from pathlib import Path

import click

from standards_mcp_products.settings import ProductsSettings

from . import asking, building, trying


def commands(settings: ProductsSettings, state_dir: Path) -> list[click.Command]:
    """Return the commands.

    Args:
        state_dir: The plugin's state folder.
    """
    return [
        trying.try_command(settings, state_dir),
        building.build_command(settings, state_dir),
        asking.status_command(settings, state_dir),
        asking.search_command,
    ]
