"""The plugin: its skills."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from standards_mcp import Plugin, Skill, hookimpl


class GuidesPlugin(Plugin):
    """Contributes two skills, whose steps are commands of the host."""

    title = "Guides"

    @hookimpl
    def register_skills(self) -> Iterable[Skill]:
        """Return the skills."""
        folder = files("standards_mcp_guides") / "skills"
        return [Skill(source=folder / name) for name in ("write-a-plugin", "operate-this-service")]
