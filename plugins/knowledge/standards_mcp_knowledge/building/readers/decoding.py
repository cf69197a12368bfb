"""From bytes to text."""

from __future__ import annotations

import codecs
from typing import Final

from standards_mcp_knowledge.building.document import DocumentError

_MARKS: Final = (
    # UTF-32's mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)


def decode(data: bytes, declared: str | None = None) -> str:
    """Return *data* as text: by its byte order mark, as declared, as UTF-8, else Windows-1252.

    Raises:
        DocumentError: It is no text.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\0" in data:
        raise DocumentError("is not text, or is UTF-16 without a mark; save it as UTF-8")
    for name in (declared or "utf-8", "utf-8"):
        try:
            return data.decode(name)
        except (LookupError, UnicodeError):
            continue
    return data.decode("cp1252", "replace")
