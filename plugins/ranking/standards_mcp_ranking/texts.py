"""The texts of a tool's definition: its words by weight, and a short text for the encoder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

_NAME_WEIGHT: Final = 3.0
_TITLE_WEIGHT: Final = 2.0
_DESCRIPTION_WEIGHT: Final = 1.0
_ARGUMENT_WEIGHT: Final = 0.5
_MAX_SCHEMA_TEXTS: Final = 300
_BEGINNINGS: Final = (150, 300)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")
_ENDING: Final = re.compile(r"(?<=...)(ies|ing|ed|er|es|s|y|e)$")


def stems(text: str) -> list[str]:
    """Return the words of a text or a name without their endings, as "creat" for "createdAt"."""
    return [_ENDING.sub("", word.lower()) for word in _WORD.findall(text)]


def weighted_words(definition: Mapping[str, Any]) -> dict[str, float]:
    """Return the stems in a definition, with the sum of the weights of their places."""
    words = dict[str, float]()
    parts = [
        (_NAME_WEIGHT, definition["name"]),
        (_TITLE_WEIGHT, definition.get("title") or ""),
        (_DESCRIPTION_WEIGHT, definition.get("description") or ""),
        (_ARGUMENT_WEIGHT, " ".join(_schema_texts(definition["inputSchema"]))),
    ]
    for weight, text in parts:
        for word in stems(text):
            words[word] = words.get(word, 0.0) + weight
    return words


def meaning_texts(definition: Mapping[str, Any]) -> list[str]:
    """Return two texts for the encoder: name, title and a short or longer part of the description.

    The end of a long description often tells of other tools.
    """
    name = " ".join(_WORD.findall(definition["name"]))
    head = f"{name}. {definition.get('title') or ''}"
    description = (definition.get("description") or "").strip()
    return [f"{head} {description[:length]}" for length in _BEGINNINGS]


def _schema_texts(schema: object) -> Iterator[str]:
    """Yield the names of arguments at all levels, their descriptions and their choices."""
    unread, count = [schema], 0
    while unread and count < _MAX_SCHEMA_TEXTS:
        part = unread.pop()
        if isinstance(part, list):
            unread += cast("list[object]", part)
        elif isinstance(part, Mapping):
            fields = cast("Mapping[str, Any]", part)
            texts = [fields.get("description")]
            for key in ("properties", "enum"):  # the names of one, and the values of the other
                texts += list(fields[key]) if isinstance(fields.get(key), Mapping | list) else []
            own = [text for text in texts if isinstance(text, str)]
            count += len(own)
            yield from own
            unread += [value for key, value in fields.items() if key != "enum"]
