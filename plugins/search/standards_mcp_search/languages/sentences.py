"""Say the sentences of an answer in the language of the question.

The search says everything in English. A table has the English sentences, with names in braces for
their variable parts, and the same sentences in the other language. A line in small letters is a
term, which is translated inside of variable parts. What has no line stays English.
"""

from __future__ import annotations

import csv
import re
from functools import cache
from importlib.resources import files
from typing import Final

_VARIABLE: Final = re.compile(r"\\{(\w+)\\}")


def message_in(language: str, message: str) -> str:
    """Return an English *message* in a language of `translation.TABLES`."""
    sentences, terms = _table(language)
    for pattern, template in sentences:
        message = pattern.sub(lambda match, template=template: _filled(template, match, terms), message)
    return message


_Lines = list[tuple[re.Pattern[str], str]]


@cache
def _table(language: str) -> tuple[_Lines, _Lines]:
    """Return the sentences and the terms of a language."""
    folder = files(__package__ or __name__) / language.casefold()
    with (folder / "sentences.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    sentences = [(_pattern(english), own) for english, own in rows if not english[0].islower()]
    terms = [(re.compile(rf"\b{english}\b"), own) for english, own in rows if english[0].islower()]
    return sentences, terms


def _pattern(sentence: str) -> re.Pattern[str]:
    """Return the pattern of a sentence; each variable is as short as the text after it allows."""
    return re.compile(_VARIABLE.sub(r"(?P<\1>.+?)", re.escape(sentence)) + r"(?=\s|$)")


def _filled(template: str, match: re.Match[str], terms: _Lines) -> str:
    values = match.groupdict()
    for name, value in values.items():
        for pattern, own in terms:
            value = pattern.sub(own, value)
        values[name] = value
    return template.format_map(values)
