"""Translate the sentences of an answer into the language of the question.

The search writes its messages in English. Each line of a table has an English sentence, with names
in braces for its variable parts, and the translation. A line that begins with a small letter is the
pattern of a term within variable parts, except in ``{text}`` and in commands. A sentence without a
line stays English.
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


_Replacements = list[tuple[re.Pattern[str], str]]


@cache
def _table(language: str) -> tuple[_Replacements, _Replacements]:
    """Return the sentences and the terms of a language."""
    folder = files(__package__ or __name__) / language.casefold()
    rows = list(csv.reader((folder / "sentences.csv").read_text("utf-8").splitlines()))[1:]
    sentences = [
        (_pattern(english), target) for english, target in rows if not english[0].islower()
    ]
    terms = [
        (re.compile(rf"(?<![\w.-]){english}(?![\w-])", re.IGNORECASE), target)
        for english, target in rows
        if english[0].islower()
    ]
    return sentences, terms


def _pattern(sentence: str) -> re.Pattern[str]:
    """Return the pattern of a sentence; each variable is as short as the text after it allows."""
    return re.compile(_VARIABLE.sub(r"(?P<\1>.+?)", re.escape(sentence)) + r"(?=\s|$)")


def _filled(template: str, terms: _Replacements, match: re.Match[str]) -> str:
    values = match.groupdict()
    for pattern, target in terms:
        values = {
            name: value if name == "text" or "`" in value else pattern.sub(target, value)
            for name, value in values.items()
        }
    return template.format_map(values)
