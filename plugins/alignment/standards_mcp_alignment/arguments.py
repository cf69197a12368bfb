"""Accept arguments in the forms in which models send them."""

from __future__ import annotations


def as_text(value: object) -> object:
    """Return 3 as "3": models send grades as numbers, too."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def as_list(value: object) -> object:
    """Return a text as a list of this text: models send a single entry without a list, too."""
    return [value] if isinstance(value, str) else value
