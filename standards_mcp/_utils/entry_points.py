"""Find the entry points of the host's own wheel and of the service, which fill its seams."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

OWN: Final = ("standards-mcp", "standards-mcp-service")
"""The distributions that are parts of the program."""


def own_entry_points(group: str) -> dict[str, Any]:
    """Return the entry points of the program's own distributions in a group, by name.

    No configuration is needed to find these, so their commands run even if it is invalid.
    """
    from importlib import metadata  # noqa: PLC0415  - most commands start without it

    points: dict[str, Any] = {}
    for name in OWN:
        with suppress(metadata.PackageNotFoundError):
            selected: Any = metadata.distribution(name).entry_points.select(group=group)
            points |= {point.name: point for point in selected}
    return points
