"""What every search asks of a query, whichever store answers it."""

from __future__ import annotations

from typing import Final

from .errors import CatalogError

MAX_QUERY_CHARACTERS: Final = 8000


def check_query(text: str, top_k: int) -> None:
    """Refuse what no search accepts.

    Raises:
        CatalogError: The text is too long, or no result is asked for.
    """
    if len(text) > MAX_QUERY_CHARACTERS:
        raise CatalogError(
            f"the text has {len(text):,} characters and at most {MAX_QUERY_CHARACTERS:,} are "
            "searched; shorten it to what students do"
        )
    if top_k < 1:
        raise CatalogError(f"top_k is {top_k}; ask for at least 1 result")
