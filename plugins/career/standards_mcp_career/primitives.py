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
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeAlias

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


def compact_json(value: object) -> str:
    """Return the canonical JSON of a value: sorted keys, no spaces, no ASCII escapes.

    Raises:
        ValueError: A number is not finite.
    """
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False
    )


def hash64(data: str | bytes) -> str:
    """Return the FNV-1a hash of 64 bits of bytes, or of a text's UTF-8, in hexadecimal digits."""
    value = _FNV_OFFSET
    for byte in data.encode() if isinstance(data, str) else data:
        value = (value ^ byte) * _FNV_PRIME & _MASK_64
    return f"{value:016x}"


def sha256(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8, as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


NewId: TypeAlias = Callable[[str], str]
"""A function that returns a new opaque id, which begins with a prefix and a dash."""
Clock: TypeAlias = Callable[[], str]
"""A function that returns the time in UTC, as 2026-01-01T00:00:00Z."""
# Each process begins at a random number, so that ids of two processes differ.
_NUMBERS: Final = itertools.count(secrets.randbelow(2**32))


def time_id(prefix: str) -> str:
    """Return an id that consists of a prefix, the time in microseconds and a number."""
    return f"{prefix}-{time.time_ns() // 1000}-{next(_NUMBERS)}"


def utc_now() -> str:
    """Return the current time."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
