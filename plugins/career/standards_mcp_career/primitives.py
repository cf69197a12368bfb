"""Normalisation, hashes, ids and times.

Only ASCII letters change case and form words here, so that all systems compute the same hashes.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import secrets
import string
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TypeAlias, cast

from .language.clauses import surface_words

Split: TypeAlias = Callable[[str], Iterable[str]]

_WORD: Final = re.compile("[A-Za-z0-9]+")
_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_FNV_OFFSET: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_MASK_64: Final = 2**64 - 1


def lower(text: str) -> str:
    """Return a text with A to Z in lower case."""
    return text.translate(_LOWER)


def trim(text: str) -> str:
    """Return a text without spaces, tabs, line feeds and carriage returns around it."""
    return text.strip(" \t\n\r")


def tokens(text: str) -> list[str]:
    """Return the words of two characters or more of a text in order.

    Every character but ASCII letters and digits separates words.
    """
    return [word for word in _WORD.findall(lower(text)) if len(word) > 1]


def words_by(setting: str) -> Split:
    """Return the function that splits tags into words, by the setting ``tokens``."""
    return tokens if setting == "original" else surface_words


def tags(names: Iterable[str], words: Split) -> tuple[str, ...]:
    """Return the words of all tags, sorted, each once."""
    return tuple(sorted({word for tag in names for word in words(tag)}))


def listed(stored: str) -> tuple[str, ...]:
    """Return the texts of a JSON list. Other content, as of other programs, becomes one text."""
    try:
        texts: Any = json.loads(stored)
        "".join(texts).encode()  # raises for other values and for lone surrogates
    except (TypeError, ValueError, RecursionError):
        texts = None
    return tuple(cast("list[str]", texts)) if isinstance(texts, list) else (stored,)


def hash64(data: str | bytes) -> str:
    """Return the FNV-1a hash of 64 bits of bytes, or of a text's UTF-8, in hexadecimal digits."""
    value = _FNV_OFFSET
    for byte in data.encode() if isinstance(data, str) else data:
        value = (value ^ byte) * _FNV_PRIME & _MASK_64
    return f"{value:016x}"


def sha256(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8, as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


Clock: TypeAlias = Callable[[], str]
"""A function that returns the time in UTC, as 2026-01-01T00:00:00Z."""
_STARTS: Final = 2**32


class Ids(Protocol):
    """A generator of opaque ids."""

    def new(self, prefix: str) -> str:
        """Return a new id that begins with the prefix and a dash."""
        ...


class TimeIds:
    """Ids made of the time in microseconds and a number.

    Each process begins at a random number, so that ids of one microsecond differ.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(secrets.randbelow(_STARTS))

    def new(self, prefix: str) -> str:
        """See `Ids.new`."""
        return f"{prefix}-{time.time_ns() // 1000}-{next(self._numbers)}"


class CountingIds:
    """Ids from one counter for all prefixes, 0, 1, 2: the same in each run."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def new(self, prefix: str) -> str:
        """See `Ids.new`."""
        return f"{prefix}-{next(self._numbers)}"


def utc_now() -> str:
    """Return the current time."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
