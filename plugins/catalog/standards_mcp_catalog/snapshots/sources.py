"""Where `data pull` reads a snapshot: a folder, or an address."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from standards_mcp import is_unencrypted
from standards_mcp_catalog.importing.report import SourceError
from standards_mcp_catalog.importing.web import Web

from .format import SnapshotError

Source: TypeAlias = Callable[[str, int], bytes]
"""Returns the content of a file, by its name and the most bytes that it may have.

Raises a `SnapshotError` if the file is missing, larger, or cannot be read.
"""
_MISSING: Final = "if it was published a moment ago, run `standards-mcp data pull` again"


def open_source(text: str, web: Web | None = None) -> Source:
    """Return the source that *text* names: an address, or the path of a folder.

    Args:
        web: The HTTP client; it must refuse redirects to other hosts.

    Raises:
        SnapshotError: The address has another scheme than https, except http on this machine, or
            it has a password.
    """
    if "://" not in text:
        return partial(_read_file, Path(text).expanduser())
    try:
        scheme, is_open = urlsplit(text).scheme, is_unencrypted(text)
    except ValueError as error:
        raise SnapshotError(f"{text!r} is not an address: {error}") from None
    if "@" in urlsplit(text).netloc:
        raise SnapshotError("an address here has no user name and no password in it")
    if is_open or scheme not in ("http", "https"):
        raise SnapshotError(f"{text}: use https; http is for addresses of this machine only")
    return partial(_download, web or Web(other_hosts=False), text.rstrip("/"))


def _read_file(folder: Path, name: str, largest: int) -> bytes:
    path = folder / name
    try:
        if not path.is_file():  # a pipe would wait for ever
            raise SnapshotError(f"{path} is missing; {_MISSING}")
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except OSError as error:
        raise SnapshotError(f"{path} cannot be read: {error}") from error
    if len(data) > largest:
        raise SnapshotError(f"{path} is larger than {largest:,} bytes")
    return data


def _download(web: Web, base: str, name: str, largest: int) -> bytes:
    address = f"{base}/{name}"
    try:
        with web.download(address, largest) as file:
            return file.read()
    except SourceError as error:
        raise SnapshotError(f"{address}: {error}") from error
