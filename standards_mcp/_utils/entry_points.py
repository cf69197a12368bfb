"""Find the entry points of the program's own distributions, which fill its seams."""

from __future__ import annotations

from contextlib import suppress
from typing import Any


def own_entry_points(group: str) -> dict[str, Any]:
    """Return the entry points in a group of the host's wheel and of the service, by name.

    No configuration is needed to find these, so their commands run even if it is invalid.
    """
    from importlib import metadata  # noqa: PLC0415  - most commands start without it

    from .installation import OWN  # noqa: PLC0415  - as above

    points: dict[str, Any] = {}
    for distribution in OWN:
        with suppress(metadata.PackageNotFoundError):
            selected: Any = metadata.distribution(distribution).entry_points
            points |= {point.name: point for point in selected.select(group=group)}
    return points
