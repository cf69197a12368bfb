"""The texts of a record for embedding, for search and for comparison."""

from __future__ import annotations

import hashlib
import re
import textwrap
import unicodedata
from collections.abc import Mapping
from typing import Any

_LINE_START = re.compile(r"^Depth \d+(?: \([^)\n]*\))?: ", re.MULTILINE)
# A code may hold brackets itself, as in 111.5(b)(3).
_LINE = re.compile(
    r"^Depth \d+(?: \((?P<code>.*?)\))?: (?P<text>.*(?:\n(?!Depth \d).*)*)", re.MULTILINE
)
_LONGEST_HEADING = 200
_NOT_A_WORD = re.compile(r"[\W_]+")


def text_hash(text: str) -> str:
    """Return the key of the vector of *text*: 32 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def without_surrogates(text: str) -> str:
    """Return *text* as text that UTF-8 can hold: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def passages(text: str, span: int = 800, kept: int = 400, most: int = 4) -> list[str]:
    """Return the passages of a query to embed: the beginnings of its parts.

    A text of more than *span* characters has several parts of about equal length, *most* at most;
    the first *kept* characters of each say enough about it, and a text model takes longer over
    every word.
    """
    count = min(-(-len(text) // span), most)
    parts = [text]
    if count > 1:
        parts = textwrap.wrap(text, -(-len(text) // count) + span // 20)[:count]
    return [part if len(part) <= kept else textwrap.wrap(part, kept)[0] for part in parts]


def ancestors_text(record: Mapping[str, Any]) -> str:
    """Return the descriptions of a record's ancestors, one a line, the root first.

    They are the part of ``content`` before the record's own description.
    """
    content, description = str(record["content"]), str(record.get("description") or "")
    before = content.removesuffix(description) if description else content
    return _LINE_START.sub("", before).strip()


def nearest_heading(content: str, description: str) -> tuple[str, str] | None:
    """Return code and text of the nearest heading with a code above a standard.

    Without any code above, it is the nearest heading with an empty code; a root has None. A long
    text is cut.
    """
    before = content.removesuffix(description) if description else content
    lines = [(each["code"] or "", each["text"]) for each in _LINE.finditer(before)]
    headings = lines[-2::-1]  # the last one is the standard itself
    found = next((each for each in headings if each[0]), headings[0] if headings else None)
    if found is None:
        return None
    return found[0], textwrap.shorten(found[1], _LONGEST_HEADING, placeholder=" ...")


def comparable(text: str) -> str:
    """Return *text* in a form that ignores case, marks and spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _NOT_A_WORD.sub(" ", folded).strip()
