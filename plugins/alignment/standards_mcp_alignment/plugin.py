"""The plugin: its tools."""

from __future__ import annotations

from collections.abc import Iterable

import click

from standards_mcp import Plugin, Prompt, Tool, hookimpl
from standards_mcp_catalog import Catalog

from .checking.command import check_command
from .checking.tool import check_prompts, check_tool


class AlignmentPlugin(Plugin):
    """Checks lessons, units and editions against the standards of the catalog."""

    title = "Alignment with standards"
    needs = (Catalog,)

    @property
    def catalog(self) -> Catalog:
        """The standards to check against."""
        return self.context.service(Catalog)

    @hookimpl
    def register_tools(self) -> Iterable[Tool]:
        """Return the tools."""
        return [check_tool(lambda: self.catalog)]

    @hookimpl
    def register_prompts(self) -> Iterable[Prompt]:
        """Return the prompts."""
        return [*check_prompts()]

    @hookimpl
    def register_commands(self) -> Iterable[click.Command]:
        """Return the commands of ``standards-mcp alignment``."""
        return [check_command]
