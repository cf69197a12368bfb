"""Tell empty, unlimited and limiting values of the arguments `grade` and `subject` apart."""

from __future__ import annotations

from typing import TypeGuard

_ANY = ("any", "all", "*")


def is_given(value: str | None) -> TypeGuard[str]:
    """Return True if an argument has a value that is not blank."""
    return bool(value and value.strip())


def is_limiting(value: str | None) -> TypeGuard[str]:
    """Return True if an argument limits the search. ``any`` turns off limits, in the text, too."""
    return is_given(value) and value.strip().casefold() not in _ANY
