"""Takes what would be too much at once in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")


def bounded(items: Iterable[_T], most: int) -> list[_T]:
    """Return *items*, which may have no end.

    Raises:
        ValueError: There are more than *most*.
    """
    found = list(islice(items, most + 1))
    if len(found) > most:
        raise ValueError(f"there are more than {most} items")
    return found


def chunks(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield *items* in lists of at most *size*; takes no more of them than it yields."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
