"""Read one file as items, by its suffix."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from stat import S_ISREG
from typing import IO, Final, Self

from standards_mcp_alignment.provenance import digest_of_file
from standards_mcp_documents import KINDS, DocumentError, DocumentReader

from .archives import Archive
from .documents import Split, document_items
from .finding import ARCHIVES, SUFFIXES, TABLES, shown_name
from .items import InputError, InputFile, Item, SkippedFile
from .packages import package_items
from .qti import qti_items
from .tables import csv_items, json_items
from .xml_parser import parse_xml

_MEGABYTE: Final = 1_000_000
_LARGEST: Final = {
    **dict.fromkeys(SUFFIXES, 10 * _MEGABYTE),
    **dict.fromkeys((".pdf", ".docx"), 100 * _MEGABYTE),
    **dict.fromkeys(TABLES, 20 * _MEGABYTE),
    **dict.fromkeys(ARCHIVES, 1000 * _MEGABYTE),
}
"""The largest size of a file in bytes by suffix. Of an archive, only the needed parts are read."""


class ItemReader:
    """Reads files as items. Use it as a context manager, so that its process ends.

    Args:
        split: ``file`` for one item a document, ``section`` for one a heading.
    """

    def __init__(self, split: Split = "file") -> None:
        self._split: Split = split
        self._stack = ExitStack()
        self._documents = self._stack.enter_context(DocumentReader())

    def __enter__(self) -> Self:
        """Return the reader."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process that reads documents."""
        self._stack.close()

    def read(self, path: Path) -> InputFile | SkippedFile:
        """Return the items of a file, or the reason why it cannot be read."""
        name = shown_name(path)
        try:
            with _opened(path) as file:
                digest = digest_of_file(file)
                items, skipped = self._items(name, path.suffix.lower(), file)
        except (DocumentError, InputError) as error:
            return SkippedFile(name, str(error))
        except OSError as error:
            return SkippedFile(name, f"it cannot be read: {error.strerror or error}")
        except RecursionError:
            return SkippedFile(name, "its elements are nested too deep")
        if not items and not skipped:
            return SkippedFile(name, "it has no lessons or items")
        return InputFile(name, digest, tuple(items), tuple(skipped))

    def _items(
        self, name: str, suffix: str, file: IO[bytes]
    ) -> tuple[list[Item], list[SkippedFile]]:
        if suffix in ARCHIVES:
            return package_items(name, Archive(file), self._documents)
        data = file.read()
        if suffix in KINDS:
            return document_items(name, self._documents.parse(data, suffix), self._split), []
        if suffix == ".csv":
            return csv_items(name, data), []
        if suffix in TABLES:
            return json_items(name, data, is_lines=suffix == ".jsonl"), []
        return qti_items(name, parse_xml(data)), []


def _opened(path: Path) -> IO[bytes]:
    """Open a file of a type and size that can be read.

    Raises:
        InputError: The file has another type or is too large.
        OSError: The file cannot be opened.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"it has none of these suffixes: {', '.join(SUFFIXES)}")
    state = path.stat()
    if not S_ISREG(state.st_mode):  # a pipe would make its reader wait
        raise InputError("it is not a file")
    if state.st_size > _LARGEST[suffix]:
        raise InputError(f"it is larger than {_LARGEST[suffix] // _MEGABYTE} MB; split it")
    return path.open("rb")
