"""The plugin: its tools and its command."""

from __future__ import annotations

from collections.abc import Iterable

import click

from standards_mcp import Plugin, hookimpl
from standards_mcp_catalog import Catalog


class AlignmentPlugin(Plugin):
    """Checks lessons, units and editions against the standards of the catalog."""

    title = "Alignment with standards"
    uses = (Catalog,)

    @property
    def catalog(self) -> Catalog:
        """The standards to check against."""
        return self.context.service(Catalog)

    @hookimpl
    def register_commands(self) -> Iterable[click.Command]:
        """Return ``standards-mcp alignment align``."""
        from .correlation import align_command  # noqa: PLC0415  - costs start-up time

        return [align_command(lambda: self.catalog)]
