"""Say the sentences of an answer in the language of the question.

The search says everything in English. A table has the English sentences, with names in braces for
their variable parts, and the same sentences in the other language. A line in small letters is the
pattern of a term inside of variable parts; ``{text}`` and commands stay as they are. A sentence
without a line stays English.
"""

from __future__ import annotations

import csv
import re
from functools import cache, partial
from importlib.resources import files
from typing import Final

_VARIABLE: Final = re.compile(r"\\{(\w+)\\}")


def message_in(language: str, message: str) -> str:
    """Return an English *message* in a language of `translation.TABLES`."""
    sentences, terms = _table(language)
    for pattern, template in sentences:
        message = pattern.sub(partial(_filled, template, terms), message)
    return message


_Lines = list[tuple[re.Pattern[str], str]]


@cache
def _table(language: str) -> tuple[_Lines, _Lines]:
    """Return the sentences and the terms of a language."""
    folder = files(__package__ or __name__) / language.casefold()
    rows = list(csv.reader((folder / "sentences.csv").read_text("utf-8").splitlines()))[1:]
    sentences = [(_pattern(english), own) for english, own in rows if not english[0].islower()]
    terms = [
        (re.compile(rf"(?<![\w.-]){english}(?![\w-])", re.IGNORECASE), own)
        for english, own in rows
        if english[0].islower()
    ]
    return sentences, terms


def _pattern(sentence: str) -> re.Pattern[str]:
    """Return the pattern of a sentence; each variable is as short as the text after it allows."""
    return re.compile(_VARIABLE.sub(r"(?P<\1>.+?)", re.escape(sentence)) + r"(?=\s|$)")


def _filled(template: str, terms: _Lines, match: re.Match[str]) -> str:
    values = match.groupdict()
    for pattern, own in terms:
        values = {
            name: value if name == "text" or "`" in value else pattern.sub(own, value)
            for name, value in values.items()
        }
    return template.format_map(values)
