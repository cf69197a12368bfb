"""The plugin: its tools."""

from __future__ import annotations

from standards_mcp import Plugin
from standards_mcp_catalog import Catalog


class AlignmentPlugin(Plugin):
    """Checks lessons, units and editions against the standards of the catalog."""

    title = "Alignment with standards"
    uses = (Catalog,)

    @property
    def catalog(self) -> Catalog:
        """The standards to check against."""
        return self.context.service(Catalog)
