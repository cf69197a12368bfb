"""Split iterables into lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")


def chunks(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield *items* in lists of at most *size*; take no more of them than it yields."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
