"""Texts in other languages than English, the language of the standards.

A language with a folder here is translated word by word, to search only, and answered in its own
words. Its files:

    words.csv       spanish,english: words and phrases in lower case, sorted; see `translation`
    sentences.csv   english,spanish: the sentences of an answer, see `sentences`
    english.txt     words that are English, too, and names: they do not show the language

A text in any other language is answered with the advice to ask in English.
"""

from __future__ import annotations

from dataclasses import dataclass

from .detection import ENGLISH, detect_language
from .sentences import message_in
from .translation import TABLES, table_of

__all__ = ["Reading", "message_in", "read_text"]


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as it is searched.

    Attributes:
        text: The text, in English if its language can be translated.
        language: The language that it was translated from, or an empty string.
        foreign: The language that it is in, if that cannot be translated, or an empty string.
    """

    text: str
    language: str = ""
    foreign: str = ""


def read_text(text: str) -> Reading:
    """Return a text in English, with the language that it was in.

    A text without words of grammar shows its language by the words of a table.
    """
    language = detect_language(text)
    if not language:
        language = next((each for each in TABLES if table_of(each).has_most_words(text)), "")
    if language in TABLES:
        return Reading(table_of(language).translate(text), language=language)
    return Reading(text, foreign="" if language == ENGLISH else language)
