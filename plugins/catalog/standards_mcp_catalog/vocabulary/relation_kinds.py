"""The kinds of stated relations, see `standards_mcp_catalog.relations`."""

from __future__ import annotations

from typing import Final

KINDS: Final = (
    "exactMatchOf", "replacedBy", "replaces", "isPeerOf", "isTranslationOf", "isPartOf", "hasPart",
    "precedes", "follows", "isRelatedTo",
)  # fmt: skip
"""Every kind, the closest first."""
