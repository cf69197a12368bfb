"""Write log lines of searches, without secrets."""

from __future__ import annotations

import logging
import re
from time import perf_counter
from typing import Final

SEARCH_TOOL: Final = "knowledge.search"
_LONGEST: Final = 100
_LONGEST_ID: Final = 64
_READ: Final = 2000
"""Characters of a query that are searched for secrets: a refused one may have millions."""
_SECRETS: Final = re.compile(
    r"""
    (?<![^\W_])(?:sk|pk|pcsk|ghp|gho|ghs|github_pat|xox[a-z])[-_][\w-]+   # keys of known services
    | (?<=key=)\S+ | (?<=token=)\S+ | (?<=password=)\S+
    | [A-Za-z0-9+/_=-]{32,}                                    # long hex or base64
    """,
    re.VERBOSE | re.IGNORECASE,
)


def loggable(query: object) -> str:
    """Return the beginning of a query on one line, with likely secrets as ``***``.

    A query that is not a text becomes the name of its type, a missing one an empty text.
    """
    if query is None:
        return ""
    text = query if isinstance(query, str) else f"({type(query).__name__})"
    line = "".join(char if char.isprintable() else " " for char in text[:_READ])
    return _SECRETS.sub("***", line)[:_LONGEST]


def log_search(
    log: logging.Logger, dataset: object, query: object, *, began: float, outcome: str, count: int
) -> float:
    """Write the line of one search, and return its duration in milliseconds.

    Args:
        dataset: The unchecked argument of the client, as is the query.
        began: The value of `perf_counter` at its beginning.
        outcome: ``ok``, ``cancelled``, or the type of the error.
        count: Number of results.
    """
    is_id = isinstance(dataset, str) and len(dataset) <= _LONGEST_ID
    milliseconds = round((perf_counter() - began) * 1000, 1)
    log.info(
        "knowledge search",
        extra={
            "tool": SEARCH_TOOL,
            "dataset": dataset if is_id else loggable(dataset),
            "query": loggable(query),
            "result_count": count,
            "duration_ms": milliseconds,
            "outcome": outcome,
        },
    )
    return milliseconds
