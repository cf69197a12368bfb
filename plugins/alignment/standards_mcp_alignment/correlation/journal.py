"""The journal of a run: finished items, so that a killed run goes on where it ended."""

from __future__ import annotations

import json
from collections.abc import Collection, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

from standards_mcp.files import replacing

from .correlator import Correlation


class Journal:
    """Correlations by their keys, each a line of JSON in a file.

    A line is written as a whole as soon as its item is finished, so a kill loses at most the item
    that was being compared. The caller holds the lock of the output.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._entries: dict[str, Correlation] = {}

    @classmethod
    @contextmanager
    def opened(cls, path: Path | None) -> Generator[Self]:
        """Open a journal for one run; without a path, nothing is kept.

        Raises:
            OSError: The file cannot be read or written.
        """
        journal = cls(path)
        if path is None:
            yield journal
            return
        with path.open("a+b") as file:
            journal._load(file)
            journal._file = file
            yield journal
            journal._file = None

    def get(self, key: str) -> Correlation | None:
        """Return the correlation with this key, or None."""
        return self._entries.get(key)

    def add(self, key: str, correlation: Correlation) -> None:
        """Keep a correlation.

        Raises:
            OSError: The file cannot be written.
        """
        self._entries[key] = correlation
        if self._file is not None:
            self._file.write(_line(key, correlation))
            self._file.flush()

    def keep_only(self, keys: Collection[str]) -> None:
        """Remove the entries of earlier inputs and settings from the file of a finished run.

        Raises:
            OSError: The file cannot be written; it is unchanged.
        """
        if self._path is None or self._file is None or self._entries.keys() <= set(keys):
            return
        self._file.close()  # Windows does not replace an open file
        self._file = None
        with replacing(self._path) as file:
            for key in keys:
                file.write(_line(key, self._entries[key]).decode())

    def _load(self, file: IO[bytes]) -> None:
        file.seek(0)
        data = file.read()
        whole = data.rfind(b"\n") + 1
        file.truncate(whole)  # a killed run may have left a part of a line
        for line in data[:whole].splitlines():
            try:
                entry: Any = json.loads(line)
                self._entries[str(entry["key"])] = Correlation.from_dict(entry)
            except (ValueError, KeyError, TypeError):
                continue  # Skip a damaged line; its item is searched again.


def _line(key: str, correlation: Correlation) -> bytes:
    return json.dumps({"key": key, **correlation.to_dict()}).encode() + b"\n"
