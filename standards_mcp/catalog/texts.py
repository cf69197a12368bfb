"""The texts of a record: what is embedded, what is searched, and when two are equal."""

from __future__ import annotations

import hashlib
import re
import textwrap
import unicodedata
from collections.abc import Mapping
from typing import Any

_LINE_START = re.compile(r"^Depth \d+(?: \([^)\n]*\))?: ", re.MULTILINE)
_NOT_A_WORD = re.compile(r"[\W_]+")


def text_hash(text: str) -> str:
    """Return the key under which the vector of *text* is kept: 32 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def without_surrogates(text: str) -> str:
    """Return *text* as text that UTF-8 can hold: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def passages(text: str, length: int = 800) -> list[str]:
    """Return *text* in pieces of about equal length, at most about *length* characters each."""
    count = -(-len(text) // length)
    if count <= 1:
        return [text]
    return textwrap.wrap(text, -(-len(text) // count) + length // 20) or [text]


def ancestors_text(record: Mapping[str, Any]) -> str:
    """Return the descriptions of a record's ancestors, one a line, the root first.

    They are what ``content`` says before the record's own description.
    """
    content, description = str(record["content"]), str(record.get("description") or "")
    before = content.removesuffix(description) if description else content
    return _LINE_START.sub("", before).strip()


def comparable(text: str) -> str:
    """Return *text* such that it equals another's when only case, marks or spaces differ."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _NOT_A_WORD.sub(" ", folded).strip()
