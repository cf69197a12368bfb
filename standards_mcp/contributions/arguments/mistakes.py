"""Says in short sentences what is wrong with arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from standards_mcp._utils.text import did_you_mean
from standards_mcp.errors import InvalidInputError

_MAX_SENTENCES: Final = 5
_MAX_SENTENCE: Final = 500


def refuse_unknown(arguments: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse arguments that are not among *known*.

    Raises:
        InvalidInputError: One is unknown; the message suggests the nearest known one.
    """
    names = tuple(known)
    for name in arguments:
        if name not in names:
            expected = ", ".join(names) or "none"
            hint = did_you_mean(name, names) or f"; known: {expected}"
            raise InvalidInputError(f"{short(name)}: unknown argument{hint}")


def schema_errors(validator: Any, arguments: Mapping[str, Any]) -> str:
    """Return what a JSON Schema validator finds wrong in *arguments*, or an empty string."""
    return sentences(
        (error.path or ("arguments",), error.message.replace(repr(error.instance), "the value"))
        for error in validator.iter_errors(arguments)
    )


def sentences(mistakes: Iterable[tuple[Iterable[Any], str]]) -> str:
    """Return the first few mistakes, each with the path of its value, or an empty string."""
    first = list(islice(mistakes, _MAX_SENTENCES + 1))
    shown = [
        short(f"{'.'.join(map(str, path))}: {message}") for path, message in first[:_MAX_SENTENCES]
    ]
    return "; ".join([*shown, "and more"] if len(first) > _MAX_SENTENCES else shown)


def short(text: str) -> str:
    """Return *text* without what makes it too long for a sentence."""
    return text if len(text) <= _MAX_SENTENCE else f"{text[:_MAX_SENTENCE]} ..."


def plain(kind: str, message: str) -> str:
    """Return what pydantic says about a value in plainer words.

    Args:
        kind: The type of the error, as pydantic calls it.
    """
    if kind == "missing":
        return "this argument is required"
    message = message.removeprefix("Value error, ").removeprefix("Input ").split(", unable")[0]
    return message[:1].lower() + message[1:]
