"""From the code of a standard to its place in its framework."""

from __future__ import annotations

from . import c3, common_core, csta, ngss
from .frameworks import Place


def place(notation: str) -> Place:
    """Return where a code stands.

    Raises:
        ValueError: It is not a code of the frameworks in the starter set.
    """
    for find in (common_core.place, ngss.place, csta.place, c3.place):
        if found := find(notation):
            return found
    raise ValueError(f"{notation!r} is not a code of a framework in the starter set")
