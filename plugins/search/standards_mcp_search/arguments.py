"""What the arguments for the grade and the subject say before their values are read."""

from __future__ import annotations

from typing import TypeGuard

_ANY = ("any", "all", "*")


def is_given(value: str | None) -> TypeGuard[str]:
    """Whether an argument says anything; a blank one does not."""
    return bool(value and value.strip())


def limits(value: str | None) -> TypeGuard[str]:
    """Whether an argument limits the search; ``any`` only says that the text does not, either."""
    return is_given(value) and value.strip().casefold() not in _ANY
