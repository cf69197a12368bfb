"""Events as JSON Lines: one object a line, with the payload as the text that was hashed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Final

from pydantic import TypeAdapter, ValidationError

from standards_mcp import InvalidInputError

from .chain import Event, compact

_EVENT: Final = TypeAdapter(Event)


def line_of(event: Event) -> str:
    """Return an event as a line, without its end."""
    return compact(asdict(event))


def read_lines(lines: Iterable[bytes]) -> Iterator[Event]:
    """Return the events of an export.

    Raises:
        InvalidInputError: A line is none of an export.
    """
    for number, line in enumerate(lines, 1):
        try:
            yield _EVENT.validate_json(line, strict=True)
        except ValidationError as error:
            raise InvalidInputError(f"Line {number} is no event of an export.") from error
