"""What a reader could not take as it stands: told, counted, and never a reason to stop."""

from __future__ import annotations

from dataclasses import dataclass

from standards_mcp._utils.text import printable
from standards_mcp.catalog.errors import CatalogError


class SourceError(CatalogError):
    """A document or an address cannot be read at all; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a document that was left out, or that had to be put right.

    Attributes:
        reason: A short phrase that is the same for all problems of a kind; reports count by it.
        source: The name of the document.
        where: The line or the id inside the document.
        detail: What exactly was found.
        skipped: Whether something was left out; otherwise it was read after all.
        records: How many records were left out, as far as that is known.
    """

    reason: str
    source: str
    where: str = ""
    detail: str = ""
    skipped: bool = True
    records: int = 0

    def __str__(self) -> str:
        """Return the problem on one line that a terminal can show."""
        place = f"{self.source}: {self.where}" if self.where else self.source
        text = f"{place}: {self.reason}" + (f" ({self.detail})" if self.detail else "")
        return printable(" ".join(text.split()).encode("utf-8", "replace").decode())


def note(reason: str, source: str, where: str = "", detail: str = "") -> Problem:
    """Return a problem that cost nothing."""
    return Problem(reason=reason, source=source, where=where, detail=detail, skipped=False)


def lost(reason: str, source: str, where: str = "", detail: str = "", records: int = 1) -> Problem:
    """Return a problem that cost *records* records."""
    return Problem(reason=reason, source=source, where=where, detail=detail, records=records)
