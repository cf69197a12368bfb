"""Which distributions the configuration lets plugins come from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .models.tools import first_match

_SEPARATORS: Final = re.compile(r"[-_.]+")


def canonical_name(distribution: str) -> str:
    """Return the one spelling that all spellings of a distribution's name share.

    https://packaging.python.org/en/latest/specifications/name-normalization/
    """
    return _SEPARATORS.sub("-", distribution).lower()


def is_trusted(distribution: str, patterns: Iterable[str]) -> bool:
    """Tell whether a glob matches a distribution, however either of them is spelt."""
    canonical = [canonical_name(pattern) for pattern in patterns]
    return bool(first_match((canonical_name(distribution),), canonical))
