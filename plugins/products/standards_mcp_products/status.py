"""Which products there are."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime

from typing_extensions import TypedDict

from .service import Catalogue
from .store import NotBuiltError


class Status(TypedDict):
    """Which products there are. What no build of this state folder has told is null."""

    store: str
    collection: str
    products: int | None
    active: str | None
    model: str | None
    source: str | None
    built: str | None


def status(catalogue: Catalogue) -> Status:
    """Return how the products are; without any, their number is None.

    Raises:
        ApiError: The store fails.
    """
    with closing(catalogue.store()) as store:
        try:
            count = store.ask(lambda all_: all_.count())
        except NotBuiltError:
            count = None
    active = catalogue.file.read()
    built = datetime.fromtimestamp(active.built, UTC) if active else None
    return {
        "store": catalogue.place.key,
        "collection": catalogue.name,
        "products": count,
        "active": active.collection if active else None,
        "model": active.model if active else None,
        "source": active.source if active else None,
        "built": built.isoformat(timespec="seconds") if built else None,
    }
