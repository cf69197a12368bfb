"""Find the entry points of the host's own wheel, which has the packages that fill its seams."""

from __future__ import annotations

from typing import Any


def own_entry_points(group: str) -> dict[str, Any]:
    """Return the entry points of the host's own wheel in a group, by name.

    No configuration is needed to find these, so their commands run even if it is invalid.
    """
    from importlib import metadata  # noqa: PLC0415  - most commands start without it

    points: Any = metadata.distribution("standards-mcp").entry_points
    return {point.name: point for point in points.select(group=group)}
