"""Accept arguments in the forms in which models send them."""

from __future__ import annotations

from typing import cast


def as_text(value: object) -> object:
    """Return ["3.NF.1", 4] as "3.NF.1, 4": models send grades as numbers, and codes as lists."""
    if isinstance(value, list):
        written = [as_text(each) for each in cast("list[object]", value)]
        texts = [each for each in written if isinstance(each, str)]
        return ", ".join(texts) if len(texts) == len(written) else written
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def as_list(value: object) -> object:
    """Return a text as a list of this text: models send a single entry without a list, too."""
    return [value] if isinstance(value, str) else value
