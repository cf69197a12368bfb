"""The commands of ``standards-mcp knowledge``. `work` is a build's heavy part, in workers."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from standards_mcp_knowledge.settings import KnowledgeSettings

from . import asking, building, checking


def commands(settings: KnowledgeSettings, state: Path, log: logging.Logger) -> list[click.Command]:
    """Return the commands.

    Args:
        state: The plugin's state folder.
    """
    root, tried = settings.root_in(state), state / "tried"
    return [
        building.try_command(settings, root, tried, log),
        building.build_command(settings, root, tried, log),
        checking.check_command(settings, root, log),
        checking.schema,
        asking.list_datasets,
        asking.search,
    ]
