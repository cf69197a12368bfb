"""Open the ranking of tools for `search_tools`; a package in the host's own wheel provides it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from standards_mcp._utils.entry_points import own_entry_points
from standards_mcp.contributions.tool_search import Scorer, shared_words

log = logging.getLogger(__name__)


def open_tool_ranking(definitions: Sequence[Mapping[str, Any]]) -> Scorer:
    """Return a function that scores tools for a query, by shared words if there is no package."""
    try:
        (point,) = own_entry_points("standards_mcp.tool_ranking").values()
        scorer: Scorer = point.load()(definitions)
    except Exception as exc:  # noqa: BLE001  - the search must work without the package
        log.warning("tools are ranked by shared words alone", extra={"reason": str(exc)})
        return shared_words(definitions)
    return scorer
