"""The rows of a table by their sets, on disk once they are many, so that memory stays small."""

from __future__ import annotations

import marshal
import tempfile
from collections.abc import Iterator
from typing import Any, Final, Self, TypeAlias

Row: TypeAlias = tuple[Any, ...]
"""Texts, and tuples of them."""
_TOGETHER: Final = 64
_IN_MEMORY: Final = 2**24


class RowStore:
    """The rows of each set, in the order in which they came. Only this process sees its file."""

    def __init__(self) -> None:
        self._file: Any = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  see __exit__
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._last: dict[str, list[Row]] = {}
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of the sets."""
        return iter(self._last)

    def add(self, set_id: str, row: Row) -> None:
        """Keep *row* as the last of its set. No other may be read before all are added."""
        self.count += 1
        last = self._last.setdefault(set_id, [])
        last.append(tuple(row))  # one with names cannot be written
        if len(last) == _TOGETHER:
            data = marshal.dumps(last)
            self._places.setdefault(set_id, []).append((self._file.tell(), len(data)))
            self._file.write(data)
            last.clear()

    def rows(self, set_id: str) -> Iterator[Row]:
        """Yield the rows of a set."""
        for place, size in self._places.get(set_id, ()):
            self._file.seek(place)
            yield from marshal.loads(self._file.read(size))  # noqa: S302  written above
        yield from self._last[set_id]
