"""From bytes to text: which encoding a document has, and its lines one at a time.

UTF-8, Windows-1252 and UTF-16 with its byte order mark are read. Other encodings would come out as
nonsense, or by halves; they are refused by name.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Final, cast

from standards_mcp.catalog.importing.problems import SourceError

_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32: Final = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_SAMPLE: Final = 4_096
_MOST: Final = 0.6
_MEANT: Final = re.compile(r"[\u00a0-\u024f\u2010-\u22ff]")
# Where EBCDIC has letters, digits and the space, ASCII and UTF-8 have next to nothing.
_EBCDIC: Final = bytes(
    code for code in range(256) if (char := chr(code).encode("latin-1").decode("cp037")) == " "
    or (char.isascii() and char.isalnum())
)  # fmt: skip


def encoding_of(head: bytes) -> str:
    """Return how to decode a document that begins with *head*: ``utf-16`` or ``utf-8-sig``.

    Raises:
        SourceError: It has an encoding that is not read.
    """
    if head.startswith(_UTF16) and not head.startswith(_UTF32):
        return "utf-16"
    if name := _unread(head[:_SAMPLE]):
        raise SourceError(f"it is in {name}, which is not read; save it as UTF-8")
    return "utf-8-sig"


def decode(data: bytes) -> str:
    """Return *data* as text; what is not UTF-8 is taken for Windows-1252.

    Raises:
        SourceError: It has an encoding that is not read.
    """
    encoding = encoding_of(data)
    try:
        return data.decode(encoding, "replace" if encoding == "utf-16" else "strict")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


class Lines:
    """The lines of a stream with their ends, to be gone through once.

    A line that is not UTF-8 is taken for Windows-1252. Of one that is longer than *longest* come
    the first *longest* + 1 characters, and the rest is passed over.

    Attributes:
        has_windows: Whether there was a line in Windows-1252 so far.
    """

    def __init__(self, stream: io.BufferedReader, head: bytes, longest: int) -> None:
        encoding = encoding_of(head)
        errors = "replace" if encoding == "utf-16" else "surrogateescape"
        self._reader = io.TextIOWrapper(stream, encoding, errors, newline="")
        self._longest = longest
        self.has_windows = False

    def __iter__(self) -> Iterator[str]:
        try:
            while line := self._reader.readline(self._longest + 1):
                rest = line
                while len(rest) > self._longest and not rest.endswith("\n"):
                    rest = self._reader.readline(self._longest + 1)
                yield line if line.isascii() else self._mended(line)
        finally:
            with suppress(ValueError):  # somebody closed the stream
                self._reader.detach()  # else it would close the stream with itself

    def _mended(self, line: str) -> str:
        try:
            line.encode()
        except UnicodeEncodeError:
            self.has_windows = True
            return line.encode("utf-8", "surrogateescape").decode("cp1252", "replace")
        return line


def lines_of(stream: IO[bytes], longest: int) -> Lines:
    """Return the lines of *stream*, see `Lines`.

    Raises:
        SourceError: It has an encoding that is not read.
    """
    if not isinstance(stream, io.BufferedReader):
        stream = io.BufferedReader(cast("io.RawIOBase", stream))
    reader = cast("io.BufferedReader", stream)
    return Lines(reader, reader.peek(_SAMPLE), longest)


def _unread(head: bytes) -> str:
    if head.startswith(_UTF32) or _nul_places(head, 4) == 3:  # noqa: PLR2004
        return "UTF-32"
    if _nul_places(head, 2) == 1:
        return "UTF-16 without a byte order mark"
    if _is_utf7(head):
        return "UTF-7"
    return "EBCDIC" if _is_ebcdic(head) else ""


def _nul_places(head: bytes, width: int) -> int:
    """Return at how many places most of the characters of *width* bytes have NUL."""
    most = _MOST * (len(head) // width)
    return sum(head[place::width].count(0) > most > 1 for place in range(width))


def _is_utf7(head: bytes) -> bool:
    if head.startswith(b"+/v"):
        return True
    if b"+" not in head or not head.isascii():
        return False
    try:
        text = codecs.getincrementaldecoder("utf-7")().decode(head)
    except UnicodeDecodeError:
        return False
    # Sums such as "cat+dog" may be sound UTF-7 by chance, but then mean signs from elsewhere.
    signs = [char for char in text if not char.isascii()]
    return bool(signs) and all(_MEANT.match(sign) for sign in signs)


def _is_ebcdic(head: bytes) -> bool:
    if not head or b" " in head or b"\n" in head:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return len(head.translate(None, _EBCDIC)) < (1 - _MOST) * len(head)
    return False
