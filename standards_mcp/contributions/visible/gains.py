"""What other settings serve beyond those before."""

from __future__ import annotations

from collections.abc import Iterable

from standards_mcp.config.models.settings import Settings
from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.collection import Contributions

from .selection import select, visible


def gained(contributions: Contributions, before: Settings, after: Settings) -> list[str]:
    """Return the tools and prompts that are served with *after* and not with *before*."""
    then, now = (select(contributions, each) for each in (before, after))
    return [
        *_added(then.tools, now.tools),
        *(f"the prompt {name}" for name in _added(then.prompts, now.prompts)),
    ]


def _added(before: Iterable[Contribution], after: Iterable[Contribution]) -> list[str]:
    known = {(item.plugin, item.declared) for item in visible(before)}
    return [item.published for item in visible(after) if (item.plugin, item.declared) not in known]
