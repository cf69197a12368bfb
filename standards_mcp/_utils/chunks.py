"""Limit and split iterables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")


def bounded(items: Iterable[_T], most: int) -> list[_T]:
    """Return the items of an iterable, which may be endless, as a list.

    Raises:
        ValueError: There are more than *most*.
    """
    first = list(islice(items, most + 1))
    if len(first) > most:
        raise ValueError(f"there are more than {most} items")
    return first


def chunks(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield *items* in lists of at most *size*, without reading ahead."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
