"""The plugin: its tools, prompts, skills and commands."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import Final

import click

from standards_mcp import Plugin, Prompt, Skill, Tool, hookimpl
from standards_mcp_catalog import Catalog

from .checking.tool import check_prompts, check_tool
from .comparison.tool import comparison_prompt, comparison_tool
from .coverage.tool import coverage_prompt, coverage_tool

_SKILLS: Final = {
    "check-lesson-codes": ("check_alignment", "get_standard_details"),
    "review-unit": ("check_coverage", "get_standard_details"),
    "adopt-new-edition": ("compare_standards", "browse_standards", "get_standard_details"),
}
"""The skills, with the tools that each needs."""


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
        return [
            check_tool(lambda: self.catalog),
            coverage_tool(lambda: self.catalog),
            comparison_tool(lambda: self.catalog),
        ]

    @hookimpl
    def register_prompts(self) -> Iterable[Prompt]:
        """Return a prompt for each tool."""
        return [
            *check_prompts(),
            coverage_prompt(),
            comparison_prompt(),
        ]

    @hookimpl
    def register_skills(self) -> Iterable[Skill]:
        """Return the skills, which are served while their tools are."""
        folder = files("standards_mcp_alignment") / "skills"
        return [Skill(source=folder / name, needs=tools) for name, tools in _SKILLS.items()]

    @hookimpl
    def register_commands(self) -> Iterable[click.Command]:
        """Return the group ``standards-mcp alignment``."""
        from .checking.command import check_command
        from .comparison.command import comparison_command
        from .correlation import align_command
        from .coverage.command import coverage_command

        commands = [
            check_command,
            coverage_command,
            comparison_command,
            align_command(lambda: self.catalog),
        ]
        text = "Check lessons, units and editions against standards."
        return [click.Group("alignment", commands=commands, help=text)]
